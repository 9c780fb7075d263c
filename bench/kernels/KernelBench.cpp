// SPDX-License-Identifier: Apache-2.0
//
// One thread; one, sixteen and 64 rows of activations, each encoding, a large and a small layer; and how
// fast this thread reads memory at the same time. `bytes_per_second` counts the weight blob once a
// call, so it compares with Read directly; `MAC` is multiplications a second. Weights stay in the cache if they fit there: the small
// layer shows arithmetic, and on a machine with a large L3 so does the large one at few bits. Sizes
// are run-time values here, where otf-compile makes them constants.
//
//   otf-kernel-bench --benchmark_repetitions=7 --benchmark_report_aggregates_only
#include "Encoding/Codec.h"
#include "Kernels.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <memory>
#include <random>
#include <vector>

using namespace otf;

namespace {

struct Free {
  void operator()(uint8_t *bytes) const { std::free(bytes); }
};
using Bytes = std::unique_ptr<uint8_t, Free>;

Bytes allocate(int64_t size) {
  return Bytes(static_cast<uint8_t *>(std::aligned_alloc(64, size_t(size + 63) / 64 * 64)));
}

struct Layer {
  Encoding encoding;
  WeightLayout layout;
  Bytes blob, records;
  int64_t recordBytes;
};

Layer makeLayer(Encoding encoding, int64_t rows, int64_t columns, int64_t m) {
  Layer layer{encoding, {}, nullptr, nullptr, 0};
  if (makeLayout(encoding, rows, columns, 0, layer.layout) != EncodeStatus::Ok)
    std::abort();
  layer.blob = allocate(layer.layout.blobBytes);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> tile(size_t(8 * columns));
  for (float &w : tile)
    w = normal(random);
  // Equal tiles cost what different ones do, and encoding a layer takes seconds.
  for (int64_t t = 0; t < layer.layout.tiles; ++t) {
    uint8_t *at = layer.blob.get() + layer.layout.tileOffset(t);
    if (t != 0)
      std::memcpy(at, layer.blob.get(), size_t(layer.layout.tileBytes));
    else if (encodeTile(encoding, layer.layout, nullptr, tile.data(), columns, 8, at) !=
             EncodeStatus::Ok)
      std::abort();
  }
  bool plain = isPlain(encoding.kind);
  layer.recordBytes = plain ? plainRecordBytes(columns) : recordLayout(columns, 0).bytes;
  layer.records = allocate(layer.recordBytes * m);
  for (int64_t i = 0; i < m; ++i) {
    uint8_t *record = layer.records.get() + i * layer.recordBytes;
    const float *x = tile.data() + i % 8 * columns;
    if (plain)
      otf_record_f32(x, columns, OTF_NORM_NONE, 0, nullptr, nullptr, record);
    else
      otf_record_i8(x, columns, OTF_NORM_NONE, 0, nullptr, nullptr, nullptr, nullptr, columns, 0,
                    record);
  }
  return layer;
}

/// `tiles` tiles from t; many go to a kernel together, as generated code hands them over.
void runTiles(const Layer &layer, int64_t t, int64_t tiles, int64_t m, float *acc) {
  const WeightLayout &l = layer.layout;
  const void *tile = layer.blob.get() + l.tileOffset(t), *rec = layer.records.get();
  int64_t bytes = l.tileBytes, stride = layer.recordBytes, group = layer.encoding.group;
  switch (layer.encoding.kind) {
  case EncodingKind::F32:
    return otf_tiles_f32(tile, bytes, tiles, rec, stride, m, l.columns, acc);
  case EncodingKind::F16:
    return otf_tiles_f16(tile, bytes, tiles, rec, stride, m, l.columns, acc);
  case EncodingKind::Int8:
    return otf_tiles_int8(tile, bytes, tiles, rec, stride, m, l.background, group, 0, acc);
  case EncodingKind::Int4:
    return otf_tiles_int4(tile, bytes, tiles, rec, stride, m, l.background, group, 0, acc);
  case EncodingKind::Codebook2:
    return otf_tiles_codebook2(tile, bytes, tiles, rec, stride, m, l.background, group, 0,
                               layer.encoding.table, acc);
  case EncodingKind::Planes3x2:
    return otf_tiles_planes3x2(tile, bytes, tiles, rec, stride, m, l.background, group, 0, acc);
  case EncodingKind::Planes3x3:
    return otf_tiles_planes3x3(tile, bytes, tiles, rec, stride, m, l.background, group, 0, acc);
  case EncodingKind::Planes3x4:
    return otf_tiles_planes3x4(tile, bytes, tiles, rec, stride, m, l.background, group, 0, acc);
  default: // no benchmark names another
    std::abort();
  }
}

void contraction(benchmark::State &state, Encoding encoding, int64_t rows, int64_t columns,
                 int64_t m) {
  Layer layer = makeLayer(encoding, rows, columns, m);
  constexpr int64_t together = 8;
  std::vector<float> acc(size_t(8 * m * together));
  for (auto _ : state)
    for (int64_t t = 0; t < layer.layout.tiles; t += together) {
      runTiles(layer, t, std::min(together, layer.layout.tiles - t), m, acc.data());
      benchmark::DoNotOptimize(acc.data());
      benchmark::ClobberMemory();
    }
  state.SetBytesProcessed(state.iterations() * layer.layout.blobBytes);
  using benchmark::Counter;
  state.counters["MAC"] = Counter(double(rows * columns * m), Counter::kIsIterationInvariantRate);
}

/// Sums 256 MiB, far beyond any cache, with four independent vectors.
void read(benchmark::State &state) {
  using Vector = uint64_t __attribute__((vector_size(32)));
  constexpr int64_t size = 256 << 20;
  Bytes bytes = allocate(size);
  std::memset(bytes.get(), 1, size);
  const Vector *v = reinterpret_cast<const Vector *>(bytes.get());
  for (auto _ : state) {
    Vector sum[4] = {};
    for (int64_t i = 0; i < size / 32; i += 4)
      for (int j = 0; j < 4; ++j)
        sum[j] += v[i + j];
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * size);
}

} // namespace

int main(int argc, char **argv) {
  benchmark::RegisterBenchmark("Read", read)->Unit(benchmark::kMicrosecond);
  const std::pair<const char *, EncodingKind> kinds[] = {{"f32", EncodingKind::F32},
                                                         {"f16", EncodingKind::F16},
                                                         {"int8", EncodingKind::Int8},
                                                         {"int4", EncodingKind::Int4},
                                                         {"codebook2", EncodingKind::Codebook2},
                                                         {"planes3x2", EncodingKind::Planes3x2},
                                                         {"planes3x3", EncodingKind::Planes3x3},
                                                         {"planes3x4", EncodingKind::Planes3x4}};
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{4096, 4096}, {576, 1536}})
    for (int64_t m : {1, 16, 64})
      for (auto [name, kind] : kinds) {
        std::string title = std::string(name) + "/" + std::to_string(rows) + "x" +
                            std::to_string(columns) + "/m" + std::to_string(m);
        benchmark::RegisterBenchmark(title.c_str(), contraction, Encoding{kind}, rows, columns, m)
            ->Unit(benchmark::kMicrosecond);
      }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
