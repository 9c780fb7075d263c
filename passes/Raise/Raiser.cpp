// SPDX-License-Identifier: Apache-2.0
//
// The walk over a model: arguments, constants, nodes in order, results. Operator families are in files of their own.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "passes/Raise/Elements.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

Raiser::Raiser(ModuleOp module) : builder(module.getContext()), module(module), symbols(module) {
  registerArithmetic(registry);
  registerLogic(registry);
  registerCasts(registry);
  registerActivations(registry);
  registerRandom(registry);
  registerShapes(registry);
  registerMovement(registry);
  registerSlicing(registry);
  registerPadding(registry);
  registerIndexing(registry);
  registerMatrices(registry);
  registerImages(registry);
  registerEinsum(registry);
  registerReduce(registry);
  registerSignal(registry);
  registerWindows(registry);
  registerContractions(registry);
  registerBranches(registry);
  registerLoops(registry);
  registerRecurrent(registry);
  registerScans(registry);
  registerScatter(registry);
  registerSelection(registry);
  registerSorting(registry);
  registerNormalizations(registry);
  registerSoftmax(registry);
  registerConvolutions(registry);
  registerPooling(registry);
  registerSampling(registry);
  registerRegions(registry);
  registerResize(registry);
  registerTfIdf(registry);
  registerTraining(registry);
  registerQuantization(registry);
  registerIntegerContractions(registry);
  registerQuantizedContrib(registry);
  registerQuantizedConvolutions(registry);
  registerIntegerProducts(registry);
  registerGivenWeights(registry);
  registerMixtureOfExperts(registry);
  registerStandardAttention(registry);
  registerContribAttention(registry);
  registerContribNorms(registry);
  registerFusedMatMul(registry);
  registerLinearAttention(registry);
}

LogicalResult Raiser::fail(onnx::NodeOp node, const Twine &what) {
  return node.emitError() << node.getOpType() << ": " << what;
}

//===------------------------------------------------------------------------------------------===//
// Operators: all that is missing is said at once
//===------------------------------------------------------------------------------------------===//

LogicalResult Raiser::checkOperators() {
  struct Missing {
    int64_t count = 0;
    std::string domain, nodes;
    int64_t version = 0;
  };
  std::map<std::string, Missing> missing;
  std::map<StringRef, int64_t> newer; // domains of which the model uses a version that is not known
  source_.walk([&](onnx::NodeOp node) {
    Registry::Entry *entry = registry.find(node);
    int64_t version = node.getVersion();
    int64_t newest = node.getDomain().empty() ? kNewestOperatorSet : 1; // com.microsoft has one version
    bool known = entry && (version >= entry->since || entry->since <= kOldestOperatorSet);
    if (known && version > newest)
      newer[node.getDomain()] = version;
    if (known)
      return;
    Missing &m = missing[(node.getDomain() + "::" + node.getOpType()).str()];
    m.domain = node.getDomain().empty() ? "ai.onnx" : node.getDomain().str();
    m.version = node.getVersion();
    // The importer's location: the node's name, or that of its first output.
    auto name = dyn_cast<NameLoc>(node.getLoc());
    if (m.count++ < 3)
      m.nodes += (m.nodes.empty() ? "'" : ", '") + (name ? name.getName().str() : node.getNodeName().str()) + "'";
  });
  for (auto [domain, version] : newer)
    module.emitWarning() << "operator set " << version << " of " << (domain.empty() ? "ai.onnx" : domain)
                         << " is newer than this compiler (its operators are taken for those of version "
                         << (domain.empty() ? kNewestOperatorSet : 1) << ")";
  if (missing.empty())
    return success();
  std::string list;
  for (auto &[key, m] : missing) {
    list += list.empty() ? "" : "; ";
    list += StringRef(key).split("::").second.str() + " of " + m.domain + " " +
            std::to_string(m.version) + " (" + std::to_string(m.count) + " times: " + m.nodes +
            (m.count > 3 ? ", …" : "") + ")";
  }
  return module.emitError() << "operators that are not supported: " << list
                            << " (export the model without them, or ask for them)";
}

//===------------------------------------------------------------------------------------------===//
// The walk
//===------------------------------------------------------------------------------------------===//

/// The name, and the caller's element type where memory has another: a signless integer, or bits.
DictionaryAttr Raiser::boundaryAttributes(StringAttr name, int64_t elementType) {
  SmallVector<NamedAttribute> attributes{builder.getNamedAttr("otf.name", name)};
  Type type = onnx::elementTypeOf(builder.getContext(), elementType);
  if (type != storedType(elementType))
    attributes.push_back(builder.getNamedAttr("otf.element", TypeAttr::get(type)));
  return builder.getDictionaryAttr(attributes);
}

