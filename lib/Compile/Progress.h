// SPDX-License-Identifier: Apache-2.0
//
// One line on a terminal that says what long work is at. Silent for the first two seconds, and
// always where standard error is no terminal.
#ifndef OTF_LIB_COMPILE_PROGRESS_H
#define OTF_LIB_COMPILE_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <string>

namespace otf {

class Progress {
public:
  Progress();
  ~Progress() { clear(); }

  /// `done` of `total`; nothing is drawn for a total of 0 but the name. `at`: which part of it, "/model/layers.3/mlp/up_proj".
  void show(const std::string &what, uint64_t done = 0, uint64_t total = 0, const std::string &at = {});
  /// Takes the line away, so that something else can be printed.
  void clear();
  double seconds() const;

  /// The line, after `seconds` of this work.
  static std::string line(const std::string &what, const std::string &at, uint64_t done, uint64_t total, double seconds);

private:
  using Time = std::chrono::steady_clock::time_point;
  Time start, drawn, begun; // `begun`: the work at hand
  std::string doing;
  bool terminal, visible = false;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_PROGRESS_H
