// SPDX-License-Identifier: Apache-2.0
//
// One walk over @main in program order. Values of buffer type are traced to the operation that
// introduced them; a view is its source.

#include "lib/Compile/PlanAssembly.h"

#include "dialects/OTF/Caches.h"
#include "dialects/OTF/Derived.h"
#include "dialects/Plan/Merged.h"
#include "lib/Compile/KernelFacts.h"
#include "lib/Compile/PlanTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <set>

using namespace mlir;

namespace otf {

namespace model = plan::model;

//===------------------------------------------------------------------------------------------===//
// Sizes
//===------------------------------------------------------------------------------------------===//

/// `size` with each symbol replaced by what `values` gives for it; symbols it lacks stay.
static Size substitute(const Size &size, const std::map<std::string, Size> &values) {
  Size result;
  for (const auto &[symbols, coefficient] : size.terms()) {
    Size term = coefficient;
    for (const std::string &symbol : symbols) {
      auto it = values.find(symbol);
      term = term * (it == values.end() ? Size::symbol(symbol) : it->second);
    }
    result = result + term;
  }
  return result;
}

//===------------------------------------------------------------------------------------------===//
// The walk
//===------------------------------------------------------------------------------------------===//

namespace {

class Assembler {
public:
  Assembler(ModuleOp module, const StreamEncoder &weights, const AssemblyOptions &options)
      : module(module), weights(weights), options(options) {}

  FailureOr<model::Plan> run();

private:
  uint32_t symbol(const std::string &name);
  model::Size size(const Size &from);
  std::vector<model::Size> sizes(ArrayRef<Size> from);
  LogicalResult tensor(Operation *op, StringRef name, std::optional<Type> element, Type type,
                       std::vector<model::Tensor> &to);
  LogicalResult state(plan::StateOp op);
  LogicalResult alloc(plan::AllocOp op);
  LogicalResult launch(plan::LaunchOp op);
  void results(plan::LaunchOp op, model::Step &step);
  LogicalResult bind(plan::BindOp op);
  /// A step that goes on at a label.
  model::Step &goTo(model::StepKind kind, Operation *op, StringRef label);
  LogicalResult resolveLabels();
  LogicalResult mergeSteps();
  LogicalResult buffer(Operation *op, Value value, model::Buffer &to);
  /// Elements of the input must be in [-rows, rows).
  void limitInput(size_t input, int64_t rows) {
    int64_t &limit = result.inputs[input].limit;
    limit = limit == 0 ? rows : std::min(limit, rows);
  }
  FailureOr<const KernelFacts *> factsOf(plan::LaunchOp op);
  std::optional<Size> parse(plan::LaunchOp op, StringRef text);

  ModuleOp module;
  const StreamEncoder &weights;
  const AssemblyOptions &options;

