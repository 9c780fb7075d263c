// SPDX-License-Identifier: Apache-2.0
//
// A walk over one block. Each operation's operands are looked up, its function in Operators.h is
// called, and the result is checked against the sizes that its type promises, so that a pass that
// writes a wrong type is found where it did.

#include "lib/Reference/Interpreter.h"

#include "lib/Reference/Failure.h"
#include "lib/Reference/Operators.h"
#include "lib/Reference/ScalarProgram.h"
#include "lib/Reference/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace otf::reference {

namespace {

using Shared = std::shared_ptr<const Content>;

constexpr int64_t kMostIterations = int64_t(1) << 20;

bool isReal(RankedTensorType type) { return isa<FloatType>(type.getElementType()); }

class Interpreter {
public:
  Interpreter(Symbols symbols, const FileSet *files, States states, RunKernel runKernel)
      : symbols(std::move(symbols)), scope(this->symbols), files(files),
        states(std::move(states)), runKernel(std::move(runKernel)) {}

  /// Everything but the terminator.
  llvm::Error run(Block &block);

  /// The arguments of a kernel, which the caller keeps alive.
  llvm::Error setArguments(Operation *owner, Block &block, llvm::ArrayRef<const Content *> given) {
    for (auto [argument, content] : llvm::zip(block.getArguments(), given)) {
      if (!content)
        return failure(owner, "has no argument #" + Twine(argument.getArgNumber()));
      if (llvm::Error error = check(owner, argument, *content))
        return error;
      set(argument, Shared(Shared(), content));
    }
    return llvm::Error::success();
  }
  void set(Value value, Shared content) {
    if (auto *tensor = std::get_if<Tensor>(content.get()))
      scope.tensors[value] = tensor;
    contents[value] = std::move(content);
  }
  const Content *get(Value value) const {
    auto found = contents.find(value);
    return found == contents.end() ? nullptr : found->second.get();
  }

  /// Caches after the step, by the name of the model's input.
  States &updatedStates() { return states; }

private:
  llvm::Expected<Content> operation(Operation *op);
  llvm::Expected<Content> constant(arith::ConstantOp op);
  llvm::Expected<Content> generate(tensor::GenerateOp op);
  llvm::Expected<Content> reshape(ReshapeOp op);
  llvm::Expected<Content> linearWithEpilogue(LinearOp op);
  llvm::Expected<Content> state(StateOp op);
  llvm::Expected<Content> appendTo(AppendOp op);
  llvm::Error call(plan::CallOp op);
  llvm::Error control(Operation *op);
  llvm::Error compute(ComputeOp op);
  /// Runs `program` at every index; its first argument is an element of `sums` where there are some.
  llvm::Expected<Content> everyIndex(ScalarProgram &program, const Shape &shape, bool real,
                                     const Tensor *sums);
  llvm::Error check(Operation *op, Value result, const Content &content);

  template <typename T> const T *operand(Value value) {
    const Content *content = value ? get(value) : nullptr;
    return content ? std::get_if<T>(content) : nullptr;
  }
  const Tensor *tensor(Value value) { return operand<Tensor>(value); }
  /// A tensor, or a cache's content.
  const Tensor *keys(Value value) {
    auto *cache = operand<Cache>(value);
    return cache ? &cache->content : tensor(value);
  }

