// SPDX-License-Identifier: Apache-2.0
//
// Weights of the IR as values, from the model's files, with what `otf.weight` says folded in.
#ifndef OTF_LIB_REFERENCE_WEIGHTS_H
#define OTF_LIB_REFERENCE_WEIGHTS_H

#include "dialects/OTF/OTF.h"
#include "lib/Import/FileSet.h"
#include "lib/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace otf::reference {

/// The value of an otf.use. A matrix is coded as its type says, not as its weight's attribute does:
/// until rewriting follows it, that is a decision, and the plan is written from types too.
///
/// A fold into an f32 matrix is a product of doubles; coded weights are folded in f32 before they
/// are coded, as in the plan, so that their bytes are the same.
llvm::Expected<Content> readWeight(UseOp use, const FileSet &files);

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_WEIGHTS_H
