// SPDX-License-Identifier: Apache-2.0
#include "lib/Codegen/CUDA/CodecName.h"
#include "lib/Encoding/Planes.h"

namespace otf::cuda {

/// The tables go along as words of four bytes, so that the device library has no copy of them.
static std::string planes(const PlanesCode &code, const std::string &group) {
  std::string text = "otf::Planes<" + std::to_string(code.window) + ", " + group + ", " + std::to_string(code.offset);
  for (int p = 0; p < code.planes; ++p)
    for (int at = 0; at < 1 << code.window; at += 4) {
      uint32_t word = 0;
      for (int byte = 0; byte < 4; ++byte)
        word |= uint32_t(code.table[p][at + byte]) << 8 * byte;
      text += ", " + std::to_string(word) + "u";
    }
  return text + ">";
}

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
  case EncodingKind::Planes3x1:
  case EncodingKind::Planes3x2:
  case EncodingKind::Planes3x3:
  case EncodingKind::Planes3x4:
  case EncodingKind::Planes4x1:
  case EncodingKind::Planes4x2:
  case EncodingKind::Planes4x3:
    return planes(planesCode(kind), g);
  case EncodingKind::TernarySign:
    return "otf::TernarySign<" + g + ">";
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
  result.floats = !result.plain && encoding.kind != EncodingKind::Codebook2 && !hasSigns(encoding.kind) && outliers == 0;
  result.chunks = result.plain ? (columns + 3) / 4 : layout.chunks;
  return result;
}

} // namespace otf::cuda
