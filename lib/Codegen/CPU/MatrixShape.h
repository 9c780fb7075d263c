// SPDX-License-Identifier: Apache-2.0
//
// What generated code must know of an encoded matrix: numbers from lib/Encoding/Layout.h. They pass
// through here because that header and the otf dialect each call an enumeration otf::EncodingKind,
// and so no file can include both.
#ifndef OTF_CODEGEN_CPU_MATRIXSHAPE_H
#define OTF_CODEGEN_CPU_MATRIXSHAPE_H

#include <cstdint>

namespace otf::cpu {

struct MatrixShape {
  const char *error = nullptr; ///< why the matrix has no layout; then nothing below holds
  const char *name = "";       ///< as in otf_tile_<name>
  bool plain = true;           ///< f32 or f16: kernels take the columns, and nothing of the below
  bool table = false;          ///< kernels take a table of four int8
  bool signs = false;          ///< a second code of signs, which no f32 rows can meet
  int64_t rows = 0, columns = 0, background = 0, group = 0, outliers = 0;
  int64_t tileBytes = 0, indexBytes = 0;
  uint32_t tableBytes = 0;
};

/// `kind` counts as in the dialect and in Layout.h.
MatrixShape matrixShape(unsigned kind, int64_t group, int64_t rows, int64_t columns,
                        int64_t outliers);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_MATRIXSHAPE_H
