// SPDX-License-Identifier: Apache-2.0
//
// Appending to a cache, elementwise kernels, halves.
#include "test/Codegen/CUDA/OnGpu.h"

#include "Encoding/CacheRow.h"

namespace {

using namespace otf;
using namespace otf::test;

TEST(Append, WritesBehindWhatIsThere) {
  NEEDS_GPU();
  const int64_t outer = 6, added = 3, inner = 20, past = 4, capacity = 9;
  std::vector<float> x = normals(size_t(outer * added * inner), 51);
  std::vector<float> cache = normals(size_t(outer * capacity * inner), 52), want = cache;
  for (int64_t o = 0; o < outer; ++o)
    std::copy_n(x.begin() + o * added * inner, added * inner,
                want.begin() + (o * capacity + past) * inner);
  std::vector<uint16_t> half, wantHalf;
  for (float f : cache)
    half.push_back(floatToHalf(f));
  for (float f : want)
    wantHalf.push_back(floatToHalf(f));
  Buffer xb(x), single(cache), narrow(half);
  launch("append_f32", {single.pointer, xb.pointer}, {outer, added, inner, past, capacity}, 2);
  launch("append_f16", {narrow.pointer, xb.pointer}, {outer, added, inner, past, capacity}, 2);
  EXPECT_EQ(single.get<float>(), want);
  EXPECT_EQ(narrow.get<uint16_t>(), wantHalf);
}

/// What lib/Encoding/CacheRow.h makes of them, also where rows are zeros, tiny, huge, infinite or NaN.
TEST(Append, EncodesRows) {
  NEEDS_GPU();
  const float infinity = std::numeric_limits<float>::infinity();
  const int64_t outer = 9, added = 2, width = 68, past = 3, capacity = 6, row = width + kCacheScaleBytes;
  std::vector<float> x = normals(size_t(outer * added * width), 53);
  auto scaled = [&](int64_t at, float factor) {
    for (int64_t i = 0; i < width; ++i)
      x[size_t(at * width + i)] *= factor;
  };
  scaled(1, 0.0f);
  scaled(2, 1e-37f);
  scaled(3, 1e-42f);
  scaled(4, 3e37f);
  scaled(5, 70000.0f);
  x[size_t(6 * width + 67)] = infinity;
  x[size_t(7 * width + 1)] = std::numeric_limits<float>::quiet_NaN();
  x[size_t(8 * width + 40)] = -infinity;
  std::vector<uint8_t> codes(size_t(outer * capacity * row), 0x55), wantCodes = codes;
  std::vector<uint16_t> halves(size_t(outer * capacity * width), 0x5555), wantHalves = halves;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t s = 0; s < added; ++s) {
      const float *from = x.data() + (o * added + s) * width;
      const int64_t place = o * capacity + past + s;
      encodeCacheRow(from, width, wantCodes.data() + place * row);
      for (int64_t i = 0; i < width; ++i)
        wantHalves[size_t(place * width + i)] = std::isnan(from[i]) ? 0x7fff : cacheHalf(from[i]);
    }
  Buffer xb(x), cb(codes), hb(halves);
  launch("append_i8", {cb.pointer, xb.pointer}, {outer, added, width, past, capacity}, 2);
  launch("append_f16", {hb.pointer, xb.pointer}, {outer, added, width, past, capacity}, 2);
  EXPECT_EQ(cb.get<uint8_t>(), wantCodes);
  std::vector<uint16_t> got = hb.get<uint16_t>();
  for (uint16_t &half : got)
    half = (half & 0x7fff) > 0x7c00 ? 0x7fff : half; // one NaN is as good as another
  EXPECT_EQ(got, wantHalves);
}

TEST(Append, StopsAtTheCapacity) {
  NEEDS_GPU();
  std::vector<float> x(8, 1.0f), cache(4, 0.0f);
  Buffer xb(x), cb(cache);
  launch("append_f32", {cb.pointer, xb.pointer}, {1, 8, 1, 2, 4}, 1);
  EXPECT_EQ(cb.get<float>(), (std::vector<float>{0, 0, 1, 1}));
}

TEST(Map, Silu) {
  NEEDS_GPU();
  const int64_t count = 100003;
  std::vector<float> x = normals(count, 61, 4), z = normals(count, 62);
  Buffer xb(x), zb(z), y(count * 4);
  launch("map_silu", {xb.pointer, zb.pointer, y.pointer}, {count}, 17);
  std::vector<double> want, size;
  for (int64_t i = 0; i < count; ++i) {
    want.push_back(x[size_t(i)] / (1 + std::exp(-double(x[size_t(i)]))) * z[size_t(i)]);
    size.push_back(std::fabs(want.back()));
  }
  expectNear(y.get<float>(), want, size, 1e-6);
}

TEST(Half, EveryPatternSurvives) {
  NEEDS_GPU();
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = uint16_t(i);
  Buffer from(bits), to(bits.size() * 2);
  launch("map_half", {from.pointer, to.pointer}, {65536}, 8);
  std::vector<uint16_t> got = to.get<uint16_t>();
  for (size_t i = 0; i < bits.size(); ++i) {
    bool isNaN = (i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0;
    if (!isNaN)
      ASSERT_EQ(got[i], bits[i]);
    else
      ASSERT_TRUE((got[i] & 0x7c00) == 0x7c00 && (got[i] & 0x3ff) != 0) << i;
  }
}

} // namespace
