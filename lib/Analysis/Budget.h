// SPDX-License-Identifier: Apache-2.0
//
// What a model may cost: `--budget` and a recipe's "budget".
//
//   2.5bpw    bits a weight of the linear layers that the recipe may choose for, everything counted
//   1.2GB     bytes of all weights of the plan, vocabulary included; also MB, and GiB and MiB
//   kl=0.05   what is measured with --calibrate may rise by: nats of KL a token for a text
#ifndef OTF_LIB_ANALYSIS_BUDGET_H
#define OTF_LIB_ANALYSIS_BUDGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace otf {

struct Budget {
  enum class Kind { bits, bytes, loss } kind;
  double value; ///< bits a weight, bytes, or nats; positive and finite
};

/// An error's message is a clause that says what a budget looks like.
llvm::Expected<Budget> parseBudget(llvm::StringRef text);

} // namespace otf

#endif // OTF_LIB_ANALYSIS_BUDGET_H
