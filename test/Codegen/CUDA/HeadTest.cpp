// SPDX-License-Identifier: Apache-2.0
//
// Rotary embeddings and attention against float64.
#include "test/Codegen/CUDA/OnGpu.h"
#include "test/Codegen/Canonical.h"

#include "Encoding/CacheRow.h"

namespace {

using namespace otf;
using namespace otf::test;

void testRope(const std::string &name, int d, int rotary, bool pairs) {
  const int64_t outer = 6, length = 5;
  std::vector<float> x = normals(size_t(outer * length * d), 31);
  std::vector<float> c = normals(size_t(length * rotary), 32), s = normals(c.size(), 33);
  Buffer xb(x), cb(c), sb(s), y(x.size() * 4);
  launch(name, {xb.pointer, cb.pointer, sb.pointer, y.pointer}, {outer, length}, 2);
  std::vector<double> want(x.size()), size(x.size());
  for (int64_t r = 0; r < outer * length; ++r)
    for (int i = 0; i < d; ++i) {
      const float *row = x.data() + r * d;
      size_t at = size_t(r * d + i), table = size_t(r % length * rotary + i);
      want[at] = row[i];
      if (i < rotary) {
        int half = rotary / 2;
        int other = pairs ? i ^ 1 : i < half ? i + half : i - half;
        double sign = (pairs ? i % 2 == 0 : i < half) ? -1 : 1;
        want[at] = double(row[i]) * c[table] + sign * row[other] * s[table];
      }
      size[at] = 8;
    }
  expectNear(y.get<float>(), want, size, 1e-6);
}
TEST(Rope, Halves) {
  NEEDS_GPU();
  testRope("rope_64_64", 64, 64, false);
}
TEST(Rope, PartOfAHead) {
  NEEDS_GPU();
  testRope("rope_20_8", 20, 8, false);
}
TEST(Rope, Pairs) {
  NEEDS_GPU();
  testRope("rope_64_64_pairs", 64, 64, true);
}

enum class MaskKind { none, add, keep, causal };
enum class Held { f32, f16, codes };

struct AttentionCase {
  const char *name;
  int width, group;
  Held held;
  double softcap;
  MaskKind mask;
  bool sink = false;
};

/// Rows of a cache: bytes, and what they stand for. `numbers`: of codes, the codes, and scales beside them.
struct Rows {
  std::vector<uint8_t> bytes;
  std::vector<float> numbers, scales;
  double value(int64_t row, int64_t width, int64_t e) const {
    return double(numbers[size_t(row * width + e)]) * scales[size_t(row)];
  }
};

Rows hold(std::vector<float> x, int64_t width, Held held) {
  Rows rows;
  rows.scales.assign(x.size() / size_t(width), 1.0f);
  if (held == Held::f16) {
    rows.bytes.resize(x.size() * 2);
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t half = cacheHalf(x[i]);
      std::memcpy(rows.bytes.data() + 2 * i, &half, 2);
      x[i] = halfToFloat(half);
    }
  } else if (held == Held::codes) {
    for (size_t row = 0; row < rows.scales.size(); ++row) {
      std::vector<uint8_t> bytes(size_t(width + kCacheScaleBytes));
      encodeCacheRow(x.data() + row * size_t(width), width, bytes.data());
      std::memcpy(&rows.scales[row], bytes.data() + width, 4);
      for (int64_t i = 0; i < width; ++i)
        x[row * size_t(width) + size_t(i)] = float(int8_t(bytes[size_t(i)]));
      rows.bytes.insert(rows.bytes.end(), bytes.begin(), bytes.end());
    }
  } else {
    rows.bytes.resize(x.size() * 4);
    std::memcpy(rows.bytes.data(), x.data(), rows.bytes.size());
  }
  rows.numbers = std::move(x);
  return rows;
}

