// SPDX-License-Identifier: Apache-2.0
//
// What the scan takes out of a message, what it leaves, and what it refuses.

#include "lib/Import/WireScan.h"

#include "TestModel.h"
#include "gtest/gtest.h"

using namespace otf;
using namespace otf::test;

namespace {

::onnx::ModelProto slim(const std::string &bytes) {
  llvm::Expected<std::string> scanned = scanWire(bytes);
  ::onnx::ModelProto model;
  if (!scanned)
    ADD_FAILURE() << messageOf(scanned.takeError());
  else
    EXPECT_TRUE(model.ParseFromString(*scanned));
  return model;
}

std::string bytesAt(const std::string &file, const ::onnx::TensorProto &tensor) {
  RawSpan span = decodeSpan(tensor.raw_data());
  return file.substr(span.offset, span.length);
}

std::string errorOf(const std::string &bytes) {
  llvm::Expected<std::string> scanned = scanWire(bytes);
  return scanned ? "" : messageOf(scanned.takeError());
}

std::string nested(unsigned graphs) {
  ::onnx::GraphProto inner;
  for (unsigned i = 1; i < graphs; ++i) {
    ::onnx::GraphProto outer;
    *outer.add_node()->add_attribute()->mutable_g() = std::move(inner);
    inner = std::move(outer);
  }
  ::onnx::ModelProto model;
  *model.mutable_graph() = std::move(inner);
  return model.SerializeAsString();
}

TEST(WireScan, InitializerBecomesSpan) {
  ::onnx::ModelProto model = matmulModel(1, {4, 100});
  std::string values(1600, 'v');
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(values);
  std::string file = model.SerializeAsString();
  ::onnx::ModelProto result = slim(file);
  EXPECT_EQ(bytesAt(file, result.graph().initializer(0)), values);
  EXPECT_LT(scanWire(file)->size(), 200u);
  EXPECT_EQ(result.graph().node(0).name(), "product");
}

TEST(WireScan, SixteenBytesBecomeSpanToo) {
  ::onnx::ModelProto model = matmulModel(1, {4});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data("sixteen bytes !!");
  std::string file = model.SerializeAsString();
  EXPECT_EQ(bytesAt(file, slim(file).graph().initializer(0)), "sixteen bytes !!");
}

TEST(WireScan, TensorsAtEveryDepthBecomeSpans) {
  ::onnx::ModelProto model = emptyModel();
  ::onnx::AttributeProto *value = model.add_functions()->add_node()->add_attribute();
  value->mutable_t()->set_raw_data("in a function");
  value->add_tensors()->set_raw_data("in a list");
  value->mutable_sparse_tensor()->mutable_values()->set_raw_data("in a sparse one");
  value->mutable_g()->add_initializer()->set_raw_data("in a subgraph");
  std::string file = model.SerializeAsString();
  ::onnx::AttributeProto result = slim(file).functions(0).node(0).attribute(0);
  EXPECT_EQ(bytesAt(file, result.t()), "in a function");
  EXPECT_EQ(bytesAt(file, result.tensors(0)), "in a list");
  EXPECT_EQ(bytesAt(file, result.sparse_tensor().values()), "in a sparse one");
  EXPECT_EQ(bytesAt(file, result.g().initializer(0)), "in a subgraph");
}

TEST(WireScan, UnknownFieldsAreKept) {
  std::string file = emptyModel().SerializeAsString() + std::string("\xa2\x06\x03new", 6); // field 100
  EXPECT_EQ(slim(file).unknown_fields(), std::string("\xa2\x06\x03new", 6));
}

TEST(WireScan, DocumentationIsDropped) {
  ::onnx::ModelProto model = emptyModel();
  model.mutable_graph()->set_doc_string("long");
  addNode(model, "Relu", {"x"}, {"y"})->set_doc_string("stack trace");
  ::onnx::ModelProto result = slim(model.SerializeAsString());
  EXPECT_FALSE(result.graph().has_doc_string());
  EXPECT_FALSE(result.graph().node(0).has_doc_string());
}

TEST(WireScan, NestingIsBounded) {
  EXPECT_EQ(errorOf(nested(30)), "");
  EXPECT_NE(errorOf(nested(40)).find("nested too deeply"), std::string::npos);
}

TEST(WireScan, LengthPastTheEndIsRefused) {
  EXPECT_NE(errorOf("\x3a\x05" "ab").find("byte 0: "), std::string::npos);
  EXPECT_NE(errorOf("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").find("truncated"), std::string::npos);
}

TEST(WireScan, EndlessVarintIsRefused) {
  EXPECT_NE(errorOf("\x08" + std::string(11, '\xff')).find("truncated"), std::string::npos);
}

TEST(WireScan, GroupIsRefused) { EXPECT_NE(errorOf("\x3b\x3c"), ""); }

TEST(WireScan, GraphThatIsANumberIsRefused) {
  EXPECT_NE(errorOf(std::string("\x38\x01")).find("another type"), std::string::npos);
}

TEST(WireScan, EveryTruncationParsesOrIsRefused) {
  ::onnx::ModelProto model = matmulModel(1, {4, 8});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(128, 'v'));
  std::string file = model.SerializeAsString();
  for (size_t length = 0; length < file.size(); ++length) {
    std::string part = file.substr(0, length);
    llvm::Expected<std::string> scanned = scanWire(part);
    ::onnx::ModelProto whole;
    EXPECT_EQ(bool(scanned), whole.ParseFromString(part)) << length;
    if (!scanned)
      llvm::consumeError(scanned.takeError());
  }
}

} // namespace
