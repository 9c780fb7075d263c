// SPDX-License-Identifier: Apache-2.0
//
// The module that a model becomes, as text, and the one sentence of each refusal.

#include "lib/Import/Importer.h"

#include "TestModel.h"
#include "lib/Import/WeightSource.h"
#include "dialects/ONNX/ONNXOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace otf;
using namespace otf::test;

namespace {

struct ImporterTest : testing::Test {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  TemporaryFolder folder;
  std::unique_ptr<ModelFile> file;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string errors;

  ImporterTest() {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return mlir::success();
    });
  }

  /// The module's text, or the errors.
  std::string importBytes(const std::string &bytes) {
    errors.clear();
    module = {};
    llvm::Expected<std::unique_ptr<ModelFile>> opened = ModelFile::open(folder.write("m.onnx", bytes));
    if (!opened)
      return messageOf(opened.takeError());
    file = std::move(*opened);
    module = importModel(*file, context);
    if (!module)
      return errors;
    EXPECT_EQ(errors, "");
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module))) << errors;
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }
  std::string import(const ::onnx::ModelProto &model) { return importBytes(model.SerializeAsString()); }
};

#define EXPECT_HAS(text, part) EXPECT_PRED2(has, text, part)
bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

/// x -> Relu -> y, with a tensor W that the graph returns too.
::onnx::ModelProto tensorModel(int type, const std::vector<int64_t> &dims) {
  ::onnx::ModelProto model = emptyModel();
  addTensor(model, "W", type, dims);
  addOutput(model, "W");
  return model;
}

TEST_F(ImporterTest, SignatureKeepsNamesTypesAndSizes) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addNode(model, "Relu", {"x"}, {"y"});
  addOutput(model, "y");
  std::string text = import(model);
  EXPECT_HAS(text, R"(%arg0: !onnx.value {onnx.dims = ["n", 4], onnx.name = "x", onnx.type = 1 : i64})");
  EXPECT_HAS(text, R"(-> (!onnx.value {onnx.name = "y"}))");
  EXPECT_HAS(text, R"(%0 = onnx.node "Relu" version 17 (%arg0))");
}

TEST_F(ImporterTest, SmallTensorIsInTheIR) {
  ::onnx::ModelProto model = tensorModel(7, {2});
  model.mutable_graph()->mutable_initializer(0)->add_int64_data(-1);
  model.mutable_graph()->mutable_initializer(0)->add_int64_data(64);
  EXPECT_HAS(import(model), "onnx.initializer @W = dense<[-1, 64]> : tensor<2xi64>");
}

TEST_F(ImporterTest, LargeTensorIsABlob) {
  ::onnx::ModelProto model = tensorModel(1, {17});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(68, 'v'));
  EXPECT_HAS(import(model), "length = 68, type = 1, dims = [17]>");
}

TEST_F(ImporterTest, LargeTypedTensorIsPacked) {
  ::onnx::ModelProto model = tensorModel(10, {64}); // float16 in int32_data
  for (int i = 0; i < 64; ++i)
    model.mutable_graph()->mutable_initializer(0)->add_int32_data(0x3c00);
  std::string text = import(model);
  EXPECT_HAS(text, R"(onnx.files = ["m.onnx", "packed:W"])");
  EXPECT_HAS(text, "#onnx.blob<file = 1, offset = 0, length = 128, type = 10, dims = [64]>");
  EXPECT_EQ(file->files().bytes(1)[1], std::byte(0x3c));
}

TEST_F(ImporterTest, FourBitTensorIsUnpackedOrABlob) {
  ::onnx::ModelProto model = tensorModel(22, {3}); // newer than the installed onnx.proto
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string("\xf1\x07"));
  EXPECT_HAS(import(model), "dense<[1, -1, 7]> : tensor<3xi4>");
  model = tensorModel(21, {129});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string(65, '\x21'));
  EXPECT_HAS(import(model), "length = 65, type = 21, dims = [129]>");
}

TEST_F(ImporterTest, BoolAndFloat8AreRead) {
  ::onnx::ModelProto model = tensorModel(9, {2});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(std::string("\x00\x01", 2));
  EXPECT_HAS(import(model), "dense<[false, true]> : tensor<2xi1>");
  model = tensorModel(17, {1});
  model.mutable_graph()->mutable_initializer(0)->set_raw_data("\x38");
  EXPECT_HAS(import(model), "dense<1.000000e+00> : tensor<1xf8E4M3FN>");
}

