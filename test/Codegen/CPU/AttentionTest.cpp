// SPDX-License-Identifier: Apache-2.0
//
// Attention against float64, over ragged sizes, masks, causality, windows, soft caps and caches.
#include "Encoding/CacheRow.h"
#include "KernelLibrary.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace otf;
using namespace otf::test;

namespace {

struct Case {
  int64_t rows = 1, heads = 1, keys = 1, d = 64, dv = 64;
  float softcap = 0;
  bool causal = false;
  int64_t window = 0;
  enum { None, Add, Keep } mask = None;
  bool sink = false;
};

class Attention : public KernelTest {
protected:
  void check(const Case &c, bool half) {
    SCOPED_TRACE(testing::Message()
                 << "rows " << c.rows << " heads " << c.heads << " keys " << c.keys << " d " << c.d
                 << " dv " << c.dv << " cap " << c.softcap << " causal " << c.causal << " window "
                 << c.window << " mask " << int(c.mask) << " half " << half);
    int64_t qRow = c.heads * c.d + 3, kStride = c.d + 8, vStride = c.dv + 1;
    int64_t outRow = c.heads * c.dv + 5;
    size_t kSize = size_t((c.keys - 1) * kStride + c.d);
    size_t vSize = size_t((c.keys - 1) * vStride + c.dv);
    Guarded<float> q(size_t((c.rows - 1) * qRow + c.heads * c.d)), k(kSize), v(vSize);
    Guarded<uint16_t> kHalf(kSize), vHalf(vSize);
    Guarded<float> out(size_t((c.rows - 1) * outRow + c.heads * c.dv));
    Guarded<float> add(size_t(c.rows * c.heads * c.keys));
    Guarded<uint8_t> keep(size_t(c.rows * c.heads * c.keys));
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float &x : q)
      x = normal(random);
    auto fill = [&](Guarded<float> &wide, Guarded<uint16_t> &narrow) {
      for (size_t i = 0; i < wide.size(); ++i) {
        narrow[i] = floatToHalf(normal(random));
        wide[i] = halfToFloat(narrow[i]);
      }
    };
    fill(k, kHalf);
    fill(v, vHalf);
    for (size_t i = 0; i < add.size(); ++i) {
      keep[i] = random() % 3 != 0;
      add[i] = keep[i] ? normal(random) : -INFINITY;
      // The first row and head see nothing at all.
      if (i < size_t(c.keys)) {
        keep[i] = 0;
        add[i] = -INFINITY;
      }
    }
    std::memset(out.data(), 0x7f, out.size() * 4);
    float scale = 1 / std::sqrt(float(c.d));
    int64_t visible = c.causal ? c.keys - c.rows + 1 : c.keys;
    int64_t maskRow = c.heads * c.keys, maskHead = c.keys;
    const float *maskAdd = c.mask == Case::Add ? add.data() : nullptr;
    const uint8_t *maskKeep = c.mask == Case::Keep ? keep.data() : nullptr;
    const float scores[] = {-1, 2, 0, 30}, *sinks = c.sink ? scores : nullptr;
    if (half)
      kernels->attention_f16(q.data(), c.rows, c.heads, qRow, c.d, kHalf.data(), kStride,
                             vHalf.data(), vStride, c.keys, c.d, c.dv, scale, c.softcap, visible,
                             c.window, maskAdd, maskKeep, maskRow, maskHead, out.data(), outRow,
                             c.dv, sinks);
    else
      kernels->attention_f32(q.data(), c.rows, c.heads, qRow, c.d, k.data(), kStride, v.data(),
                             vStride, c.keys, c.d, c.dv, scale, c.softcap, visible, c.window,
                             maskAdd, maskKeep, maskRow, maskHead, out.data(), outRow, c.dv, sinks);

    for (int64_t r = 0; r < c.rows; ++r)
      for (int64_t h = 0; h < c.heads; ++h) {
        std::vector<double> score(size_t(c.keys), -INFINITY);
        double largest = -INFINITY, total = 0;
        int64_t end = std::min(c.keys, visible + r);
        int64_t begin = c.window ? std::max<int64_t>(0, end - c.window) : 0;
        for (int64_t j = begin; j < end; ++j) {
          double s = 0;
          for (int64_t i = 0; i < c.d; ++i)
            s += double(q[size_t(r * qRow + h * c.d + i)]) * k[size_t(j * kStride + i)];
          s *= scale;
          if (c.softcap != 0)
            s = c.softcap * std::tanh(s / c.softcap);
          size_t m = size_t(r * maskRow + h * maskHead + j);
          if (maskAdd)
            s += add[m];
          if (maskKeep && !keep[m])
            s = -INFINITY;
          score[size_t(j)] = s;
          largest = std::max(largest, s);
        }
        if (sinks && std::isfinite(largest)) {
          largest = std::max<double>(largest, sinks[h]);
          total = std::exp(sinks[h] - largest);
        }
        if (std::isfinite(largest))
          for (double &s : score)
            total += s = std::exp(s - largest);
        for (int64_t i = 0; i < c.dv; ++i) {
          double want = 0, magnitude = 0;
          for (int64_t j = 0; total != 0 && j < c.keys; ++j) {
            want += score[size_t(j)] / total * v[size_t(j * vStride + i)];
            magnitude += score[size_t(j)] / total * std::abs(v[size_t(j * vStride + i)]);
          }
          // Scores of size s carry s · d/8 roundings into the exponent; sums add a few more.
          double bound = (double(c.d) / 8 + double(c.keys) / 8 + 32) * 0x1p-23 * magnitude;
          ASSERT_NEAR(out[size_t(r * outRow + h * c.dv + i)], want, bound)
              << "row " << r << " head " << h << " at " << i;
        }
      }
  }
};

} // namespace

