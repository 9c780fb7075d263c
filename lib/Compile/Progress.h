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

  /// `done` of `total`; nothing is drawn for a total of 0 but the name.
  void show(const std::string &what, uint64_t done = 0, uint64_t total = 0);
  /// Takes the line away, so that something else can be printed.
  void clear();
  double seconds() const;

private:
  std::chrono::steady_clock::time_point start, drawn;
  bool terminal, visible = false;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_PROGRESS_H