  model::Plan result;
  model::Program program;
  struct CudaShape {
    std::vector<model::Size> grid;
    std::optional<model::Size> work;
    model::Size secondGrid, secondExtent;
  };
  std::vector<CudaShape> cudaShapes; // one a step
  std::map<std::string, uint32_t> symbols;
  llvm::StringMap<uint32_t> inputs, outputs, states;
  llvm::StringMap<KernelFacts> kernels;
  llvm::StringMap<uint32_t> labels; // by the step they stand before
  llvm::DenseMap<Operation *, size_t> stepOf;
  struct Pending {
    size_t step;
    StringRef label;
    Operation *op;
  };
  std::vector<Pending> pending;
};

} // namespace

uint32_t Assembler::symbol(const std::string &name) {
  auto [it, fresh] = symbols.try_emplace(name, uint32_t(result.symbols.size()));
  if (fresh)
    result.symbols.push_back(name);
  return it->second;
}

model::Size Assembler::size(const Size &from) {
  model::Size to;
  for (const auto &[names, coefficient] : from.terms()) {
    model::Term &term = to.terms.emplace_back();
    term.coefficient = coefficient;
    for (const std::string &name : names)
      term.symbols.push_back(symbol(name));
  }
  return to;
}

std::vector<model::Size> Assembler::sizes(ArrayRef<Size> from) {
  std::vector<model::Size> to;
  for (const Size &each : from)
    to.push_back(size(each));
  return to;
}

LogicalResult Assembler::tensor(Operation *op, StringRef name, std::optional<Type> asked, Type type,
                                std::vector<model::Tensor> &to) {
  auto content = dyn_cast<RankedTensorType>(cast<plan::BufferType>(type).getContent());
  std::optional<model::ElementType> element;
  if (content) {
    element = elementType(asked.value_or(content.getElementType()));
    std::optional<model::ElementType> held = elementType(content.getElementType());
    if (element && (!held || elementBytes(*element) != elementBytes(*held)))
      return op->emitOpError() << "holds elements of " << content.getElementType() << ", which cannot be "
                               << *asked << " to the caller";
  }
  if (!element)
    return op->emitOpError() << "cannot be an input or output of a plan: " << type;
  to.push_back({name.str(), *element, sizes(sizesOf(content)), 0});
  return success();
}

LogicalResult Assembler::state(plan::StateOp op) {
  auto [it, fresh] = states.try_emplace(op.getCache(), uint32_t(result.states.size()));
  if (!fresh)
    return success();
  auto cache = SymbolTable::lookupNearestSymbolFrom<CacheOp>(op, op.getCacheAttr());
  if (!cache)
    return op.emitOpError() << "names no otf.cache: " << op.getCacheAttr();
  auto type = cast<StateType>(cache.getType());
  std::optional<model::ElementType> element = elementType(type.getElementType());
  if (!element || !(type.getElementType().isF32() || type.getElementType().isF16() || type.getElementType().isInteger(8)))
    return op.emitOpError() << "cannot be a state of a plan: " << type;
  model::State &to = result.states.emplace_back();
  to.name = cache.getSymName().str();
  to.input = cache.getInput().str();
  to.output = cache.getOutput().str();
  to.type = *element;
  to.axis = 2;
  // The batch and what a step appends are known at the launch that appends.
  to.shape = {{}, size(type.getHeads()), size(Size::symbol("past")), size(rowElements(type))};
  return success();
}

LogicalResult Assembler::alloc(plan::AllocOp op) {
  auto content = dyn_cast<RankedTensorType>(cast<plan::BufferType>(op.getType()).getContent());
  std::optional<model::ElementType> element;
  if (content)
    element = elementType(content.getElementType());
  if (!element || !op.getSlot() || *op.getSlot() >= 1 << 20)
    return op.emitOpError() << "needs a tensor and a slot (run otf-schedule)";
  size_t slot = *op.getSlot();
  if (program.slots.size() <= slot)
    program.slots.resize(slot + 1);
  model::Size bytes = size(elementCount(sizesOf(content)) * Size(elementBytes(*element)));
  if (!llvm::is_contained(program.slots[slot].sizes, bytes))
    program.slots[slot].sizes.push_back(bytes);
  return success();
}

LogicalResult Assembler::buffer(Operation *op, Value value, model::Buffer &to) {
  while (auto view = value.getDefiningOp<plan::ViewOp>())
    value = view.getSource();
  Operation *origin = value.getDefiningOp();
  if (auto input = dyn_cast_or_null<plan::InputOp>(origin))
    to = {model::Space::input, inputs.at(input.getName()), 0};
  else if (auto output = dyn_cast_or_null<plan::OutputOp>(origin))
    to = {model::Space::output, outputs.at(output.getName()), 0};
  else if (auto alloc = dyn_cast_or_null<plan::AllocOp>(origin))
    to = {model::Space::slot, uint32_t(*alloc.getSlot()), 0};
  else if (auto weight = dyn_cast_or_null<plan::WeightOp>(origin))
    to = {model::Space::weight, 0, weights.of(weight).offset};
  else if (auto state = dyn_cast_or_null<plan::StateOp>(origin))
    to = {model::Space::state, states.at(state.getCache()), 0};
  else
    return op->emitOpError() << "has an operand that is no buffer of the plan: " << value;
  return success();
}

model::Step &Assembler::goTo(model::StepKind kind, Operation *op, StringRef label) {
  pending.push_back({program.steps.size(), label, op});
  model::Step &step = program.steps.emplace_back();
  step.kind = kind;
  step.label = labelOf(op->getLoc());
  if (options.cuda)
    cudaShapes.emplace_back();
  return step;
}

LogicalResult Assembler::resolveLabels() {
  for (auto &[step, label, op] : pending) {
    auto found = labels.find(label);
    if (found == labels.end())
      return op->emitOpError() << "goes on at \"" << label << "\", and there is no such label";
    program.steps[step].target = found->second;
  }
  return success();
}

LogicalResult Assembler::bind(plan::BindOp op) {
  model::Step &step = program.steps.emplace_back();
  step.kind = model::StepKind::bind;
  step.label = labelOf(op.getLoc());
  for (auto name : op.getSymbols().getAsRange<StringAttr>())
    step.symbols.push_back(symbol(name.getValue().str()));
  step.message = op.getMessage().value_or("").str();
  if (options.cuda)
    cudaShapes.emplace_back();
  return buffer(op, op.getValues(), step.buffers.emplace_back());
}

FailureOr<const KernelFacts *> Assembler::factsOf(plan::LaunchOp op) {
  auto it = kernels.find(op.getKernel());
  if (it == kernels.end()) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(op, op.getKernelAttr());
    if (!kernel)
      return op.emitOpError() << "names no plan.kernel: " << op.getKernelAttr();
    FailureOr<KernelFacts> facts = KernelFacts::of(kernel);
    if (failed(facts))
      return failure();
    it = kernels.try_emplace(op.getKernel(), std::move(*facts)).first;
  }
  return &it->second;
}

