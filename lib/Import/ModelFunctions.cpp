// SPDX-License-Identifier: Apache-2.0
//
// Fields newer than the installed onnx.proto survive parsing as bytes, and are read from there.

#include "lib/Import/ModelFunctions.h"

#include "lib/Import/WireReader.h"

namespace otf {

constexpr uint32_t kAttributeProtoField = 11;

static std::string keyOf(llvm::StringRef domain, llvm::StringRef name) {
  return domainOf(domain).str() + '\0' + name.str();
}

Opsets opsetsOf(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports) {
  Opsets opsets;
  for (const auto &import : imports)
    opsets[domainOf(import.domain())] = import.version();
  return opsets;
}

ModelFunctions::ModelFunctions(const ::onnx::ModelProto &model) {
  for (const auto &proto : model.functions()) {
    ModelFunction &function = byName[keyOf(proto.domain(), proto.name())];
    function.isOverloaded = function.proto != nullptr;
    function.proto = &proto;
    function.opsets = opsetsOf(proto.opset_import());
    WireReader reader(proto.unknown_fields());
    for (WireField field; !reader.atEnd() && reader.next(field);) {
      if (field.number != kAttributeProtoField || field.type != WireType::Bytes)
        continue;
      ::onnx::AttributeProto attribute;
      if (attribute.ParseFromArray(field.payload.data(), static_cast<int>(field.payload.size())))
        function.defaults.push_back(std::move(attribute));
    }
  }
}

const ModelFunction *ModelFunctions::find(llvm::StringRef domain, llvm::StringRef name) const {
  auto found = byName.find(keyOf(domain, name));
  return found == byName.end() ? nullptr : &found->second;
}

} // namespace otf
