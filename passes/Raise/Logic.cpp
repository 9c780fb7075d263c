// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, logic, bits, and the choice between two elements.

#include "passes/Raise/AttentionForm.h"
#include "passes/Raise/Elementwise.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;

/// Symbols stand for sizes, so they are not negative. Then a polynomial without negative coefficients and with a
/// positive constant is not zero.
std::optional<bool> isZero(const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return *constant == 0;
  auto positive = [](const Size &s) {
    for (auto &[monomial, coefficient] : s.terms())
      if (coefficient < 0)
        return false;
    auto constant = s.terms().find({});
    return constant != s.terms().end() && constant->second > 0;
  };
  if (positive(size) || positive(Size(0) - size))
    return false;
  return std::nullopt;
}

/// Of two constants.
FoldSize fold(std::function<int64_t(int64_t, int64_t)> of) {
  return [=](ArrayRef<Size> v) -> std::optional<Size> {
    if (!v[0].isConstant() || !v[1].isConstant())
      return std::nullopt;
    return Size(of(*v[0].constant(), *v[1].constant()));
  };
}

void addComparison(Registry &registry, StringRef name, F real, I integer, I natural,
                   std::function<bool(int64_t, int64_t)> holds, int64_t since) {
  addElementwise(registry, name, 2,
                 {.real = compare(real), .integer = compare(integer), .natural = compare(natural), .foldSize = fold(holds),
                  .toBool = true},
                 nullptr, since);
}

template <typename Op>
void addLogic(Registry &registry, StringRef name, std::function<int64_t(int64_t, int64_t)> of) {
  addElementwise(registry, name, 2, {.boolean = scalarOp<Op>(), .foldSize = fold(of), .toBool = true});
  Elementwise bits = Elementwise{.foldSize = fold(of)}.integers(scalarOp<Op>());
  addElementwise(registry, ("Bitwise" + name).str(), 2, std::move(bits), nullptr, 18);
}

Value complement(OpBuilder &b, Location l, ArrayRef<Value> v) {
  return arith::XOrIOp::create(b, l, v[0], number(b, l, v[0].getType(), -1));
}

/// A shift by more than the width, or by a negative number, leaves what extending the sign alone would.
Elementwise shift(onnx::NodeOp node) {
  auto direction = dyn_cast_or_null<StringAttr>(node.attribute("direction"));
  bool left = direction && direction == "LEFT", right = direction && direction == "RIGHT";
  auto shifted = [=](bool isSigned) -> Scalar {
    return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
      Type type = v[0].getType();
      unsigned width = type.getIntOrFloatBitWidth();
      Value inside = arith::CmpIOp::create(b, l, I::ult, v[1], number(b, l, type, width));
      Value most = number(b, l, type, width - 1), zero = number(b, l, type, 0);
      Value by = arith::SelectOp::create(b, l, inside, v[1], most);
      if (isSigned && right)
        return arith::ShRSIOp::create(b, l, v[0], by);
      Value result = left ? arith::ShLIOp::create(b, l, v[0], by).getResult()
                          : arith::ShRUIOp::create(b, l, v[0], by).getResult();
      return arith::SelectOp::create(b, l, inside, result, zero);
    };
  };
  if (!left && !right)
    return {};
  return {.integer = shifted(true), .natural = shifted(false)};
}

/// Is an element that, of fp8 what it stands for.
LogicalResult raiseClass(Raiser &raiser, onnx::NodeOp node,
                         llvm::function_ref<Value(OpBuilder &, Location, Value)> holds) {
  Known &input = raiser.input(node, 0);
  bool coded = isCoded(input.elementType);
  if (!coded && !isa<FloatType>(raiser.internalType(input.elementType)))
    return raiser.fail(node, "elements of type " + onnx::elementTypeName(input.elementType) +
                                 " are not supported (only floats are)");
  raiser.set(node, raiser.generated(Element::Bool, input.sizes, [&](OpBuilder &b, ValueRange at) {
    Value x = raiser.element(b, input, at);
    return holds(b, node.getLoc(), coded ? decodeElement(b, node.getLoc(), x, input.elementType) : x);
  }));
  return success();
}

