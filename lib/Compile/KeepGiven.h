// SPDX-License-Identifier: Apache-2.0
//
// `otf-keep-given`: weights that a recipe leaves as they are.
#ifndef OTF_LIB_COMPILE_KEEPGIVEN_H
#define OTF_LIB_COMPILE_KEEPGIVEN_H

#include "mlir/Pass/Pass.h"

namespace otf {

/// otf-choose-bits gives f32 to what a recipe calls "given"; this makes it f16 where the file has
/// f16, which loses nothing and is half as large. (bf16 stays f32, which holds it exactly.)
std::unique_ptr<mlir::Pass> createKeepGiven(bool linear, bool vocabulary);

} // namespace otf

#endif // OTF_LIB_COMPILE_KEEPGIVEN_H
