// SPDX-License-Identifier: Apache-2.0
//
// Loop and Scan. The few iterations of a loop whose number is known are raised in place; so sizes stay known. What depends
// on data becomes otf.loop.

#include "passes/Raise/Bodies.h"
#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// Nodes that a loop may become in place of a loop.
constexpr int64_t kMostUnrolled = 256;

Value integer(OpBuilder &b, Location l, int64_t value) {
  return arith::ConstantOp::create(b, l, b.getI64IntegerAttr(value));
}

/// How iterations of one Loop or Scan feed the nodes of its body.
struct Loop {
  onnx::NodeOp node;
  Block &nodes;
  Knowns carried = {};      // what an iteration starts with
  std::optional<Size> trips = {};       // at most so many
  bool hasCondition = false;            // of its own: argument 1 and yield 0 of a Loop's body
  std::optional<Known> condition = {};  // before the first iteration; none: true
  std::function<LogicalResult(Known &iteration)> setScanned = {}; // inputs that each iteration has a slice of
  SmallVector<int64_t> scanAxes = {};   // of outputs that collect a slice of each iteration
  SmallVector<bool> scanReversed = {};
  unsigned firstCarried = 0;            // among the body's arguments

  size_t scans() const { return scanAxes.size(); }
};

Known numberOf(const Size &value) {
  Known known;
  known.elementType = Element::Int64;
  known.integers = {value};
  return known;
}

/// Raises the body once. `carried` become what the next iteration starts with, `slices` what it adds to the scans.
LogicalResult raiseIteration(Raiser &raiser, Loop &loop, Known &iteration, Knowns &carried,
                             Knowns &slices, Known &condition) {
  if (loop.hasCondition) {
    raiser.known(loop.nodes.getArgument(0)) = iteration;
    Known holds;
    holds.elementType = Element::Bool;
    holds.integers = {Size(1)};
    raiser.known(loop.nodes.getArgument(1)) = holds;
  }
  for (auto [number, value] : llvm::enumerate(carried))
    raiser.known(loop.nodes.getArgument(loop.firstCarried + number)) = value;
  if (loop.setScanned && failed(loop.setScanned(iteration)))
    return failure();
  if (failed(raiser.raiseNodes(loop.nodes)))
    return failure();
  ValueRange outputs = yielded(loop.nodes);
  if (loop.hasCondition) {
    condition = raiser.known(outputs.front());
    outputs = outputs.drop_front();
  }
  for (auto [number, value] : llvm::enumerate(carried))
    value = raiser.known(outputs[number]);
  slices.clear();
  for (Value output : outputs.drop_front(carried.size()))
    slices.push_back(raiser.known(output));
  return success();
}

/// Whether a size is one that each run of `block` finds anew.
bool variesIn(Block &block, ArrayRef<Size> sizes) {
  llvm::StringSet<> found;
  block.walk([&](BindOp bind) {
    for (auto symbol : bind.getSymbols().getAsRange<StringAttr>())
      found.insert(symbol.getValue());
  });
  return llvm::any_of(sizes, [&](const Size &size) {
    return llvm::any_of(size.terms(), [&](const auto &term) {
      return llvm::any_of(term.first, [&](const std::string &symbol) { return found.contains(symbol); });
    });
  });
}

/// Sizes of what collects `count` slices.
SmallVector<Size> collectedSizes(const Known &slice, int64_t axis, const Size &count) {
  SmallVector<Size> sizes(slice.sizes);
  sizes.insert(sizes.begin() + axis, count);
  return sizes;
}

SmallVector<Value> without(ValueRange indices, int64_t axis) {
  SmallVector<Value> rest(indices);
  rest.erase(rest.begin() + axis);
  return rest;
}

std::optional<int64_t> normalizedAxis(int64_t axis, int64_t rank) {
  int64_t at = axis < 0 ? axis + rank : axis;
  return at < 0 || at >= rank ? std::nullopt : std::optional(at);
}

