// SPDX-License-Identifier: Apache-2.0
#include "lib/Codegen/CUDA/CodecName.h"
#include "lib/Encoding/Layout.h"

namespace otf::cuda {

static std::string codec(EncodingKind kind, int64_t group, uint32_t table) {
  std::string g = std::to_string(group);
  switch (kind) {
  case EncodingKind::F32:
    return "otf::PlainF32";
  case EncodingKind::F16:
    return "otf::PlainF16";
  case EncodingKind::Int8:
    return "otf::Int8<" + g + ">";
  case EncodingKind::Int4:
    return "otf::Int4<" + g + ">";
  case EncodingKind::Codebook2:
    return "otf::Codebook2<" + g + ", " + std::to_string(table) + "u>";
  case EncodingKind::Grid8:
    return "otf::Int8<" + g + ", true>";
  case EncodingKind::Grid4:
    return "otf::Int4<" + g + ", true>";
  case EncodingKind::Grid2:
    return "otf::Int2<" + g + ", true>";
  case EncodingKind::Grid8z:
    return "otf::Int8<" + g + ", true, true>";
  case EncodingKind::Grid4z:
    return "otf::Int4<" + g + ", true, true>";
  case EncodingKind::Grid2z:
    return "otf::Int2<" + g + ", true, true>";
  }
  return {};
}

CodecName codecName(unsigned kind, int64_t group, int64_t rows, int64_t columns, int64_t outliers) {
  CodecName result;
  Encoding encoding;
  encoding.kind = EncodingKind(kind);
  encoding.group = group;
  WeightLayout layout;
  if (EncodeStatus status = makeLayout(encoding, rows, columns, outliers, layout);
      status != EncodeStatus::Ok) {
    result.error = describe(status);
    return result;
  }
  std::string name = codec(encoding.kind, layout.group, encoding.table);
  if (name.empty()) {
    result.error = "an encoding that the device library does not know";
    return result;
  }
  result.weight = "otf::Weight<" + name + ", " + std::to_string(rows) + ", " +
                  std::to_string(columns) + ", " + std::to_string(outliers) + ">";
  result.plain = isPlain(encoding.kind);
  result.floats = !result.plain && encoding.kind != EncodingKind::Codebook2 && outliers == 0;
  result.chunks = result.plain ? (columns + 3) / 4 : layout.chunks;
  return result;
}

} // namespace otf::cuda
