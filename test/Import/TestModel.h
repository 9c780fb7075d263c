// SPDX-License-Identifier: Apache-2.0
//
// Small models for the import's tests: built as messages, written into a folder that goes away with the test.

#ifndef OTF_TEST_IMPORT_TESTMODEL_H
#define OTF_TEST_IMPORT_TESTMODEL_H

#include "lib/Import/onnx.pb.h"
#include "llvm/Support/Error.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace otf::test {

struct TemporaryFolder {
  std::filesystem::path path;

  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "otf-import-XXXXXX").string();
    path = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }

  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
};

/// IR version 8, opset 17, and nothing else.
inline ::onnx::ModelProto emptyModel() {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("g");
  return model;
}

inline void addInput(::onnx::ModelProto &model, const std::string &name) {
  auto *input = model.mutable_graph()->add_input();
  input->set_name(name);
  auto *tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(1);
  tensor->mutable_shape()->add_dim()->set_dim_param("n");
  tensor->mutable_shape()->add_dim()->set_dim_value(4);
}

inline void addOutput(::onnx::ModelProto &model, const std::string &name) {
  model.mutable_graph()->add_output()->set_name(name);
}

inline ::onnx::NodeProto *addNode(::onnx::ModelProto &model, const std::string &type,
                                  const std::vector<std::string> &inputs, const std::vector<std::string> &outputs) {
  auto *node = model.mutable_graph()->add_node();
  node->set_op_type(type);
  for (const std::string &name : inputs)
    node->add_input(name);
  for (const std::string &name : outputs)
    node->add_output(name);
  return node;
}

inline ::onnx::TensorProto *addTensor(::onnx::ModelProto &model, const std::string &name, int type,
                                      const std::vector<int64_t> &dims) {
  auto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t dim : dims)
    tensor->add_dims(dim);
  return tensor;
}

/// y = x W with a W of the given type, shape and data still to be filled in.
inline ::onnx::ModelProto matmulModel(int type, const std::vector<int64_t> &dims) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addTensor(model, "W", type, dims);
  addNode(model, "MatMul", {"x", "W"}, {"y"})->set_name("product");
  addOutput(model, "y");
  return model;
}

inline std::string messageOf(llvm::Error error) { return llvm::toString(std::move(error)); }

} // namespace otf::test

#endif
