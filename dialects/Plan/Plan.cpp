// SPDX-License-Identifier: Apache-2.0
//
// Registration and verifiers of the plan dialect.

#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace otf::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
}

//===------------------------------------------------------------------------------------------===//
// Kernels
//===------------------------------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  Region *body = state.addRegion();
  Block &block = body->emplaceBlock();
  for (Type input : type.getInputs())
    block.addArgument(input, builder.getUnknownLoc());
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  auto end = block.empty() ? ReturnOp() : dyn_cast<ReturnOp>(block.back());
  if (!end)
    return emitOpError() << "must end in plan.return";
  if (TypeRange(end.getOperandTypes()) != TypeRange(getResultTypes()))
    return end.emitOpError() << "must give " << getResultTypes() << ", got " << end.getOperandTypes();
  return success();
}

Operation *KernelOp::getRoot() {
  auto result = cast<ReturnOp>(getBody().front().getTerminator());
  if (!result.getOperands().empty())
    return result.getOperands().front().getDefiningOp();
  // An observation has no result: it is the last thing that its kernel does.
  return dyn_cast_or_null<ObserveOp>(result->getPrevNode());
}

std::set<std::string> KernelOp::getSymbols() {
  std::set<std::string> symbols;
  auto collect = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (const otf::Size &size : sizesOf(tensor))
        size.collectSymbols(symbols);
  };
  auto parse = [&](StringRef text) {
    if (std::optional<otf::Size> size = otf::Size::parse(text))
      size->collectSymbols(symbols);
  };
  llvm::for_each(getArgumentTypes(), collect);
  llvm::for_each(getResultTypes(), collect);
  getBody().walk([&](Operation *op) {
    llvm::for_each(op->getResultTypes(), collect);
    if (auto size = dyn_cast<SizeOp>(op))
      parse(size.getSize());
    else if (auto compute = dyn_cast<ComputeOp>(op))
      parse(compute.getExtent());
  });
  return symbols;
}

static LogicalResult verifyKernelUse(Operation *op, SymbolTableCollection &symbols,
                                     FlatSymbolRefAttr name, size_t inputs, size_t outputs) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(op, name);
  if (!kernel)
    return op->emitOpError() << "names no plan.kernel: " << name;
  FunctionType type = kernel.getFunctionType();
  if (type.getNumInputs() != inputs || type.getNumResults() != outputs)
    return op->emitOpError() << name << " takes " << type.getNumInputs() << " and gives "
                             << type.getNumResults() << ", got " << inputs << " and " << outputs;
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyKernelUse(*this, symbols, getKernelAttr(), getInputs().size(), getNumResults());
}

/// Whether a kernel compiled for `expected` may be handed memory that holds `content`.
static bool holds(Type content, Type expected) {
  auto actual = dyn_cast<RankedTensorType>(content), wanted = dyn_cast<RankedTensorType>(expected);
  if (!actual || !wanted)
    return content == expected;
  if (actual.getElementType() != wanted.getElementType() || actual.getRank() != wanted.getRank())
    return false;
  for (auto [extent, fixed] : llvm::zip(actual.getShape(), wanted.getShape()))
    if (!ShapedType::isDynamic(fixed) && extent != fixed)
      return false;
  return true;
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  // A kernel that appends returns a state, which is the memory of the cache that it reads.
  SmallVector<Type> expected;
  size_t states = 0;
  if (kernel) {
    llvm::append_range(expected, kernel.getArgumentTypes());
    for (Type type : kernel.getResultTypes())
      if (isa<StateType>(type))
        ++states;
      else
        expected.push_back(type);
  }
  if (failed(verifyKernelUse(*this, symbols, getKernelAttr(), getInputs().size(),
                             getOutputs().size() + states)))
    return failure();
  for (auto [index, operand, type] : llvm::enumerate(getOperands(), expected)) {
    Type content = cast<BufferType>(operand.getType()).getContent();
    if (!holds(content, type)) // rule 1
      return emitOpError() << "operand #" << index << " must hold " << type << ", got " << content;
  }
  return success();
}
