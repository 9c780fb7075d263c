// SPDX-License-Identifier: Apache-2.0
//
// What a dry run says about running the plan: memory, and how fast it can be at most.
//
// A token's time is at least that of reading the weights and the cache once, and on most machines little else matters where few tokens
// go through a model at once. How fast this machine reads is measured, or given with --bandwidth for another.
#ifndef OTF_LIB_COMPILE_FORETELL_H
#define OTF_LIB_COMPILE_FORETELL_H

#include "lib/Compile/Compile.h"
#include "lib/Plan/PlanModel.h"

#include "llvm/Support/raw_ostream.h"

namespace otf {

/// Lines for people. Returns a clause where a size does not fit.
std::string foretell(const plan::model::Plan &metadata, const CompileOptions &options, llvm::raw_ostream &out);

} // namespace otf

#endif // OTF_LIB_COMPILE_FORETELL_H
