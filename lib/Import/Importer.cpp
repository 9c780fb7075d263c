// SPDX-License-Identifier: Apache-2.0
//
// Nodes become operations of one block, in an order in which values come before their uses. A name is looked up in
// the scope of its graph or function; an initializer enters the module when its name is first used. After an error the
// import goes on with a stand-in where it can, so that one run tells all that is wrong.

#include "lib/Import/Importer.h"

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Import/GraphOrder.h"
#include "lib/Import/ModelFunctions.h"
#include "lib/Import/NodeAttributes.h"
#include "lib/Import/Signature.h"
#include "lib/Import/TensorImport.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace otf {

namespace {

constexpr unsigned kMaxErrors = 20;
constexpr unsigned kMaxCallDepth = 32;
/// Functions that call functions can grow exponentially.
constexpr unsigned kMaxNodes = 1u << 19;

/// Names of a graph, of a subgraph, or of one call of a function.
struct Scope {
  llvm::StringMap<Value> values;
  const Opsets &opsets;
  /// Attributes of the calling node, which `ref_attr_name` refers to.
  NamedAttrList attributes;
  unsigned depth = 0;
  /// What the graph brings along.
  llvm::StringMap<const ::onnx::TensorProto *> initializers = {};
  /// Around a subgraph.
  Scope *outer = nullptr;

  bool sees(StringRef name) const {
    return values.contains(name) || initializers.contains(name) || (outer && outer->sees(name));
  }
};

class Importer {
public:
  Importer(ModelFile &file, MLIRContext &context)
      : file(file), model(file.proto()), functions(model), opsets(opsetsOf(model.opset_import())), b(&context) {}

  OwningOpRef<ModuleOp> run();

private:
  void error(const Twine &what);
  void importNodes(const NodeList &nodes, const llvm::StringSet<> &given, Scope &scope);
  void importNode(const ::onnx::NodeProto &node, Scope &scope);
  void inlineCall(const ModelFunction &function, const ::onnx::NodeProto &node, ValueRange inputs,
                  NamedAttrList attributes, Scope &scope);
  NamedAttrList importAttributes(const ::onnx::NodeProto &node, const Scope &scope);
  Value lookup(StringRef name, Scope &scope);
  void importBodies(const ::onnx::NodeProto &node, onnx::NodeOp op, Scope &scope);
  void importBody(const ::onnx::NodeProto &node, const ::onnx::GraphProto &graph, Region &region, Scope &outer);
  void takeInitializers(const ::onnx::GraphProto &graph, llvm::StringSet<> &given, Scope &scope);
  Value importInitializer(const ::onnx::TensorProto &tensor);
  std::string declareInitializer(const ::onnx::TensorProto &tensor);
  Value none();
  Location locationOf(StringRef name) { return NameLoc::get(b.getStringAttr(name)); }
  onnx::ValueType valueType() { return b.getType<onnx::ValueType>(); }

  ModelFile &file;
  const ::onnx::ModelProto &model;
  ModelFunctions functions;
  Opsets opsets;
  OpBuilder b;
  ModuleOp module;
  func::FuncOp main;
  Value noneValue;
  llvm::StringSet<> symbols;
  unsigned errors = 0, nodeCount = 0;
};

void Importer::error(const Twine &what) {
  if (++errors > kMaxErrors)
    return;
  std::string line = (file.path() + ": " + what).str();
  std::replace_if(line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, '?'); // names may hold newlines
  emitError(b.getUnknownLoc()) << line;
}

Value Importer::none() {
  if (!noneValue) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&main.front());
    noneValue = onnx::NoneOp::create(b, b.getUnknownLoc(), valueType());
  }
  return noneValue;
}

Value Importer::importInitializer(const ::onnx::TensorProto &tensor) {
  std::string symbol = declareInitializer(tensor);
  if (symbol.empty())
    return none();
  // A subgraph may be the first to use what later nodes around it use too.
  OpBuilder::InsertionGuard guard(b);
  Operation *around = b.getInsertionBlock()->getParentOp();
  if (around != main)
    b.setInsertionPoint(main.front().findAncestorOpInBlock(*around));
  return onnx::GetOp::create(b, locationOf(tensor.name()), valueType(), symbol);
}

