// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: each element of the image asks which elements of the input it is made of.

#include "passes/Raise/Numbers.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

SmallVector<int64_t> listOr(onnx::NodeOp node, StringRef name, size_t count, int64_t otherwise) {
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name)))
    return SmallVector<int64_t>(given.asArrayRef());
  return SmallVector<int64_t>(count, otherwise);
}

/// Sums the blocks that overlap: input [N, C · block, number of blocks], output [N, C, image].
LogicalResult raiseCol2Im(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> image = numbersOf(raiser, node, 1), block = numbersOf(raiser, node, 2);
  if (failed(image) || failed(block))
    return failure();
  size_t dims = image->size();
  SmallVector<int64_t> dilations = listOr(node, "dilations", dims, 1), strides = listOr(node, "strides", dims, 1);
  SmallVector<int64_t> pads = listOr(node, "pads", 2 * dims, 0);
  auto positive = [](int64_t value) { return value > 0; };
  if (input.rank() != 3 || block->size() != dims || dilations.size() != dims || strides.size() != dims || pads.size() != 2 * dims ||
      !llvm::all_of(dilations, positive) || !llvm::all_of(strides, positive))
    return raiser.fail(node, "expects rank 3 and equally many image sizes, block sizes, positive dilations and strides, and pads");
  SmallVector<Number> extents = {Number(input.sizes[0])}, counts;
  Number volume = 1, blocks = 1;
  for (size_t i = 0; i != dims; ++i) {
    Number reach = Number(dilations[i]) * ((*block)[i] - Number(1)) + Number(1);
    Number room = (*image)[i] + Number(pads[i] + pads[dims + i]) - reach;
    counts.push_back(ifNegative(room, 0, quotient(maximum(room, 0), strides[i]) + Number(1)));
    volume = volume * (*block)[i];
    blocks = blocks * counts.back();
  }
  extents.push_back(quotient(input.sizes[1], volume));
  extents.append(*image);
  Check checks[] = {{blocks, input.sizes[2], "the number of blocks and its last dimension"},
                    {volume * extents[1], input.sizes[1], "its channels and the elements of its blocks"}};
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents, checks);
  if (failed(sizes))
    return failure();
  Type type = raiser.internalType(input.elementType);
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> loops, extent;
    for (size_t i = 0; i != dims; ++i) {
      loops.push_back((*block)[i].emit(s));
      extent.push_back(counts[i].emit(s));
    }
    return s.fold(loops, s.zero(type), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      Value row = indices[1], column = inner.index(0), inside;
      for (size_t i = 0; i != dims; ++i) {
        Value at = inner.sub(inner.add(indices[2 + i], pads[i]), inner.mul(loop[i], dilations[i]));
        Value stride = inner.index(strides[i]), place = inner.div(at, stride);
        Value here = inner.both(inner.both(inner.atLeast(at, inner.index(0)), inner.less(place, extent[i])),
                                inner.equal(inner.mul(place, stride), at));
        inside = inside ? inner.both(inside, here) : here;
        row = inner.add(inner.mul(row, loops[i]), loop[i]);
        column = inner.add(inner.mul(column, extent[i]), place);
      }
      Value x = inside ? inner.whenElseZero(inside, type, [&](Expressions then) {
        return raiser.element(then.b, input, {indices[0], row, column});
      }) : raiser.element(inner.b, input, {indices[0], row, column});
      return inner.add(carried, x);
    });
  }));
  return success();
}

} // namespace

void raise::registerImages(Registry &registry) {
  registry.add("Col2Im", raiseCol2Im, 3, 3, 18);
}