TEST_F(ImporterTest, EmptyTensorIsRead) { EXPECT_HAS(import(tensorModel(7, {0})), "tensor<0xi64>"); }

TEST_F(ImporterTest, ExternalTensorIsABlobOfItsFile) {
  folder.write("w.bin", std::string(100, 'w'));
  ::onnx::ModelProto model = tensorModel(1, {20});
  auto *tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto add = [&](const char *key, const char *value) {
    auto *entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", "w.bin");
  add("offset", "20");
  EXPECT_HAS(import(model), "file = 1, offset = 20, length = 80");
  add("length", "81");
  EXPECT_HAS(import(model), "tensor 'W': external data has 81 bytes but float [20] needs 80");
  tensor->mutable_external_data(2)->set_value("80");
  tensor->mutable_external_data(1)->set_value("21");
  EXPECT_HAS(import(model), "tensor 'W': external data 'w.bin' is too short");
  tensor->mutable_external_data(1)->set_value("18446744073709551615");
  EXPECT_HAS(import(model), "is too short");
  tensor->mutable_external_data(1)->set_value("-1");
  EXPECT_HAS(import(model), "external data's offset is '-1'");
  tensor->mutable_external_data(1)->set_value("20");
  tensor->mutable_external_data(0)->set_value("../w.bin");
  EXPECT_HAS(import(model), "tensor 'W': external data '../w.bin': the path leads outside");
}

TEST_F(ImporterTest, BadTensorsAreRefusedByName) {
  auto refusal = [&](int type, std::vector<int64_t> dims, auto fill) {
    ::onnx::ModelProto model = tensorModel(type, dims);
    fill(*model.mutable_graph()->mutable_initializer(0));
    return import(model);
  };
  auto raw = [](std::string bytes) { return [bytes](::onnx::TensorProto &tensor) { tensor.set_raw_data(bytes); }; };
  EXPECT_HAS(refusal(1, {2}, raw("1234567")), "m.onnx: tensor 'W': has 7 bytes of data but float [2] needs 8 (");
  EXPECT_HAS(refusal(1, {-2}, raw("12345678")), "tensor 'W': dimension -2 is negative");
  EXPECT_HAS(refusal(1, {INT64_MAX, 2}, raw("12345678")), "tensor 'W': size of float [");
  EXPECT_HAS(refusal(1, {INT64_MAX, INT64_MAX, 0}, raw("")), "tensor 'W': size of float [");
  EXPECT_HAS(refusal(1, {1LL << 61}, raw("12345678")), "tensor 'W': size of float [");
  EXPECT_HAS(refusal(9999, {2}, raw("12345678")), "tensor 'W': element type 9999 (unknown)");
  EXPECT_HAS(refusal(8, {2}, raw("12345678")), "tensor 'W': element type 8 (string)");
  EXPECT_HAS(refusal(1, {2}, [](auto &) {}), "tensor 'W': has no values");
  EXPECT_HAS(refusal(1, {2}, [](auto &tensor) { tensor.add_float_data(1); }), "tensor 'W': holds 1 values but");
  EXPECT_HAS(refusal(1, {2}, [](auto &tensor) { tensor.add_int32_data(1); }), "tensor 'W': holds 0 values but");
  EXPECT_HAS(refusal(2, {1}, [](auto &tensor) { tensor.add_int32_data(256); }), "tensor 'W': value 256 does not fit");
  EXPECT_HAS(refusal(1, {1},
                     [](auto &tensor) {
                       tensor.add_float_data(1);
                       tensor.set_raw_data("1234");
                     }),
             "tensor 'W': has both raw_data and float_data");
}

TEST_F(ImporterTest, UnusedTensorIsNotLookedAt) {
  ::onnx::ModelProto model = tensorModel(7, {0});
  addTensor(model, "unused", 9999, {-1});
  EXPECT_EQ(import(model).find("unused"), std::string::npos);
}

TEST_F(ImporterTest, TensorListedAsInputIsAConstant) {
  ::onnx::ModelProto model = matmulModel(1, {1});
  model.mutable_graph()->mutable_initializer(0)->add_float_data(1);
  addInput(model, "W");
  std::string text = import(model);
  EXPECT_HAS(text, "onnx.get @W");
  EXPECT_EQ(text.find("%arg1"), std::string::npos);
}

TEST_F(ImporterTest, TensorNamedMainGetsAnotherSymbol) {
  ::onnx::ModelProto model = emptyModel();
  addTensor(model, "main", 7, {0});
  addOutput(model, "main");
  EXPECT_HAS(import(model), "onnx.get @main_0");
}

TEST_F(ImporterTest, InputThatIsAnOutput) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addOutput(model, "x");
  EXPECT_HAS(import(model), "return %arg0 : !onnx.value");
}

