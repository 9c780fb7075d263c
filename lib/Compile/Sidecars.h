// SPDX-License-Identifier: Apache-2.0
//
// What was measured before and lies beside the model, or where the options say: found, and seen to be about this model and recipe.
// Errors' messages are whole: "<file>: <what> (<why, and what to try>)". `modelKey` is asked for the model's key (ModelKey.h) where a file is there.
#ifndef OTF_LIB_COMPILE_SIDECARS_H
#define OTF_LIB_COMPILE_SIDECARS_H

#include "lib/Analysis/Statistics.h"
#include "lib/Compile/Compile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace otf {

/// Statistics that the recipe uses; nothing where it does without.
llvm::Expected<std::optional<Statistics>> findStatistics(const CompileOptions &options, const std::string &modelFile,
                                                         llvm::function_ref<std::string()> modelKey);

/// The path of what errors cost, for recipes that choose by it; empty for others.
llvm::Expected<std::string> findSensitivities(const CompileOptions &options, const std::string &modelFile,
                                              llvm::function_ref<std::string()> modelKey);

} // namespace otf

#endif // OTF_LIB_COMPILE_SIDECARS_H
