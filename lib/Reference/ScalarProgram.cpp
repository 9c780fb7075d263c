// SPDX-License-Identifier: Apache-2.0
//
// Control flow and reads of tensors; ScalarOperations has the rest. Loops copy what they carry
// through a buffer of their own, since a yield may permute it.

#include "lib/Reference/ScalarProgram.h"

#include "lib/Reference/Failure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace otf::reference {

namespace {

struct Step {
  Operation *op;
  Compute compute;
};
using Steps = std::vector<Step>;
using Slots = std::vector<unsigned>;

void copy(Scalar *slots, const Slots &from, const Slots &to, std::vector<Scalar> &buffer) {
  buffer.clear();
  for (unsigned slot : from)
    buffer.push_back(slots[slot]);
  for (size_t i = 0; i < to.size(); ++i)
    slots[to[i]] = buffer[i];
}

} // namespace

struct ScalarProgram::Code {
  std::vector<Scalar> slots;
  Steps steps;
  Slots arguments, results;
  Operation *failed = nullptr; // the innermost operation that did not succeed

  const char *run(const Steps &list) {
    for (const Step &step : list)
      if (const char *problem = step.compute(slots.data())) {
        if (!failed)
          failed = step.op;
        return problem;
      }
    return nullptr;
  }
};

