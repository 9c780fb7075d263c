// SPDX-License-Identifier: Apache-2.0
//
// The functions that a model brings along, by domain and name.

#ifndef OTF_LIB_IMPORT_MODELFUNCTIONS_H
#define OTF_LIB_IMPORT_MODELFUNCTIONS_H

#include "lib/Import/onnx.pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace otf {

/// "ai.onnx" is a long name of the domain "".
inline llvm::StringRef domainOf(llvm::StringRef name) { return name == "ai.onnx" ? llvm::StringRef() : name; }

using Opsets = llvm::StringMap<int64_t>;

struct ModelFunction {
  const ::onnx::FunctionProto *proto = nullptr;
  Opsets opsets;
  /// Attributes with a default. The installed onnx.proto does not know these (IR version 9), the file may.
  std::vector<::onnx::AttributeProto> defaults;
  /// Several functions have this name and differ in `overload`, which the installed onnx.proto does not know either.
  bool isOverloaded = false;
};

class ModelFunctions {
public:
  explicit ModelFunctions(const ::onnx::ModelProto &model);
  /// The function that a node calls, or null.
  const ModelFunction *find(llvm::StringRef domain, llvm::StringRef name) const;

private:
  llvm::StringMap<ModelFunction> byName;
};

Opsets opsetsOf(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports);

} // namespace otf

#endif