LogicalResult raiseIsInf(Raiser &raiser, onnx::NodeOp node) {
  bool positive = node.intOr("detect_positive", 1) != 0, negative = node.intOr("detect_negative", 1) != 0;
  return raiseClass(raiser, node, [&](OpBuilder &b, Location l, Value x) -> Value {
    Value infinity = number(b, l, x.getType(), INFINITY);
    if (positive != negative)
      return arith::CmpFOp::create(b, l, F::OEQ, x, positive ? infinity : number(b, l, x.getType(), -INFINITY));
    if (!positive)
      return arith::ConstantOp::create(b, l, b.getBoolAttr(false));
    return arith::CmpFOp::create(b, l, F::OEQ, math::AbsFOp::create(b, l, x), infinity);
  });
}

} // namespace

void raise::registerLogic(Registry &registry) {
  addElementwise(registry, "Equal", 2,
                 Elementwise{.real = compare(F::OEQ),
                             .boolean = compare(I::eq),
                             .foldSize = [](ArrayRef<Size> v) -> std::optional<Size> {
                               if (std::optional<bool> zero = isZero(v[0] - v[1]))
                                 return Size(*zero);
                               return std::nullopt;
                             },
                             .toBool = true}
                     .integers(compare(I::eq)));
  addComparison(registry, "Less", F::OLT, I::slt, I::ult, std::less<>(), 7);
  addComparison(registry, "LessOrEqual", F::OLE, I::sle, I::ule, std::less_equal<>(), 12);
  addComparison(registry, "Greater", F::OGT, I::sgt, I::ugt, std::greater<>(), 7);
  addComparison(registry, "GreaterOrEqual", F::OGE, I::sge, I::uge, std::greater_equal<>(), 12);

  addLogic<arith::AndIOp>(registry, "And", std::bit_and<>());
  addLogic<arith::OrIOp>(registry, "Or", std::bit_or<>());
  addLogic<arith::XOrIOp>(registry, "Xor", std::bit_xor<>());
  addElementwise(registry, "Not", 1,
                 {.boolean = complement,
                  .foldSize = [](ArrayRef<Size> v) -> std::optional<Size> {
                    if (!v[0].isConstant())
                      return std::nullopt;
                    return Size(*v[0].constant() == 0);
                  },
                  .toBool = true});
  addElementwise(registry, "BitwiseNot", 1, Elementwise().integers(complement), nullptr, 18);
  registry.add("BitShift", [](Raiser &raiser, onnx::NodeOp node) {
    Elementwise op = shift(node);
    if (!op.integer)
      return raiser.fail(node, "its direction must be LEFT or RIGHT");
    return raiseElementwise(raiser, node, op);
  }, 2, 2, 11);

  registry.add("IsNaN", [](Raiser &raiser, onnx::NodeOp node) {
    return raiseClass(raiser, node, [](OpBuilder &b, Location l, Value x) -> Value {
      return arith::CmpFOp::create(b, l, F::UNO, x, x);
    });
  }, 1, 1, 9);
  registry.add("IsInf", raiseIsInf, 1, 1, 10);

  auto select = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::SelectOp::create(b, l, v[0], v[1], v[2]);
  };
  addElementwise(registry, "Where", 3,
                 Elementwise{.real = select,
                             .boolean = select,
                             .foldSize = [](ArrayRef<Size> v) -> std::optional<Size> {
                               if (!v[0].isConstant())
                                 return std::nullopt;
                               return *v[0].constant() ? v[1] : v[2];
                             },
                             .movesBits = true,
                             .others = 1}
                     .integers(select),
                 recognizeEmptyRows, 9);
}
