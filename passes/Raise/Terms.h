// SPDX-License-Identifier: Apache-2.0
//
// Saying what an operator means in terms of others: nodes that stand before it, raised as they are made.
#ifndef OTF_PASSES_RAISE_TERMS_H
#define OTF_PASSES_RAISE_TERMS_H

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Quantized.h"

namespace otf::raise {

inline constexpr int64_t kVersion = 21; // of what the operators here are said in

/// Writes the terms of one node; after a complaint its values are null and whatever follows does nothing.
struct Terms {
  Raiser &raiser;
  onnx::NodeOp node;
  bool failed = false;

  mlir::Value in(unsigned position) { return node.inputOrNull(position); }
  mlir::Value none() {
    mlir::OpBuilder builder(node);
    return onnx::NoneOp::create(builder, node.getLoc(), onnx::ValueType::get(builder.getContext()));
  }
  /// A value of which `what` is known.
  mlir::Value value(Known what) {
    mlir::OpBuilder builder(node);
    mlir::Type type = onnx::ValueType::get(builder.getContext());
    auto holder = onnx::NodeOp::create(builder, node.getLoc(), type, "Constant", "", kVersion, "",
                                       builder.getDictionaryAttr({}), mlir::ArrayAttr(), mlir::ValueRange(), 0);
    raiser.known(holder.getOutputs()[0]) = std::move(what);
    return holder.getOutputs()[0];
  }
  mlir::Value number(double x) {
    Known what;
    what.elementType = onnx::ElementType::Float;
    what.reals = llvm::SmallVector<double>{x};
    return value(std::move(what));
  }
  mlir::NamedAttribute attribute(llvm::StringRef name, mlir::Attribute value) { return raiser.builder.getNamedAttr(name, value); }
  mlir::NamedAttribute integer(llvm::StringRef name, int64_t value) { return attribute(name, raiser.builder.getI64IntegerAttr(value)); }

  mlir::Value apply(llvm::StringRef op, llvm::ArrayRef<mlir::Value> inputs, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, int64_t version = kVersion) {
    if (failed)
      return {};
    llvm::SmallVector<mlir::Value> all(inputs);
    while (!all.empty() && !all.back())
      all.pop_back();
    for (mlir::Value &value : all)
      if (!value)
        value = none();
    mlir::FailureOr<mlir::ValueRange> results = raiseAs(raiser, node, op, version, all, attributes);
    failed = mlir::failed(results);
    return failed ? mlir::Value() : results->front();
  }
  /// The float that the quantized input at `position` stands for, with scale and zero point after it.
  mlir::Value real(unsigned position, int64_t axis = 1) {
    return apply("DequantizeLinear", {in(position), in(position + 1), in(position + 2)}, {integer("axis", axis)});
  }
  /// Quantizes by the scale and zero point at `position`; without a zero point the type is `type`.
  mlir::Value quantize(mlir::Value x, unsigned position, int64_t type) {
    llvm::SmallVector<mlir::NamedAttribute> attributes;
    if (!in(position + 1))
      attributes.push_back(integer("output_dtype", type));
    return apply("QuantizeLinear", {x, in(position), in(position + 1)}, attributes);
  }
  mlir::LogicalResult finish(mlir::Value result) {
    if (failed)
      return mlir::failure();
    raiser.set(node, Known(raiser.known(result)));
    return mlir::success();
  }
};

/// Where an operator on codes has its operands: input and weight, each with scale and zero point.
struct GivenOperands {
  unsigned input, scale, zero, weight, weightScale, weightZero;
};
/// Lets `finish` say an operator on codes in terms of what its input and its constant weight stand for, if scales and zero points
/// are of a form that allows it; the weight's may be one along `axis`. Nothing where they are not.
std::optional<mlir::LogicalResult>
raiseByGivenWeight(Raiser &, onnx::NodeOp, GivenOperands, int64_t axis,
                   llvm::function_ref<mlir::LogicalResult(Terms &, mlir::Value a, mlir::Value b)> finish);

/// The attributes of a node but for those named.
inline llvm::SmallVector<mlir::NamedAttribute> attributesBut(onnx::NodeOp node, llvm::ArrayRef<llvm::StringRef> names) {
  llvm::SmallVector<mlir::NamedAttribute> result;
  for (mlir::NamedAttribute attribute : node.getAttrs())
    if (!llvm::is_contained(names, attribute.getName().getValue()))
      result.push_back(attribute);
  return result;
}

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_TERMS_H