std::optional<Size> Assembler::parse(plan::LaunchOp op, StringRef text) {
  std::optional<Size> parsed = Size::parse(text);
  if (!parsed)
    op.emitOpError() << "has a size that is no polynomial: '" << text << "'";
  return parsed;
}

void Assembler::results(plan::LaunchOp op, model::Step &step) {
  const std::string name = valueOf(op.getLoc());
  for (auto [index, value] : llvm::enumerate(op.getOutputs())) {
    auto content = dyn_cast<RankedTensorType>(cast<plan::BufferType>(value.getType()).getContent());
    std::optional<model::ElementType> element;
    if (content)
      element = elementType(content.getElementType());
    if (!element) {
      step.results.clear();
      return;
    }
    step.results.push_back({op.getOutputs().size() == 1 ? name : name + ":" + std::to_string(index), *element,
                            sizes(sizesOf(content)), 0});
  }
}

LogicalResult Assembler::launch(plan::LaunchOp op) {
  FailureOr<const KernelFacts *> found = factsOf(op);
  if (failed(found))
    return failure();
  const KernelFacts &facts = **found;

  stepOf[op] = program.steps.size();
  model::Step &step = program.steps.emplace_back();
  step.kernel = op.getKernel().str();
  step.written = uint32_t(op.getOutputs().size());
  step.label = labelOf(op.getLoc());
  results(op, step);
  for (Value value : llvm::concat<Value>(op.getInputs(), op.getOutputs()))
    if (failed(buffer(op, value, step.buffers.emplace_back())))
      return failure();

  SmallVector<Size> dims;
  std::map<std::string, Size> actual;
  for (Attribute text : op.getSizes()) {
    std::optional<Size> parsed = parse(op, cast<StringAttr>(text).getValue());
    if (!parsed)
      return failure();
    actual["d" + std::to_string(dims.size())] = *parsed;
    dims.push_back(*parsed);
  }
  if (dims.size() < facts.sizes)
    return op.emitOpError() << "gives " << dims.size() << " sizes to @" << op.getKernel()
                            << ", which has " << facts.sizes;
  Size batch = substitute(facts.batch, actual);
  if (facts.hasState && dims.size() == facts.sizes)
    dims.append({Size::symbol("past"), Size::symbol("capacity"), batch});
  step.dims = sizes(dims);

  if (!op.getExtentAttr())
    return op.emitOpError() << "has no extent (run otf-schedule)";
  std::optional<Size> extent = parse(op, *op.getExtent());
  if (!extent)
    return failure();
  step.extent = size(*extent);
  step.grain = uint32_t(op.getGrain().value_or(1));

  for (auto [argument, rows] : facts.limits)
    if (const model::Buffer &ids = step.buffers[argument]; ids.space == model::Space::input)
      limitInput(ids.index, rows);
  for (auto [index, value] : llvm::enumerate(op.getInputs())) {
    auto from = value.getDefiningOp<plan::StateOp>();
    if (!from)
      continue;
    model::State &state = result.states[states.at(from.getCache())];
    state.shape[0] = size(batch);
    if (auto it = facts.appended.find(unsigned(index)); it != facts.appended.end())
      state.appended = size(substitute(it->second, actual));
  }

  if (!options.cuda)
    return success();
  if (options.host.count(step.kernel)) {
    cudaShapes.emplace_back();
    return success();
  }
  auto geometry = options.geometry.find(step.kernel);
  if (geometry == options.geometry.end())
    return op.emitOpError() << "has no CUDA launch geometry for @" << op.getKernel();
  actual["batch"] = batch;
  // A recorded graph of launches is replayed while the cache grows, so no grid may follow the past.
  const std::map<std::string, Size> largest = {{"past", Size::symbol("capacity")}};
  CudaShape &shape = cudaShapes.emplace_back();
  auto blocks = [&](const Size &each) { return size(substitute(substitute(each, actual), largest)); };
  for (const Size &each : geometry->second.grid)
    shape.grid.push_back(blocks(each));
  if (geometry->second.work != Size())
    shape.work = size(substitute(geometry->second.work, actual));
  shape.secondGrid = blocks(geometry->second.secondGrid);
  shape.secondExtent = size(substitute(geometry->second.secondExtent, actual));
  return success();
}