/// The symbol of a new onnx.initializer, or nothing after an error.
std::string Importer::declareInitializer(const ::onnx::TensorProto &tensor) {
  llvm::Expected<Attribute> value = importTensor(tensor, file.files(), b.getContext());
  if (!value) {
    error("tensor '" + Twine(tensor.name()) + "': " + llvm::toString(value.takeError()));
    return {};
  }
  std::string symbol = tensor.name();
  for (unsigned suffix = 0; !symbols.insert(symbol).second; ++suffix)
    symbol = tensor.name() + "_" + std::to_string(suffix);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(main);
  onnx::InitializerOp::create(b, locationOf(tensor.name()), symbol, *value);
  return symbol;
}

Value Importer::lookup(StringRef name, Scope &scope) {
  if (name.empty())
    return none();
  if (Value value = scope.values.lookup(name))
    return value;
  auto initializer = scope.initializers.find(name);
  if (initializer != scope.initializers.end())
    return scope.values[name] = importInitializer(*initializer->second);
  // Every name was checked when the nodes were ordered.
  return scope.outer ? lookup(name, *scope.outer) : none();
}

NamedAttrList Importer::importAttributes(const ::onnx::NodeProto &node, const Scope &scope) {
  NamedAttrList attributes;
  for (const ::onnx::AttributeProto &attribute : node.attribute()) {
    auto fail = [&](const Twine &what) {
      error(describe(node) + ": attribute '" + attribute.name() + "' " + what);
    };
    if (attribute.name().empty() || attributes.get(attribute.name())) {
      fail("has no name of its own (the file is corrupt; export the model again)");
      continue;
    }
    if (!attribute.ref_attr_name().empty()) { // left out by the caller too: the operator's own default
      if (Attribute value = scope.attributes.get(attribute.ref_attr_name()))
        attributes.set(attribute.name(), value);
      continue;
    }
    if (isSubgraph(attribute))
      continue; // importBodies
    llvm::Expected<Attribute> value = importAttribute(attribute, file.files(), b.getContext());
    if (value)
      attributes.set(attribute.name(), *value);
    else
      fail(llvm::toString(value.takeError()));
  }
  return attributes;
}

void Importer::inlineCall(const ModelFunction &function, const ::onnx::NodeProto &node, ValueRange inputs,
                          NamedAttrList attributes, Scope &scope) {
  const ::onnx::FunctionProto &proto = *function.proto;
  auto fail = [&](const Twine &what) { error(describe(node) + ": " + what); };
  if (function.isOverloaded)
    return fail("calls a function with overloads (these are not supported; inline the model's functions first)");
  if (scope.depth == kMaxCallDepth)
    return fail("calls functions more than 32 deep (does a function call itself? inline the model's functions first)");
  if (node.input_size() > proto.input_size() || node.output_size() > proto.output_size())
    return fail("has more inputs or outputs than the model's function (the file is corrupt; export the model again)");
  Scope body{{}, function.opsets.empty() ? scope.opsets : function.opsets, std::move(attributes), scope.depth + 1};
  for (const ::onnx::AttributeProto &attribute : function.defaults) {
    if (body.attributes.get(attribute.name()))
      continue;
    llvm::Expected<Attribute> value = importAttribute(attribute, file.files(), b.getContext());
    if (!value)
      return fail("attribute '" + Twine(attribute.name()) + "' " + llvm::toString(value.takeError()));
    body.attributes.set(attribute.name(), *value);
  }
  llvm::StringSet<> given;
  for (int i = 0; i < proto.input_size(); ++i) {
    given.insert(proto.input(i));
    body.values[proto.input(i)] = i < node.input_size() ? inputs[i] : none();
  }
  importNodes(proto.node(), given, body);
  for (int i = 0; i < node.output_size(); ++i) {
    Value result = body.values.lookup(proto.output(i));
    if (!result && nodeCount > kMaxNodes)
      return; // said once
    if (!result)
      return fail("calls a function that does not make its output '" + Twine(proto.output(i)) +
                  "' (the file is corrupt; export the model again)");
    scope.values[node.output(i)] = result;
  }
}

