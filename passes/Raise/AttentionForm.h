// SPDX-License-Identifier: Apache-2.0
//
// The one form that every attention operator is brought into. Heads are [B, H, S, D]; keys and values are caches or
// tensors; whatever hides keys (a mask, causality, a window, padding) becomes one mask.
#ifndef OTF_PASSES_RAISE_ATTENTIONFORM_H
#define OTF_PASSES_RAISE_ATTENTIONFORM_H

#include "passes/Raise/Raiser.h"

namespace otf::raise {

/// An index for each entry of the batch: a size, or what a tensor of integers says.
struct PerBatch {
  Size same = 0;
  /// The entry's own value, where they differ.
  std::function<mlir::Value(mlir::OpBuilder &, mlir::Value batch)> own;

  mlir::Value at(mlir::OpBuilder &, mlir::Location, mlir::Value batch) const;
};

/// Which keys a query sees.
struct Visibility {
  /// Booleans keep, floats are added; right-aligned with [B, H, S, T]. Keys past a shorter last dimension are hidden.
  Known *mask = nullptr;
  bool causal = false;
  int64_t left = -1, right = -1;    // positions around the query's own; −1: all
  PerBatch offset;                  // the position of the first query
  std::optional<PerBatch> length;   // keys from here on are padding
};

struct AttentionForm {
  Known query, key, value;
  double scale = 1, softcap = 0;
  mlir::Value sink; // f32 [H] or null
  Visibility visible;
};

/// How far the scores have come when they are looked at.
enum class ScoreStage { product, capped, masked, weights };

/// The result, [B, H, S, Dv]: otf.attention where its operands are what that takes, else scalar programs. Nothing, and a
/// diagnostic, where the parts do not fit.
std::optional<Known> attend(Raiser &, onnx::NodeOp, AttentionForm &);
/// The scores, [B, H, S, T].
std::optional<Known> scores(Raiser &, onnx::NodeOp, AttentionForm &, ScoreStage);

/// Keys and values behind those of inputs `past` and `past + 1`, where the node has them; `at` says
/// where each entry's begin, which else is behind all of the past. The node's outputs 1 and 2 are
/// what results.
mlir::LogicalResult appendPast(Raiser &, onnx::NodeOp, AttentionForm &, unsigned past,
                               mlir::Value at = {});
/// Attends and sets the node's first output to the result, its heads side by side again if `flat`.
mlir::LogicalResult setAttended(Raiser &, onnx::NodeOp, AttentionForm &, bool flat);

/// [B, S, H · D] as [B, H, S, D]; nothing if the width is no multiple of the heads.
std::optional<Known> splitHeads(Raiser &, Known &, int64_t heads);
/// [B, H, S, D] as [B, S, H · D].
Known mergeHeads(Raiser &, Known &);
/// The two middle dimensions of four swapped.
Known swapHeads(Raiser &, Known &);

/// The keys or values after a step: of a cache the cache, else a concatenation. `at`: where each entry's positions begin.
std::optional<Known> appendStep(Raiser &, onnx::NodeOp, mlir::Value past, Known &update, mlir::Value at = {});

/// The same on tensors: `update` behind `past`, or over it and behind it from each entry's place on.
std::optional<Known> concatStep(Raiser &, onnx::NodeOp, Known &past, Known &update, mlir::Value at);

using Place =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value batch, mlir::Value position)>;

/// Ends a run where one of the positions, which may count from the end, lies outside a table of
/// `rows`. `of` is the ONNX value that the positions depend on: what all layers share is looked at
/// once.
void limitPositions(Raiser &, mlir::Value of, const Size &rows, const Size &batch,
                    const Size &positions, Place);

/// cos or sin for each position, [B or 1, S, R], from a table of [positions, R / 2].
Known rotaryTable(Raiser &, Known &table, const Size &batch, const Size &positions, int64_t rotated,
                  bool interleaved, Place place);
/// x of [B, H, S, D], or [B, S, H, D] with `positionsFirst`, rotated by tables of [B or 1, S, R].
Known rotate(Raiser &, Known &x, Known &cos, Known &sin, bool interleaved, bool positionsFirst);

/// x / rms(x) · scale over the last dimension; the layer norm with bias.
std::optional<Known> normOfRows(Raiser &, onnx::NodeOp, NormKind, Known &x, Known &scale, Known *bias, double epsilon);

/// Where(empty, 0, attention), which torch says for rows that see no key: a mask that hides all of
/// such a row's keys.
bool recognizeEmptyRows(Raiser &, onnx::NodeOp where);

/// Heads repeated for a group: what is repeated, or the value itself.
mlir::Value unrepeated(Raiser &, mlir::Value);

/// Part of registerStandardAttention.
void registerLinearAttention(Registry &);

/// A constant or symbolic size as an index.
mlir::Value extentOf(mlir::OpBuilder &, mlir::Location, const Size &);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_ATTENTIONFORM_H
