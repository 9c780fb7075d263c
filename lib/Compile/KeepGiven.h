// SPDX-License-Identifier: Apache-2.0
//
// `otf-keep-given`: weights that a recipe leaves as they are.
#ifndef OTF_LIB_COMPILE_KEEPGIVEN_H
#define OTF_LIB_COMPILE_KEEPGIVEN_H

#include "mlir/Pass/Pass.h"

namespace otf {

class FileSet;

struct KeepGivenOptions {
  bool linear = false, vocabulary = false; // which weights are left as they are
  /// Weights that the file has quantized multiply int8 activations, and not f32 as the file means.
  bool integerActivations = false;
};

/// otf-choose-bits gives f32 to what a recipe calls "given"; this makes it what the file has: f16 where that is f16, which loses
/// nothing and is half as large (bf16 stays f32, which holds it exactly), and for quantized weights the encoding that holds their
/// codes, scales and zero points. Where there is none (blocks that are no multiple of 32, tables) they stay f32.
std::unique_ptr<mlir::Pass> createKeepGiven(KeepGivenOptions options, const FileSet &files);

} // namespace otf

#endif // OTF_LIB_COMPILE_KEEPGIVEN_H
