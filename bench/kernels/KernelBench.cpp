// SPDX-License-Identifier: Apache-2.0
//
// Each encoding's linear, as otf-compile emits it for these sizes, on one thread, beside the read bandwidth of this thread in
// the same rounds. Weights are cold: copies of the blob, more than any cache holds, take turns. A share is the blob's bytes a
// second over those of the read loop of its round; the table shows medians over rounds, JSON the least as well. Time is
// the thread's own, not what others take of the processor.
//
//   otf-kernel-bench [--rows N] [--columns K] [--m M] [--rounds R] [--pool MIB] [--level avx2|avx512vnni] [--json FILE] [NAME...]
#include "Encoding/Codec.h"
#include "bench/kernels/Compile.h"
#include "lib/Codegen/CPU/kernels/Kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace otf;

namespace {

struct Options {
  int64_t rows = 4096, columns = 4096, m = 1, rounds = 9, pool = 128;
  std::string level = "avx2", json;
  std::vector<std::string> names; ///< all where empty
};

struct Case {
  const char *name;
  EncodingKind kind;
  int64_t group;
};

constexpr Case kCases[] = {{"f32", EncodingKind::F32, 0},
                           {"f16", EncodingKind::F16, 0},
                           {"int8", EncodingKind::Int8, 128},
                           {"int8", EncodingKind::Int8, 32},
                           {"int4", EncodingKind::Int4, 128},
                           {"int4", EncodingKind::Int4, 32},
                           {"codebook2", EncodingKind::Codebook2, 128},
                           {"codebook2", EncodingKind::Codebook2, 32},
                           {"ternary_sign", EncodingKind::TernarySign, 128},
                           {"grid4", EncodingKind::Grid4, 128},
                           {"grid2", EncodingKind::Grid2, 128},
                           {"planes3x2", EncodingKind::Planes3x2, 0},
                           {"planes3x3", EncodingKind::Planes3x3, 0},
                           {"planes3x4", EncodingKind::Planes3x4, 0},
                           {"planes4x2", EncodingKind::Planes4x2, 0},
                           {"planes4x3", EncodingKind::Planes4x3, 0}};

struct Free {
  void operator()(uint8_t *bytes) const { std::free(bytes); }
};
using Bytes = std::unique_ptr<uint8_t, Free>;

Bytes allocate(int64_t size) {
  auto *bytes = static_cast<uint8_t *>(std::aligned_alloc(4096, size_t(size + 4095) / 4096 * 4096));
  if (!bytes) {
    std::fprintf(stderr, "error: no memory for %ld bytes of weights; a smaller --pool needs less\n", long(size));
    std::exit(1);
  }
  return Bytes(bytes);
}

/// Nanoseconds of this thread.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

/// Bytes a nanosecond of a loop that only loads and adds, with four independent vectors. Not that of runtime/CPU/Ceilings.h: this
/// one is of one thread, in its own processor time, and of the same memory and round as the kernel beside it, so that who else uses
/// the machine slows down both.
__attribute__((target("avx2"))) double readBandwidth(const uint8_t *bytes, int64_t size) {
  using Vector = uint64_t __attribute__((vector_size(32)));
  const auto *v = reinterpret_cast<const Vector *>(bytes);
  int64_t count = size / 128 * 4;
  Vector a{}, b{}, c{}, d{};
  double begin = now();
  for (int64_t i = 0; i < count; i += 4) {
    a += v[i];
    b += v[i + 1];
    c += v[i + 2];
    d += v[i + 3];
  }
  a += b + c + d;
  asm volatile("" : : "x"(a));
  return double(count * 32) / (now() - begin);
}

std::string kernelText(const Case &what, const Options &options, int64_t recordBytes) {
  bool plain = isPlain(what.kind);
  std::string columns = std::to_string(options.columns), rows = std::to_string(options.rows);
  std::string x = "tensor<?x" + (plain ? columns + "xf32" : std::to_string(recordBytes) + "xi8") + ", #otf.dims<\"d0\">>";
  std::string w = "!otf.matrix<" + rows + "x" + columns + ", #otf.encoding<" + what.name +
                  (plain ? "" : ", group = " + std::to_string(what.group)) + ">>";
  std::string y = "tensor<?x" + rows + "xf32, #otf.dims<\"d0\">>";
  return "plan.kernel @linear(%x: " + x + ", %w: " + w + ") -> " + y + " {\n  %y = otf.linear %x, %w : (" + x + ", " + w +
         ") -> " + y + "\n  plan.return %y : " + y + "\n}\n";
}

struct Figures {
  int64_t bytes = 0;
  double least = 0, median = 0; ///< µs
  double share = 0, read = 0;   ///< medians; read in GB/s
};

double middle(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool measure(const Case &what, const Options &options, Figures &figures) {
  Encoding encoding{what.kind, what.group};
  WeightLayout layout;
  if (EncodeStatus status = makeLayout(encoding, options.rows, options.columns, 0, layout); status != EncodeStatus::Ok) {
    std::fprintf(stderr, "error: %s: %s\n", what.name, describe(status));
    return false;
  }
  // Equal tiles cost what different ones do, and encoding a layer takes seconds.
  int64_t blob = (layout.blobBytes + 4095) / 4096 * 4096, copies = std::max(int64_t(1), (options.pool << 20) / blob);
  Bytes pool = allocate(blob * copies);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> tile(size_t(8 * options.columns));
  for (float &w : tile)
    w = normal(random);
  std::vector<uint8_t> encoded(size_t(layout.tileBytes));
  if (EncodeStatus status = encodeTile(encoding, layout, nullptr, tile.data(), options.columns, 8, encoded.data());
      status != EncodeStatus::Ok) {
    std::fprintf(stderr, "error: %s: %s\n", what.name, describe(status));
    return false;
  }
  for (int64_t copy = 0; copy < copies; ++copy)
    for (int64_t t = 0; t < layout.tiles; ++t)
      std::memcpy(pool.get() + copy * blob + layout.tileOffset(t), encoded.data(), encoded.size());

  bool plain = isPlain(what.kind);
  RecordLayout record = recordLayout(options.columns, 0);
  int64_t rowBytes = plain ? options.columns * 4 : record.bytes;
  Bytes rows = allocate(rowBytes * options.m);
  for (int64_t i = 0; i < options.m; ++i) {
    uint8_t *row = rows.get() + i * rowBytes;
    for (int64_t c = 0; c < options.columns && plain; ++c)
      reinterpret_cast<float *>(row)[c] = normal(random);
    for (int64_t c = 0; c < record.chunks && !plain; ++c) {
      int32_t sum = 0;
      for (int64_t k = 32 * c; k < 32 * (c + 1); ++k)
        sum += reinterpret_cast<int8_t *>(row)[k] = int8_t(int(random() % 255) - 127);
      reinterpret_cast<float *>(row + record.scaleOffset)[c] = 0.01f;
      reinterpret_cast<int32_t *>(row + record.sumOffset)[c] = sum;
    }
  }

  otf_kernel kernel = bench::compiled(kernelText(what, options, record.bytes), "linear", options.level);
  if (!kernel)
    return false;
  std::vector<float> result(size_t(options.m * options.rows));
  Bytes scratch = allocate(OTF_KERNEL_SCRATCH + sizeof(otf_kernel_shared));
  std::vector<double> times, shares, reads;
  int64_t copy = 0, calls = options.m == 1 ? 4 : 1;
  for (int64_t round = -1; round < options.rounds; ++round) { // the first only warms up
    double read = readBandwidth(pool.get(), blob * copies), begin = now();
    for (int64_t call = 0; call < calls; ++call, copy = (copy + 1) % copies) {
      void *buffers[] = {rows.get(), pool.get() + copy * blob, result.data()};
      kernel(buffers, &options.m, 0, layout.tiles, scratch.get());
    }
    double time = (now() - begin) / double(calls);
    if (round < 0)
      continue;
    times.push_back(time / 1e3);
    reads.push_back(read);
    shares.push_back(double(layout.blobBytes) / time / read);
  }
  figures = {layout.blobBytes, *std::min_element(times.begin(), times.end()), middle(times), middle(shares), middle(reads)};
  return true;
}

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag.rfind("--", 0) != 0) {
      bool known = std::any_of(std::begin(kCases), std::end(kCases), [&](const Case &c) { return flag == c.name; });
      if (!known) {
        std::fprintf(stderr, "error: no encoding %s is measured\n", flag.c_str());
        return false;
      }
      options.names.push_back(flag);
      continue;
    }
    if (++i == argc) {
      std::fprintf(stderr, "error: %s needs a value\n", flag.c_str());
      return false;
    }
    int64_t *number = flag == "--rows"      ? &options.rows
                      : flag == "--columns" ? &options.columns
                      : flag == "--m"       ? &options.m
                      : flag == "--rounds"  ? &options.rounds
                      : flag == "--pool"    ? &options.pool
                                            : nullptr;
    if (number) {
      char *end;
      *number = std::strtoll(argv[i], &end, 10);
      if (*end || *number < 1 || *number > 1 << 20) {
        std::fprintf(stderr, "error: %s takes a number from 1 to 1048576, not %s\n", flag.c_str(), argv[i]);
        return false;
      }
    } else if (flag == "--level") {
      options.level = argv[i];
    } else if (flag == "--json") {
      options.json = argv[i];
    } else {
      std::fprintf(stderr, "error: unknown option %s\n", flag.c_str());
      return false;
    }
  }
  return true;
}