LogicalResult Raiser::raiseArguments() {
  Block &block = target.getBody().front();
  std::vector<SmallVector<Size>> sizes = argumentSizes();
  for (BlockArgument argument : source_.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto name = source_.getArgAttrOfType<StringAttr>(number, "onnx.name");
    auto type = source_.getArgAttrOfType<IntegerAttr>(number, "onnx.type");
    auto dims = source_.getArgAttrOfType<ArrayAttr>(number, "onnx.dims");
    if (!name || !type || !dims)
      return emitError(argument.getLoc())
             << "input " << (name ? name.getValue() : StringRef("")) << " has no "
             << (type ? "shape" : "type") << " (run the exporter's shape inference)";
    Known what;
    what.elementType = type.getInt();
    what.sizes = checked(sizes[number]);
    if (impossibleSize)
      return emitError(argument.getLoc()) << "input " << name << " has " << *impossibleSize;
    if (!internalType(what.elementType))
      return emitError(argument.getLoc())
             << "input " << name << " has element type "
             << onnx::elementTypeName(what.elementType) << ", which is not supported";
    if (isCache(number)) {
      known(argument) = std::move(what);
      if (Known &cache = known(argument); cache.sizes[1].isConstant() && cache.sizes[3].isConstant())
        (void)cacheState(argument, cache.sizes[1], cache.sizes[3]);
      continue;
    }
    Type stored = storedType(what.elementType);
    (void)target.insertArgument(block.getNumArguments(), tensorType(stored, what.sizes),
                                boundaryAttributes(name, what.elementType), argument.getLoc());
    what.tensor = block.getArguments().back();
    Type internal = internalType(what.elementType);
    if (internal != stored) {
      Value raw = what.tensor;
      currentLocation = argument.getLoc();
      what.tensor = generate(internal, what.sizes, [&](OpBuilder &b, ValueRange indices) {
        Value element = tensor::ExtractOp::create(b, argument.getLoc(), raw, indices);
        return arith::ExtFOp::create(b, argument.getLoc(), internal, element).getResult();
      });
    } else if (onnx::elementBits(what.elementType) < 8) {
      Value raw = what.tensor;
      currentLocation = argument.getLoc();
      what.tensor = generate(internal, what.sizes, [&](OpBuilder &b, ValueRange indices) {
        Value element = tensor::ExtractOp::create(b, argument.getLoc(), raw, indices);
        return narrowed(b, argument.getLoc(), element, what.elementType);
      });
    }
    known(argument) = std::move(what);
  }
  return success();
}

LogicalResult Raiser::raiseNode(onnx::NodeOp node) {
  const Registry::Entry *found = registry.find(node);
  if (!found || !found->raise) // of a node of the model it was checked before
    return fail(node, "is not supported");
  const Registry::Entry &entry = *found;
  if (node.getInputs().size() > entry.most)
    return fail(node, "it has " + Twine(node.getInputs().size()) + " inputs, and takes at most " + Twine(entry.most));
  for (unsigned i = 0; i != entry.least; ++i)
    if (!hasInput(node, i))
      return fail(node, "input " + Twine(i) + " is missing");
  for (Value operand : node.getInputs())
    if (!operand.getDefiningOp<onnx::NoneOp>() && known(operand).elementType == 0)
      return fail(node, "an input of it has no known type");
  for (Value operand : node.getInputs()) {
    int64_t type = operand.getDefiningOp<onnx::NoneOp>() ? int64_t(Element::Float) : known(operand).elementType;
    bool isSmall = isCoded(type) || onnx::elementBits(type) < 8;
    if (isSmall && node.getDomain().empty() && !takesSmallElements(node.getOpType()))
      return fail(node, "elements of type " + onnx::elementTypeName(type) +
                            " are not supported (cast to another type before it)");
  }
  if (node.getDomain().empty() && int64_t(node.getVersion()) < kOldestOperatorSet && failed(checkOlder(*this, node)))
    return failure();
  if (failed(checkBefore(*this, node)))
    return failure();
  if (failed(entry.raise(*this, node)))
    return failure();
  for (Value output : node.getOutputs())
    (void)checked(known(output).sizes);
  if (impossibleSize)
    return fail(node, "its result would have " + *impossibleSize);
  return checkAfter(*this, node);
}