  Symbols symbols;
  Scope scope;
  llvm::DenseMap<Value, Shared> contents;
  const FileSet *files;
  States states;
  RunKernel runKernel;
};

llvm::Expected<Content> content(Result result) {
  if (!result)
    return result.takeError();
  return Content(std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// Operations
//===------------------------------------------------------------------------------------------===//

llvm::Expected<Content> Interpreter::operation(Operation *op) {
  auto otherwise = [](Operation *) -> llvm::Expected<Content> {
    return llvm::createStringError("has no meaning for the reference interpreter");
  };
  return llvm::TypeSwitch<Operation *, llvm::Expected<Content>>(op)
      .Case([&](arith::ConstantOp op) { return constant(op); })
      .Case([&](tensor::GenerateOp op) { return generate(op); })
      .Case([&](ReshapeOp op) { return reshape(op); })
      .Case([&](LinearOp op) { return linearWithEpilogue(op); })
      .Case([&](StateOp op) { return state(op); })
      .Case([&](AppendOp op) { return appendTo(op); })
      .Case([&](UseOp op) -> llvm::Expected<Content> {
        if (!files)
          return llvm::createStringError("reads a weight, and there are no files here");
        return readWeight(op, *files);
      })
      .Case([&](EmbeddingOp op) {
        return content(embedding(*tensor(op.getIds()), *operand<Matrix>(op.getTable())));
      })
      .Case([&](NormOp op) {
        return content(norm(op.getKind(), *tensor(op.getInput()), tensor(op.getScale()),
                            tensor(op.getBias()), op.getEpsilon().convertToDouble()));
      })
      .Case([&](PrologueOp op) -> llvm::Expected<Content> {
        Result row = norm(op.getKind(), *tensor(op.getInput()), tensor(op.getScale()),
                          tensor(op.getBias()), op.getEpsilon().convertToDouble());
        if (!row)
          return row.takeError();
        if (std::optional<RotationAttr> rotation = op.getRotation())
          row = rotate(*row, *rotation);
        if (!row)
          return row.takeError();
        return content(prologue(*row, operand<Matrix>(op.getColumns()), tensor(op.getGrid())));
      })
      .Case([&](RotateOp op) { return content(rotate(*tensor(op.getInput()), op.getRotation())); })
      .Case([&](OnGridOp op) { return content(onGrid(*tensor(op.getInput()), *tensor(op.getGrid()))); })
      .Case([&](RopeOp op) {
        return content(rope(*tensor(op.getInput()), *tensor(op.getCos()), *tensor(op.getSin()),
                            op.getPositionsFirst()));
      })
      .Case([&](AttentionOp op) {
        return content(attention(*tensor(op.getQuery()), *keys(op.getKey()), *keys(op.getValue()),
                                 tensor(op.getMask()), tensor(op.getSink()),
                                 {op.getScale().convertToDouble(),
                                  op.getSoftcap().convertToDouble(), op.getPositionsFirst()}));
      })
      .Case([&](GatedActivationOp op) {
        return content(
            gatedActivation(op.getFunction(), *tensor(op.getGate()), *tensor(op.getUp())));
      })
      .Case([&](ReadOp op) -> llvm::Expected<Content> { return Content(*keys(op.getState())); })
      .Default(otherwise);
}

llvm::Expected<Content> Interpreter::constant(arith::ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!dense || !type)
    return llvm::createStringError("is neither a scalar nor dense elements");
  Tensor result = Tensor::zeros(Shape(type.getShape().begin(), type.getShape().end()), isReal(type));
  size_t position = 0;
  for (Attribute element : dense.getValues<Attribute>()) {
    Scalar value;
    if (!scalarConstant(element, value))
      return llvm::createStringError("has elements of a type that is not supported");
    if (isReal(type))
      result.reals()[position++] = value.real;
    else
      result.integers()[position++] = value.integer;
  }
  return Content(std::move(result));
}

llvm::Expected<Content> Interpreter::everyIndex(ScalarProgram &program, const Shape &shape,
                                                bool real, const Tensor *sums) {
  Tensor result = Tensor::zeros(shape, real);
  size_t first = sums ? 1 : 0;
  std::vector<Scalar> arguments(shape.size() + first);
  Scalar yielded;
  for (int64_t i = 0, count = result.count(); i < count; ++i) {
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      arguments[first + axis].integer = rest % shape[axis];
    if (sums)
      arguments[0].real = sums->reals()[size_t(i)];
    if (llvm::Error error = program.run(arguments, yielded))
      return std::move(error);
    if (real)
      result.reals()[size_t(i)] = yielded.real;
    else
      result.integers()[size_t(i)] = yielded.integer;
  }
  return Content(std::move(result));
}

llvm::Expected<Content> Interpreter::generate(tensor::GenerateOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Shape shape;
  auto extents = op.getDynamicExtents();
  for (int64_t size : type.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      shape.push_back(size);
      continue;
    }
    shape.push_back(scope.scalars.lookup(extents.front()).integer);
    extents = extents.drop_front();
    if (shape.back() < 0)
      return llvm::createStringError("has an extent of " + Twine(shape.back()));
  }
  llvm::Expected<ScalarProgram> program = ScalarProgram::compile(op.getBody().front(), scope);
  if (!program)
    return program.takeError();
  return everyIndex(*program, shape, isReal(type), nullptr);
}

llvm::Expected<Content> Interpreter::reshape(ReshapeOp op) {
  llvm::Expected<Shape> shape = symbols.shapeOf(cast<RankedTensorType>(op.getResult().getType()));
  if (!shape)
    return shape.takeError();
  Tensor result = *tensor(op.getSource());
  if (elementCount(*shape) != result.count())
    return llvm::createStringError("changes the number of elements");
  result.shape = *shape;
  return Content(std::move(result));
}

llvm::Expected<Content> Interpreter::linearWithEpilogue(LinearOp op) {
  const Tensor *x = tensor(op.getInput());
  const Matrix &weight = *operand<Matrix>(op.getWeight());
  Tensor rows;
  if (WindowAttr window = op.getWindowAttr()) {
    llvm::Expected<Shape> shape = symbols.shapeOf(cast<RankedTensorType>(op.getType()));
    if (!shape)
      return shape.takeError();
    Result copied = windows(*x, window, weight.columns, *shape);
    if (!copied)
      return copied.takeError();
    rows = std::move(*copied);
    x = &rows;
  }
  Result sums = linear(*x, weight, tensor(op.getBias()));
  if (!sums || op.getEpilogue().empty())
    return content(std::move(sums));
  llvm::Expected<ScalarProgram> program =
      ScalarProgram::compile(op.getEpilogue().front(), scope);
  if (!program)
    return program.takeError();
  return everyIndex(*program, sums->shape, isReal(cast<RankedTensorType>(op.getType())), &*sums);
}

/// Items in descending order, so that what only works in ascending order is found.
llvm::Error Interpreter::compute(ComputeOp op) {
  std::optional<Size> extent = Size::parse(op.getExtent());
  llvm::Expected<int64_t> items = symbols.evaluate(*extent);
  if (!items)
    return failure(op, "has an extent that is not known: " + llvm::toString(items.takeError()));
  Block &body = op.getBody().front();
  std::vector<Handle> handles(op.getNumResults());
  Scope inner = scope;
  for (auto [handle, result, argument] :
       llvm::zip(handles, op.getResults(), body.getArguments().drop_front())) {
    auto type = cast<RankedTensorType>(result.getType());
    llvm::Expected<Shape> shape = symbols.shapeOf(type);
    if (!shape)
      return failure(op, "has a shape that is not known: " + llvm::toString(shape.takeError()));
    handle.tensor = Tensor::zeros(*shape, isReal(type));
    handle.owners.assign(size_t(handle.tensor.count()), -1);
    inner.handles[argument] = &handle;
  }
  llvm::Expected<ScalarProgram> program = ScalarProgram::compile(body, inner);
  if (!program)
    return program.takeError();
  std::vector<Scalar> arguments(body.getNumArguments());
  for (int64_t item = *items; item-- > 0;) {
    arguments[0].integer = item;
    for (Handle &handle : handles)
      handle.item = item;
    if (llvm::Error error = program->run(arguments, {}))
      return error;
  }
  for (auto [handle, result] : llvm::zip(handles, op.getResults())) {
    // A kernel returns its scratch memory too.
    bool isRead = llvm::any_of(result.getUsers(),
                               [](Operation *user) { return !isa<plan::ReturnOp>(user); });
    if (isRead && llvm::is_contained(handle.owners, -1))
      return failure(op, "stores only some elements of result #" +
                             Twine(cast<OpResult>(result).getResultNumber()));
    set(result, std::make_shared<const Content>(std::move(handle.tensor)));
  }
  return llvm::Error::success();
}

//===------------------------------------------------------------------------------------------===//
// Caches
//===------------------------------------------------------------------------------------------===//

static Held heldAs(StateType type) {
  return type.getElementType().isF16() ? Held::f16 : type.getElementType().isInteger(8) ? Held::i8 : Held::f32;
}

llvm::Expected<Content> Interpreter::state(StateOp op) {
  auto cache = SymbolTable::lookupNearestSymbolFrom<CacheOp>(op, op.getCacheAttr());
  if (!cache)
    return llvm::createStringError("names no otf.cache");
  StateType type = op.getType();
  auto found = states.find(cache.getInput().str());
  Cache result{cache.getInput().str(), Tensor::zeros({0, type.getHeads(), 0, type.getWidth()}, true)};
  if (found != states.end())
    result.content = held(found->second, heldAs(type));
  return Content(std::move(result));
}

llvm::Expected<Content> Interpreter::appendTo(AppendOp op) {
  auto *past = operand<Cache>(op.getPast());
  Result result = append(past->content, *tensor(op.getUpdate()), tensor(op.getAt()),
                         op.getPositionsFirst());
  if (!result)
    return result.takeError();
  *result = held(std::move(*result), heldAs(op.getPast().getType()));
  if (!past->name.empty())
    states[past->name] = *result;
  return Content(Cache{past->name, std::move(*result)});
}

//===------------------------------------------------------------------------------------------===//
// The walk
//===------------------------------------------------------------------------------------------===//

/// Whether the content is what the type says.
llvm::Error Interpreter::check(Operation *op, Value value, const Content &content) {
  auto mismatch = [&](const llvm::Twine &what) {
    return failure(op, "has a value that is not what its type says: " + what);
  };
  if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
    auto *tensor = std::get_if<Tensor>(&content);
    if (!tensor || tensor->isReal() != isReal(type) ||
        std::visit([](auto &elements) { return elements.size(); }, tensor->elements) !=
            size_t(tensor->count()))
      return mismatch("no tensor of such elements");
    llvm::Expected<Shape> shape = symbols.shapeOf(type);
    if (!shape)
      return failure(op, "has a shape that is not known: " + llvm::toString(shape.takeError()));
    auto print = [](const Shape &shape) {
      std::string text;
      for (int64_t size : shape)
        text += " " + std::to_string(size);
      return text;
    };
    if (*shape != tensor->shape)
      return mismatch("sizes" + print(tensor->shape) + ", not" + print(*shape));
  } else if (auto type = dyn_cast<MatrixType>(value.getType())) {
    auto *matrix = std::get_if<Matrix>(&content);
    if (!matrix || matrix->rows != type.getRows() || matrix->columns != type.getColumns() ||
        int64_t(matrix->outliers.size()) != type.getOutliers() ||
        int64_t(matrix->weights.size()) != matrix->rows * matrix->columns)
      return mismatch("no such matrix");
  } else if (auto type = dyn_cast<StateType>(value.getType())) {
    auto *cache = std::get_if<Cache>(&content);
    if (!cache || cache->content.shape.size() != 4 || !cache->content.isReal() ||
        cache->content.shape[1] != type.getHeads() || cache->content.shape[3] != type.getWidth() ||
        int64_t(cache->content.reals().size()) != cache->content.count())
      return mismatch("no such cache");
  } else {
    return failure(op, "has a value of a type that is not supported");
  }
  return llvm::Error::success();
}

