// SPDX-License-Identifier: Apache-2.0
//
// Only tensors of a type that has elements of a fixed size can cross the border of a plan.

#include "lib/Import/Signature.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/TensorImport.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace otf {

llvm::Expected<DictionaryAttr> importSignature(const ::onnx::ValueInfoProto &value, bool needsType,
                                               MLIRContext *context) {
  Builder b(context);
  NamedAttrList attrs;
  attrs.set("onnx.name", b.getStringAttr(value.name()));
  if (value.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET) {
    if (needsType)
      return llvm::createStringError("has no type (infer the model's shapes and save it again)");
    return attrs.getDictionary(context);
  }
  if (!value.type().has_tensor_type())
    return llvm::createStringError("is a sequence, map, optional or sparse tensor (only dense tensors are supported; "
                                   "export the model without it)");
  const ::onnx::TypeProto::Tensor &tensor = value.type().tensor_type();
  int64_t type = tensor.elem_type();
  if (type == onnx::ElementType::Undefined && !needsType)
    return attrs.getDictionary(context);
  if (!onnx::elementTypeOf(context, type))
    return llvm::createStringError("element type " + llvm::Twine(type) + " (" + onnx::elementTypeName(type) +
                                   ") is not supported (only numbers and bools are)");
  attrs.set("onnx.type", b.getI64IntegerAttr(type));
  if (!tensor.has_shape())
    return attrs.getDictionary(context);
  if (tensor.shape().dim_size() > kMaxRank)
    return llvm::createStringError("has " + llvm::Twine(tensor.shape().dim_size()) + " dimensions (at most " +
                                   llvm::Twine(kMaxRank) + " are supported)");
  SmallVector<Attribute> dims;
  for (const ::onnx::TensorShapeProto::Dimension &dim : tensor.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      dims.push_back(b.getI64IntegerAttr(dim.dim_value()));
    else
      dims.push_back(b.getStringAttr(dim.has_dim_value() || dim.dim_param().empty() ? "?" : dim.dim_param()));
  }
  attrs.set("onnx.dims", b.getArrayAttr(dims));
  return attrs.getDictionary(context);
}

} // namespace otf
