// SPDX-License-Identifier: Apache-2.0
//
// Embedding rows: the reference decoder's values, rounded once to f32.
#include "Blob.h"

using namespace otf;
using namespace otf::test;

namespace {
class Row : public KernelTest {};
} // namespace

TEST_P(Row, EqualsTheReferenceDecoder) {
  for (EncodingKind kind : {EncodingKind::F32, EncodingKind::F16, EncodingKind::Int8,
                            EncodingKind::Int4, EncodingKind::Codebook2, EncodingKind::Planes3x1,
                            EncodingKind::Planes3x2, EncodingKind::Planes3x3, EncodingKind::Planes3x4,
                            EncodingKind::Planes4x1, EncodingKind::Planes4x2, EncodingKind::Planes4x3,
                            EncodingKind::TernarySign})
    for (int64_t columns : {1, 5, 31, 32, 33, 100, 129, 576})
      for (int64_t group : {32, 64, 0})
        for (int64_t outliers : {int64_t(0), std::min<int64_t>(columns, 5), columns}) {
          if (isPlain(kind) && (outliers || group != 32))
            continue;
          Blob blob = makeBlob({kind, group}, 19, columns, outliers, unsigned(columns));
          Guarded<float> out(static_cast<size_t>(columns));
          int64_t kb = columns - outliers;
          for (int64_t row = 0; row < 19; ++row) {
            if (kind == EncodingKind::F32)
              kernels->row_f32(blob.data(), row, columns, out.data());
            else if (kind == EncodingKind::F16)
              kernels->row_f16(blob.data(), row, columns, out.data());
            else if (kind == EncodingKind::Int8)
              kernels->row_int8(blob.data(), row, kb, group, outliers, out.data());
            else if (kind == EncodingKind::Int4)
              kernels->row_int4(blob.data(), row, kb, group, outliers, out.data());
            else if (isPlanes(kind))
              planesKernels(*kernels, kind).row(blob.data(), row, kb, group, outliers, out.data());
            else if (kind == EncodingKind::TernarySign)
              kernels->row_ternary_sign(blob.data(), row, kb, group, outliers, out.data());
            else
              kernels->row_codebook2(blob.data(), row, kb, group, outliers, kCodebook2Table,
                                     out.data());
            for (int64_t c = 0; c < columns; ++c)
              ASSERT_EQ(out[size_t(c)], float(blob.weight(row, c)))
                  << int(kind) << " columns " << columns << " group " << group << " outliers "
                  << outliers << " row " << row << " column " << c;
          }
        }
}

OTF_INSTANTIATE(Row);