/// Few iterations, one after another.
LogicalResult unroll(Raiser &raiser, Loop &loop, int64_t trips) {
  std::vector<Knowns> collected(loop.scans());
  for (int64_t i = 0; i != trips; ++i) {
    Known iteration = numberOf(i), condition;
    Knowns slices;
    if (failed(raiseIteration(raiser, loop, iteration, loop.carried, slices, condition)))
      return failure();
    for (auto [number, slice] : llvm::enumerate(slices))
      collected[number].push_back(slice);
  }
  for (auto [number, value] : llvm::enumerate(loop.carried))
    raiser.set(loop.node, value, number);
  for (auto [number, slices] : llvm::enumerate(collected)) {
    if (loop.scanReversed[number])
      std::reverse(slices.begin(), slices.end());
    Known &first = slices.front();
    std::optional<int64_t> axis = normalizedAxis(loop.scanAxes[number], int64_t(first.rank()) + 1);
    for (Known &slice : slices)
      if (!axis || ArrayRef(slice.sizes) != ArrayRef(first.sizes))
        return raiser.fail(loop.node, "what its iterations collect differs in size, or is joined along no axis");
    raiser.set(loop.node,
               raiser.generated(first.elementType, collectedSizes(first, *axis, trips),
                                [&](OpBuilder &b, ValueRange at) {
                                  Value result;
                                  for (auto [i, slice] : llvm::enumerate(slices)) {
                                    Value element = raiser.element(b, slice, without(at, *axis));
                                    Value here = arith::CmpIOp::create(b, loop.node.getLoc(), arith::CmpIPredicate::eq, at[*axis],
                                                                       arith::ConstantIndexOp::create(b, loop.node.getLoc(), i));
                                    result = result ? arith::SelectOp::create(b, loop.node.getLoc(), here, element, result).getResult()
                                                    : element;
                                  }
                                  return result;
                                }),
               loop.carried.size() + number);
  }
  return success();
}

/// A tensor of i1 or i64 without axes.
Value scalarTensor(Raiser &raiser, Type type, Raiser::Body body) { return raiser.generate(type, {}, body); }

/// As many iterations as there turn out to be.
LogicalResult makeLoop(Raiser &raiser, Loop &loop) {
  Location l = loop.node.getLoc();
  Type i64 = raiser.builder.getI64Type(), i1 = raiser.builder.getI1Type();
  if (loop.scans() && !loop.trips)
    return raiser.fail(loop.node, "it collects a value of each iteration and has no largest number of them (give it one)");
  // The number of iterations may be data; then it stays in its tensor unless memory depends on it.
  auto moreToDo = [&](OpBuilder &b, Value iteration, Known *condition) -> Value {
    Value holds;
    if (loop.trips) {
      Value trips = arith::IndexCastOp::create(b, l, i64, SizeOp::create(b, l, *loop.trips));
      holds = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, iteration, trips);
    }
    if (condition) {
      Value own = raiser.element(b, *condition, {});
      holds = holds ? arith::AndIOp::create(b, l, holds, own).getResult() : own;
    }
    return holds ? holds : arith::ConstantOp::create(b, l, b.getBoolAttr(true)).getResult();
  };
  Value firstCondition = scalarTensor(raiser, i1, [&](OpBuilder &b, ValueRange) {
    return moreToDo(b, integer(b, l, 0), loop.condition ? &*loop.condition : nullptr);
  });

  Region region;
  SmallVector<Value> inits = {scalarTensor(raiser, i64, [&](OpBuilder &b, ValueRange) { return integer(b, l, 0); })};
  for (Known &value : loop.carried)
    inits.push_back(raiser.tensor(value));
  Knowns slices, scanned;
  bool endsEarly = false;
  LogicalResult done = raiser.inRegion(region, TypeRange(ValueRange(inits)), [&](Block &block) -> LogicalResult {
    Knowns next;
    for (auto [number, value] : llvm::enumerate(loop.carried)) {
      Known &known = next.emplace_back();
      known.elementType = value.elementType;
      known.sizes = value.sizes;
      known.tensor = block.getArgument(number + 1);
    }
    Known iteration, condition;
    iteration.elementType = Element::Int64;
    iteration.tensor = block.getArgument(0);
    if (failed(raiseIteration(raiser, loop, iteration, next, slices, condition)))
      return failure();
    endsEarly = loop.hasCondition && !(condition.integers && condition.integers->front() == Size(1));
    SmallVector<Value> yields;
    Value again = scalarTensor(raiser, i1, [&](OpBuilder &b, ValueRange) {
      Value following = arith::AddIOp::create(b, l, raiser.element(b, iteration, {}), integer(b, l, 1));
      return moreToDo(b, following, endsEarly ? &condition : nullptr);
    });
    yields.push_back(again);
    yields.push_back(scalarTensor(raiser, i64, [&](OpBuilder &b, ValueRange) -> Value {
      return arith::AddIOp::create(b, l, raiser.element(b, iteration, {}), integer(b, l, 1));
    }));
    for (auto [before, after] : llvm::zip_equal(loop.carried, next)) {
      if (before.elementType != after.elementType || ArrayRef(before.sizes) != ArrayRef(after.sizes))
        return raiser.fail(loop.node, "a value that it carries changes its shape from one iteration to the next, and their number "
                                      "depends on data (such growing values are not supported)");
      yields.push_back(raiser.tensor(after));
    }
    for (auto [number, slice] : llvm::enumerate(slices)) {
      std::optional<int64_t> axis = normalizedAxis(loop.scanAxes[number], int64_t(slice.rank()) + 1);
      if (!axis)
        return raiser.fail(loop.node, "what its iterations collect is joined along no axis");
      if (variesIn(block, slice.sizes))
        return raiser.fail(loop.node, "what its iterations collect has a size that each of them finds anew (give it one before the loop)");
      loop.scanAxes[number] = *axis;
      Known &all = scanned.emplace_back();
      all.elementType = slice.elementType;
      all.sizes = collectedSizes(slice, *axis, *loop.trips);
      all.tensor = block.addArgument(tensorType(raiser.internalType(slice.elementType), all.sizes), l);
      yields.push_back(raiser.generate(raiser.internalType(slice.elementType), all.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Value here = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, iteration, {}));
        if (loop.scanReversed[number]) {
          Value last = SizeOp::create(b, l, *loop.trips - Size(1));
          here = arith::SubIOp::create(b, l, last, here);
        }
        Value isHere = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, at[*axis], here);
        return arith::SelectOp::create(b, l, isHere, raiser.element(b, slice, without(at, *axis)), raiser.element(b, all, at));
      }));
    }
    YieldOp::create(raiser.builder, l, yields);
    return success();
  });
  if (failed(done))
    return failure();
  for (Known &all : scanned)
    inits.push_back(raiser.generate(raiser.internalType(all.elementType), all.sizes, [&](OpBuilder &b, ValueRange) -> Value {
      return arith::ConstantOp::create(b, l, b.getZeroAttr(raiser.internalType(all.elementType)));
    }));
  auto op = LoopOp::create(raiser.builder, l, TypeRange(ValueRange(inits)), firstCondition, inits);
  op.getBody().takeBody(region);
  for (auto [number, value] : llvm::enumerate(loop.carried)) {
    Known what;
    what.elementType = value.elementType;
    what.sizes = value.sizes;
    what.tensor = op.getResult(number + 1);
    raiser.set(loop.node, std::move(what), number);
  }
  Size count = loop.trips.value_or(Size(0));
  if (endsEarly || loop.condition)
    if (!scanned.empty()) {
      Known iterations;
      iterations.elementType = Element::Int64;
      iterations.tensor = op.getResult(0);
      count = raiser.bind(raiser.generate(i64, {Size(1)}, [&](OpBuilder &b, ValueRange) { return raiser.element(b, iterations, {}); }),
                          "iterations")
                  .front();
    }
  for (auto [number, all] : llvm::enumerate(scanned)) {
    Known what = all;
    what.tensor = op.getResult(loop.carried.size() + 1 + number);
    if (count != *loop.trips) {
      SmallVector<Size> sizes(what.sizes);
      sizes[loop.scanAxes[number]] = count;
      what = raiser.generated(what.elementType, sizes, [&](OpBuilder &b, ValueRange at) { return raiser.element(b, what, at); });
    }
    raiser.set(loop.node, std::move(what), loop.carried.size() + number);
  }
  return success();
}

