// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a run goes: the clocks of steps beside the bytes that each reads and the products
// it computes, and what share that is of the machine's ceilings. Equal kernels count together.
//
// Bytes are those of a contraction's weights, of the rows that an embedding picks, and of the positions
// of a cache that an attention reads; activations stay in caches and are not counted. A step's limit is the larger of
// the two times that bytes and products need at the ceilings; its share is that by what it took.
#ifndef OTF_TOOLS_OTF_EXEC_STEPPROFILE_H
#define OTF_TOOLS_OTF_EXEC_STEPPROFILE_H

#include "runtime/CPU/Ceilings.h"
#include "runtime/Session.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace otf::exec {

class StepProfile {
public:
  struct Row {
    std::string kernel, what; // what: encoding and shape of the weights, or "cache"
    std::string label;        // of the model's node, where the row is one step
    size_t steps = 0;
    double seconds = 0; // a run
    double waiting = 0; // of `seconds`, times threads: threads that wait for others or have nothing to do
    uint64_t bytes = 0, macs = 0; // a run
  };

  /// `events` of `runs` equal runs over `tokens` rows each. A step's time is the median of its runs, so that other
  /// processes do not show. `threads`: of the host, 0 where the device is none.
  StepProfile(const runtime::Session &session, const std::vector<runtime::StepEvent> &events, size_t runs,
              int64_t tokens, unsigned threads);

  bool empty() const { return steps.empty(); }
  double seconds() const; // of a run, in steps
  /// Equal kernels together, or each step; the longest first.
  std::vector<Row> rows(bool each) const;

  /// Prints rows. Without ceilings there are no shares.
  void print(bool each, const std::optional<runtime::Ceilings> &ceilings) const;
  nlohmann::ordered_json json(bool each, const std::optional<runtime::Ceilings> &ceilings) const;

  /// The events as Chrome's trace format (chrome://tracing, Perfetto).
  runtime::Status writeTrace(const std::string &path, const std::vector<runtime::StepEvent> &events) const;

private:
  std::vector<Row> steps; // those that ran, in the program's order
  std::vector<size_t> rowOf; // by step of the program
  unsigned threads;
};

/// The share of the ceilings, or nothing where the row neither reads weights nor a cache.
std::optional<double> limitShare(const StepProfile::Row &row, const runtime::Ceilings &ceilings);

} // namespace otf::exec

#endif // OTF_TOOLS_OTF_EXEC_STEPPROFILE_H
