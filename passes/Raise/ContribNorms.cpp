// SPDX-License-Identifier: Apache-2.0
//
// Norms of com.microsoft that take in what comes before them: a residual, a bias, embeddings.

#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

bool isUsed(onnx::NodeOp node, unsigned output) {
  return output < node.getOutputs().size() && !node.getOutputs()[output].use_empty();
}

/// The sum of terms that broadcast to `sizes`.
Known sumOf(Raiser &raiser, int64_t elementType, ArrayRef<Size> sizes, ArrayRef<Known *> terms) {
  return raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value sum;
    for (Known *term : terms) {
      Value value = raiser.element(b, *term, i);
      sum = sum ? arith::AddFOp::create(b, *raiser.currentLocation, sum, value).getResult() : value;
    }
    return sum;
  });
}

/// norm(input + skip + bias), and that sum as output 3.
LogicalResult raiseSkipNorm(Raiser &raiser, onnx::NodeOp node, NormKind kind) {
  bool layer = kind == NormKind::layer;
  unsigned biasAt = layer ? 4 : 3;
  Known &input = raiser.input(node, 0), &skip = raiser.input(node, 1);
  SmallVector<Known *> terms = {&input, &skip};
  if (raiser.hasInput(node, biasAt))
    terms.push_back(&raiser.input(node, biasAt));
  for (Known *term : terms) {
    std::optional<SmallVector<Size>> merged = raiser.broadcast(input.sizes, term->sizes);
    if (!merged || ArrayRef<Size>(*merged) != ArrayRef<Size>(input.sizes) ||
        !isa<Float32Type>(raiser.internalType(term->elementType)))
      return raiser.fail(node, "skip and bias must be floats and broadcast to the input");
  }
  if (isUsed(node, 1) || isUsed(node, 2))
    return raiser.fail(node, "its mean and deviation outputs are not supported");
  Known sum = sumOf(raiser, input.elementType, input.sizes, terms);
  Known *beta = layer && raiser.hasInput(node, 3) ? &raiser.input(node, 3) : nullptr;
  std::optional<Known> result =
      normOfRows(raiser, node, kind, sum, raiser.input(node, 2), beta, node.floatOr("epsilon", layer ? 1e-12f : 1e-6f));
  if (!result)
    return failure();
  raiser.set(node, std::move(*result));
  if (node.getOutputs().size() > 3)
    raiser.set(node, std::move(sum), 3);
  return success();
}