llvm::Error Interpreter::call(plan::CallOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return failure(op, "names no plan.kernel");
  std::vector<const Content *> arguments;
  for (Value input : op.getInputs())
    arguments.push_back(get(input));
  KernelSizes sizes;
  bool hasStates = llvm::any_of(op.getInputs().getTypes(), llvm::IsaPred<StateType>);
  size_t named = op.getSizes().size() - (hasStates ? std::min<size_t>(3, op.getSizes().size()) : 0);
  for (size_t i = 0; i < op.getSizes().size(); ++i) {
    if (hasStates && i == named + 1)
      continue; // the capacity of a cache is memory's affair
    auto text = dyn_cast<StringAttr>(op.getSizes()[i]);
    std::optional<Size> size = text ? Size::parse(text.getValue()) : std::nullopt;
    llvm::Expected<int64_t> value =
        size ? symbols.evaluate(*size) : llvm::createStringError("it is no size");
    if (!value)
      return failure(op, "has a size that is not known: " + llvm::toString(value.takeError()));
    sizes[i < named ? "d" + std::to_string(i) : i == named ? "past" : "batch"] = *value;
  }
  llvm::Expected<std::vector<Content>> results =
      runKernel ? runKernel(kernel, arguments, sizes) : interpretKernel(kernel, arguments, sizes);
  if (!results)
    return results.takeError();
  if (results->size() != op.getNumResults())
    return failure(op, "got " + Twine(results->size()) + " results");
  for (auto [result, content] : llvm::zip(op.getResults(), *results)) {
    if (llvm::Error error = check(op, result, content))
      return error;
    if (auto *cache = std::get_if<Cache>(&content); cache && !cache->name.empty())
      states[cache->name] = cache->content;
    set(result, std::make_shared<const Content>(std::move(content)));
  }
  return llvm::Error::success();
}