bool supported(const std::string &level) {
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (level != "avx512vnni")
    return avx2; // the compiler says which levels there are
  return avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options))
    return 2;
  if (!supported(options.level)) {
    std::fprintf(stderr, "error: this processor has no %s\n", options.level.c_str());
    return 1;
  }
  FILE *json = options.json.empty() ? nullptr : std::fopen(options.json.c_str(), "w");
  if (!options.json.empty() && !json) {
    std::perror(("error: cannot write " + options.json).c_str());
    return 1;
  }
  std::printf("%ld x %ld, %ld row%s, one thread, %s\n", long(options.rows), long(options.columns), long(options.m),
              options.m == 1 ? "" : "s", options.level.c_str());
  std::printf("%-13s %5s %6s %9s %9s %7s %6s %7s %9s\n", "encoding", "group", "bits", "least us", "us", "GB/s", "share", "read",
              "G w x/s");
  const char *separator = "";
  if (json)
    std::fprintf(json, "{\"rows\": %ld, \"columns\": %ld, \"m\": %ld, \"level\": \"%s\", \"kernels\": [", long(options.rows),
                 long(options.columns), long(options.m), options.level.c_str());
  for (const Case &what : kCases) {
    if (!options.names.empty() && !std::count(options.names.begin(), options.names.end(), what.name))
      continue;
    Figures f;
    if (!measure(what, options, f))
      return 1;
    double weights = double(options.rows * options.columns), products = weights * double(options.m) / f.median / 1e3;
    std::printf("%-13s %5ld %6.3f %9.1f %9.1f %7.2f %6.2f %7.2f %9.2f\n", what.name, long(what.group), 8 * double(f.bytes) / weights,
                f.least, f.median, double(f.bytes) / f.median / 1e3, f.share, f.read, products);
    std::fflush(stdout);
    if (json)
      std::fprintf(json,
                   "%s\n  {\"encoding\": \"%s\", \"group\": %ld, \"bytes\": %ld, \"least_us\": %.2f, \"us\": %.2f, \"share\": %.4f, "
                   "\"read_gb_s\": %.3f, \"products_g_s\": %.3f}",
                   separator, what.name, long(what.group), long(f.bytes), f.least, f.median, f.share, f.read, products);
    separator = ",";
  }
  if (json && (std::fprintf(json, "\n]}\n") < 0 || std::fclose(json) != 0)) {
    std::perror(("error: cannot write " + options.json).c_str());
    return 1;
  }
  return 0;
}