LogicalResult raiseLoopOf(Raiser &raiser, Loop &loop, bool conditionIsConstant) {
  std::optional<int64_t> trips = loop.trips ? loop.trips->constant() : std::nullopt;
  int64_t nodes = llvm::range_size(loop.nodes);
  if (conditionIsConstant && trips && *trips > 0 && *trips * nodes <= kMostUnrolled)
    return unroll(raiser, loop, *trips);
  return makeLoop(raiser, loop);
}

LogicalResult raiseLoop(Raiser &raiser, onnx::NodeOp node) {
  Block *nodes = node.body("body");
  size_t carried = node.getInputs().size() > 2 ? node.getInputs().size() - 2 : 0;
  if (!nodes || nodes->getNumArguments() != carried + 2 || yielded(*nodes).size() != node.getOutputs().size() + 1 ||
      node.getOutputs().size() < carried)
    return raiser.fail(node, "its body does not fit its inputs and outputs (the file is corrupt; export the model again)");
  Loop loop{.node = node, .nodes = *nodes};
  loop.hasCondition = true;
  loop.firstCarried = 2;
  for (size_t i = 0; i != carried; ++i) {
    if (!raiser.hasInput(node, unsigned(i + 2)))
      return raiser.fail(node, "input " + Twine(i + 2) + " is missing");
    loop.carried.push_back(raiser.input(node, unsigned(i + 2)));
  }
  loop.scanAxes.assign(node.getOutputs().size() - carried, 0);
  loop.scanReversed.assign(loop.scans(), false);
  if (raiser.hasInput(node, 0)) {
    Known &trips = raiser.input(node, 0);
    if (trips.integers && trips.integers->size() == 1) {
      loop.trips = trips.integers->front();
      // "For ever": a loop that its condition ends.
      if (std::optional<int64_t> most = loop.trips->constant(); most && (*most < 0 || *most > int64_t(1) << 40))
        loop.trips = *most < 0 ? std::optional(Size(0)) : std::nullopt;
    } else {
      Value atLeastZero = raiser.generate(raiser.builder.getI64Type(), {Size(1)}, [&](OpBuilder &b, ValueRange at) -> Value {
        return arith::MaxSIOp::create(b, node.getLoc(), raiser.element(b, trips, at), integer(b, node.getLoc(), 0));
      });
      loop.trips = raiser.bind(atLeastZero, "trips").front();
    }
  }
  bool isTrue = true; // the condition before the first iteration
  if (raiser.hasInput(node, 1)) {
    std::optional<double> known = raiser.scalar(node.getInputs()[1]);
    isTrue = known && *known != 0;
    if (!isTrue)
      loop.condition = raiser.input(node, 1);
  }
  // True in each iteration: handed through, or a constant.
  Value again = yielded(*nodes).front();
  while (auto identity = again.getDefiningOp<onnx::NodeOp>()) {
    if (!identity.is("Identity"))
      break;
    again = identity.getInputs()[0];
  }
  bool staysTrue = again == nodes->getArgument(1);
  if (auto constant = again.getDefiningOp<onnx::NodeOp>(); constant && constant.is("Constant"))
    if (auto value = dyn_cast_or_null<DenseElementsAttr>(constant.attribute("value")))
      staysTrue = value.getElementType().isInteger(1) && value.isSplat() && value.getSplatValue<bool>();
  return raiseLoopOf(raiser, loop, isTrue && staysTrue);
}