TEST_F(ImporterTest, LeftOutInputsAndOutputsKeepTheirPlace) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addNode(model, "Clip", {"x", "", "x", ""}, {"", "y"});
  addOutput(model, "y");
  std::string text = import(model);
  EXPECT_HAS(text, R"(%0:2 = onnx.node "Clip" version 17 (%arg0, %none, %arg0))");
  EXPECT_HAS(text, "return %0#1");
}

TEST_F(ImporterTest, NodesAreSorted) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addNode(model, "Second", {"a"}, {"y"});
  addNode(model, "First", {"x"}, {"a"});
  addOutput(model, "y");
  std::string text = import(model);
  EXPECT_LT(text.find("First"), text.find("Second"));
}

TEST_F(ImporterTest, BadGraphsAreRefusedByName) {
  ::onnx::ModelProto model = emptyModel();
  addNode(model, "Add", {"b"}, {"a"})->set_name("one");
  addNode(model, "Mul", {"a"}, {"b"})->set_name("two");
  addNode(model, "Neg", {"b"}, {"c"})->set_name("three");
  addOutput(model, "c");
  EXPECT_HAS(import(model), "node 'one' (Add): needs the output of node 'two' (Mul), which needs this node's (the graph "
                            "has a cycle");
  model = emptyModel();
  addNode(model, "Add", {"a"}, {"a"});
  addOutput(model, "a");
  EXPECT_HAS(import(model), "node Add -> 'a': needs its own output");
  model = emptyModel();
  addNode(model, "Add", {"x"}, {"a"});
  addOutput(model, "a");
  EXPECT_HAS(import(model), "node Add -> 'a': input 'x' is not defined");
  model = emptyModel();
  addNode(model, "A", {}, {"a"})->set_name("one");
  addNode(model, "B", {}, {"a"})->set_name("two");
  addOutput(model, "a");
  EXPECT_HAS(import(model), "node 'two' (B): output 'a' is also an output of node 'one' (A)");
  model = emptyModel();
  addOutput(model, "a");
  EXPECT_HAS(import(model), "output 'a': is not defined");
  EXPECT_HAS(import(emptyModel()), "the graph: has no outputs");
  model = emptyModel();
  addNode(model, "A", {}, {"line\nbreak"})->set_domain("com.none");
  addOutput(model, "line\nbreak");
  EXPECT_HAS(import(model), "node A -> 'line?break': uses an operator of domain 'com.none'");
}

/// An If whose then_branch is Neg of `name`.
static ::onnx::ModelProto branching(const std::string &name) {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "c");
  addInput(model, "x");
  auto *branch = addNode(model, "If", {"c"}, {"y"})->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(::onnx::AttributeProto::GRAPH);
  auto *node = branch->mutable_g()->add_node();
  node->set_op_type("Neg");
  node->add_input(name);
  node->add_output("t");
  branch->mutable_g()->add_output()->set_name("t");
  addOutput(model, "y");
  return model;
}

TEST_F(ImporterTest, SubgraphIsARegionThatSeesTheGraphAroundIt) {
  std::string text = import(branching("x"));
  EXPECT_HAS(text, R"(onnx.node "If" version 17 (%arg0) bodies ["then_branch"])");
  EXPECT_HAS(text, R"(onnx.node "Neg" version 17 (%arg1))");
  EXPECT_HAS(text, "onnx.yield");
}

TEST_F(ImporterTest, SubgraphUsesANameThatNobodyMakes) {
  EXPECT_HAS(import(branching("nowhere")), "input 'nowhere' is not defined");
}