/// Adds the launches that stand for several where these have one row, before the first of them, which then have nothing to do. What
/// says so is the extent, which is no size of a GPU's work: at most 0 is nothing.
LogicalResult Assembler::mergeSteps() {
  std::map<size_t, std::vector<model::Step>> before;
  auto setExtent = [&](Operation *launch, model::Step &step, bool merged) -> LogicalResult {
    auto text = launch->getAttrOfType<StringAttr>(plan::kRowsAttribute);
    std::optional<Size> rows = text ? Size::parse(text.getValue()) : std::nullopt;
    if (!rows)
      return launch->emitOpError() << "is merged and does not say when (run otf-merge-launches)";
    step.extent = size(merged ? Size(2) * *rows - *rows * *rows : *rows * *rows - *rows);
    return success();
  };
  for (const MergedStep &merged : options.merged) {
    model::Step step;
    const LaunchGeometry &geometry = options.geometry.at(merged.kernel);
    step.kernel = merged.kernel;
    step.block = geometry.block;
    step.shared = geometry.shared;
    step.grid = sizes(geometry.grid);
    for (Operation *launch : merged.launches) {
      const model::Step &part = program.steps[stepOf.at(launch)];
      step.label += (step.label.empty() ? "" : " | ") + part.label;
      step.buffers.insert(step.buffers.end(), part.buffers.begin(), part.buffers.end());
      step.dims.insert(step.dims.end(), part.dims.begin(), part.dims.end());
    }
    Operation *first = merged.launches[merged.hasPrologue];
    if (failed(setExtent(first, step, true)))
      return failure();
    before[stepOf.at(first)].push_back(std::move(step));
  }
  for (const MergedStep &merged : options.merged)
    for (Operation *launch : merged.launches)
      if (failed(setExtent(launch, program.steps[stepOf.at(launch)], false)))
        return failure();
  // With the second kernels of steps that have one.
  std::vector<model::Step> steps;
  std::vector<uint32_t> places;
  for (auto [at, step] : llvm::enumerate(program.steps)) {
    places.push_back(uint32_t(steps.size()));
    for (model::Step &merged : before[at])
      steps.push_back(std::move(merged));
    steps.push_back(std::move(step));
    auto geometry = options.geometry.find(steps.back().kernel);
    if (steps.back().kind != model::StepKind::launch || geometry == options.geometry.end() || geometry->second.second.empty())
      continue;
    model::Step second = steps.back();
    second.kernel = geometry->second.second;
    second.grid = {cudaShapes[at].secondGrid, size(1), size(1)};
    second.extent = cudaShapes[at].secondExtent;
    steps.push_back(std::move(second));
  }
  places.push_back(uint32_t(steps.size()));
  for (model::Step &step : steps)
    step.target = places[step.target];
  program.steps = std::move(steps);
  return success();
}