void Importer::importNode(const ::onnx::NodeProto &node, Scope &scope) {
  auto fail = [&](const Twine &what) {
    error(describe(node) + ": " + what);
    for (const std::string &output : node.output())
      scope.values[output] = none();
  };
  if (node.op_type().empty())
    return fail("has no operator (the file is corrupt; export the model again)");
  if (node.output_size() == 0)
    return fail("has no outputs (the file is corrupt; export the model again)");
  if (++nodeCount > kMaxNodes) {
    if (nodeCount == kMaxNodes + 1)
      error("the graph: has more than half a million nodes after inlining its functions (inline fewer of them)");
    return;
  }
  SmallVector<Value> inputs;
  for (const std::string &input : node.input())
    inputs.push_back(lookup(input, scope));
  NamedAttrList attributes = importAttributes(node, scope);
  StringRef domain = domainOf(node.domain());
  if (const ModelFunction *function = functions.find(domain, node.op_type()))
    return inlineCall(*function, node, inputs, std::move(attributes), scope);
  auto version = scope.opsets.find(domain);
  if (version == scope.opsets.end() || version->second < 1)
    return fail("uses an operator of domain '" + domain + "', of which the model imports no version (add the domain " +
                "to the model's opset_import)");
  while (!inputs.empty() && node.input(inputs.size() - 1).empty())
    inputs.pop_back();

  StringRef name = node.name();
  for (int i = 0; name.empty() && i < node.output_size(); ++i)
    name = node.output(i);
  SmallVector<Type> types(node.output_size(), valueType());
  SmallVector<Attribute> bodyNames;
  for (const ::onnx::AttributeProto &attribute : node.attribute())
    if (isSubgraph(attribute))
      bodyNames.push_back(b.getStringAttr(attribute.name()));
  auto op = onnx::NodeOp::create(b, locationOf(name), types, node.op_type(), domain, version->second, node.name(),
                                 attributes.getDictionary(b.getContext()),
                                 bodyNames.empty() ? ArrayAttr() : b.getArrayAttr(bodyNames), inputs, bodyNames.size());
  importBodies(node, op, scope);
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      scope.values[node.output(i)] = op.getResult(i);
}

void Importer::importBodies(const ::onnx::NodeProto &node, onnx::NodeOp op, Scope &scope) {
  unsigned next = 0;
  for (const ::onnx::AttributeProto &attribute : node.attribute())
    if (isSubgraph(attribute))
      importBody(node, attribute.g(), op.getBodies()[next++], scope);
}

void Importer::importBody(const ::onnx::NodeProto &node, const ::onnx::GraphProto &graph, Region &region, Scope &outer) {
  OpBuilder::InsertionGuard guard(b);
  Scope scope{{}, outer.opsets, outer.attributes, outer.depth + 1};
  scope.outer = &outer;
  llvm::StringSet<> given;
  takeInitializers(graph, given, scope);
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (const ::onnx::ValueInfoProto &input : graph.input()) {
    if (!given.insert(input.name()).second)
      error(describe(node) + ": its subgraph has the input '" + input.name() + "' twice (a value needs a name of its own)");
    types.push_back(valueType());
    locations.push_back(locationOf(input.name()));
  }
  Block *block = b.createBlock(&region, {}, types, locations);
  for (auto [input, argument] : llvm::zip_equal(graph.input(), block->getArguments()))
    scope.values[input.name()] = argument;
  SmallVector<Value> results;
  if (scope.depth > kMaxCallDepth)
    error(describe(node) + ": subgraphs are more than 32 deep (export the model with fewer in one another)");
  else
    importNodes(graph.node(), given, scope);
  for (const ::onnx::ValueInfoProto &output : graph.output()) {
    if (errors == 0 && !scope.sees(output.name()))
      error(describe(node) + ": the output '" + output.name() + "' of its subgraph is not defined (the model is incomplete, export it again)");
    results.push_back(lookup(output.name(), scope));
  }
  onnx::YieldOp::create(b, b.getUnknownLoc(), results);
}

void Importer::takeInitializers(const ::onnx::GraphProto &graph, llvm::StringSet<> &given, Scope &scope) {
  for (const ::onnx::TensorProto &tensor : graph.initializer()) {
    scope.initializers[tensor.name()] = &tensor;
    if (!given.insert(tensor.name()).second)
      error("tensor '" + Twine(tensor.name()) + "': is there twice (an initializer needs a name of its own)");
  }
  for (const ::onnx::SparseTensorProto &sparse : graph.sparse_initializer())
    error("tensor '" + Twine(sparse.values().name()) + "': is sparse (sparse tensors are not supported; store it dense)");
}

void Importer::importNodes(const NodeList &nodes, const llvm::StringSet<> &given, Scope &scope) {
  llvm::Expected<std::vector<int>> order =
      orderNodes(nodes, given, [&](StringRef name) { return scope.outer && scope.outer->sees(name); });
  if (!order)
    return error(llvm::toString(order.takeError()));
  for (int position : *order)
    if (nodeCount <= kMaxNodes)
      importNode(nodes[position], scope);
}

