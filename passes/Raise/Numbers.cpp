// SPDX-License-Identifier: Apache-2.0

#include "passes/Raise/Numbers.h"

#include "dialects/ONNX/ElementType.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

constexpr int64_t kMostNumbers = 64; // more are data, and no operator's sizes

/// The name of a program of others; none where one has none, or where it becomes unwieldy.
std::string nameOf(StringRef op, ArrayRef<Number> operands) {
  std::string name = op.str();
  for (const Number &operand : operands) {
    std::string key = operand.key();
    if (key.empty() || name.size() > 4096)
      return "";
    name += " (" + key + ")";
  }
  return name;
}

Number combine(StringRef name, const Number &a, const Number &b, Value (Expressions::*op)(Value, Value)) {
  return Number([=](Expressions s) {
    Value x = a.emit(s), y = b.emit(s);
    return (s.*op)(x, y);
  }, nameOf(name, {a, b}));
}

/// Whether the number is negative, where the sizes say so.
std::optional<bool> isNegative(const Number &a) {
  if (a.isAtLeast(0))
    return false;
  if (a.size() && Size(-1).isAtLeast(*a.size()))
    return true;
  return std::nullopt;
}

bool same(const Number &a, const Number &b) { return a.size() && b.size() && *a.size() == *b.size(); }

} // namespace

Number raise::operator+(const Number &a, const Number &b) {
  if (a.is(0) || b.is(0))
    return a.is(0) ? b : a;
  return a.size() && b.size() ? Number(*a.size() + *b.size()) : combine("add", a, b, &Expressions::add);
}

Number raise::operator-(const Number &a, const Number &b) {
  if (b.is(0))
    return a;
  return a.size() && b.size() ? Number(*a.size() - *b.size()) : combine("sub", a, b, &Expressions::sub);
}

Number raise::operator*(const Number &a, const Number &b) {
  if (a.is(1) || b.is(1))
    return a.is(1) ? b : a;
  return a.size() && b.size() ? Number(*a.size() * *b.size()) : combine("mul", a, b, &Expressions::mul);
}

Number raise::minimum(const Number &a, const Number &b) {
  if (a.isAtLeast(b) || b.isAtLeast(a))
    return a.isAtLeast(b) ? b : a;
  return combine("min", a, b, &Expressions::min);
}

Number raise::maximum(const Number &a, const Number &b) {
  if (a.isAtLeast(b) || b.isAtLeast(a))
    return a.isAtLeast(b) ? a : b;
  return combine("max", a, b, &Expressions::max);
}

Number raise::quotient(const Number &a, const Number &b) {
  if (b.is(1))
    return a;
  std::optional<int64_t> x = a.constant(), y = b.constant();
  if (x && y && *y > 0)
    return Number(*x / *y);
  if (a.size() && b.size())
    if (std::optional<Size> exact = a.size()->divide(*b.size()))
      return Number(*exact);
  return Number([=](Expressions s) {
    Value dividend = a.emit(s), divisor = b.emit(s);
    return s.div(dividend, y ? divisor : s.max(divisor, s.index(1)));
  }, nameOf("div", {a, b}));
}

Number raise::ifNegative(const Number &a, const Number &x, const Number &y) {
  if (std::optional<bool> negative = isNegative(a))
    return *negative ? x : y;
  if (same(x, y))
    return x;
  return Number([=](Expressions s) {
    Value condition = s.less(a.emit(s), s.index(0));
    Value then = x.emit(s);
    return s.select(condition, then, y.emit(s));
  }, nameOf("negative", {a, x, y}));
}

Number raise::ifEqual(const Number &a, const Number &b, const Number &x, const Number &y) {
  if ((a.size() && b.size() && *a.size() == *b.size()) || same(x, y))
    return x;
  if (isNegative(a - b) == true || isNegative(b - a) == true)
    return y;
  return Number([=](Expressions s) {
    Value left = a.emit(s);
    Value condition = s.equal(left, b.emit(s));
    Value then = x.emit(s);
    return s.select(condition, then, y.emit(s));
  }, nameOf("equal", {a, b, x, y}));
}

Number raise::numberAt(Raiser &raiser, Known &what, size_t position) {
  if (what.integers)
    return Number((*what.integers)[position]);
  if (what.reals)
    return Number(int64_t((*what.reals)[position]));
  std::string name = llvm::utohexstr(reinterpret_cast<uintptr_t>(raiser.tensor(what).getAsOpaquePointer())) + ":" + std::to_string(position);
  return Number([&raiser, &what, position](Expressions s) {
    SmallVector<Value> at(what.rank());
    size_t rest = position;
    for (size_t i = what.rank(); i-- > 0;) {
      int64_t extent = *what.sizes[i].constant();
      at[i] = s.index(int64_t(rest % extent));
      rest /= extent;
    }
    return s.toIndex(raiser.element(s.b, what, at));
  }, name);
}

