// SPDX-License-Identifier: Apache-2.0
//
// lib/Encoding/Layout.h for files that include the otf dialect.

#include "lib/Codegen/CPU/MatrixShape.h"
#include "lib/Encoding/Layout.h"

namespace otf::cpu {

static const char *nameOf(EncodingKind kind) {
  switch (kind) {
  case EncodingKind::F32:
    return "f32";
  case EncodingKind::F16:
    return "f16";
  case EncodingKind::Int8:
    return "int8";
  case EncodingKind::Int4:
    return "int4";
  case EncodingKind::Codebook2:
    return "codebook2";
  case EncodingKind::Grid8:
    return "grid8";
  case EncodingKind::Grid4:
    return "grid4";
  case EncodingKind::Grid2:
    return "grid2";
  case EncodingKind::Grid8z:
    return "grid8z";
  case EncodingKind::Grid4z:
    return "grid4z";
  case EncodingKind::Grid2z:
    return "grid2z";
  case EncodingKind::Planes3x1:
    return "planes3x1";
  case EncodingKind::Planes3x2:
    return "planes3x2";
  case EncodingKind::Planes3x3:
    return "planes3x3";
  case EncodingKind::Planes3x4:
    return "planes3x4";
  case EncodingKind::Planes4x1:
    return "planes4x1";
  case EncodingKind::Planes4x2:
    return "planes4x2";
  case EncodingKind::Planes4x3:
    return "planes4x3";
  case EncodingKind::TernarySign:
    return "ternary_sign";
  }
  return nullptr;
}

MatrixShape matrixShape(unsigned kind, int64_t group, int64_t rows, int64_t columns,
                        int64_t outliers) {
  Encoding encoding;
  encoding.kind = EncodingKind(kind);
  encoding.group = group;
  MatrixShape shape;
  shape.name = nameOf(encoding.kind);
  if (!shape.name) {
    shape.error = "an encoding that CPU kernels do not know";
    return shape;
  }
  WeightLayout layout;
  EncodeStatus status = makeLayout(encoding, rows, columns, outliers, layout);
  if (status != EncodeStatus::Ok) {
    shape.error = describe(status);
    return shape;
  }
  shape.plain = isPlain(encoding.kind);
  shape.table = encoding.kind == EncodingKind::Codebook2;
  shape.signs = hasSigns(encoding.kind);
  shape.rows = layout.rows;
  shape.columns = layout.columns;
  shape.background = layout.background;
  shape.group = layout.group;
  shape.outliers = layout.outliers;
  shape.tileBytes = layout.tileBytes;
  shape.indexBytes = layout.indexBytes;
  shape.tableBytes = encoding.table;
  return shape;
}

} // namespace otf::cpu
