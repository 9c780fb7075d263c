// SPDX-License-Identifier: Apache-2.0
//
// rope, append and attention, on caches and tensors, in both layouts.

#include "lib/Encoding/CacheRow.h"
#include "test/Codegen/CPUEmit/Harness.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace otf::test {
namespace {

class Heads : public LevelTest {};
OTF_LEVELS(Heads);

const std::string kernels = R"mlir(
plan.kernel @rope(%x: tensor<?x3x?x10xf32, #otf.dims<"d0", "d1">>, %c: tensor<?x?x6xf32, #otf.dims<"d0", "d1">>, %s: tensor<?x?x6xf32, #otf.dims<"d0", "d1">>)
    -> tensor<?x3x?x10xf32, #otf.dims<"d0", "d1">> {
  %y = otf.rope %x, %c, %s : (tensor<?x3x?x10xf32, #otf.dims<"d0", "d1">>, tensor<?x?x6xf32, #otf.dims<"d0", "d1">>,
      tensor<?x?x6xf32, #otf.dims<"d0", "d1">>) -> tensor<?x3x?x10xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x3x?x10xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @rope_positions(%x: tensor<?x?x3x10xf32, #otf.dims<"d0", "d1">>, %c: tensor<1x?x6xf32, #otf.dims<"d1">>, %s: tensor<1x?x6xf32, #otf.dims<"d1">>)
    -> tensor<?x?x3x10xf32, #otf.dims<"d0", "d1">> {
  %y = otf.rope %x, %c, %s {positions_first} : (tensor<?x?x3x10xf32, #otf.dims<"d0", "d1">>, tensor<1x?x6xf32, #otf.dims<"d1">>,
      tensor<1x?x6xf32, #otf.dims<"d1">>) -> tensor<?x?x3x10xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x3x10xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @append(%p: !otf.state<2x12xf32>, %x: tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xf32> {
  %y = otf.append %p, %x : (!otf.state<2x12xf32>, tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xf32>
  plan.return %y : !otf.state<2x12xf32>
}
plan.kernel @append_positions(%p: !otf.state<2x12xf16>, %x: tensor<?x?x2x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xf16> {
  %y = otf.append %p, %x {positions_first} : (!otf.state<2x12xf16>, tensor<?x?x2x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xf16>
  plan.return %y : !otf.state<2x12xf16>
}
plan.kernel @append_at(%p: !otf.state<2x12xf32>, %x: tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>, %at: tensor<?xi64, #otf.dims<"d0">>) -> !otf.state<2x12xf32> {
  %y = otf.append %p, %x at %at : (!otf.state<2x12xf32>, tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>, tensor<?xi64, #otf.dims<"d0">>) -> !otf.state<2x12xf32>
  plan.return %y : !otf.state<2x12xf32>
}
plan.kernel @attend(%q: tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<2x12xf32>, %v: !otf.state<2x20xf32>, %m: tensor<?x1x?x?xi1, #otf.dims<"d0", "d1", "d2">>)
    -> tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %v mask %m {scale = 0.25 : f32} : (tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, !otf.state<2x12xf32>,
      !otf.state<2x20xf32>, tensor<?x1x?x?xi1, #otf.dims<"d0", "d1", "d2">>) -> tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @attend_positions(%q: tensor<?x?x6x12xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<2x12xf16>, %v: !otf.state<2x20xf16>, %m: tensor<1x6x1x?xf32, #otf.dims<"d2">>)
    -> tensor<?x?x6x20xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %v mask %m {scale = 0.25 : f32, softcap = 3.0 : f32, positions_first} : (tensor<?x?x6x12xf32, #otf.dims<"d0", "d1">>, !otf.state<2x12xf16>,
      !otf.state<2x20xf16>, tensor<1x6x1x?xf32, #otf.dims<"d2">>) -> tensor<?x?x6x20xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x6x20xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @append_codes(%p: !otf.state<2x12xi8>, %x: tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xi8> {
  %y = otf.append %p, %x : (!otf.state<2x12xi8>, tensor<?x2x?x12xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x12xi8>
  plan.return %y : !otf.state<2x12xi8>
}
plan.kernel @attend_codes(%q: tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<2x12xi8>) -> tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k {scale = 0.25 : f32} : (tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, !otf.state<2x12xi8>, !otf.state<2x12xi8>)
      -> tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @attend_floats(%q: tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<2x12xf32>) -> tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k {scale = 0.25 : f32} : (tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, !otf.state<2x12xf32>, !otf.state<2x12xf32>)
      -> tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @attend_tensors(%q: tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, %k: tensor<?x2x?x12xf32, #otf.dims<"d0", "d2">>, %v: tensor<?x2x?x20xf32, #otf.dims<"d0", "d2">>)
    -> tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %v {scale = 0.25 : f32} : (tensor<?x6x?x12xf32, #otf.dims<"d0", "d1">>, tensor<?x2x?x12xf32, #otf.dims<"d0", "d2">>,
      tensor<?x2x?x20xf32, #otf.dims<"d0", "d2">>) -> tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x6x?x20xf32, #otf.dims<"d0", "d1">>
}
)mlir";

TEST_P(Heads, Rope) {
  OTF_KERNEL(rope, kernels, "rope");
  OTF_KERNEL(ropePositions, kernels, "rope_positions");
  for (int64_t b : {1, 2})
    for (int64_t s : {0, 1, 5}) {
      std::vector<float> x = floats(b * 3 * s * 10), c = floats(b * s * 6), t = floats(b * s * 6);
      auto y = run<float>(rope, {x.data(), c.data(), t.data()}, {b, s}, b * 3 * s, x.size());
      auto z =
          run<float>(ropePositions, {x.data(), c.data(), t.data()}, {b, s}, b * 3 * s, x.size());
      auto expected = [&](const float *row, const float *cos, const float *sin,
                          int64_t i) -> double {
        if (i >= 6)
          return row[i];
        return i < 3 ? double(row[i]) * cos[i] - double(row[i + 3]) * sin[i]
                     : double(row[i]) * cos[i] + double(row[i - 3]) * sin[i];
      };
      for (int64_t row = 0; row < b * 3 * s; ++row)
        for (int64_t i = 0; i < 10; ++i) {
          int64_t own = (row / (3 * s) * s + row % s) * 6, shared = row / 3 % s * 6;
          const float *from = &x[row * 10];
          ASSERT_NEAR(y[row * 10 + i], expected(from, &c[own], &t[own], i), 1e-6);
          ASSERT_NEAR(z[row * 10 + i], expected(from, &c[shared], &t[shared], i), 1e-6);
        }
    }
}

template <typename T>
void appendTest(otf_kernel kernel, const std::vector<float> &x, int64_t b, int64_t s, int64_t past,
                bool positionsFirst) {
  int64_t capacity = past + s + 2;
  std::vector<T> cache(b * 2 * capacity * 12, T(77));
  std::vector<const void *> buffers{cache.data(), x.data()};
  int64_t items = b * 2 * s;
  runRange(kernel, buffers, {b, s, past, capacity, b}, items / 3, items);
  runRange(kernel, buffers, {b, s, past, capacity, b}, 0, items / 3);
  for (int64_t i = 0; i < int64_t(cache.size()); ++i) {
    int64_t position = i / 12 % capacity - past, head = i / 12 / capacity % 2;
    int64_t batch = i / 12 / capacity / 2;
    int64_t row =
        positionsFirst ? (batch * s + position) * 2 + head : (batch * 2 + head) * s + position;
    bool fresh = position >= 0 && position < s;
    ASSERT_EQ(float(cache[i]), fresh ? float(T(x[row * 12 + i % 12])) : 77.0f);
  }
}

TEST_P(Heads, Append) {
  OTF_KERNEL(append, kernels, "append");
  OTF_KERNEL(appendPositions, kernels, "append_positions");
  for (int64_t b : {1, 2})
    for (int64_t s : {0, 1, 5})
      for (int64_t past : {0, 3}) {
        std::vector<float> x = floats(b * 2 * s * 12);
        appendTest<float>(append, x, b, s, past, false);
        appendTest<_Float16>(appendPositions, x, b, s, past, true);
      }
}

TEST_P(Heads, AppendAtPlaces) {
  OTF_KERNEL(append, kernels, "append_at");
  const int64_t past = 6, s = 3, capacity = 11;
  std::vector<float> x = floats(5 * 2 * s * 12);
  std::vector<int64_t> at = {6, 4, 1, 8, -2}; // at the end, over it, before it, past it, before the cache
  std::vector<float> cache(5 * 2 * capacity * 12, 77);
  runRange(append, {cache.data(), x.data(), at.data()}, {5, s, past, capacity, 5}, 0, 5 * 2 * s);
  for (int64_t i = 0; i < int64_t(cache.size()); ++i) {
    int64_t position = i / 12 % capacity, row = i / 12 / capacity, local = position - at[row / 2];
    float want = position >= past && position < past + s ? 0 : 77;
    if (local >= 0 && local < s && position < past + s)
      want = x[(row * s + local) * 12 + i % 12];
    ASSERT_EQ(cache[i], want) << "entry " << row / 2 << " position " << position;
  }
}

/// Keys and values [b][2][rows][width], `stride` rows apart a head.
template <typename T> struct Problem {
  int64_t b, s, t, stride;
  bool positionsFirst;
  std::vector<float> q;
  std::vector<T> k, v;
  double softcap = 0;
  /// What is added to the score of (batch, head, position, key).
  std::function<double(int64_t, int64_t, int64_t, int64_t)> mask = [](auto...) { return 0.0; };

  void check(const std::vector<float> &out) const {
    for (int64_t batch = 0; batch < b; ++batch)
      for (int64_t head = 0; head < 6; ++head)
        for (int64_t position = 0; position < s; ++position) {
          int64_t row = positionsFirst ? (batch * s + position) * 6 + head
                                       : (batch * 6 + head) * s + position;
          int64_t shared = (batch * 2 + head / 3) * stride;
          double total = 0;
          std::vector<double> sum(20);
          for (int64_t j = 0; j < t; ++j) {
            double score = 0;
            for (int64_t i = 0; i < 12; ++i)
              score += double(q[row * 12 + i]) * double(k[(shared + j) * 12 + i]);
            score *= 0.25;
            if (softcap != 0)
              score = softcap * std::tanh(score / softcap);
            double weight = std::exp(score + mask(batch, head, position, j));
            total += weight;
            for (int64_t i = 0; i < 20; ++i)
              sum[i] += weight * double(v[(shared + j) * 20 + i]);
          }
          for (int64_t i = 0; i < 20; ++i)
            ASSERT_NEAR(out[row * 20 + i], total == 0 ? 0 : sum[i] / total, 2e-5);
        }
  }
};

template <typename T> std::vector<T> convert(const std::vector<float> &values) {
  return std::vector<T>(values.begin(), values.end());
}

TEST_P(Heads, AttentionOnCaches) {
  OTF_KERNEL(attend, kernels, "attend");
  OTF_KERNEL(attendPositions, kernels, "attend_positions");
  for (int64_t b : {1, 2})
    for (int64_t s : {1, 2, 7})
      for (int64_t past : {0, 3, 150}) {
        int64_t t = past + s, capacity = t + 3;
        std::vector<int64_t> dims{b, s, t, past, capacity, b};
        std::vector<float> q = floats(b * 6 * s * 12);
        std::vector<float> k = floats(b * 2 * capacity * 12), v = floats(b * 2 * capacity * 20);

        std::vector<uint8_t> keep(b * s * t);
        for (size_t i = 0; i < keep.size(); ++i)
          keep[i] = random() % 3 != 0 && i / t % s != 1; // position 1 sees nothing
        Problem<float> whole{b, s, t, capacity, false, q, k, v};
        whole.mask = [&](int64_t batch, int64_t, int64_t position, int64_t key) {
          return keep[(batch * s + position) * t + key] ? 0.0 : -INFINITY;
        };
        whole.check(run<float>(attend, {q.data(), k.data(), v.data(), keep.data()}, dims, b * 6 * (s + 7),
                               b * 6 * s * 20));

        std::vector<float> bias = floats(6 * t);
        Problem<_Float16> halves{
            b, s, t, capacity, true, q, convert<_Float16>(k), convert<_Float16>(v), 3};
        halves.mask = [&](int64_t, int64_t head, int64_t, int64_t key) {
          return bias[head * t + key];
        };
        halves.check(run<float>(attendPositions,
                                {q.data(), halves.k.data(), halves.v.data(), bias.data()}, dims,
                                b * 6 * (s + 7), b * 6 * s * 20));
      }
}

// A cache of int8 gives what one of the decoded rows gives.
TEST_P(Heads, CachesOfCodes) {
  OTF_KERNEL(append, kernels, "append_codes");
  OTF_KERNEL(attend, kernels, "attend_codes");
  OTF_KERNEL(attendFloats, kernels, "attend_floats");
  const int64_t row = 12 + kCacheScaleBytes;
  for (int64_t b : {1, 2})
    for (int64_t s : {1, 5, 40}) {
      const int64_t capacity = s + 3;
      std::vector<float> x = floats(b * 2 * s * 12), q = floats(b * 6 * s * 12), decoded(b * 2 * capacity * 12, 77);
      std::vector<int8_t> cache(b * 2 * capacity * row);
      std::vector<int64_t> dims{b, s, 0, capacity, b};
      runRange(append, {cache.data(), x.data()}, dims, 0, b * 2 * s);
      for (int64_t head = 0; head < b * 2; ++head)
        for (int64_t position = 0; position < s; ++position) {
          std::vector<int8_t> want(static_cast<size_t>(row));
          encodeCacheRow(&x[(head * s + position) * 12], 12, want.data());
          const int8_t *got = &cache[(head * capacity + position) * row];
          ASSERT_EQ(0, std::memcmp(got, want.data(), want.size()));
          decodeCacheRow(got, 12, &decoded[(head * capacity + position) * 12]);
        }
      auto y = run<float>(attend, {q.data(), cache.data()}, dims, b * 6 * (s + 7), b * 6 * s * 12);
      auto want = run<float>(attendFloats, {q.data(), decoded.data()}, dims, b * 6 * (s + 7), b * 6 * s * 12);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(want[i], y[i], 1e-5);
    }
}

// Threads that share one row's keys leave the bits of one that does not, whoever does what and when.
TEST_P(Heads, PartsOfOneRow) {
  OTF_KERNEL(attend, kernels, "attend_floats");
  std::vector<std::byte> memory(1 << 20);
  for (int64_t b : {1, 2})
    for (int64_t past : {100, 511, 1000}) {
      const int64_t capacity = past + 3, items = b * 6 * 8, size = b * 6 * 12;
      std::vector<float> q = floats(size), k = floats(b * 2 * capacity * 12), alone(size), divided(size, 77);
      std::vector<int64_t> dims{b, 1, past, capacity, b};
      runRange(attend, {q.data(), k.data(), alone.data()}, dims, 0, items);
      const otf_kernel_shared shared{memory.data(), int64_t(memory.size())};
      for (auto [begin, end] : {std::pair<int64_t, int64_t>{30, items}, {0, 1}, {7, 30}, {1, 7}})
        runRange(attend, {q.data(), k.data(), divided.data()}, dims, begin, end, shared);
      ASSERT_EQ(0, std::memcmp(alone.data(), divided.data(), size_t(size) * 4)) << b << " " << past;
      for (size_t i = 0; i < OTF_KERNEL_COUNTERS; ++i)
        ASSERT_EQ(std::byte(0), memory[i]);
      // No room: whole heads.
      std::fill(divided.begin(), divided.end(), 77.0f);
      for (auto [begin, end] : {std::pair<int64_t, int64_t>{30, items}, {0, 30}})
        runRange(attend, {q.data(), k.data(), divided.data()}, dims, begin, end, {memory.data(), OTF_KERNEL_COUNTERS + 100});
      ASSERT_EQ(0, std::memcmp(alone.data(), divided.data(), size_t(size) * 4)) << b << " " << past;
    }
}

TEST_P(Heads, AttentionOnTensors) {
  OTF_KERNEL(attend, kernels, "attend_tensors");
  for (int64_t b : {1, 2})
    for (int64_t s : {1, 5})
      for (int64_t t : {1, 64, 70}) {
        std::vector<float> q = floats(b * 6 * s * 12);
        std::vector<float> k = floats(b * 2 * t * 12), v = floats(b * 2 * t * 20);
        Problem<float> problem{b, s, t, t, false, q, k, v};
        problem.check(run<float>(attend, {q.data(), k.data(), v.data()}, {b, s, t}, b * 6 * s,
                                 b * 6 * s * 20));
      }
}

} // namespace
} // namespace otf::test