namespace {

template <typename Code> class Compiler {
public:
  Compiler(Code &code, const Scope &scope) : code(code), scope(scope) {}

  unsigned slot(Value value) {
    auto [it, isNew] = numbers.try_emplace(value, unsigned(code.slots.size()));
    if (isNew) {
      code.slots.push_back({});
      if (auto outer = scope.scalars.find(value); outer != scope.scalars.end())
        code.slots.back() = outer->second;
    }
    return it->second;
  }
  Slots slotsOf(ValueRange values) {
    Slots slots;
    for (Value value : values)
      slots.push_back(slot(value));
    return slots;
  }

  /// All of the block but its terminator.
  llvm::Error block(Block &block, Steps &steps) {
    for (BlockArgument argument : block.getArguments())
      defined.insert(argument);
    for (Operation &op : block.without_terminator()) {
      if (llvm::Error error = operation(&op, steps))
        return error;
      for (Value result : op.getResults())
        defined.insert(result);
    }
    return readable(block.getTerminator());
  }

  llvm::Error operation(Operation *op, Steps &steps) {
    if (llvm::Error error = readable(op))
      return error;
    if (auto size = dyn_cast<SizeOp>(op)) {
      std::optional<Size> parsed = Size::parse(size.getSize());
      llvm::Expected<int64_t> value =
          parsed ? scope.symbols.evaluate(*parsed) : llvm::createStringError("it is no size");
      if (!value)
        return failure(op, "cannot be evaluated: " + llvm::toString(value.takeError()));
      code.slots[slot(size)].integer = *value;
      return llvm::Error::success();
    }
    if (op->hasTrait<OpTrait::ConstantLike>() && op->getNumResults() == 1) {
      Attribute value = op->getAttr("value");
      Scalar constant;
      if (!value || !scalarConstant(value, constant))
        return failure(op, "is no scalar constant");
      code.slots[slot(op->getResult(0))] = constant;
      return llvm::Error::success();
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return add(op, read(extract), steps);
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      return add(op, dimension(dim), steps);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return forLoop(loop, steps);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return conditional(branch, steps);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return whileLoop(loop, steps);
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return add(op, access(load.getMemRef(), load.getIndices(), load, false), steps);
    if (auto store = dyn_cast<memref::StoreOp>(op))
      return add(op, access(store.getMemRef(), store.getIndices(), store.getValueToStore(), true), steps);
    if (op->getNumResults() != 1)
      return failure(op, "has no meaning in a scalar program");
    Slots from = slotsOf(op->getOperands());
    return add(op, scalarOperation(op, from, slot(op->getResult(0))), steps);
  }

private:
  /// Operands must come from the program or from the scope.
  llvm::Error readable(Operation *op) {
    for (Value operand : op->getOperands())
      if (!defined.contains(operand) && !scope.scalars.contains(operand) &&
          !scope.tensors.contains(operand))
        return failure(op, "reads a value that the interpreter does not hold");
    return llvm::Error::success();
  }

  llvm::Error add(Operation *op, Compute compute, Steps &steps) {
    if (!compute)
      return failure(op, "has no meaning in a scalar program");
    steps.push_back({op, std::move(compute)});
    return llvm::Error::success();
  }

  Compute read(tensor::ExtractOp extract) {
    const Tensor *tensor = scope.tensors.lookup(extract.getTensor());
    bool isReal = isa<FloatType>(extract.getType());
    if (!tensor || tensor->shape.size() != extract.getIndices().size() || tensor->isReal() != isReal)
      return {};
    return [tensor, isReal, at = slotsOf(extract.getIndices()),
            to = slot(extract)](Scalar *v) -> const char * {
      int64_t offset = 0;
      for (size_t i = 0; i < at.size(); ++i) {
        int64_t index = v[at[i]].integer;
        if (index < 0 || index >= tensor->shape[i])
          return "reads outside of its tensor";
        offset = offset * tensor->shape[i] + index;
      }
      if (isReal)
        v[to].real = tensor->reals()[size_t(offset)];
      else
        v[to].integer = tensor->integers()[size_t(offset)];
      return nullptr;
    };
  }

  /// A load into `value`'s slot or a store from it. Items must not meet.
  Compute access(Value memref, ValueRange indices, Value value, bool stores) {
    Handle *handle = scope.handles.lookup(memref);
    if (!handle)
      return {};
    return [handle, stores, isReal = isa<FloatType>(value.getType()), at = slotsOf(indices),
            data = slot(value)](Scalar *v) -> const char * {
      Tensor &tensor = handle->tensor;
      int64_t offset = 0;
      for (size_t i = 0; i < at.size(); ++i) {
        int64_t index = v[at[i]].integer;
        if (index < 0 || index >= tensor.shape[i])
          return "accesses a result outside of its sizes";
        offset = offset * tensor.shape[i] + index;
      }
      int64_t &owner = handle->owners[size_t(offset)];
      if (stores && owner < 0)
        owner = handle->item;
      if (owner < 0)
        return "loads an element that was not stored";
      if (owner != handle->item)
        return "accesses an element that another work item stored";
      if (stores && isReal)
        tensor.reals()[size_t(offset)] = v[data].real;
      else if (stores)
        tensor.integers()[size_t(offset)] = v[data].integer;
      else if (isReal)
        v[data].real = tensor.reals()[size_t(offset)];
      else
        v[data].integer = tensor.integers()[size_t(offset)];
      return nullptr;
    };
  }

  Compute dimension(tensor::DimOp dim) {
    const Tensor *tensor = scope.tensors.lookup(dim.getSource());
    if (!tensor)
      return {};
    return [tensor, axis = slot(dim.getIndex()), to = slot(dim)](Scalar *v) -> const char * {
      int64_t i = v[axis].integer;
      if (i < 0 || i >= int64_t(tensor->shape.size()))
        return "asks for a dimension that is not there";
      v[to].integer = tensor->shape[size_t(i)];
      return nullptr;
    };
  }

  llvm::Error forLoop(scf::ForOp loop, Steps &steps) {
    Steps body;
    if (llvm::Error error = block(*loop.getBody(), body))
      return error;
    Slots carried = slotsOf(loop.getRegionIterArgs());
    return add(
        loop,
        [code = &code, body = std::move(body), carried, initial = slotsOf(loop.getInitArgs()),
         yielded = slotsOf(loop.getBody()->getTerminator()->getOperands()),
         results = slotsOf(loop.getResults()), low = slot(loop.getLowerBound()),
         high = slot(loop.getUpperBound()), by = slot(loop.getStep()),
         index = slot(loop.getInductionVar()),
         buffer = std::vector<Scalar>()](Scalar *v) mutable -> const char * {
          int64_t step = v[by].integer;
          if (step <= 0)
            return "does not advance";
          copy(v, initial, carried, buffer);
          for (int64_t i = v[low].integer, end = v[high].integer; i < end; i += step) {
            v[index].integer = i;
            if (const char *problem = code->run(body))
              return problem;
            copy(v, yielded, carried, buffer);
          }
          copy(v, carried, results, buffer);
          return nullptr;
        },
        steps);
  }

  llvm::Error conditional(scf::IfOp branch, Steps &steps) {
    Steps bodies[2];
    Slots yielded[2];
    for (int side : {0, 1}) {
      Region &region = side ? branch.getThenRegion() : branch.getElseRegion();
      if (region.empty())
        continue;
      if (llvm::Error error = block(region.front(), bodies[side]))
        return error;
      yielded[side] = slotsOf(region.front().getTerminator()->getOperands());
    }
    return add(
        branch,
        [code = &code, no = std::move(bodies[0]), yes = std::move(bodies[1]), fromNo = yielded[0],
         fromYes = yielded[1], to = slotsOf(branch.getResults()),
         condition = slot(branch.getCondition()),
         buffer = std::vector<Scalar>()](Scalar *v) mutable -> const char * {
          bool taken = v[condition].integer != 0;
          if (const char *problem = code->run(taken ? yes : no))
            return problem;
          copy(v, taken ? fromYes : fromNo, to, buffer);
          return nullptr;
        },
        steps);
  }

  llvm::Error whileLoop(scf::WhileOp loop, Steps &steps) {
    Block &before = loop.getBefore().front(), &after = loop.getAfter().front();
    Steps test, body;
    if (llvm::Error error = block(before, test))
      return error;
    if (llvm::Error error = block(after, body))
      return error;
    auto condition = cast<scf::ConditionOp>(before.getTerminator());
    return add(
        loop,
        [code = &code, test = std::move(test), body = std::move(body),
         initial = slotsOf(loop.getInits()), carried = slotsOf(before.getArguments()),
         goes = slot(condition.getCondition()), passed = slotsOf(condition.getArgs()),
         received = slotsOf(after.getArguments()),
         yielded = slotsOf(after.getTerminator()->getOperands()),
         results = slotsOf(loop.getResults()),
         buffer = std::vector<Scalar>()](Scalar *v) mutable -> const char * {
          copy(v, initial, carried, buffer);
          for (;;) {
            if (const char *problem = code->run(test))
              return problem;
            if (!v[goes].integer)
              break;
            copy(v, passed, received, buffer);
            if (const char *problem = code->run(body))
              return problem;
            copy(v, yielded, carried, buffer);
          }
          copy(v, passed, results, buffer);
          return nullptr;
        },
        steps);
  }

  Code &code;
  const Scope &scope;
  llvm::DenseMap<Value, unsigned> numbers;
  llvm::DenseSet<Value> defined;
};

} // namespace

ScalarProgram::ScalarProgram(std::unique_ptr<Code> code) : code(std::move(code)) {}
ScalarProgram::ScalarProgram(ScalarProgram &&) = default;
ScalarProgram::~ScalarProgram() = default;

llvm::Expected<ScalarProgram> ScalarProgram::compile(Block &block, const Scope &scope) {
  auto code = std::make_unique<Code>();
  Compiler compiler(*code, scope);
  code->arguments = compiler.slotsOf(block.getArguments());
  if (llvm::Error error = compiler.block(block, code->steps))
    return std::move(error);
  code->results = compiler.slotsOf(block.getTerminator()->getOperands());
  return ScalarProgram(std::move(code));
}

llvm::Expected<Scalar> ScalarProgram::evaluate(Operation *op, const Scope &scope) {
  Code code;
  Compiler compiler(code, scope);
  if (llvm::Error error = compiler.operation(op, code.steps))
    return std::move(error);
  if (const char *problem = code.run(code.steps))
    return failure(op, problem);
  return code.slots[compiler.slot(op->getResult(0))];
}

llvm::Error ScalarProgram::run(llvm::ArrayRef<Scalar> arguments,
                               llvm::MutableArrayRef<Scalar> results) {
  if (arguments.size() != code->arguments.size() || results.size() != code->results.size())
    return llvm::createStringError("a scalar program takes " + Twine(code->arguments.size()) +
                                   " values and gives " + Twine(code->results.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    code->slots[code->arguments[i]] = arguments[i];
  code->failed = nullptr;
  if (const char *problem = code->run(code->steps))
    return failure(code->failed, problem);
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = code->slots[code->results[i]];
  return llvm::Error::success();
}

} // namespace otf::reference
