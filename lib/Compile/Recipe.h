// SPDX-License-Identifier: Apache-2.0
//
// What a model's weights become, as data. A recipe is options of the deciding passes and nothing
// else: passes write their decisions into the IR, where a person can read and change them.
//
//   {
//     "name": "rtn4",
//     "linear": "int4",        how weights of linears are coded: given, f32, f16, int8, int4, codebook2, or planes3x2, which
//                              is planes<3,2> (3x1 to 3x4, 4x1 to 4x3): 1 to 4 bits a weight, for rows that look Gaussian
//     "vocabulary": "int8",    the same for embedding tables and heads
//     "group": 32,             columns that share a scale, a multiple of 32; 0 means a whole row
//     "vocabulary-group": 32,  the same for vocabulary tables; if left out, that of linears
//     "outliers": 0.0          fraction of a linear's columns kept in f16
//   }
//
// "given" keeps what the file has. "activations": "int8" lets weights that the file has quantized meet int8 activations, as weights
// that a recipe codes do; "given" leaves them f32. "static" is one range a tensor from calibration, for "linear" of int8 with "group" 0. Keys
// other than `name` and `linear` may be left out.
//
// "rotation": "hadamard" or "kronecker" rotates linears' weights and inputs (otf-choose-rotations) before they are coded, in blocks of at
// most "rotation-block" columns, with random signs if "seed" is not 0. "fit": "joint" fits both levels of ternary_sign together,
// "published" one after the other. "head": "linear" codes a head that is not the embedding table too as a linear, "vocabulary" as a table.
// "rounding": "feedback" chooses codes with the calibration's statistics (otf-choose-rounding), "nearest" without; "damping" steadies it.
// "choices": ["planes3x2", "planes3x3"] lets each linear have the one of these that loses least for all of the "budget" (2.5bpw, 1.2GB or kl=0.05:
// lib/Analysis/Budget.h), by what --calibrate has measured (otf-spend-budget); "linear" is one of them. "vocabulary-choices": ["int8:32", "int4:32"], encodings
// and groups, do so for vocabulary tables where the budget is of bytes or of loss.
// "keep-first" and "keep-last" are numbers of transformer blocks whose linears stay f16 (otf-keep-blocks).
//
// "rank" adds the best low rank of what coding loses to each linear (otf-choose-low-rank), with "rank-gate" of "break-even" only where that pays. "power" makes inputs relative to their deviation to
// that power, and with "center" to their mean too (otf-choose-smoothing). "activations" of f32 are not quantized, those of "row" have one scale for each row.
// "tied-head" of "coded" codes a head that is the embedding table too a second time, as a linear. "scope" says that outlier columns are ordered for each linear, and is "linear". 
// "scale" of "f32" gives int8 and int4 scales of 32 bits, of max |w| / 127 or / 7 unrounded: the encodings are then grid8 and grid4, as for weights that a file has quantized.
// "base": "shared" stores one base for all layers of a kind, and "rank" of the difference (otf-choose-bases), fitted "sweeps" times more.
// "cache" of "f16" or "int8" is what sessions hold keys and values in (otf-choose-caches), on a CPU; else they are "f32".
#ifndef OTF_LIB_COMPILE_RECIPE_H
#define OTF_LIB_COMPILE_RECIPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace otf {

struct Recipe {
  std::string name;
  std::string linear = "given";
  std::string vocabulary = "given";
  int64_t group = 32;
  double outliers = 0;
  std::string activations = "given";
  int64_t vocabularyGroup = -1; ///< −1: as `group`
  std::string fit = "published";
  std::string head = "vocabulary";
  int64_t keepFirst = 0, keepLast = 0;
  std::string rotation = "none";
  int64_t rotationBlock = 1024;
  uint64_t seed = 0;
  std::string rounding = "nearest";
  double damping = 0.01;
  int64_t rank = 0;
  std::string rankGate = "none";
  double power = -1; ///< below 0: inputs are not relative
  bool center = false;
  std::string tiedHead = "shared", base = "none";
  int64_t sweeps = 0;
  std::string cache = "f32", scale = "f16";
  std::vector<std::string> choices = {};
  std::vector<std::string> vocabularyChoices = {}; ///< "int8:32": encoding and group
  std::string budget = {}; ///< set where there are choices
};

/// What --budget asks instead of the recipe's own budget. An error's message is one sentence.
llvm::Error setBudget(Recipe &recipe, llvm::StringRef budget);

/// Names of the recipes that are built in, the default first.
std::vector<llvm::StringRef> builtinRecipes();

/// Null for a name that no built-in recipe has.
const Recipe *builtinRecipe(llvm::StringRef name);

/// A built-in recipe, or else a file. An error's message is one sentence.
llvm::Expected<Recipe> findRecipe(llvm::StringRef nameOrFile);

/// Reads JSON; `source` names it in errors.
llvm::Expected<Recipe> parseRecipe(llvm::StringRef text, llvm::StringRef source);

/// The JSON that parseRecipe reads back, always the same text for the same recipe.
std::string printRecipe(const Recipe &recipe);

} // namespace otf

#endif // OTF_LIB_COMPILE_RECIPE_H