OwningOpRef<ModuleOp> Importer::run() {
  const ::onnx::GraphProto &graph = model.graph();
  OwningOpRef<ModuleOp> owner = ModuleOp::create(locationOf(file.path()));
  module = *owner;

  llvm::StringSet<> given;
  Scope scope{{}, opsets, {}, 0};
  takeInitializers(graph, given, scope);

  // An initializer that is an input too (IR version 3 had to list them) is a constant.
  SmallVector<Attribute> argumentAttrs, resultAttrs;
  SmallVector<Location> argumentLocations;
  SmallVector<StringRef> argumentNames, resultNames;
  for (const ::onnx::ValueInfoProto &input : graph.input()) {
    if (scope.initializers.contains(input.name()))
      continue;
    if (!given.insert(input.name()).second)
      error("input '" + Twine(input.name()) + "': is there twice (an input needs a name of its own)");
    llvm::Expected<DictionaryAttr> attrs = importSignature(input, /*needsType=*/true, b.getContext());
    if (!attrs) {
      error("input '" + Twine(input.name()) + "': " + llvm::toString(attrs.takeError()));
      continue;
    }
    argumentNames.push_back(input.name());
    argumentAttrs.push_back(*attrs);
    argumentLocations.push_back(locationOf(input.name()));
  }
  llvm::StringSet<> returned;
  for (const ::onnx::ValueInfoProto &output : graph.output()) {
    if (output.name().empty())
      continue;
    llvm::Expected<DictionaryAttr> attrs = importSignature(output, /*needsType=*/false, b.getContext());
    if (!attrs) {
      error("output '" + Twine(output.name()) + "': " + llvm::toString(attrs.takeError()));
      continue;
    }
    if (!returned.insert(output.name()).second)
      error("output '" + Twine(output.name()) + "': is there twice (an output needs a name of its own)");
    resultNames.push_back(output.name());
    resultAttrs.push_back(*attrs);
  }
  if (resultNames.empty() && errors == 0)
    error("the graph: has no outputs (there is nothing to compute; is the file truncated?)");

  SmallVector<Type> argumentTypes(argumentNames.size(), valueType()), resultTypes(resultNames.size(), valueType());
  b.setInsertionPointToEnd(module.getBody());
  main = func::FuncOp::create(b, locationOf(graph.name()), "main", b.getFunctionType(argumentTypes, resultTypes));
  symbols.insert("main");
  main.setAllArgAttrs(argumentAttrs);
  main.setAllResultAttrs(resultAttrs);
  Block *block = b.createBlock(&main.getBody(), {}, argumentTypes, argumentLocations);

  for (auto [name, argument] : llvm::zip_equal(argumentNames, block->getArguments()))
    scope.values[name] = argument;
  unsigned errorsBefore = errors;
  importNodes(graph.node(), given, scope);
  SmallVector<Value> results;
  for (StringRef name : resultNames) {
    if (errors == errorsBefore && !given.contains(name) && !scope.values.contains(name))
      error("output '" + name + "': is not defined (no node, input or initializer has that name; the model is " +
            "incomplete, export it again)");
    results.push_back(lookup(name, scope));
  }
  func::ReturnOp::create(b, b.getUnknownLoc(), results);

  if (errors > kMaxErrors)
    emitError(b.getUnknownLoc()) << file.path() << ": the model: has " << errors - kMaxErrors
                                 << " more errors (only the first " << kMaxErrors << " are told)";
  if (errors)
    return {};
  NamedAttrList imports;
  for (const auto &[domain, version] : opsets)
    imports.set(domain.empty() ? "ai.onnx" : domain, b.getI64IntegerAttr(version));
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < file.files().size(); ++i)
    names.push_back(file.files().name(i));
  std::string producer = model.producer_name();
  if (!model.producer_version().empty())
    producer += " " + model.producer_version();
  module->setAttr("onnx.ir_version", b.getI64IntegerAttr(model.ir_version()));
  module->setAttr("onnx.opsets", imports.getDictionary(b.getContext()));
  module->setAttr("onnx.producer", b.getStringAttr(producer));
  module->setAttr("onnx.folder", b.getStringAttr(file.folder()));
  module->setAttr("onnx.files", b.getStrArrayAttr(names));
  return owner;
}

} // namespace

OwningOpRef<ModuleOp> importModel(ModelFile &file, MLIRContext &context) {
  context.loadDialect<onnx::ONNXDialect, func::FuncDialect>();
  return Importer(file, context).run();
}

} // namespace otf