TEST_P(Attention, MatchesFloat64) {
  for (bool half : {false, true})
    for (int64_t keys : {1, 7, 63, 64, 65, 200})
      for (int64_t heads : {1, 3, 4})
        for (int64_t rows : {1, 2, 5})
          for (auto [d, dv] : {std::pair<int64_t, int64_t>{64, 64}, {80, 96}, {5, 3}, {12, 33}})
            check({.rows = rows, .heads = heads, .keys = keys, .d = d, .dv = dv}, half);
}

TEST_P(Attention, MasksHideKeysAndAFullyMaskedRowGivesZero) {
  for (bool half : {false, true})
    for (auto mask : {Case::Add, Case::Keep})
      for (int64_t keys : {1, 5, 64, 130})
        for (int64_t heads : {1, 3})
          check({.rows = 4, .heads = heads, .keys = keys, .mask = mask}, half);
}

TEST_P(Attention, CausalityAndWindows) {
  for (bool half : {false, true})
    for (int64_t rows : {1, 6, 70})
      for (int64_t past : {-2, 0, 3, 100})
        for (int64_t window : {0, 1, 20, 90}) {
          if (rows + past <= 0)
            continue;
          check({.rows = rows, .heads = 3, .keys = rows + past, .causal = true, .window = window},
                half);
        }
}

TEST_P(Attention, SoftCap) {
  for (float cap : {1.0f, 30.0f})
    check({.rows = 3, .heads = 2, .keys = 90, .softcap = cap, .mask = Case::Add}, false);
}

TEST_P(Attention, SinkTakesItsShare) {
  for (int64_t keys : {1, 31, 90})
    for (auto mask : {Case::None, Case::Add})
      check({.rows = 3, .heads = 4, .keys = keys, .mask = mask, .sink = true}, false);
}

// Many queries are one a lane; the bits are those of each query alone.
TEST_P(Attention, ManyQueriesAreAsOneEach) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 60; ++round) {
    int64_t rows = 1 + int64_t(random() % 70), heads = 1 + int64_t(random() % 3), keys = 1 + int64_t(random() % 150);
    int64_t d = 1 + int64_t(random() % 130), dv = 1 + int64_t(random() % 130);
    bool half = round % 2, codes = round % 4 == 2, shared = round % 5 == 0; // one row of the mask for all
    int64_t visible = round % 3 ? keys : keys - rows + 1, window = round % 7 ? 0 : 40;
    float softcap = round % 4 ? 0 : 20;
    std::vector<float> q(size_t(rows * heads * d)), out(size_t(rows * heads * dv)), add(size_t(rows * heads * keys));
    std::vector<uint8_t> keep(add.size());
    std::vector<float> k(size_t(keys * d)), v(size_t(keys * dv));
    std::vector<uint16_t> kHalf(k.size()), vHalf(v.size());
    for (std::vector<float> *of : {&q, &add, &k, &v})
      for (float &x : *of)
        x = normal(random);
    for (size_t i = 0; i < add.size(); ++i) {
      keep[i] = random() % 3 != 0;
      add[i] = keep[i] ? add[i] : -INFINITY;
    }
    std::transform(k.begin(), k.end(), kHalf.begin(), floatToHalf);
    std::transform(v.begin(), v.end(), vHalf.begin(), floatToHalf);
    std::vector<int8_t> kCodes(size_t(keys * (d + kCacheScaleBytes))), vCodes(size_t(keys * (dv + kCacheScaleBytes)));
    kernels->append_i8(k.data(), d, keys, d, kCodes.data(), d + kCacheScaleBytes);
    kernels->append_i8(v.data(), dv, keys, dv, vCodes.data(), dv + kCacheScaleBytes);
    const float sinks[] = {-1, 2, 0};
    int64_t maskRow = shared ? 0 : heads * keys, maskHead = shared ? 0 : keys;
    auto call = [&](int64_t row, int64_t head, int64_t rowCount, int64_t headCount, float *to, int64_t toRow) {
      const float *from = q.data() + (row * heads + head) * d;
      int64_t mask = row * maskRow + head * maskHead;
      const float *adds = round % 3 == 1 ? add.data() + mask : nullptr;
      const uint8_t *keeps = round % 3 == 2 ? keep.data() + mask : nullptr;
      auto run = [&](auto *kernel, const auto *keysAt, const auto *valuesAt, int64_t more = 0) {
        kernel(from, rowCount, headCount, heads * d, d, keysAt, d + more, valuesAt, dv + more, keys, d, dv, 0.2f, softcap, visible + row,
               window, adds, keeps, maskRow, maskHead, to, toRow, dv, round % 6 ? nullptr : sinks + head);
      };
      if (codes)
        run(kernels->attention_i8, kCodes.data(), vCodes.data(), kCacheScaleBytes);
      else if (half)
        run(kernels->attention_f16, kHalf.data(), vHalf.data());
      else
        run(kernels->attention_f32, k.data(), v.data());
    };
    call(0, 0, rows, heads, out.data(), heads * dv);
    std::vector<float> alone(static_cast<size_t>(dv));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < heads; ++head) {
        call(row, head, 1, 1, alone.data(), dv);
        ASSERT_EQ(std::memcmp(alone.data(), out.data() + (row * heads + head) * dv, size_t(dv) * 4), 0)
            << "round " << round << " row " << row << " head " << head;
      }
  }
}