/// Runs an attention entry and its reference. `divided`: with memory in which blocks leave what others join.
void testAttention(const AttentionCase &c, int64_t batch, int64_t kv, int64_t length, int64_t keys,
                   bool divided = false, unsigned grid = 5) {
  SCOPED_TRACE(cat(c.name, ": batch ", batch, ", heads ", kv, ", queries ", length, ", keys ", keys,
                   divided ? ", divided" : "", ", grid ", grid));
  const int64_t capacity = keys + 3, heads = kv * c.group, d = c.width;
  std::vector<float> q = normals(size_t(batch * heads * length * d), 41);
  std::vector<float> given = normals(size_t(batch * kv * capacity * d), 42), others = normals(given.size(), 43);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t row = 0; row < given.size() / size_t(d); ++row)
    if (int64_t(row) % capacity >= keys) // what is not filled is not read
      std::fill_n(given.begin() + int64_t(row) * d, d, nan),
          std::fill_n(others.begin() + int64_t(row) * d, d, nan);
  const Rows k = hold(given, d, c.held), v = hold(others, d, c.held);
  const float minusInfinity = -std::numeric_limits<float>::infinity();
  Random random(44);
  std::vector<float> add(size_t(length * keys)), sinks = normals(size_t(heads), 45);
  for (float &f : add)
    f = random.next() % 4 == 0 ? minusInfinity : random.normal();
  for (int64_t j = 0; j < keys; ++j)
    add[size_t((length - 1) * keys + j)] = minusInfinity; // the last query sees nothing
  if (length == 1) // and a single one every other block
    for (int64_t j = 0; j < keys; ++j)
      add[size_t(j)] = j / 32 % 2 ? minusInfinity : float(j % 7);
  std::vector<uint8_t> keep;
  for (int64_t j = 0; j < keys; ++j)
    keep.push_back(j % 3 != 1);

  Buffer qb(q), kb(k.bytes), vb(v.bytes), addBuffer(add), keepBuffer(keep), sinkBuffer(sinks), y(q.size() * 4);
  Buffer work(divided ? size_t(batch * heads * length * ((keys + 31) / 32) * (d + 2)) * 4 + 64 : 0);
  std::vector<Pointer> buffers = {qb.pointer, kb.pointer, vb.pointer, c.mask == MaskKind::keep ? keepBuffer.pointer : addBuffer.pointer,
                                  y.pointer, divided ? work.pointer : 0, sinkBuffer.pointer};
  const std::vector<int64_t> dims = {batch, kv, length, keys, capacity};
  launch(c.name, buffers, dims, grid);
  if (divided) {
    launch(cat(c.name, "_combine"), buffers, dims, grid);
    work.get<float>(); // checks the fence
  }

  std::vector<double> want(q.size()), size(q.size(), 1);
  std::vector<double> s(static_cast<size_t>(keys));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = ((b * heads + h) * length + i) * d, cache = (b * kv + h / c.group) * capacity;
        double top = -INFINITY, total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t e = 0; e < d; ++e)
            dot += double(q[size_t(at + e)]) * k.value(cache + j, d, e);
          dot *= 0.125;
          if (c.softcap > 0)
            dot = c.softcap * std::tanh(dot / c.softcap);
          if (c.mask == MaskKind::add)
            dot += add[size_t(i * keys + j)];
          if ((c.mask == MaskKind::keep && !keep[size_t(j)]) ||
              (c.mask == MaskKind::causal && j > keys - length + i))
            dot = -INFINITY;
          s[size_t(j)] = dot;
          top = std::max(top, dot);
        }
        for (int64_t j = 0; j < keys && top > -INFINITY; ++j) {
          double p = std::exp(s[size_t(j)] - top);
          total += p;
          for (int64_t e = 0; e < d; ++e)
            want[size_t(at + e)] += p * v.value(cache + j, d, e);
        }
        if (c.sink && total > 0)
          total += std::exp(double(sinks[size_t(h)]) - top);
        for (int64_t e = 0; e < d && total > 0; ++e)
          want[size_t(at + e)] /= total;
      }
  // Scores up to some 10 have an error of 1e-6 each, which the exponential makes relative.
  expectNear(y.get<float>(), want, size, 2e-5);

  std::vector<float> exactly;
  for (int64_t row = 0; row < batch * heads * length; ++row) {
    int64_t i = row % length, h = row / length % heads, b = row / length / heads, cache = (b * kv + h / c.group) * capacity;
    const float *kr = k.numbers.data() + cache * d, *vr = v.numbers.data() + cache * d;
    for (float value : test::canonical::attention(
             q.data() + row * d, d, d, keys, [&](int64_t j, int64_t e) { return kr[j * d + e]; },
             [&](int64_t j, int64_t e) { return vr[j * d + e]; }, [&](int64_t j) { return k.scales[size_t(cache + j)]; },
             [&](int64_t j) { return v.scales[size_t(cache + j)]; }, 0.125f, float(c.softcap),
             [&](int64_t j, float score) {
               if (c.mask == MaskKind::add)
                 return score + add[size_t(i * keys + j)];
               bool hidden = (c.mask == MaskKind::keep && !keep[size_t(j)]) ||
                             (c.mask == MaskKind::causal && j > keys - length + i);
               return hidden ? minusInfinity : score;
             },
             c.sink ? &sinks[size_t(h)] : nullptr))
      exactly.push_back(value);
  }
  expectSame(y.get<float>(), exactly);
}

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, EqualsTheReference) {
  NEEDS_GPU();
  const AttentionCase &c = GetParam();
  for (auto [length, keys] : {std::pair<int64_t, int64_t>{1, 1},
                              {1, 31},
                              {1, 33},
                              {1, 300},
                              {2, 64},
                              {5, 70},
                              {33, 33},
                              {40, 129}})
    testAttention(c, 2, 2, length, keys);
  testAttention(c, 1, 1, 1, 1500);
}
TEST_P(Attention, KeysDividedOverBlocks) {
  NEEDS_GPU();
  const AttentionCase &c = GetParam();
  testAttention(c, 2, 2, 1, 512, true);  // one block walks along all
  testAttention(c, 2, 2, 1, 513, true);  // fewer blocks than heads
  testAttention(c, 2, 2, 1, 1000, true, 37); // not as many for each
  testAttention(c, 1, 3, 2, 641, true, 24);
  testAttention(c, 1, 1, 1, 5000, true, 264);
}
INSTANTIATE_TEST_SUITE_P(
    Entry, Attention,
    testing::Values(AttentionCase{"attention_none_64_3", 64, 3, Held::f32, 0, MaskKind::none},
                    AttentionCase{"attention_add_64_3", 64, 3, Held::f32, 0, MaskKind::add},
                    AttentionCase{"attention_keep_64_3", 64, 3, Held::f32, 0, MaskKind::keep},
                    AttentionCase{"attention_causal_64_3", 64, 3, Held::f32, 0, MaskKind::causal},
                    AttentionCase{"attention_cap_20_1", 20, 1, Held::f32, 5, MaskKind::add},
                    AttentionCase{"attention_odd_33_2", 33, 2, Held::f32, 0, MaskKind::none},
                    AttentionCase{"attention_half_128_4", 128, 4, Held::f16, 0, MaskKind::add},
                    AttentionCase{"attention_half_64_3", 64, 3, Held::f16, 0, MaskKind::none},
                    AttentionCase{"attention_single_128_8", 128, 8, Held::f32, 0, MaskKind::none},
                    AttentionCase{"attention_half_128_8", 128, 8, Held::f16, 0, MaskKind::none},
                    AttentionCase{"attention_wide_256_8", 256, 8, Held::f16, 0, MaskKind::causal},
                    AttentionCase{"attention_wide_256_2", 256, 2, Held::f32, 0, MaskKind::causal},
                    AttentionCase{"attention_codes_64_3", 64, 3, Held::codes, 0, MaskKind::none},
                    AttentionCase{"attention_codes_128_8", 128, 8, Held::codes, 0, MaskKind::causal},
                    AttentionCase{"attention_codes_256_5", 256, 5, Held::codes, 30, MaskKind::add},
                    AttentionCase{"attention_codes_33_2", 33, 2, Held::codes, 0, MaskKind::keep},
                    AttentionCase{"attention_sink_64_7", 64, 7, Held::f16, 0, MaskKind::keep, true},
                    AttentionCase{"attention_sink_32_6", 32, 6, Held::codes, 0, MaskKind::causal, true}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
