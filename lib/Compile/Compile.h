// SPDX-License-Identifier: Apache-2.0
//
// otf-compile as a function: a model, a recipe and targets in, one plan file or one stage of IR
// out.
#ifndef OTF_LIB_COMPILE_COMPILE_H
#define OTF_LIB_COMPILE_COMPILE_H

#include "lib/Compile/Recipe.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
}

namespace otf {

struct CompileOptions {
  /// Where to stop, in pipeline order; every stage but the last gives text.
  enum class Emit { onnxIr, imported, annotated, quantized, fused, planned, cuda, llvm, plan };

  std::string model;  ///< a file or a folder
  std::string output; ///< the plan; for text "-" or empty is standard output
  std::optional<uint64_t> syntheticSeed; ///< tensors whose files are absent get values made of it (SyntheticValues.h)
  std::string report; ///< where report.json goes too, and a table to standard output; empty: into the plan only
  int64_t context = 0; ///< positions of a cache whose memory a dry run tells; 0: as many as a session takes
  Recipe recipe;
  Emit emit = Emit::plan;
  bool cpu = true, cuda = false;
  std::vector<std::string> cpuLevels = {"avx2", "avx512vnni"}; ///< instruction sets that code is for; "native": what this machine runs best
  std::vector<std::string> cudaArchitectures; ///< "sm_90"; only with cuda
  bool strictPlacement = false; ///< a kernel that the host would have to run for the GPU is an error
  bool dryRun = false; ///< do all the work and say what the plan would be, but write none
  uint64_t bandwidth = 0; ///< bytes a second that a dry run takes weights to be read at; 0: as this machine does
  bool verbose = false;
  unsigned threads = 2; ///< that encode weights
  uint64_t hostMemory = 0; ///< bytes of its own that compiling may take; 0: as many as are of use
  bool resume = false; ///< go on where a compilation of the same was killed (Unfinished.h)
  /// What --calibrate made. Empty: for recipes that use statistics, those beside the model (defaultStatistics) if there are any.
  std::string statistics;
  bool ignoreStatistics = false; ///< also those beside the model
  std::string sensitivities; ///< the same for recipes that choose among encodings (defaultSensitivities)
  /// If not null, the plan observes what its linears read (otf-insert-observers), and this becomes the set of each weight by name, and of itself each set of no weight.
  std::map<std::string, std::string> *observed = nullptr;
  bool allowNonfinite = false; ///< weights that hold NaN or infinity stay f32 (otf-keep-nonfinite), and are no error
  bool quiet = false;     ///< for this process alone: nothing but errors is printed, and nothing can be resumed
  bool keepNorms = false; ///< gains of norms are not folded into weights, which are as in the model
  bool uniform = false;   ///< a recipe that chooses among encodings takes the first for all
  /// Hears of the annotated module, with emit of annotated; the text is then not written.
  std::function<void(mlir::ModuleOp)> decided;
  /// Called as soon as the plan has its name: who wants it for itself alone takes the name away again, so that a killed process leaves none.
  std::function<void()> written;
};

/// Exit statuses of tools.
enum class CompileStatus { done = 0, badInput = 1, missing = 3 };

/// A model as files of statistics know it.
struct ModelIdentity {
  std::string key;  ///< see ModelKey.h
  std::string file; ///< the model's file
};

/// Reads the graph alone. Errors are printed as by compile().
CompileStatus identifyModel(const std::string &model, ModelIdentity &identity);

/// Where a calibration is kept and looked for: model.onnx.calibration.safetensors beside model.onnx.
std::string defaultStatistics(const std::string &modelFile);

/// Where what errors cost is kept and looked for: model.onnx.sensitivities.json.
std::string defaultSensitivities(const std::string &modelFile);

/// How errors of a recipe's codes are made, in words: what they cost is known for those alone.
std::string describeErrors(const Recipe &recipe);

/// Errors go to standard error, a line each: "error: <file>: <node or tensor>: <what> (<why>)".
/// Unless it is done, no file has been made or changed.
CompileStatus compile(const CompileOptions &options);

} // namespace otf

#endif // OTF_LIB_COMPILE_COMPILE_H
