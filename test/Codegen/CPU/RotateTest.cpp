// SPDX-License-Identifier: Apache-2.0
//
// Rotated rows and their records, to the bit of Encoding/Rotation.h.
#include "Encoding/Layout.h"
#include "Encoding/Rotation.h"
#include "KernelLibrary.h"

#include <cstring>

using namespace otf;
using namespace otf::test;

namespace {

class Rotate : public KernelTest {};

struct Case {
  Rotation rotation;
  int64_t columns;
};
const Case kCases[] = {
    {{1, 5, 0}, 5},       {{2, 1, 3}, 6},       {{4, 3, 0}, 36},      {{8, 1, 0}, 40},
    {{16, 3, 9}, 144},    {{32, 1, 1}, 96},     {{64, 9, 0}, 576},    {{64, 1, 0}, 576},
    {{512, 3, 7}, 1536},  {{128, 12, 0}, 1536}, {{1024, 1, 0}, 2048}, {{256, 43, 2}, 11008},
    {{8192, 1, 0}, 8192}, {{16, 63, 5}, 4032},  {{64, 9, 4}, 34560},
};

} // namespace

TEST_P(Rotate, HasTheBitsOfTheDefinition) {
  for (const Case &c : kCases) {
    const Rotation &r = c.rotation;
    ASSERT_EQ(problemOf(r), nullptr);
    std::vector<float> factor = rotationFactor32(r);
    Guarded<float> x(size_t(c.columns)), y(size_t(c.columns));
    fillActivations({x.data(), x.size()}, unsigned(c.columns));
    std::vector<float> want(x.begin(), x.end());
    rotateCanonical(r, factor.data(), c.columns, want.data());
    kernels->rotate(x.data(), c.columns, r.block, r.factor, int64_t(r.seed), factor.data(),
                    y.data());
    ASSERT_EQ(std::memcmp(y.data(), want.data(), 4 * y.size()), 0)
        << c.columns << " " << r.block << " " << r.factor;
    kernels->rotate(x.data(), c.columns, r.block, r.factor, int64_t(r.seed), factor.data(),
                    x.data());
    ASSERT_EQ(std::memcmp(x.data(), want.data(), 4 * x.size()), 0) << "in place, " << c.columns;
  }
}

/// The record of a norm that is rotated is that of the three steps one after another.
TEST_P(Rotate, RecordsAreThoseOfTheSteps) {
  for (const Case &c : kCases)
    for (int64_t norm : {OTF_NORM_NONE, OTF_NORM_RMS, OTF_NORM_LAYER}) {
      const Rotation &r = c.rotation;
      std::vector<float> factor = rotationFactor32(r);
      size_t columns = size_t(c.columns), bytes = size_t(recordLayout(c.columns, 0).bytes);
      Guarded<float> x(columns), gamma(columns), rows(columns);
      fillActivations({x.data(), columns}, 3);
      fillActivations({gamma.data(), columns}, 4);
      std::memcpy(rows.data(), x.data(), 4 * columns);
      if (norm != OTF_NORM_NONE)
        kernels->norm(x.data(), c.columns, norm, 1e-5f, gamma.data(), nullptr, rows.data());
      kernels->rotate(rows.data(), c.columns, r.block, r.factor, int64_t(r.seed), factor.data(),
                      rows.data());
      Guarded<uint8_t> fused(bytes), apart(bytes);
      std::memset(fused.data(), 0xcd, bytes);
      kernels->record_rotated(x.data(), c.columns, norm, 1e-5f, gamma.data(), nullptr, r.block,
                              r.factor, int64_t(r.seed), factor.data(), fused.data());
      kernels->record_i8(rows.data(), c.columns, 0, 0, nullptr, nullptr, nullptr, nullptr,
                         c.columns, 0, apart.data());
      ASSERT_EQ(std::memcmp(fused.data(), apart.data(), bytes), 0)
          << c.columns << " " << r.block << " " << r.factor << " norm " << norm;
    }
}

OTF_INSTANTIATE(Rotate);