LogicalResult raiseEmbedLayerNorm(Raiser &raiser, onnx::NodeOp node) {
  Location l = node.getLoc();
  Known &ids = raiser.input(node, 0);
  Known *segments = raiser.hasInput(node, 1) ? &raiser.input(node, 1) : nullptr;
  Known *segmentTable = raiser.hasInput(node, 4) ? &raiser.input(node, 4) : nullptr;
  Known *mask = raiser.hasInput(node, 7) ? &raiser.input(node, 7) : nullptr;
  Known *places = raiser.hasInput(node, 8) ? &raiser.input(node, 8) : nullptr;
  Known &words = raiser.input(node, 2), &positions = raiser.input(node, 3);
  if (ids.rank() != 2 || words.rank() != 2 || positions.rank() != 2 || (segmentTable && segmentTable->rank() != 2) ||
      bool(segments) != bool(segmentTable) || (segments && segments->sizes != ids.sizes))
    return raiser.fail(node, "expects ids of rank 2 with segments alike, and tables of rank 2");
  if (places && (places->rank() != 2 || places->sizes[1] != ids.sizes[1] ||
                 (places->sizes[0] != ids.sizes[0] && places->sizes[0] != Size(1))))
    return raiser.fail(node, "position_ids must be [batch or 1, positions]");
  SmallVector<Size> sizes(ids.sizes);
  sizes.push_back(words.sizes[1]);
  for (auto [at, table] : {std::pair(0, &words), std::pair(1, segmentTable), std::pair(8, &positions)})
    if (raiser.hasInput(node, at))
      raiser.limitIndices(node.getInputs()[at], table->sizes[0]);
  auto rows = [&](Known &table, function_ref<Value(OpBuilder &, ValueRange)> row) {
    return raiser.generated(words.elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
      // An index outside is the caller's mistake; it must not become a read outside.
      Value last = extentOf(b, l, table.sizes[0] - Size(1)), zero = arith::ConstantIndexOp::create(b, l, 0);
      Value at = arith::MaxSIOp::create(b, l, arith::MinSIOp::create(b, l, row(b, i), last), zero);
      return raiser.element(b, table, ValueRange{at, i[2]});
    });
  };
  auto indexOf = [&](OpBuilder &b, Known &from, ValueRange i) -> Value {
    return arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, from, i.take_front(2)));
  };
  auto lookUp = [&](Known &table, Known &which) {
    if (!raiser.isMatrix(table))
      return rows(table, [&](OpBuilder &b, ValueRange i) { return indexOf(b, which, i); });
    Known result;
    result.elementType = words.elementType;
    result.sizes = sizes;
    Value matrix = raiser.matrix(table, /*transposed=*/false), index = raiser.tensor(which);
    result.tensor = EmbeddingOp::create(raiser.builder, l, tensorType(raiser.builder.getF32Type(), sizes), index, matrix);
    return result;
  };
  Known word = lookUp(words, ids), segment = segments ? lookUp(*segmentTable, *segments) : Known();
  Known place = rows(positions, [&](OpBuilder &b, ValueRange i) -> Value { return places ? indexOf(b, *places, i) : i[1]; });
  SmallVector<Known *> terms = {&word, &place};
  if (segments)
    terms.push_back(&segment);
  Known sum = sumOf(raiser, words.elementType, sizes, terms);
  std::optional<Known> result = normOfRows(raiser, node, NormKind::layer, sum, raiser.input(node, 5), &raiser.input(node, 6),
                                           node.floatOr("epsilon", 1e-12f));
  if (!result)
    return failure();
  raiser.set(node, std::move(*result));
  if (isUsed(node, 1)) {
    if (node.intOr("mask_index_type", 1) != 1 || (mask && mask->sizes != ids.sizes))
      return raiser.fail(node, "a mask index is supported of kind 1 only");
    Known &source = mask ? *mask : ids;
    Known ones = raiser.generated(Element::Int32, {ids.sizes[0]}, [&](OpBuilder &b, ValueRange i) -> Value {
      Value zero = arith::ConstantIntOp::create(b, l, 0, 32), first = arith::ConstantIndexOp::create(b, l, 0);
      if (!mask)
        return zero;
      auto loop = scf::ForOp::create(b, l, first, extentOf(b, l, ids.sizes[1]), arith::ConstantIndexOp::create(b, l, 1),
                                     ValueRange(zero), [&](OpBuilder &inner, Location, Value s, ValueRange count) {
                                       Value bit = raiser.element(inner, source, ValueRange{i[0], s});
                                       scf::YieldOp::create(inner, l, arith::AddIOp::create(inner, l, count[0], bit).getResult());
                                     });
      return loop.getResult(0);
    });
    raiser.set(node, std::move(ones), 1);
  }
  if (node.getOutputs().size() > 2)
    raiser.set(node, std::move(sum), 2);
  return success();
}

} // namespace

void raise::registerContribNorms(Registry &registry) {
  auto skip = [](NormKind kind) {
    return [kind](Raiser &raiser, onnx::NodeOp node) { return raiseSkipNorm(raiser, node, kind); };
  };
  registry.add("com.microsoft::SkipLayerNormalization", skip(NormKind::layer), 3, 5, 1);
  registry.add("com.microsoft::SkipSimplifiedLayerNormalization", skip(NormKind::rms), 3, 4, 1);
  registry.add("com.microsoft::EmbedLayerNormalization", raiseEmbedLayerNorm, 1, 9, 1);
}
