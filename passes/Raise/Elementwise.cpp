// SPDX-License-Identifier: Apache-2.0
//
// The broadcast of elementwise operators. Where every input's contents are known, so are the output's: those of floats
// in double and rounded to the element's type, those of integers as sizes, cut to the element's width.

#include "passes/Raise/Elementwise.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Numbers.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

constexpr size_t kFoldLimit = 64; // elements; contents are for shapes and scalars, not for data

/// The position in a tensor of `sizes` that broadcasts into position `linear` of `result`.
size_t broadcastPosition(ArrayRef<Size> sizes, ArrayRef<Size> result, size_t linear) {
  size_t position = 0, stride = 1;
  for (size_t i = 0; i != result.size(); ++i) {
    int64_t extent = *result[result.size() - 1 - i].constant();
    size_t index = linear % extent;
    linear /= extent;
    if (i < sizes.size() && sizes[sizes.size() - 1 - i] != Size(1)) {
      position += index * stride;
      stride *= extent;
    }
  }
  return position;
}

/// The number of elements where contents may be computed.
std::optional<size_t> foldable(ArrayRef<Size> sizes) {
  std::optional<int64_t> count = elementCount(sizes).constant();
  if (!count || *count < 0 || *count > int64_t(kFoldLimit))
    return std::nullopt;
  return *count;
}

/// A constant as elements of a type have it, which wrap. Sizes by name fit every type that a model gives them.
Size wrapped(const Size &size, int64_t elementType, bool isUnsigned) {
  std::optional<int64_t> constant = size.constant();
  unsigned bits = onnx::elementBits(elementType);
  if (!constant || bits >= 64 || elementType == Element::Bool)
    return size;
  uint64_t top = uint64_t(*constant) << (64 - bits);
  return Size(isUnsigned ? int64_t(top >> (64 - bits)) : int64_t(top) >> (64 - bits));
}

bool foldContents(Raiser &raiser, const Elementwise &op, ArrayRef<Known *> inputs, Known &result) {
  std::optional<size_t> count = foldable(result.sizes);
  if (!count)
    return false;
  bool reals = op.foldReal && llvm::all_of(inputs, [](Known *k) { return k->reals.has_value(); });
  bool integers = op.foldSize && llvm::all_of(inputs, [](Known *k) {
                    return k->integers.has_value() && !isCoded(k->elementType);
                  });
  if (reals && !op.toBool) {
    SmallVector<double> contents;
    for (size_t i = 0; i != *count; ++i) {
      SmallVector<double> operands;
      for (Known *input : inputs)
        operands.push_back((*input->reals)[broadcastPosition(input->sizes, result.sizes, i)]);
      double value = op.foldReal(operands);
      contents.push_back(result.elementType == Element::Double ? value : float(value)); // as the model computes
    }
    result.reals = contents;
    return true;
  }
  if (!integers)
    return false;
  SmallVector<Size> contents;
  for (size_t i = 0; i != *count; ++i) {
    SmallVector<Size> operands;
    for (Known *input : inputs)
      operands.push_back((*input->integers)[broadcastPosition(input->sizes, result.sizes, i)]);
    std::optional<Size> value = op.foldSize(operands);
    if (!value || !value->isValid())
      return false;
    contents.push_back(wrapped(*value, result.elementType, raiser.isUnsigned(result.elementType)));
  }
  result.integers = contents;
  return true;
}

/// The function for elements of a type, or null.
const Scalar &scalarFor(Raiser &raiser, const Elementwise &op, int64_t type) {
  static const Scalar none;
  if (isCoded(type))
    return op.movesBits ? op.integer : none;
  if (type == Element::Bool)
    return op.boolean;
  if (isa<FloatType>(raiser.internalType(type)))
    return op.real;
  // Types below a byte would wrap at a byte.
  if (onnx::elementBits(type) < 8 && !op.movesBits)
    return none;
  return raiser.isUnsigned(type) ? op.natural : op.integer;
}

} // namespace

LogicalResult raise::raiseElementwise(Raiser &raiser, onnx::NodeOp node, ArrayRef<Known *> inputs,
                                      const Elementwise &op) {
  SmallVector<Size> sizes;
  int64_t type = inputs.back()->elementType;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    FailureOr<SmallVector<Size>> merged = broadcastOrCheck(raiser, node, sizes, input->sizes);
    if (failed(merged))
      return failure();
    sizes = *merged;
    int64_t own = input->elementType;
    bool same = own == type || (raiser.isFloat(own) && raiser.isFloat(type));
    if (i >= op.others && !same)
      return raiser.fail(node, "elements of type " + onnx::elementTypeName(own) + " and " +
                                   onnx::elementTypeName(type) + " do not go together (cast one of them)");
  }
  Known result;
  result.sizes = sizes;
  result.elementType = op.toBool ? int64_t(Element::Bool) : type;
  const Scalar &scalar = scalarFor(raiser, op, type);
  if (!scalar)
    return raiser.fail(node, "elements of type " + onnx::elementTypeName(type) +
                                 " are not supported (cast to another type before it)");
  if (foldContents(raiser, op, inputs, result) || boundContents(raiser, node, inputs, result)) {
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(result.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    SmallVector<Value> operands;
    for (Known *input : inputs)
      operands.push_back(raiser.element(b, *input, indices));
    return scalar(b, node.getLoc(), operands);
  }));
  return success();
}

LogicalResult raise::raiseElementwise(Raiser &raiser, onnx::NodeOp node, const Elementwise &op) {
  SmallVector<Known *> inputs;
  for (Value operand : node.getInputs()) {
    if (operand.getDefiningOp<onnx::NoneOp>())
      return raiser.fail(node, "an input is missing");
    inputs.push_back(&raiser.known(operand));
  }
  return raiseElementwise(raiser, node, inputs, op);
}

void raise::addElementwise(Registry &registry, StringRef name, unsigned arity, Elementwise op,
                           std::function<bool(Raiser &, onnx::NodeOp)> recognize, int64_t since) {
  registry.add(name, [op = std::move(op), recognize](Raiser &raiser, onnx::NodeOp node) {
    if (recognize && recognize(raiser, node))
      return success();
    return raiseElementwise(raiser, node, op);
  }, arity == kAnyNumber ? 1 : arity, arity, since);
}

void raise::addElementwise(Registry &registry, StringRef name, unsigned arity,
                           std::function<Elementwise(onnx::NodeOp)> describe, int64_t since) {
  registry.add(name, [describe](Raiser &raiser, onnx::NodeOp node) {
    return raiseElementwise(raiser, node, describe(node));
  }, arity, arity, since);
}

Scalar raise::compare(arith::CmpFPredicate predicate) {
  return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::CmpFOp::create(b, l, predicate, v[0], v[1]);
  };
}

Scalar raise::compare(arith::CmpIPredicate predicate) {
  return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::CmpIOp::create(b, l, predicate, v[0], v[1]);
  };
}