/// A branch, or a loop's body as long as its condition holds.
llvm::Error Interpreter::control(Operation *op) {
  auto copy = [&](ValueRange from, ValueRange to) {
    SmallVector<Shared> values; // all are read before one is set
    for (Value value : from)
      values.push_back(contents[value]);
    for (auto [value, target] : llvm::zip_equal(values, to))
      set(target, value);
  };
  auto holds = [&](Value condition) { return tensor(condition)->integers().front() != 0; };
  if (auto branch = dyn_cast<IfOp>(op)) {
    Block &block = (holds(branch.getCondition()) ? branch.getThenBranch() : branch.getElseBranch()).front();
    if (llvm::Error error = run(block))
      return error;
    copy(block.getTerminator()->getOperands(), branch.getResults());
    return llvm::Error::success();
  }
  auto loop = cast<LoopOp>(op);
  Block &body = loop.getBody().front();
  copy(loop.getInits(), body.getArguments());
  bool again = holds(loop.getCondition());
  for (int64_t left = kMostIterations; again; --left) {
    if (left == 0)
      return failure(op, "does not end within " + Twine(kMostIterations) + " iterations");
    if (llvm::Error error = run(body))
      return error;
    ValueRange yielded = body.getTerminator()->getOperands();
    again = holds(yielded.front());
    copy(yielded.drop_front(), body.getArguments());
  }
  copy(body.getArguments(), loop.getResults());
  return llvm::Error::success();
}

