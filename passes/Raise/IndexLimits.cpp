// SPDX-License-Identifier: Apache-2.0
//
// The program that looks at indices: 0 where all are inside, −1 where one is not, and binding −1 ends the run. Many are
// looked at in parts, side by side, because one work item alone would be slow on a GPU.

#include "passes/Raise/IndexLimits.h"

#include "passes/Raise/Program.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

constexpr int64_t kParts = 256, kFew = 1024;

/// 0, or −1 where an index among the elements at `part`, `part + parts`, … is outside.
Value look(Raiser &raiser, Program &p, Known &indices, ArrayRef<Size> extents, std::optional<int64_t> ignored, Value part,
           int64_t parts) {
  Type i64 = p.b.getI64Type();
  Value count = p.extent(elementCount(indices.sizes));
  Value rounds = p.div(p.sub(p.plus(count, parts - 1), part), p.index(parts));
  return p.fold(rounds, p.number(i64, 0), [&](Value round, Value worst) {
    SmallVector<Value> at = p.split(p.add(part, p.mul(round, p.index(parts))), indices.sizes);
    Value index = raiser.element(p.b, indices, at), extent = p.extent(extents.front());
    for (size_t i = 1; i < extents.size(); ++i)
      extent = p.select(p.equal(at.back(), p.index(int64_t(i))), p.extent(extents[i]), extent);
    Value fits = p.inside(p.fromStart(p.toIndex(index), extent), extent);
    if (ignored)
      fits = p.either(fits, p.equal(index, p.number(index.getType(), double(*ignored))));
    return p.select(fits, worst, p.number(i64, -1));
  });
}

/// Whether all of constant `indices` are inside; nothing where an extent is not known, or an index.
std::optional<bool> constantsFit(Raiser &raiser, Value value, ArrayRef<Size> extents, std::optional<int64_t> ignored) {
  std::optional<SmallVector<int64_t>> indices = raiser.constants(value);
  if (!indices || !llvm::all_of(extents, [](const Size &extent) { return extent.isConstant(); }))
    return std::nullopt;
  for (auto [i, index] : llvm::enumerate(*indices)) {
    int64_t extent = *extents[i % extents.size()].constant();
    if ((index < -extent || index >= extent) && index != ignored)
      return false;
  }
  return true;
}

} // namespace

LogicalResult raise::checkIndices(Raiser &raiser, onnx::NodeOp node, Value value, ArrayRef<Size> extents,
                                  std::optional<int64_t> ignored) {
  constexpr StringRef message = "an index is outside its axis";
  if (std::optional<bool> fit = constantsFit(raiser, value, extents, ignored))
    return *fit ? success() : raiser.fail(node, message);
  if (!ignored && extents.size() == 1 && raiser.limitIndices(value, extents.front()))
    return success();
  Known &indices = raiser.known(value);
  Size count = elementCount(indices.sizes);
  int64_t parts = count.constant() && *count.constant() <= kFew ? 1 : kParts;
  Known found = raiser.generated(onnx::ElementType::Int64, {parts}, [&](OpBuilder &b, ValueRange at) {
    Program p(b, node.getLoc());
    return look(raiser, p, indices, extents, ignored, at[0], parts);
  });
  if (parts != 1) {
    Known each = found;
    found = raiser.generated(onnx::ElementType::Int64, {1}, [&](OpBuilder &b, ValueRange) {
      Program p(b, node.getLoc());
      return p.fold(p.index(parts), p.number(b.getI64Type(), 0),
                    [&](Value part, Value worst) { return p.min(worst, raiser.element(b, each, part)); });
    });
  }
  raiser.bind(found.tensor, "indices_fit", message);
  return success();
}
