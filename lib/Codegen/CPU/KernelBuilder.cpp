// SPDX-License-Identifier: Apache-2.0
//
// Addresses, sizes and calls, in terms of arith and llvm operations.

#include "lib/Codegen/CPU/KernelBuilder.h"

using namespace mlir;

namespace otf::cpu {

static constexpr auto noOverflow = arith::IntegerOverflowFlags::nsw;

Type storageType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  // Without AVX512-BF16, LLVM moves a bfloat by widening it, and narrows it by calling a function that no C library has.
  if (element.isBF16())
    return IntegerType::get(element.getContext(), 16);
  return element;
}

KernelBuilder::KernelBuilder(ModuleOp module, LLVM::LLVMFuncOp function)
    : ImplicitLocOpBuilder(function.getLoc(), module.getContext()), module(module) {
  Block *entry = function.addEntryBlock(*this);
  setInsertionPointToStart(entry);
  begin = arith::IndexCastOp::create(*this, getIndexType(), entry->getArgument(2));
  scratch = entry->getArgument(4);
  end = arith::IndexCastOp::create(*this, getIndexType(), entry->getArgument(3));

  auto domain = LLVM::AliasScopeDomainAttr::get(getContext(), function.getSymNameAttr());
  auto scope = [&](StringRef name) -> ArrayAttr {
    return getArrayAttr(LLVM::AliasScopeAttr::get(domain, getStringAttr(name)));
  };
  readScope = scope("read");
  writtenScope = scope("written");
}

Value KernelBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value).getResult();
}

Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value KernelBuilder::f32(const llvm::APFloat &value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value.convertToFloat()));
}

Value KernelBuilder::add(Value a, Value b) {
  return arith::AddIOp::create(*this, a, b, noOverflow);
}

Value KernelBuilder::sub(Value a, Value b) {
  return arith::SubIOp::create(*this, a, b, noOverflow);
}

Value KernelBuilder::mul(Value a, Value b) {
  return arith::MulIOp::create(*this, a, b, noOverflow);
}

Value KernelBuilder::smaller(Value a, Value b) { return arith::MinSIOp::create(*this, a, b); }

bool KernelBuilder::knows(const otf::Size &size) const {
  std::set<std::string> names;
  size.collectSymbols(names);
  return llvm::all_of(names, [&](const std::string &name) { return symbols.count(name); });
}

Value KernelBuilder::size(const otf::Size &size) {
  if (!knows(size)) {
    mlir::emitError(getLoc()) << "the kernel has no size \"" << size.str() << "\"";
    return {};
  }
  Value sum;
  for (auto &[monomial, coefficient] : size.terms()) {
    Value term;
    if (coefficient != 1 || monomial.empty())
      term = index(coefficient);
    for (const std::string &name : monomial)
      term = term ? mul(term, symbols.at(name)) : symbols.at(name);
    sum = sum ? add(sum, term) : term;
  }
  return sum ? sum : index(0);
}

Value KernelBuilder::offset(ArrayRef<otf::Size> shape, ValueRange indices) {
  if (indices.empty())
    return index(0);
  Value at = indices[0];
  for (size_t d = 1; d < indices.size(); ++d)
    at = add(mul(at, size(shape[d])), indices[d]);
  return at;
}

SmallVector<Value> KernelBuilder::split(Value position, ArrayRef<otf::Size> shape) {
  SmallVector<Value> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == otf::Size(1)) {
      indices[d] = index(0);
      continue;
    }
    // Positions are never negative; unsigned division is the cheaper one.
    if (d == 0) {
      indices[d] = position;
      break;
    }
    Value extent = size(shape[d]);
    indices[d] = arith::RemUIOp::create(*this, position, extent);
    position = arith::DivUIOp::create(*this, position, extent);
  }
  return indices;
}

Value KernelBuilder::at(const Memory &memory, Value offset) {
  Value i = arith::IndexCastOp::create(*this, getI64Type(), offset);
  return LLVM::GEPOp::create(*this, memory.pointer.getType(), storageType(memory.element),
                             memory.pointer, ValueRange{i}, LLVM::GEPNoWrapFlags::inbounds);
}

Value KernelBuilder::atByte(Value pointer, Value offset) {
  return at({pointer, getI8Type(), {}, false}, offset);
}

Value KernelBuilder::load(const Memory &memory, Value offset) {
  auto op = LLVM::LoadOp::create(*this, storageType(memory.element), at(memory, offset));
  op.setAliasScopesAttr(memory.written ? writtenScope : readScope);
  op.setNoaliasScopesAttr(memory.written ? readScope : writtenScope);
  if (memory.element.isInteger(1)) {
    Value zero = arith::ConstantOp::create(*this, getI8IntegerAttr(0));
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, op, zero);
  }
  if (memory.element.isIndex())
    return arith::IndexCastOp::create(*this, getIndexType(), op);
  if (memory.element.isBF16())
    return arith::BitcastOp::create(*this, memory.element, op);
  return op;
}

void KernelBuilder::store(Value value, const Memory &memory, Value offset) {
  Type type = storageType(memory.element);
  if (memory.element.isInteger(1))
    value = arith::ExtUIOp::create(*this, type, value);
  else if (memory.element.isIndex())
    value = arith::IndexCastOp::create(*this, type, value);
  else if (memory.element.isBF16())
    value = arith::BitcastOp::create(*this, type, value);
  auto op = LLVM::StoreOp::create(*this, value, at(memory, offset));
  op.setAliasScopesAttr(writtenScope);
  op.setNoaliasScopesAttr(readScope);
}

scf::ForOp KernelBuilder::loop(Value lower, Value upper, int64_t step,
                               function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(*this, lower, upper, index(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
  return op;
}

Value KernelBuilder::call(StringRef name, Type result, ArrayRef<Value> arguments) {
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (Value argument : arguments) {
    if (argument.getType().isIndex())
      argument = arith::IndexCastOp::create(*this, getI64Type(), argument);
    values.push_back(argument);
    types.push_back(argument.getType());
  }
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!function) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToEnd(module.getBody());
    Type type = result ? result : LLVM::LLVMVoidType::get(getContext());
    function = LLVM::LLVMFuncOp::create(*this, name, LLVM::LLVMFunctionType::get(type, types));
  }
  auto op = LLVM::CallOp::create(*this, function, values);
  return result ? op.getResult() : Value();
}

Value KernelBuilder::null() {
  return LLVM::ZeroOp::create(*this, LLVM::LLVMPointerType::get(getContext()));
}

Value KernelBuilder::stack(Type element, int64_t count) {
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), element,
                                i64(count), 64);
}

Memory KernelBuilder::constant(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  Memory result{{}, type.getElementType(), sizesOf(type), false};
  Type storage = storageType(result.element);
  int64_t count = type.getNumElements();
  DenseElementsAttr flat = value.reshape(RankedTensorType::get({count}, result.element));
  if (result.element.isBF16())
    flat = flat.bitcast(storage);
  else if (storage != result.element)
    flat = flat.mapValues(
        storage, [&](const APInt &v) { return v.zextOrTrunc(storage.getIntOrFloatBitWidth()); });
  std::string name;
  for (int number = 0; module.lookupSymbol(name = ("constant_" + Twine(number)).str()); ++number)
    ;
  OpBuilder::InsertionGuard guard(*this);
  auto array = LLVM::LLVMArrayType::get(storage, count);
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard inner(*this);
    setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(*this, array, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    name, flat, /*alignment=*/64);
  }
  result.pointer = LLVM::AddressOfOp::create(*this, global);
  return result;
}

} // namespace otf::cpu