llvm::Error Interpreter::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    for (Value operand : op.getOperands())
      if (!get(operand) && !scope.scalars.contains(operand))
        return failure(&op, "reads a value that the interpreter does not hold");
    if (auto call = dyn_cast<plan::CallOp>(op)) {
      if (llvm::Error error = this->call(call))
        return error;
      continue;
    }
    if (isa<IfOp, LoopOp>(op)) {
      if (llvm::Error error = control(&op))
        return error;
      continue;
    }
    if (auto bind = dyn_cast<BindOp>(op)) {
      const Tensor *values = tensor(bind.getValues());
      for (auto [symbol, value] : llvm::zip_equal(bind.getSymbols().getAsRange<StringAttr>(), values->integers())) {
        if (value < 0 && bind.getMessage())
          return failure(&op, *bind.getMessage());
        if (value < 0)
          return failure(&op, "gives the size " + symbol.getValue() + " the value " + Twine(value));
        symbols.set(symbol.getValue().str(), value);
      }
      continue;
    }
    if (auto compute = dyn_cast<ComputeOp>(op)) {
      if (llvm::Error error = this->compute(compute))
        return error;
      continue;
    }
    if (op.getNumResults() != 1)
      return failure(&op, "has no meaning for the reference interpreter");
    Value result = op.getResult(0);
    if (result.getType().isIntOrIndexOrFloat()) {
      llvm::Expected<Scalar> scalar = ScalarProgram::evaluate(&op, scope);
      if (!scalar)
        return scalar.takeError();
      scope.scalars[result] = *scalar;
      continue;
    }
    llvm::Expected<Content> content = operation(&op);
    if (!content) {
      std::string what = llvm::toString(content.takeError());
      return failure(&op, what);
    }
    if (llvm::Error error = check(&op, result, *content))
      return error;
    set(result, std::make_shared<const Content>(std::move(*content)));
  }
  return llvm::Error::success();
}

llvm::Error inFunction(func::FuncOp function, llvm::Error error) {
  if (!error)
    return error;
  return failure(function, "cannot be run: " + llvm::toString(std::move(error)));
}