/// An element of an ONNX value. Looks through what only joins or reshapes, so that beside one number of data the others stay
/// known.
static Number numberOf(Raiser &raiser, Value value, size_t position) {
  Known &what = raiser.known(value);
  auto producer = value.getDefiningOp<onnx::NodeOp>();
  if (what.integers || what.reals || !producer)
    return numberAt(raiser, what, position);
  auto countOf = [&](Value part) { return elementCount(raiser.known(part).sizes).constant(); };
  if (producer.is("Concat") && what.rank() == 1) {
    size_t left = position;
    for (Value part : producer.getInputs()) {
      std::optional<int64_t> count = countOf(part);
      if (!count)
        break;
      if (left < size_t(*count))
        return numberOf(raiser, part, left);
      left -= *count;
    }
  }
  if ((producer.is("Unsqueeze") || producer.is("Squeeze") || producer.is("Reshape") || producer.is("Identity")) &&
      countOf(producer.getInputs()[0]))
    return numberOf(raiser, producer.getInputs()[0], position);
  return numberAt(raiser, what, position);
}

FailureOr<SmallVector<Number>> raise::numbersOf(Raiser &raiser, onnx::NodeOp node, unsigned input, StringRef attribute) {
  SmallVector<Number> numbers;
  if (raiser.hasInput(node, input)) {
    Known &what = raiser.input(node, input);
    std::optional<int64_t> count = elementCount(what.sizes).constant();
    if (!count || *count > kMostNumbers)
      return raiser.fail(node, "input " + Twine(input) + " must have a constant number of elements, at most " +
                                   Twine(kMostNumbers) + " (its size is " + elementCount(what.sizes).str() + ")");
    for (int64_t i = 0; i != *count; ++i)
      numbers.push_back(numberOf(raiser, node.getInputs()[input], i));
  } else if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(attribute.empty() ? Attribute() : node.attribute(attribute))) {
    for (int64_t value : given.asArrayRef())
      numbers.push_back(Number(value));
  }
  return numbers;
}

FailureOr<SmallVector<Size>> raise::settled(Raiser &raiser, onnx::NodeOp node, ArrayRef<Number> numbers, ArrayRef<Check> checks) {
  // What was bound before in this block is bound.
  auto boundBefore = [&](const Number &number) -> Size * {
    std::string key = number.key();
    if (key.empty())
      return nullptr;
    auto found = raiser.boundNumbers.find({raiser.builder.getInsertionBlock(), key});
    return found == raiser.boundNumbers.end() ? nullptr : &found->second;
  };
  SmallVector<Number> open;
  SmallVector<size_t> places;
  for (const Number &number : numbers) {
    auto same = llvm::find_if(open, [&](const Number &other) { return !number.key().empty() && other.key() == number.key(); });
    places.push_back(same - open.begin());
    if (same == open.end() && !number.size() && !boundBefore(number))
      open.push_back(number);
  }
  std::vector<Check> undecided;
  for (const Check &check : checks) {
    const std::optional<Size> &a = check.left.size(), &b = check.right.size();
    if (a && b && a->isConstant() && b->isConstant() && *a != *b)
      return raiser.fail(node, check.what + " differ: " + a->str() + " and " + b->str());
    if (!a || !b || *a != *b)
      undecided.push_back(check);
  }
  SmallVector<Size> bound;
  if (!open.empty() || !undecided.empty()) {
    int64_t count = std::max<size_t>(open.size(), 1); // a check alone needs a number to fail with
    Known values = raiser.generated(Element::Int64, {Size(count)}, [&](OpBuilder &b, ValueRange at) -> Value {
      Expressions s{b, node.getLoc()};
      Value value = s.index(0);
      for (auto [i, number] : llvm::enumerate(open)) {
        Value mine = number.emit(s);
        value = i ? s.select(s.equal(at[0], s.index(int64_t(i))), mine, value) : mine;
      }
      for (const Check &check : undecided) {
        Value left = check.left.emit(s);
        value = s.select(s.equal(left, check.right.emit(s)), value, s.index(-1));
      }
      return s.fromIndex(b.getI64Type(), value);
    });
    std::string message; // of a check alone; a number may be negative for reasons of its own
    if (open.empty())
      for (const Check &check : undecided)
        if (message.find(check.what) == std::string::npos)
          message += (message.empty() ? "" : ", or ") + check.what;
    bound = raiser.bind(values.tensor, node.getOpType().lower(), message.empty() ? "" : message + " differ");
  }
  for (auto [number, size] : llvm::zip(open, bound)) // `bound` may have one for a check alone
    if (std::string key = number.key(); !key.empty())
      raiser.boundNumbers.insert({{raiser.builder.getInsertionBlock(), key}, size});
  SmallVector<Size> sizes;
  for (auto [number, place] : llvm::zip(numbers, places)) {
    Size *before = number.size() ? nullptr : boundBefore(number);
    sizes.push_back(number.size() ? *number.size() : before ? *before : bound[place]);
  }
  return sizes;
}