FailureOr<model::Plan> Assembler::run() {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || !main.getBody().hasOneBlock())
    return module.emitError() << "has no @main of one block";
  result.producer = options.producer;
  result.model = options.model;
  result.generation = options.generation;
  result.past = symbol("past");
  result.capacity = symbol("capacity");

  for (Operation &op : main.getBody().front()) {
    LogicalResult done =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](plan::InputOp input) {
              inputs[input.getName()] = uint32_t(result.inputs.size());
              if (failed(tensor(input, input.getName(), input.getElement(), input.getType(), result.inputs)))
                return failure();
              if (auto limit = input->getAttrOfType<IntegerAttr>("otf.limit"))
                limitInput(result.inputs.size() - 1, limit.getInt());
              return success();
            })
            .Case([&](plan::OutputOp output) {
              outputs[output.getName()] = uint32_t(result.outputs.size());
              return tensor(output, output.getName(), output.getElement(), output.getType(), result.outputs);
            })
            .Case([&](plan::StateOp op) { return state(op); })
            .Case([&](plan::AllocOp op) { return alloc(op); })
            .Case([&](plan::LaunchOp op) { return launch(op); })
            .Case([&](plan::BindOp op) { return bind(op); })
            .Case([&](plan::LabelOp op) {
              labels[op.getName()] = uint32_t(program.steps.size());
              return success();
            })
            .Case([&](plan::JumpOp op) {
              goTo(model::StepKind::jump, op, op.getTarget());
              return success();
            })
            .Case([&](plan::BranchOp op) {
              model::Step &step = goTo(model::StepKind::branch, op, op.getTarget());
              return buffer(op, op.getCondition(), step.buffers.emplace_back());
            })
            .Case<plan::WeightOp, plan::ViewOp, func::ReturnOp>(
                [](Operation *) { return success(); })
            .Default([](Operation *op) {
              return op->emitOpError() << "is not part of a plan (run otf-lower-to-plan)";
            });
    if (failed(done))
      return failure();
  }

  if (failed(resolveLabels()))
    return failure();
  for (const StoredWeight &weight : weights.stored()) {
    // Rows and columns are what bits a weight are counted over: none of what is derived, but where that stands for a weight.
    uint64_t rows = uint64_t(weight.rows), columns = uint64_t(weight.columns);
    WeightOp counted = countedWith(weight.weight);
    if (counted != weight.weight) {
      auto type = counted ? cast<RankedTensorType>(counted.getType()) : RankedTensorType();
      rows = type ? uint64_t(type.getDimSize(0)) : 0;
      columns = type ? uint64_t(type.getDimSize(1)) : 0;
    }
    result.weights.push_back({weight.name, weight.offset, weight.size, weight.encoding, rows, columns, weight.vocabulary});
  }

  if (options.cpu) {
    program.target = "cpu";
    result.programs.push_back(program);
  }
  if (options.cuda) {
    program.target = "cuda";
    // Steps follow one another, so one memory serves all that need some.
    const uint32_t work = uint32_t(program.slots.size());
    for (auto [step, shape] : llvm::zip_equal(program.steps, cudaShapes)) {
      if (step.kind != model::StepKind::launch)
        continue;
      if (auto host = options.host.find(step.kernel); host != options.host.end()) {
        step.host = host->second;
        continue;
      }
      const LaunchGeometry &geometry = options.geometry.at(step.kernel);
      step.grid = shape.grid;
      step.block = geometry.block;
      step.shared = geometry.shared;
      if (!shape.work)
        continue;
      program.slots.resize(work + 1);
      if (!llvm::is_contained(program.slots[work].sizes, *shape.work))
        program.slots[work].sizes.push_back(*shape.work);
      step.buffers.insert(step.buffers.end() - step.written, {model::Space::slot, work, 0});
    }
    if (failed(mergeSteps()))
      return failure();
    result.programs.push_back(program);
  }
  return std::move(result);
}

FailureOr<model::Plan> assemblePlan(ModuleOp planned, const StreamEncoder &weights,
                                    const AssemblyOptions &options) {
  return Assembler(planned, weights, options).run();
}

} // namespace otf