/// Symbols of @main: those of its inputs, and "past", the length of the caches.
llvm::Expected<Symbols> bindSymbols(func::FuncOp main, const Tensors &inputs, const States &states,
                                    std::vector<const Tensor *> &arguments) {
  std::map<std::string, int64_t> known;
  auto module = main->getParentOfType<ModuleOp>();
  std::map<std::string, int64_t> lengths;
  for (auto cache : module.getOps<CacheOp>()) {
    auto found = states.find(cache.getInput().str());
    if (found != states.end() && found->second.shape.size() != 4)
      return llvm::createStringError("cache " + cache.getInput() + " must have rank 4");
    int64_t length = found == states.end() ? 0 : found->second.shape[2];
    if (auto [it, isNew] = known.try_emplace("past", length); !isNew && it->second != length)
      return llvm::createStringError("cache " + cache.getInput() + " has " + Twine(length) +
                                     " positions and another " + Twine(it->second));
    lengths[cache.getInput().str()] = length;
  }
  for (auto &[name, state] : states)
    if (!lengths.count(name))
      return llvm::createStringError("there is no cache " + name);
  Symbols symbols(std::move(known));
  for (BlockArgument argument : main.getArguments()) {
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "otf.name");
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!name || !type)
      return llvm::createStringError("argument #" + Twine(argument.getArgNumber()) +
                                     " is no tensor with an otf.name");
    auto found = inputs.find(name.str());
    if (found == inputs.end())
      return llvm::createStringError("input " + name.getValue() + " is missing");
    const Tensor &tensor = found->second;
    if (tensor.isReal() != isReal(type))
      return llvm::createStringError("input " + name.getValue() + " has the wrong element type");
    if (llvm::Error error = symbols.add("input " + name.str(), type, tensor.shape))
      return std::move(error);
    arguments.push_back(&tensor);
  }
  if (inputs.size() > arguments.size())
    for (auto &[name, tensor] : inputs)
      if (!llvm::is_contained(arguments, &tensor))
        return llvm::createStringError("there is no input " + name);
  if (llvm::Error error = symbols.solve())
    return std::move(error);
  return symbols;
}

} // namespace

llvm::Expected<Tensors> interpret(ModuleOp module, const FileSet &files, const Tensors &inputs,
                                  States &states, RunKernel runKernel) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal() || !llvm::hasSingleElement(main.getBody()))
    return failure(module, "has no function @main of one block");
  std::vector<const Tensor *> arguments;
  llvm::Expected<Symbols> symbols = bindSymbols(main, inputs, states, arguments);
  if (!symbols)
    return inFunction(main, symbols.takeError());
  Interpreter interpreter(std::move(*symbols), &files, states, std::move(runKernel));
  Block &block = main.getBody().front();
  std::vector<Content> copies;
  for (const Tensor *tensor : arguments)
    copies.push_back(*tensor);
  std::vector<const Content *> pointers;
  for (const Content &copy : copies)
    pointers.push_back(&copy);
  if (llvm::Error error = interpreter.setArguments(main, block, pointers))
    return std::move(error);
  if (llvm::Error error = interpreter.run(block))
    return std::move(error);
  Tensors results;
  auto end = dyn_cast<func::ReturnOp>(block.getTerminator());
  if (!end)
    return failure(block.getTerminator(), "ends @main; func.return was expected");
  for (OpOperand &operand : end->getOpOperands()) {
    auto name = main.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), "otf.name");
    const Content *content = interpreter.get(operand.get());
    if (!name || !content || !std::holds_alternative<Tensor>(*content))
      return failure(end, "result #" + Twine(operand.getOperandNumber()) +
                              " is no tensor with an otf.name");
    results[name.str()] = std::get<Tensor>(*content);
  }
  states = std::move(interpreter.updatedStates());
  return results;
}

llvm::Expected<std::vector<Content>> interpretKernel(plan::KernelOp kernel,
                                                     llvm::ArrayRef<const Content *> arguments,
                                                     const KernelSizes &sizes) {
  Block &block = kernel.getBody().front();
  if (arguments.size() != block.getNumArguments())
    return failure(kernel, "takes " + Twine(block.getNumArguments()) + " arguments, got " +
                               Twine(arguments.size()));
  Symbols symbols(sizes);
  for (auto [argument, content] : llvm::zip(block.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto *tensor = content ? std::get_if<Tensor>(content) : nullptr;
    if (!type || !tensor)
      continue;
    std::string name = "argument #" + std::to_string(argument.getArgNumber());
    if (llvm::Error error = symbols.add(name, type, tensor->shape))
      return failure(kernel, llvm::toString(std::move(error)));
  }
  if (llvm::Error error = symbols.solve())
    return failure(kernel, llvm::toString(std::move(error)));
  Interpreter interpreter(std::move(symbols), nullptr, {}, {});
  if (llvm::Error error = interpreter.setArguments(kernel, block, arguments))
    return std::move(error);
  if (llvm::Error error = interpreter.run(block))
    return std::move(error);
  std::vector<Content> results;
  for (Value operand : block.getTerminator()->getOperands()) {
    const Content *content = interpreter.get(operand);
    if (!content)
      return failure(block.getTerminator(), "returns a value that the interpreter does not hold");
    results.push_back(*content);
  }
  return results;
}

} // namespace otf::reference