TEST_P(Attention, RowsOfCodesAreTheirDecodedRows) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int64_t keys : {1, 33, 200})
    for (int64_t rows : {1, 3, 20})
      for (auto [d, dv] : {std::pair<int64_t, int64_t>{64, 64}, {5, 3}, {12, 33}, {130, 8}}) {
        std::vector<float> q(size_t(rows * d)), k(size_t(keys * d)), v(size_t(keys * dv)), want(size_t(rows * dv)), out(want.size());
        std::vector<int8_t> kCodes(size_t(keys * (d + kCacheScaleBytes))), vCodes(size_t(keys * (dv + kCacheScaleBytes)));
        for (std::vector<float> *of : {&q, &k, &v})
          for (float &x : *of)
            x = normal(random);
        kernels->append_i8(k.data(), d, keys, d, kCodes.data(), d + kCacheScaleBytes);
        kernels->append_i8(v.data(), dv, keys, dv, vCodes.data(), dv + kCacheScaleBytes);
        for (int64_t j = 0; j < keys; ++j) {
          decodeCacheRow(&kCodes[size_t(j * (d + kCacheScaleBytes))], d, &k[size_t(j * d)]);
          decodeCacheRow(&vCodes[size_t(j * (dv + kCacheScaleBytes))], dv, &v[size_t(j * dv)]);
        }
        kernels->attention_f32(q.data(), rows, 1, d, d, k.data(), d, v.data(), dv, keys, d, dv, 0.2f, 0, keys, 0, nullptr, nullptr,
                               0, 0, want.data(), dv, dv, nullptr);
        kernels->attention_i8(q.data(), rows, 1, d, d, kCodes.data(), d + kCacheScaleBytes, vCodes.data(), dv + kCacheScaleBytes,
                              keys, d, dv, 0.2f, 0, keys, 0, nullptr, nullptr, 0, 0, out.data(), dv, dv, nullptr);
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(want[i], out[i], 2e-5);
      }
}

TEST_P(Attention, AppendWritesRowsAsTheyAreDefined) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (int64_t d : {1, 7, 8, 20, 64})
    for (float extreme : {0.0f, 1.0f, 1e-44f, 3e-38f, 1e38f, INFINITY, -INFINITY, NAN}) {
      std::vector<float> x(size_t(3 * d)), back(static_cast<size_t>(d));
      for (float &value : x)
        value = extreme == 0 ? 0 : normal(random) * (extreme < 1 ? extreme : 1);
      x[size_t(2 * d - 1)] = extreme;
      const int64_t row = d + kCacheScaleBytes;
      std::vector<int8_t> codes(size_t(3 * row)), want(codes.size());
      kernels->append_i8(x.data(), d, 3, d, codes.data(), row);
      for (int64_t r = 0; r < 3; ++r)
        encodeCacheRow(&x[size_t(r * d)], d, &want[size_t(r * row)]);
      ASSERT_EQ(std::memcmp(codes.data(), want.data(), want.size()), 0) << d << " " << extreme;
      // Rows that are read and written again have the same bytes.
      decodeCacheRow(codes.data(), d, back.data());
      encodeCacheRow(back.data(), d, want.data());
      ASSERT_EQ(std::memcmp(codes.data(), want.data(), size_t(row)), 0) << d << " " << extreme;
      std::vector<uint16_t> halves(size_t(3 * d));
      kernels->append_f16(x.data(), d, 3, d, halves.data(), d);
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i] == x[i])
          ASSERT_EQ(halves[i], cacheHalf(x[i])) << x[i];
        else
          ASSERT_TRUE(std::isnan(halfToFloat(halves[i])));
    }
}

TEST_P(Attention, NoKeysGiveZero) {
  float q[8] = {}, out[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  kernels->attention_f32(q, 1, 1, 8, 8, nullptr, 8, nullptr, 8, 0, 8, 8, 1, 0, 0, 0, nullptr,
                         nullptr, 0, 0, out, 8, 8, nullptr);
  for (float value : out)
    EXPECT_EQ(value, 0);
}

OTF_INSTANTIATE(Attention);
