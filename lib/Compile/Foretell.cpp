// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/Foretell.h"

#include "lib/Compile/Footprint.h"
#include "runtime/CPU/Ceilings.h"

#include "llvm/Support/Format.h"

namespace otf {

namespace {
/// Read to see how fast this machine reads: more than caches hold, less than a compile may take.
constexpr size_t kBandwidthBytes = size_t(64) << 20;

/// Three digits, and no exponent where a person would write none.
std::string number(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(value >= 100 && value < 1e15 ? "%.0f" : "%.3g", value);
  return text;
}
} // namespace

std::string foretell(const plan::model::Plan &metadata, const CompileOptions &options, llvm::raw_ostream &out) {
  const bool grows = !metadata.states.empty();
  int64_t context = options.context ? options.context : defaultContext(metadata);
  std::optional<Footprint> footprint = footprintOf(metadata, context);
  if (!footprint)
    return "its memory at a context of " + std::to_string(context) + " does not fit in 64 bits (give a smaller --context)";
  auto megabytes = [&](const char *what, uint64_t bytes) {
    out << llvm::format("%.1f MB ", double(bytes) / 1e6) << what;
  };
  out << (grows ? "one token: " : "one run with every symbolic size 1: ");
  megabytes("of weights read, ", footprint->read);
  if (footprint->atLeast)
    out << "at least ";
  megabytes("of scratch and outputs", footprint->scratch);
  if (grows) {
    out << ", ";
    megabytes("of cache for ", footprint->states);
    out << context << " positions";
  }
  out << "\n";

  double bandwidth = double(options.bandwidth);
  if (bandwidth == 0 && options.cpu) {
    runtime::Result<double> measured = runtime::measureReadBandwidth(options.threads, kBandwidthBytes);
    if (!measured.ok())
      return measured.status().message();
    bandwidth = measured.value();
  }
  if (bandwidth > 0 && footprint->read) {
    double seconds = double(footprint->read) / bandwidth, full = seconds + double(footprint->states) / bandwidth;
    if (grows)
      out << "at most " << number(1 / seconds) << " tokens/s with an empty cache and " << number(1 / full) << " with a full one";
    else
      out << "at least " << number(seconds * 1e3) << " ms a run";
    out << ", since weights" << (grows ? " and cache" : "") << " are read at " << number(bandwidth / 1e9) << " GB/s (";
    if (options.bandwidth)
      out << "--bandwidth)\n";
    else
      out << "what " << options.threads << " threads read here; --bandwidth says it of another machine)\n";
  }
  return {};
}

} // namespace otf