LogicalResult raiseScan(Raiser &raiser, onnx::NodeOp node) {
  Block *nodes = node.body("body");
  int64_t scans = node.intOr("num_scan_inputs", 0), inputs = node.getInputs().size();
  if (!nodes || scans < 1 || scans > inputs || nodes->getNumArguments() != size_t(inputs) ||
      yielded(*nodes).size() != node.getOutputs().size() || int64_t(node.getOutputs().size()) < inputs - scans)
    return raiser.fail(node, "its body does not fit its inputs and outputs (the file is corrupt; export the model again)");
  int64_t carried = inputs - scans;
  auto list = [&](StringRef name, size_t count) {
    auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name));
    SmallVector<int64_t> values(count, 0);
    if (given && size_t(given.size()) == count)
      values.assign(given.asArrayRef().begin(), given.asArrayRef().end());
    return values;
  };
  SmallVector<int64_t> axes = list("scan_input_axes", scans), backwards = list("scan_input_directions", scans);
  Loop loop{.node = node, .nodes = *nodes};
  for (int64_t i = 0; i != carried; ++i)
    loop.carried.push_back(raiser.input(node, unsigned(i)));
  size_t collected = node.getOutputs().size() - carried;
  loop.scanAxes = list("scan_output_axes", collected);
  for (int64_t backward : list("scan_output_directions", collected))
    loop.scanReversed.push_back(backward != 0);
  for (int64_t i = 0; i != scans; ++i) {
    Known &input = raiser.input(node, unsigned(carried + i));
    std::optional<int64_t> axis = normalizedAxis(axes[i], int64_t(input.rank()));
    if (!axis)
      return raiser.fail(node, "scan_input_axes name an axis outside rank " + Twine(input.rank()));
    axes[i] = *axis;
    if (loop.trips && *loop.trips != input.sizes[*axis])
      return raiser.fail(node, "its scanned inputs have different lengths: " + loop.trips->str() + " and " + input.sizes[*axis].str());
    loop.trips = input.sizes[*axis];
  }
  loop.setScanned = [&](Known &iteration) {
    for (int64_t i = 0; i != scans; ++i) {
      Known &input = raiser.input(node, unsigned(carried + i));
      SmallVector<Size> sizes(input.sizes);
      sizes.erase(sizes.begin() + axes[i]);
      raiser.known(nodes->getArgument(unsigned(carried + i))) =
          raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
            Location l = node.getLoc();
            SmallVector<Value> at(indices);
            Value here = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, iteration, {}));
            if (backwards[i])
              here = arith::SubIOp::create(b, l, SizeOp::create(b, l, *loop.trips - Size(1)), here);
            at.insert(at.begin() + axes[i], here);
            return raiser.element(b, input, at);
          });
    }
    return success();
  };
  return raiseLoopOf(raiser, loop, /*conditionIsConstant=*/true);
}

} // namespace

void raise::registerLoops(Registry &registry) {
  registry.add("Loop", raiseLoop, 0, kAnyNumber);
  registry.add("Scan", raiseScan, 1, kAnyNumber, 9);
}
