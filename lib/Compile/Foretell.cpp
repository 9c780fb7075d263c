// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/Foretell.h"

#include "lib/Compile/Footprint.h"

#include "llvm/Support/Format.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace otf {

double readBandwidth(unsigned threads) {
  std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(kBandwidthBytes), std::free);
  if (!memory)
    return 0;
  auto *bytes = static_cast<unsigned char *>(memory.get());
  std::memset(bytes, 1, kBandwidthBytes); // its pages are its own
  double best = 0;
  for (int pass = 0; pass < 4; ++pass) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point begin = Clock::now();
    std::vector<std::thread> readers;
    uint64_t part = kBandwidthBytes / threads;
    // memchr reads in the widest vectors that the machine has, however this file was compiled.
    auto read = [&](unsigned thread) { return std::memchr(bytes + thread * part, 2, part) != nullptr; };
    for (unsigned thread = 1; thread < threads; ++thread)
      readers.emplace_back(read, thread);
    (void)!read(0);
    for (std::thread &reader : readers)
      reader.join();
    best = std::max(best, double(part * threads) / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

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
  if (bandwidth == 0 && options.cpu)
    bandwidth = readBandwidth(options.threads);
  if (bandwidth > 0 && footprint->read) {
    double seconds = double(footprint->read) / bandwidth, full = seconds + double(footprint->states) / bandwidth;
    if (grows)
      out << llvm::format("at most %.4g tokens/s with an empty cache and %.4g with a full one", 1 / seconds, 1 / full);
    else
      out << llvm::format("at least %.3g ms a run", seconds * 1e3);
    out << llvm::format(", since weights%s are read at %.3g GB/s (", grows ? " and cache" : "", bandwidth / 1e9);
    if (options.bandwidth)
      out << "--bandwidth)\n";
    else
      out << "what " << options.threads << " threads read here; --bandwidth says it of another machine)\n";
  }
  return {};
}

} // namespace otf
