// SPDX-License-Identifier: Apache-2.0
//
// The type field decides; files older than IR version 2 leave it out, and then the field that is there does.

#include "lib/Import/NodeAttributes.h"

#include "lib/Import/TensorImport.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace otf {

using ::onnx::AttributeProto;

static AttributeProto::AttributeType typeOf(const AttributeProto &message) {
  if (message.type() != AttributeProto::UNDEFINED)
    return message.type();
  if (message.has_f()) return AttributeProto::FLOAT;
  if (message.has_i()) return AttributeProto::INT;
  if (message.has_s()) return AttributeProto::STRING;
  if (message.has_t()) return AttributeProto::TENSOR;
  if (message.has_g()) return AttributeProto::GRAPH;
  if (message.floats_size()) return AttributeProto::FLOATS;
  if (message.ints_size()) return AttributeProto::INTS;
  if (message.strings_size()) return AttributeProto::STRINGS;
  if (message.tensors_size()) return AttributeProto::TENSORS;
  return AttributeProto::UNDEFINED;
}

bool isSubgraph(const AttributeProto &message) { return typeOf(message) == AttributeProto::GRAPH; }

llvm::Expected<Attribute> importAttribute(const AttributeProto &message, FileSet &files, MLIRContext *context) {
  Builder b(context);
  SmallVector<Attribute> elements;
  switch (typeOf(message)) {
  case AttributeProto::FLOAT: return b.getF32FloatAttr(message.f());
  case AttributeProto::INT: return b.getI64IntegerAttr(message.i());
  case AttributeProto::STRING: return b.getStringAttr(message.s());
  case AttributeProto::FLOATS: return b.getDenseF32ArrayAttr({message.floats().data(), size_t(message.floats_size())});
  case AttributeProto::INTS: return b.getDenseI64ArrayAttr({message.ints().data(), size_t(message.ints_size())});
  case AttributeProto::STRINGS:
    for (const std::string &text : message.strings())
      elements.push_back(b.getStringAttr(text));
    return b.getArrayAttr(elements);
  case AttributeProto::TENSOR: return importTensor(message.t(), files, context);
  case AttributeProto::TENSORS:
    for (const auto &tensor : message.tensors()) {
      llvm::Expected<Attribute> element = importTensor(tensor, files, context);
      if (!element)
        return element.takeError();
      elements.push_back(*element);
    }
    return b.getArrayAttr(elements);
  case AttributeProto::GRAPH:
  case AttributeProto::GRAPHS:
    return llvm::createStringError("is a list of graphs (no operator that is supported has one)");
  case AttributeProto::SPARSE_TENSOR:
  case AttributeProto::SPARSE_TENSORS:
    return llvm::createStringError("is a sparse tensor (these are not supported; store it dense)");
  case AttributeProto::TYPE_PROTO:
  case AttributeProto::TYPE_PROTOS:
    return llvm::createStringError("is a type (optional and sequence values are not supported)");
  default:
    return llvm::createStringError("has no type that ONNX defines (the file is corrupt or newer than this program)");
  }
}

} // namespace otf
