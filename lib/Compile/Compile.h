// SPDX-License-Identifier: Apache-2.0
//
// otf-compile as a function: a model, a recipe and targets in, one plan file or one stage of IR
// out.
#ifndef OTF_LIB_COMPILE_COMPILE_H
#define OTF_LIB_COMPILE_COMPILE_H

#include "lib/Compile/Recipe.h"

#include <string>
#include <vector>

namespace otf {

struct CompileOptions {
  /// Where to stop, in pipeline order; every stage but the last gives text.
  enum class Emit { onnxIr, imported, annotated, quantized, fused, planned, cuda, llvm, plan };

  std::string model;  ///< a file or a folder
  std::string output; ///< the plan; for text "-" or empty is standard output
  std::string report; ///< where report.json goes too, and a table to standard output; empty: into the plan only
  int64_t context = 0; ///< positions of a cache whose memory a dry run tells; 0: as many as a session takes
  Recipe recipe;
  Emit emit = Emit::plan;
  bool cpu = true, cuda = false;
  std::vector<std::string> cudaArchitectures; ///< "sm_90"; only with cuda
  bool strictPlacement = false; ///< a kernel that the host would have to run for the GPU is an error
  bool dryRun = false; ///< do all the work and say what the plan would be, but write none
  bool verbose = false;
  unsigned threads = 2; ///< that encode weights
};

/// Exit statuses of tools.
enum class CompileStatus { done = 0, badInput = 1, missing = 3 };

/// Errors go to standard error, a line each: "error: <file>: <node or tensor>: <what> (<why>)".
/// Unless it is done, no file has been made or changed.
CompileStatus compile(const CompileOptions &options);

} // namespace otf

#endif // OTF_LIB_COMPILE_COMPILE_H