TEST_F(ImporterTest, EveryKindOfAttribute) {
  ::onnx::ModelProto model = emptyModel();
  auto *node = addNode(model, "Op", {}, {"y"});
  auto add = [&](const char *name, ::onnx::AttributeProto::AttributeType type) {
    auto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  };
  add("a", ::onnx::AttributeProto::INT)->set_i(-1);
  add("b", ::onnx::AttributeProto::FLOAT)->set_f(0.5);
  add("c", ::onnx::AttributeProto::STRING)->set_s("text");
  add("d", ::onnx::AttributeProto::INTS)->add_ints(3);
  add("e", ::onnx::AttributeProto::FLOATS);
  add("f", ::onnx::AttributeProto::STRINGS)->add_strings("s");
  auto *tensor = add("g", ::onnx::AttributeProto::TENSOR)->mutable_t();
  tensor->set_data_type(1);
  tensor->add_float_data(2);
  add("h", ::onnx::AttributeProto::UNDEFINED)->set_i(7); // IR version 1
  addOutput(model, "y");
  EXPECT_HAS(import(model), R"({a = -1 : i64, b = 5.000000e-01 : f32, c = "text", d = array<i64: 3>, e = array<f32>, )"
                            R"(f = ["s"], g = dense<2.000000e+00> : tensor<f32>, h = 7 : i64})");
}

/// Twice(a; k) = b is Scale(a; by = k), Scale(·; by = k).
::onnx::ModelProto functionModel() {
  ::onnx::ModelProto model = emptyModel();
  addInput(model, "x");
  addNode(model, "Twice", {"x"}, {"y"})->set_domain("local");
  addOutput(model, "y");
  auto *function = model.add_functions();
  function->set_domain("local");
  function->set_name("Twice");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(11);
  for (auto [from, to] : {std::pair("a", "t"), std::pair("t", "b")}) {
    auto *node = function->add_node();
    node->set_op_type("Scale");
    node->add_input(from);
    node->add_output(to);
    node->add_attribute()->set_name("by");
    node->mutable_attribute(0)->set_ref_attr_name("k");
  }
  return model;
}

TEST_F(ImporterTest, FunctionIsInlined) {
  ::onnx::ModelProto model = functionModel();
  auto *k = model.mutable_graph()->mutable_node(0)->add_attribute();
  k->set_name("k");
  k->set_i(3);
  std::string text = import(model);
  EXPECT_HAS(text, R"(%0 = onnx.node "Scale" version 11 (%arg0) {by = 3 : i64})");
  EXPECT_HAS(text, R"(%1 = onnx.node "Scale" version 11 (%0) {by = 3 : i64})");
}

TEST_F(ImporterTest, FunctionAttributeHasADefault) {
  ::onnx::ModelProto model = functionModel();
  EXPECT_HAS(import(model), R"(%0 = onnx.node "Scale" version 11 (%arg0)
)");
  ::onnx::AttributeProto k;
  k.set_name("k");
  k.set_i(5);
  std::string bytes = k.SerializeAsString();
  *model.mutable_functions(0)->mutable_unknown_fields() = std::string("\x5a") + char(bytes.size()) + bytes;
  EXPECT_HAS(import(model), "by = 5 : i64");
}

TEST_F(ImporterTest, BadFunctionsAreRefused) {
  ::onnx::ModelProto model = functionModel();
  model.mutable_functions(0)->mutable_node(0)->set_op_type("Twice");
  model.mutable_functions(0)->mutable_node(0)->set_domain("local");
  EXPECT_HAS(import(model), "calls functions more than 32 deep");
  model = functionModel();
  *model.add_functions() = model.functions(0);
  EXPECT_HAS(import(model), "node Twice -> 'y': calls a function with overloads");
  model = functionModel();
  model.mutable_functions(0)->set_output(0, "none");
  EXPECT_HAS(import(model), "calls a function that does not make its output 'none'");
}

TEST_F(ImporterTest, EveryTruncationAndChangedByteImportsOrIsRefused) {
  ::onnx::ModelProto model = functionModel();
  addTensor(model, "W", 1, {20})->set_raw_data(std::string(80, '\0'));
  addTensor(model, "V", 7, {2})->add_int64_data(1);
  addNode(model, "Add", {"W", "V"}, {"z"});
  addOutput(model, "z");
  std::string bytes = model.SerializeAsString();
  for (size_t i = 0; i < bytes.size(); ++i) {
    importBytes(bytes.substr(0, i));
    for (char change : {'\x01', '\x80', '\xff'}) {
      std::string changed = bytes;
      changed[i] ^= change;
      importBytes(changed);
    }
  }
}

} // namespace
