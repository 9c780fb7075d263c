// SPDX-License-Identifier: Apache-2.0
//
// Attention of one row to a cache on a GPU: the kernels of otf-cuda-test, as the plan launches them. Caches are cold: copies of more
// than any cache holds take turns. Launches are captured as a graph without programmatic launch, so that a time is all that a layer's
// attention takes by itself. A share is the cache's bytes a second over those of a kernel that only reads, from the same run. Medians
// over rounds, and the least.
//
//   otf-cuda-bench [ROUNDS]         as otf-cuda-test, with $OTF_TEST_CUBIN_DIR where there is no NVRTC
#include "test/Codegen/CUDA/OnGpu.h"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace otf;
using namespace otf::test;

struct Case {
  const char *name;
  int width, group, rowBytes;
};
constexpr Case kCases[] = {{"attention_none_64_3", 64, 3, 256},    {"attention_half_64_3", 64, 3, 128},
                           {"attention_codes_64_3", 64, 3, 68},    {"attention_single_128_8", 128, 8, 512},
                           {"attention_half_128_8", 128, 8, 256},  {"attention_codes_128_8", 128, 8, 132},
                           {"attention_single_128_4", 128, 4, 512}, {"attention_half_128_4_none", 128, 4, 256},
                           {"attention_codes_128_4", 128, 4, 132}};
constexpr int64_t kPool = int64_t(256) << 20; // bytes of copies, at least
constexpr int kLaunches = 32;                 // of a graph, at least one of each copy

Function find(const std::string &name) {
  Function function = nullptr;
  check(machine().gpu->driver().moduleGetFunction(&function, machine().module, name.c_str()), name.c_str());
  return function;
}

struct Launch {
  Function function;
  std::vector<Pointer> parameter;
  unsigned grid;
};

/// Microseconds of each of `launches` copies, by rounds.
std::vector<double> timesOf(std::vector<std::vector<Launch>> &launches, int rounds) {
  const Driver &d = machine().gpu->driver();
  Stream stream = nullptr;
  Event events[2] = {};
  check(d.streamCreate(&stream, 1), "cuStreamCreate");
  for (Event &event : events)
    check(d.eventCreate(&event, 0), "cuEventCreate");
  check(d.streamBeginCapture(stream, 1), "cuStreamBeginCapture");
  int count = 0;
  for (; count < kLaunches || count < int(launches.size()); ++count)
    for (Launch &launch : launches[size_t(count) % launches.size()]) {
      void *parameter = launch.parameter.data();
      check(d.launchKernel(launch.function, launch.grid, 1, 1, 256, 1, 1, 0, stream, &parameter, nullptr), "launch");
    }
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  check(d.streamEndCapture(stream, &graph), "cuStreamEndCapture");
  check(d.graphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  std::vector<double> times;
  for (int round = 0; round < rounds + 2; ++round) {
    check(d.eventRecord(events[0], stream), "cuEventRecord");
    check(d.graphLaunch(exec, stream), "cuGraphLaunch");
    check(d.eventRecord(events[1], stream), "cuEventRecord");
    check(d.streamSynchronize(stream), "cuStreamSynchronize");
    float milliseconds = 0;
    check(d.eventElapsedTime(&milliseconds, events[0], events[1]), "cuEventElapsedTime");
    if (round >= 2)
      times.push_back(double(milliseconds) * 1000 / count);
  }
  d.graphExecDestroy(exec);
  d.graphDestroy(graph);
  for (Event event : events)
    d.eventDestroy(event);
  d.streamDestroy(stream);
  std::sort(times.begin(), times.end());
  return times;
}

/// Bytes a microsecond of a kernel that reads `bytes`.
double readRate(int64_t bytes, int rounds) {
  Buffer memory(static_cast<size_t>(bytes)), result(4), dims(std::vector<int64_t>{bytes / 16});
  std::vector<std::vector<Launch>> launches = {{{find("read_all"), {memory.pointer, result.pointer, dims.pointer}, 1056}}};
  return double(bytes) / timesOf(launches, rounds).front();
}

void measure(const Case &c, int64_t kvHeads, int64_t keys, int rounds, double rate) {
  const int64_t bytes = kvHeads * keys * c.rowBytes, heads = kvHeads * c.group;
  const int64_t copies = std::max<int64_t>(kPool / (2 * bytes), 2), one = (bytes + 255) / 256 * 256;
  // What the values are does not matter: the bytes of new memory are finite numbers in each form.
  Buffer caches(static_cast<size_t>(2 * one * copies)), q(size_t(heads * c.width) * 4), y(size_t(heads * c.width) * 4);
  Buffer work(size_t(heads * ((keys + 31) / 32) * (c.width + 2)) * 4 + 64);
  Buffer dims(std::vector<int64_t>{1, kvHeads, 1, keys, keys});
  const unsigned grid = unsigned(heads * ((264 + heads - 1) / heads)); // as EmitOperators.cpp
  std::vector<std::vector<Launch>> launches;
  for (int64_t i = 0; i < copies; ++i) {
    const Pointer k = caches.pointer + Pointer(2 * i * one);
    const std::vector<Pointer> parameter = {q.pointer, k, k + Pointer(one), 0, y.pointer, work.pointer, 0, dims.pointer};
    launches.push_back({{find(c.name), parameter, grid}});
    if (keys > 512)
      launches.back().push_back({find(std::string(c.name) + "_combine"), parameter, unsigned(heads * c.width / 32)});
  }
  const std::vector<double> times = timesOf(launches, rounds);
  const double median = times[times.size() / 2];
  std::printf("| %-26s | %2d x %2d | %6d | %8.2f | %8.2f | %6.0f | %.3f |\n", c.name, int(kvHeads), c.group, int(keys), median,
              times.front(), 2 * double(bytes) / median / 1000, 2 * double(bytes) / median / rate);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  if (rounds < 1) {
    std::fprintf(stderr, "otf-cuda-bench: '%s' is no number of rounds (give one from 1)\n", argv[1]);
    return 1;
  }
  if (!machine().why.empty()) {
    std::fprintf(stderr, "otf-cuda-bench: %s\n", machine().why.c_str());
    return 1;
  }
  const double rate = readRate(int64_t(1) << 30, rounds);
  std::printf("%s, reading: %.0f GB/s\n", machine().gpu->name().c_str(), rate / 1000);
  std::printf("| kernel | key heads x group | keys | us, median | us, least | GB/s | share of reading |\n|---|---|---|---|---|---|---|\n");
  for (const Case &c : kCases)
    for (int64_t keys : {256, 1024, 4096, 32768})
      measure(c, c.width == 64 ? 3 : c.group == 8 ? 2 : 8, keys, rounds, rate);
  return 0;
}
