// SPDX-License-Identifier: Apache-2.0
//
// The order of operations, pinned: kernels equal a scalar reference to the bit. The CUDA kernels are
// held to the same one (test/Codegen/CUDA/NumericsTest.cpp).
#include "Blob.h"
#include "test/Codegen/Canonical.h"

#include <bit>
#include <cmath>

using namespace otf;
using namespace otf::test;

namespace {

class Canonical : public KernelTest {
protected:
  static std::vector<float> normals(int64_t count, unsigned seed) {
    std::vector<float> x(static_cast<size_t>(count));
    fillActivations(x, seed);
    return x;
  }
};

} // namespace

TEST_P(Canonical, Functions) {
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 10007) {
    float x = std::bit_cast<float>(uint32_t(bits));
    if (std::isnan(x))
      continue;
    auto same = [](float a, float b) {
      return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
             (std::isnan(a) && std::isnan(b));
    };
    ASSERT_TRUE(same(kernels->exp(x), cpu::exp(x))) << x;
    ASSERT_TRUE(same(kernels->log(x), cpu::log(x))) << x;
    ASSERT_TRUE(same(kernels->tanh(x), cpu::tanh(x))) << x;
    ASSERT_TRUE(same(kernels->erf(x), cpu::erf(x))) << x;
    if (std::abs(x) <= cpu::kTurnsLimit) {
      ASSERT_TRUE(same(kernels->sin(x), cpu::sinTurned(x, 0))) << x;
      ASSERT_TRUE(same(kernels->cos(x), cpu::sinTurned(x, 1))) << x;
      ASSERT_NEAR(kernels->sin(x), std::sin(double(x)), 0x1.01p-25) << x;
      ASSERT_NEAR(kernels->cos(x), std::cos(double(x)), 0x1.01p-25) << x;
    }
  }
}

TEST_P(Canonical, NormsAndTheirRecords) {
  for (int64_t k : {1, 7, 8, 31, 33, 255, 256, 257, 300, 576, 1056, 4304})
    for (int64_t kind : {OTF_NORM_RMS, OTF_NORM_LAYER})
      for (bool affine : {false, true}) {
        std::vector<float> x = normals(k, unsigned(k)), g = normals(k, 5), b = normals(k, 6);
        const float *gamma = affine ? g.data() : nullptr, *beta = affine ? b.data() : nullptr;
        std::vector<float> y(x.size());
        kernels->norm(x.data(), k, kind, 1e-5f, gamma, beta, y.data());
        std::vector<float> want =
            canonical::norm(x.data(), k, kind == OTF_NORM_LAYER, 1e-5f, gamma, beta);
        ASSERT_EQ(std::memcmp(y.data(), want.data(), y.size() * 4), 0) << k << " " << kind;
        // The record of a normalised row is that of the row's norm.
        size_t bytes = size_t(recordLayout(k, 0).bytes);
        std::vector<uint8_t> fused(bytes), apart(bytes);
        kernels->record_i8(x.data(), k, kind, 1e-5f, gamma, beta, nullptr, nullptr, k, 0, fused.data());
        kernels->record_i8(want.data(), k, 0, 0, nullptr, nullptr, nullptr, nullptr, k, 0, apart.data());
        ASSERT_EQ(fused, apart) << k << " " << kind;
      }
}

TEST_P(Canonical, Contractions) {
  for (EncodingKind kind :
       {EncodingKind::Int8, EncodingKind::Int4, EncodingKind::Codebook2, EncodingKind::Planes3x1, EncodingKind::Planes3x2,
        EncodingKind::Planes3x3, EncodingKind::Planes3x4, EncodingKind::Planes4x1, EncodingKind::Planes4x2,
        EncodingKind::Planes4x3, EncodingKind::TernarySign})
    for (int64_t group : {32, 64, 0})
      for (int64_t columns : {31, 576, 1000})
        for (int64_t outliers : {0, 5}) {
          Encoding encoding{kind, group};
          Blob blob = makeBlob(encoding, 8, columns, outliers, 3);
          const WeightLayout &l = blob.layout;
          int64_t stride = recordLayout(l.background, outliers).bytes;
          GuardedBytes records(size_t(stride * 5));
          for (int64_t m = 0; m < 5; ++m)
            kernels->record_i8(normals(columns, unsigned(m)).data(), columns, 0, 0, nullptr,
                               nullptr, blob.indexData(), nullptr, l.background, outliers,
                               records.data() + m * stride);
          float acc[5 * 8];
          const uint8_t *tile = blob.tile(0);
          if (kind == EncodingKind::Int8)
            kernels->tile_int8(tile, records.data(), stride, 5, l.background, group, outliers, acc);
          else if (kind == EncodingKind::Int4)
            kernels->tile_int4(tile, records.data(), stride, 5, l.background, group, outliers, acc);
          else if (isPlanes(kind))
            planesKernels(*kernels, kind).tile(tile, records.data(), stride, 5, l.background, group, outliers, acc);
          else if (kind == EncodingKind::TernarySign)
            kernels->tile_ternary_sign(tile, records.data(), stride, 5, l.background, group, outliers, acc);
          else
            kernels->tile_codebook2(tile, records.data(), stride, 5, l.background, group, outliers,
                                    encoding.table, acc);
          for (int i = 0; i < 5 * 8; ++i)
            ASSERT_EQ(acc[i], canonical::linear(encoding, l, tile, i % 8,
                                                records.data() + i / 8 * stride))
                << int(kind) << " group " << group << " columns " << columns << " at " << i;
        }
}

TEST_P(Canonical, AttentionForAnyGroupingOfQueries) {
  for (auto [d, dv] : {std::pair<int64_t, int64_t>{64, 64}, {20, 12}, {33, 5}})
    for (int64_t keys : {1, 31, 32, 33, 200})
      for (int64_t rows : {1, 2, 3, 4, 7})
        for (float softcap : {0.0f, 5.0f}) {
          std::vector<float> q = normals(rows * d, 1), k = normals(keys * d, 2);
          std::vector<float> v = normals(keys * dv, 3), out(size_t(rows * dv));
          int64_t visible = std::max<int64_t>(keys - rows + 1, 0);
          kernels->attention_f32(q.data(), rows, 1, d, d, k.data(), d, v.data(), dv, keys, d, dv,
                                 0.125f, softcap, visible, 0, nullptr, nullptr, 0, 0, out.data(),
                                 dv, dv, nullptr);
          for (int64_t r = 0; r < rows; ++r) {
            std::vector<float> want = canonical::attention(
                q.data() + r * d, d, dv, keys,
                [&](int64_t j, int64_t i) { return k[size_t(j * d + i)]; },
                [&](int64_t j, int64_t i) { return v[size_t(j * dv + i)]; }, 0.125f, softcap,
                [&](int64_t j, float s) { return j < visible + r ? s : -INFINITY; });
            for (int64_t i = 0; i < dv; ++i)
              ASSERT_EQ(out[size_t(r * dv + i)], want[size_t(i)])
                  << "d " << d << " keys " << keys << " rows " << rows << " row " << r;
          }
        }
}

OTF_INSTANTIATE(Canonical);