LogicalResult Raiser::raiseReturn() {
  auto oldReturn = cast<func::ReturnOp>(source_.getBody().front().getTerminator());
  SmallVector<Value> results;
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (auto [number, operand] : llvm::enumerate(oldReturn.getOperands())) {
    bool cache = false;
    for (auto &[argument, entry] : caches)
      cache |= entry.result == number;
    if (cache)
      continue;
    auto name = source_.getResultAttrOfType<StringAttr>(number, "onnx.name");
    Known &what = known(operand);
    if (what.state)
      return emitError(operand.getLoc()) << "output " << name << " is a cache that another output is too";
    Value value = tensor(what);
    Type stored = storedType(what.elementType);
    if (stored != internalType(what.elementType))
      value = generate(stored, what.sizes, [&](OpBuilder &b, ValueRange indices) {
        Value element = this->element(b, what, indices);
        return arith::TruncFOp::create(b, operand.getLoc(), stored, element).getResult();
      });
    else if (what.elementType == Element::Int4 || what.elementType == Element::Int2)
      value = generate(stored, what.sizes, [&](OpBuilder &b, ValueRange indices) {
        Value element = this->element(b, what, indices); // numpy has zeros above an element's bits
        Value mask = arith::ConstantIntOp::create(b, operand.getLoc(), what.elementType == Element::Int4 ? 15 : 3, 8);
        return arith::AndIOp::create(b, operand.getLoc(), element, mask).getResult();
      });
    results.push_back(value);
    types.push_back(value.getType());
    names.push_back(boundaryAttributes(name, what.elementType));
  }
  func::ReturnOp::create(builder, oldReturn.getLoc(), results);
  target.setFunctionType(builder.getFunctionType(target.getArgumentTypes(), types));
  target.setAllResultAttrs(names);
  return success();
}

LogicalResult Raiser::raiseNodes(Block &block) {
  for (Operation &op : block.without_terminator()) {
    currentLocation = op.getLoc();
    if (auto get = dyn_cast<onnx::GetOp>(op)) {
      onnx::InitializerOp initializer = initializers.lookup(get.getInitializer());
      if (failed(setConstant(get.getResult(), initializer.getValue(), get.getInitializer())))
        return failure();
    } else if (auto node = dyn_cast<onnx::NodeOp>(op)) {
      if (node.is("Constant")) {
        Attribute value = node.attribute("value");
        for (const char *name : {"value_float", "value_floats", "value_int", "value_ints"})
          if (!value)
            value = denseConstant(node.attribute(name));
        if (!value)
          return fail(node, "only numeric constants are supported");
        if (failed(setConstant(node.getOutputs()[0], value,
                               node.getNodeName().empty() ? "constant" : node.getNodeName())))
          return failure();
      } else if (failed(raiseNode(node))) {
        return failure();
      }
    } else if (!isa<onnx::NoneOp>(op)) {
      return op.emitError() << "is not an onnx operation";
    }
  }
  return success();
}

/// Also of regions that no operation holds yet.
static bool isInside(Region *inner, Region &outer) {
  while (inner && inner != &outer) {
    Operation *holder = inner->getParentOp();
    inner = holder ? holder->getParentRegion() : nullptr;
  }
  return inner != nullptr;
}

LogicalResult Raiser::inRegion(Region &region, TypeRange argumentTypes,
                               llvm::function_ref<LogicalResult(Block &)> body) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region, {}, argumentTypes,
                                     SmallVector<Location>(argumentTypes.size(), *currentLocation));
  Location location = *currentLocation;
  LogicalResult done = body(*block);
  currentLocation = location;
  for (auto &[value, what] : values)
    if (what.tensor && isInside(what.tensor.getParentRegion(), region)) {
      what.tensor = nullptr;
      what.onGrid.reset();
      what.codesOf.reset();
    }
  return done;
}

LogicalResult Raiser::run() {
  source_ = module.lookupSymbol<func::FuncOp>("main");
  if (!source_ || !source_.getBody().hasOneBlock() ||
      !isa_and_nonnull<func::ReturnOp>(source_.getBody().front().empty() ? nullptr : &source_.getBody().front().back()))
    return module.emitError() << "has no function @main that ends in a return";
  if (failed(checkOperators()))
    return failure();
  builder.setInsertionPointAfter(source_);
  target = func::FuncOp::create(builder, source_.getLoc(), "raised", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(target.addEntryBlock());
  currentLocation = source_.getLoc();
  // A weight takes the name of the initializer that it replaces.
  for (auto initializer : module.getOps<onnx::InitializerOp>()) {
    initializers[initializer.getSymName()] = initializer;
    symbols.remove(initializer);
  }
  findCaches();
  if (failed(raiseArguments()))
    return failure();
  builder.setInsertionPointToEnd(&target.getBody().front());
  if (failed(raiseNodes(source_.getBody().front())))
    return failure();
  if (failed(raiseReturn()))
    return failure();
  source_.erase();
  for (auto initializer : llvm::make_early_inc_range(module.getOps<onnx::InitializerOp>()))
    initializer.erase();
  target.setSymName("main");
  return success();
}
