// SPDX-License-Identifier: Apache-2.0
//
// Rotary embeddings and attention against float64.
#include "test/Codegen/CUDA/OnGpu.h"
#include "test/Codegen/Canonical.h"

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

struct AttentionCase {
  const char *name;
  int width, group;
  bool half;
  double softcap;
  MaskKind mask;
};

/// Runs an attention entry (or the pair for long caches) and its reference.
void testAttention(const AttentionCase &c, int64_t batch, int64_t kv, int64_t length, int64_t keys,
                   int64_t parts = 0) {
  SCOPED_TRACE(cat(c.name, ": batch ", batch, ", heads ", kv, ", queries ", length, ", keys ", keys,
                   ", parts ", parts));
  const int64_t capacity = keys + 3, heads = kv * c.group, d = c.width;
  std::vector<float> q = normals(size_t(batch * heads * length * d), 41);
  std::vector<float> k = normals(size_t(batch * kv * capacity * d), 42), v = normals(k.size(), 43);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t row = 0; row < k.size() / size_t(d); ++row)
    if (int64_t(row) % capacity >= keys) // what is not filled is not read
      std::fill_n(k.begin() + int64_t(row) * d, d, nan),
          std::fill_n(v.begin() + int64_t(row) * d, d, nan);
  std::vector<uint16_t> kHalf, vHalf;
  if (c.half) {
    for (auto [from, to] : {std::pair(&k, &kHalf), std::pair(&v, &vHalf)})
      for (float &f : *from) {
        to->push_back(floatToHalf(f));
        f = halfToFloat(to->back());
      }
  }
  const float minusInfinity = -std::numeric_limits<float>::infinity();
  Random random(44);
  std::vector<float> add(size_t(length * keys));
  for (float &f : add)
    f = random.next() % 4 == 0 ? minusInfinity : random.normal();
  for (int64_t j = 0; j < keys; ++j)
    add[size_t((length - 1) * keys + j)] = minusInfinity; // the last query sees nothing
  std::vector<uint8_t> keep;
  for (int64_t j = 0; j < keys; ++j)
    keep.push_back(j % 3 != 1);

  std::unique_ptr<Buffer> kb, vb;
  kb = c.half ? std::make_unique<Buffer>(kHalf) : std::make_unique<Buffer>(k);
  vb = c.half ? std::make_unique<Buffer>(vHalf) : std::make_unique<Buffer>(v);
  Buffer qb(q), addBuffer(add), keepBuffer(keep), y(q.size() * 4);
  std::vector<int64_t> dims = {batch, kv, length, keys, capacity, parts};
  if (parts == 0) {
    launch(c.name,
           {qb.pointer, kb->pointer, vb->pointer,
            c.mask == MaskKind::keep ? keepBuffer.pointer : addBuffer.pointer, y.pointer},
           dims, 5);
  } else {
    Buffer work(size_t(batch * heads * length * parts * (d + 2)) * 4);
    launch("attention_parts_64_3", {qb.pointer, kb->pointer, vb->pointer, work.pointer}, dims, 7);
    launch("attention_combine_64_3", {work.pointer, y.pointer}, dims, 3);
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
            dot += double(q[size_t(at + e)]) * k[size_t((cache + j) * d + e)];
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
            want[size_t(at + e)] += p * v[size_t((cache + j) * d + e)];
        }
        for (int64_t e = 0; e < d && total > 0; ++e)
          want[size_t(at + e)] /= total;
      }
  // Scores up to some 10 have an error of 1e-6 each, which the exponential makes relative.
  expectNear(y.get<float>(), want, size, 2e-5);

  std::vector<float> exactly;
  for (int64_t row = 0; row < batch * heads * length; ++row) {
    int64_t i = row % length, h = row / length % heads, b = row / length / heads;
    const float *kr = k.data() + (b * kv + h / c.group) * capacity * d;
    const float *vr = v.data() + (b * kv + h / c.group) * capacity * d;
    for (float value : test::canonical::attention(
             q.data() + row * d, d, d, keys, [&](int64_t j, int64_t e) { return kr[j * d + e]; },
             [&](int64_t j, int64_t e) { return vr[j * d + e]; }, 0.125f, float(c.softcap),
             [&](int64_t j, float s) {
               if (c.mask == MaskKind::add)
                 return s + add[size_t(i * keys + j)];
               bool hidden = (c.mask == MaskKind::keep && !keep[size_t(j)]) ||
                             (c.mask == MaskKind::causal && j > keys - length + i);
               return hidden ? minusInfinity : s;
             }))
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
INSTANTIATE_TEST_SUITE_P(
    Entry, Attention,
    testing::Values(AttentionCase{"attention_none_64_3", 64, 3, false, 0, MaskKind::none},
                    AttentionCase{"attention_add_64_3", 64, 3, false, 0, MaskKind::add},
                    AttentionCase{"attention_keep_64_3", 64, 3, false, 0, MaskKind::keep},
                    AttentionCase{"attention_causal_64_3", 64, 3, false, 0, MaskKind::causal},
                    AttentionCase{"attention_cap_20_1", 20, 1, false, 5, MaskKind::add},
                    AttentionCase{"attention_odd_33_2", 33, 2, false, 0, MaskKind::none},
                    AttentionCase{"attention_half_128_4", 128, 4, true, 0, MaskKind::add},
                    AttentionCase{"attention_wide_256_8", 256, 8, true, 0, MaskKind::causal}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Attention, KeysDividedOverBlocks) {
  NEEDS_GPU();
  AttentionCase c{"parts", 64, 3, false, 0, MaskKind::causal};
  testAttention(c, 2, 2, 1, 1000, 32);
  testAttention(c, 1, 3, 3, 65, 4);
  testAttention(c, 1, 1, 1, 2, 8); // more room than blocks
}

} // namespace
