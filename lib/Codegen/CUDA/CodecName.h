// SPDX-License-Identifier: Apache-2.0
//
// The device library's name for a weight's type: "otf::Weight<otf::Int4<32>, 576, 576, 6>". Apart
// from the emitters because lib/Encoding/Layout.h, which resolves groups and refuses what has no
// layout, and the otf dialect each call an enumeration otf::EncodingKind.
#ifndef OTF_CODEGEN_CUDA_CODECNAME_H
#define OTF_CODEGEN_CUDA_CODECNAME_H

#include <cstdint>
#include <string>

namespace otf::cuda {

struct CodecName {
  const char *error = nullptr; ///< why there is none
  std::string weight;
  bool plain = true;
  bool floats = false; ///< coded, and can be multiplied by f32 rows
  int64_t chunks = 0; ///< pieces of a row that a warp's lanes can share out: of 32 columns, or of 4
};

/// `kind` counts as in the dialect and in Layout.h.
CodecName codecName(unsigned kind, int64_t group, int64_t rows, int64_t columns, int64_t outliers);

} // namespace otf::cuda

#endif // OTF_CODEGEN_CUDA_CODECNAME_H
