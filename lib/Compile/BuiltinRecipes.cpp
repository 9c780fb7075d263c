// SPDX-License-Identifier: Apache-2.0
//
// The recipes that have a name, and what each is for.

#include "lib/Compile/Recipe.h"

namespace otf {

// `none` and round-to-nearest are what others are measured against. `otf-int2` is a published
// recipe: two-bit codes in groups of 32, and the 3.5 % of columns of the largest norm in f16.
// `otf-int4` is another: four bits, 1 % of the columns in f16, and a head in four bits beside the embedding table in eight, also where both are one. `otf-rla` is an
// experiment that was published as failing: layers of a kind share a base and differ by a rank of 32.
// `turboquant` is another: rows rotated by Hadamard matrices, then a ternary code at the mean magnitude and the sign of what it leaves.
// `given-a8` leaves weights that are quantized already and runs them on int8 activations, which is what `accuracy_level` 4 of
// ONNX Runtime's MatMulNBits allows. `planes2` to `planes4` code linears by trellis at that many bits and one scale a row, rotated, without calibration.
// `w8a8` has one scale a row, and one range a tensor of activations, which calibration gives: sums of integers, as in files that
// are quantized on both sides. Rotated, a range fits all its columns.
// The vocabulary is kept wider than the linears: an embedding row has no neighbours that average
// its error away.
// `auto` spends a budget on linears, and where it is of bytes on tables too, by what their errors cost. planes4x1 and 4x2 lose a fortieth and a twentieth less
// than 3x1 and 3x2, which is worth .02 bits, and are decoded a third slower on a CPU and two thirds on a GPU: a file may name them.
// `gptq4` rounds what `rtn4` rounds, by what it multiplies; `ldlq2` to `ldlq4` do so with `planes2` to `planes4`, rotated first.
static Recipe ldlq(const char *name, const char *linear) {
  return {.name = name, .linear = linear, .vocabulary = "int8", .group = 0, .vocabularyGroup = 32, .rotation = "kronecker",
          .seed = 1, .rounding = "feedback"};
}

static Recipe planes(const char *name, const char *linear) {
  return {.name = name, .linear = linear, .vocabulary = "int8", .group = 0, .vocabularyGroup = 32, .rotation = "kronecker", .seed = 1};
}

// `relative-*` code weights in units of what their inputs vary by, with the best low rank of what that loses: a published prototype's last settings.
static Recipe relative(const char *name, const char *linear, int64_t group, const char *activations, int64_t rank) {
  return {.name = name, .linear = linear, .vocabulary = "f16", .group = group, .activations = activations, .head = "linear", .rank = rank, .power = 0.5};
}

static const Recipe builtin[] = {
    {"none", "given", "given", 32, 0},
    {"rtn8", "int8", "int8", 32, 0},
    {"rtn4", "int4", "int8", 32, 0},
    {"otf-int2", "codebook2", "f16", 32, 0.035},
    {.name = "turboquant", .linear = "ternary_sign", .vocabulary = "f16", .group = 64, .head = "linear", .rotation = "hadamard"},
    {.name = "w8a8", .linear = "int8", .vocabulary = "int8", .group = 0, .activations = "static", .rotation = "hadamard", .seed = 1},
    {.name = "given-a8", .activations = "int8"},
    {.name = "gptq4", .linear = "int4", .vocabulary = "int8", .rounding = "feedback"},
    planes("planes2", "planes3x2"),
    planes("planes3", "planes3x3"),
    planes("planes4", "planes3x4"),
    ldlq("ldlq2", "planes3x2"),
    ldlq("ldlq3", "planes3x3"),
    ldlq("ldlq4", "planes3x4"),
    {.name = "otf-int4", .linear = "int4", .vocabulary = "int8", .group = 32, .outliers = 0.01, .vocabularyGroup = 0, .head = "linear", .tiedHead = "coded"},
    {.name = "otf-rla", .linear = "f16", .vocabulary = "f16", .rank = 32, .base = "shared"},
    relative("relative-int4", "int4", 32, "f32", 16),
    relative("relative-int8", "int8", 128, "row", 0),
    relative("relative-w4a8", "int4", 32, "row", 16),
    {.name = "auto", .linear = "planes3x3", .vocabulary = "int8", .group = 0, .vocabularyGroup = 32, .rotation = "kronecker", .seed = 1,
     .rounding = "feedback", .choices = {"planes3x1", "planes3x2", "planes3x3", "planes3x4", "int8"}, .vocabularyChoices = {"int8:32", "int8:0", "int4:32"},
     .budget = "4bpw"},
};

std::vector<llvm::StringRef> builtinRecipes() {
  std::vector<llvm::StringRef> names;
  for (const Recipe &recipe : builtin)
    names.push_back(recipe.name);
  return names;
}

const Recipe *builtinRecipe(llvm::StringRef name) {
  for (const Recipe &recipe : builtin)
    if (recipe.name == name)
      return &recipe;
  return nullptr;
}

} // namespace otf