/// Whether a size is made of the sizes of the model's inputs alone.
static bool isOfInputs(Raiser &raiser, const Size &size) {
  Operation *function = raiser.builder.getInsertionBlock()->getParentOp();
  while (function && !isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  if (!function)
    return false;
  std::set<std::string> given, used;
  for (Type type : cast<FunctionOpInterface>(function).getArgumentTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (const Size &of : sizesOf(tensor))
        of.collectSymbols(given);
  size.collectSymbols(used);
  return llvm::includes(given, used);
}

FailureOr<SmallVector<Size>> raise::broadcastOrCheck(Raiser &raiser, onnx::NodeOp node, ArrayRef<Size> a, ArrayRef<Size> b) {
  if (std::optional<SmallVector<Size>> known = raiser.broadcast(a, b))
    return *known;
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<Size> result(a);
  std::vector<Check> checks;
  for (size_t i = 1; i <= b.size(); ++i) {
    Size &mine = result[a.size() - i];
    const Size &other = b[b.size() - i];
    if (mine == other || other == Size(1))
      continue;
    if (mine != Size(1))
      checks.push_back({mine, other, "two sizes of other names, which are taken to be equal,"});
    // A constant tells more than a symbol, and an input's size, which other tensors have too, more than one found on the way.
    if (mine == Size(1) || (!mine.isConstant() && (other.isConstant() || !isOfInputs(raiser, mine))))
      mine = other;
  }
  if (failed(settled(raiser, node, {}, checks)))
    return failure();
  return result;
}

bool raise::boundContents(Raiser &raiser, onnx::NodeOp node, ArrayRef<Known *> inputs, Known &result) {
  std::optional<int64_t> count = elementCount(result.sizes).constant();
  bool known = node.is("Div") || node.is("Mod") || node.is("Min") || node.is("Max");
  if (!known || !count || *count > kMostNumbers || result.rank() > 1 || (result.elementType != Element::Int64 && result.elementType != Element::Int32))
    return false;
  SmallVector<Number> numbers;
  for (int64_t i = 0; i != *count; ++i) {
    std::optional<Number> value;
    for (Known *input : inputs) {
      if (!input->integers)
        return false;
      Number operand = (*input->integers)[input->integers->size() == 1 ? 0 : i];
      bool divides = value && (node.is("Div") || node.is("Mod"));
      if (!operand.isAtLeast(divides ? 1 : 0))
        return false;
      if (!value)
        value = operand;
      else if (node.is("Min") || node.is("Max"))
        value = node.is("Min") ? minimum(*value, operand) : maximum(*value, operand);
      else
        value = node.is("Div") ? quotient(*value, operand) : *value - quotient(*value, operand) * operand;
    }
    numbers.push_back(*value);
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, numbers);
  if (failed(sizes))
    return false;
  result.integers = *sizes;
  return true;
}

int64_t raise::elementNumber(Type type) {
  if (type.isF32())
    return Element::Float;
  if (type.isF16())
    return Element::Float16;
  if (type.isBF16())
    return Element::BFloat16;
  if (type.isF64())
    return Element::Double;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return Element::Undefined;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return Element::Bool;
  case 8:
    return isUnsigned ? Element::UInt8 : Element::Int8;
  case 16:
    return isUnsigned ? Element::UInt16 : Element::Int16;
  case 32:
    return isUnsigned ? Element::UInt32 : Element::Int32;
  case 64:
    return isUnsigned ? Element::UInt64 : Element::Int64;
  }
  return Element::Undefined;
}

std::optional<int64_t> raise::axisInside(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

Value raise::guardedElement(Raiser &raiser, Expressions s, Known &what, ValueRange at) {
  Size count = elementCount(what.sizes);
  if (std::optional<int64_t> constant = count.constant())
    return *constant ? raiser.element(s.b, what, at) : s.zero(raiser.internalType(what.elementType));
  return s.whenElseZero(s.less(s.index(0), s.index(count)), raiser.internalType(what.elementType),
                        [&](Expressions then) { return raiser.element(then.b, what, at); });
}

SmallVector<Number> raise::compacted(ArrayRef<Size> values, ArrayRef<Number> dropped, size_t count) {
  SmallVector<Number> result(count, Number(0));
  Number before = 0; // how many of those ahead are kept
  for (auto [value, drop] : llvm::zip(values, dropped)) {
    // Dropped ones are past every place.
    Number place = before + drop * Number(int64_t(values.size()));
    for (size_t i = 0; i != count; ++i)
      result[i] = ifEqual(place, int64_t(i), value, result[i]);
    before = before + (Number(1) - drop);
  }
  return result;
}

Known raise::reshapedTo(Raiser &raiser, Known &what, ArrayRef<Size> sizes) {
  return elementCount(sizes) == elementCount(what.sizes) ? raiser.reshaped(what, sizes) : raiser.reshapedChecked(what, sizes);
}
