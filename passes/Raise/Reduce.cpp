// SPDX-License-Identifier: Apache-2.0
//
// The Reduce family and ArgMax, ArgMin as loops in the body of a generate. Which axes are reduced may be data: then every
// dimension asks at run time whether it is. Over no elements a reduction gives its identity.

#include "passes/Raise/Numbers.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

enum class Reduction { sum, mean, prod, max, min, l1, l2, logSum, logSumExp, sumSquare };

/// What a reduction computes with, for elements of one type.
struct Fold {
  Reduction kind;
  Type type;
  bool isUnsigned;

  bool real() const { return isa<FloatType>(type); }

  Value initial(Expressions s) const {
    if (kind == Reduction::prod)
      return s.constant(type, 1);
    if (kind != Reduction::max && kind != Reduction::min)
      return s.zero(type);
    bool least = kind == Reduction::max;
    TypedAttr value;
    if (auto real = dyn_cast<FloatType>(type)) {
      value = s.b.getFloatAttr(type, APFloat::getInf(real.getFloatSemantics(), least));
    } else {
      unsigned width = type.getIntOrFloatBitWidth();
      value = s.b.getIntegerAttr(type, isUnsigned ? (least ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                                  : (least ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width)));
    }
    return arith::ConstantOp::create(s.b, s.l, value);
  }

  /// The accumulator with one more element.
  Value step(Expressions s, Value sum, Value x) const {
    switch (kind) {
    case Reduction::prod:
      return s.mul(sum, x);
    case Reduction::max:
      return isUnsigned ? arith::MaxUIOp::create(s.b, s.l, sum, x).getResult() : s.max(sum, x);
    case Reduction::min:
      return isUnsigned ? arith::MinUIOp::create(s.b, s.l, sum, x).getResult() : s.min(sum, x);
    case Reduction::l1:
      return s.add(sum, real()       ? math::AbsFOp::create(s.b, s.l, x).getResult()
                        : isUnsigned ? x
                                     : s.select(s.less(x, s.zero(type)), s.sub(s.zero(type), x), x));
    case Reduction::l2:
    case Reduction::sumSquare:
      return s.add(sum, s.mul(x, x));
    default:
      return s.add(sum, x);
    }
  }

  /// The result from the accumulator and the number of elements.
  Value finish(Expressions s, Value sum, Value count) const {
    switch (kind) {
    case Reduction::mean:
      if (real())
        return s.div(sum, s.fromIndex(type, count));
      // Of integers it is cut towards zero; over none it is 0.
      count = s.fromIndex(type, s.max(count, s.index(1)));
      return isUnsigned ? arith::DivUIOp::create(s.b, s.l, sum, count).getResult() : s.div(sum, count);
    case Reduction::l2:
      return asReal(s, sum, [&](Value x) { return math::SqrtOp::create(s.b, s.l, x).getResult(); });
    case Reduction::logSum:
      return asReal(s, sum, [&](Value x) { return math::LogOp::create(s.b, s.l, x).getResult(); });
    default:
      return sum;
    }
  }

  /// Integers go through f64.
  Value asReal(Expressions s, Value x, function_ref<Value(Value)> function) const {
    if (real())
      return function(x);
    Type wide = s.b.getF64Type();
    Value y = function(isUnsigned ? arith::UIToFPOp::create(s.b, s.l, wide, x).getResult()
                                  : arith::SIToFPOp::create(s.b, s.l, wide, x).getResult());
    return isUnsigned ? arith::FPToUIOp::create(s.b, s.l, type, y).getResult()
                      : arith::FPToSIOp::create(s.b, s.l, type, y).getResult();
  }
};

/// For each dimension 1 if it is reduced, 0 if not.
FailureOr<SmallVector<Number>> reducedDimensions(Raiser &raiser, onnx::NodeOp node, int64_t rank, size_t &count) {
  // Axes are an attribute before opset 18, of ReduceSum before 13.
  FailureOr<SmallVector<Number>> axes = numbersOf(raiser, node, 1, "axes");
  if (failed(axes))
    return failure();
  bool all = axes->empty() && node.intOr("noop_with_empty_axes", 0) == 0;
  SmallVector<Number> reduced(rank, Number(all ? 1 : 0));
  count = all ? rank : axes->size();
  for (const Number &axis : *axes) {
    if (std::optional<int64_t> given = axis.constant()) {
      std::optional<int64_t> at = axisInside(*given, rank);
      if (!at)
        return raiser.fail(node, "axis " + Twine(*given) + " is outside rank " + Twine(rank));
      count -= reduced[*at].is(1); // there twice
      reduced[*at] = Number(1);
      continue;
    }
    Number at = ifNegative(axis, axis + Number(rank), axis);
    for (int64_t d = 0; d != rank; ++d)
      reduced[d] = ifEqual(at, d, Number(1), reduced[d]);
  }
  return reduced;
}

/// Shapes are multiplied and summed in models; of sizes the result is a size.
bool foldSizes(const Known &input, Reduction kind, ArrayRef<Number> reduced, Known &result) {
  if (!input.integers || (kind != Reduction::sum && kind != Reduction::prod) ||
      !llvm::all_of(reduced, [](const Number &n) { return n.is(1); }))
    return false;
  Size total = kind == Reduction::prod ? 1 : 0;
  for (const Size &size : *input.integers)
    total = kind == Reduction::prod ? total * size : total + size;
  result.integers.emplace(1, total);
  return total.isValid();
}

LogicalResult raiseReduction(Raiser &raiser, onnx::NodeOp node, Reduction kind) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank();
  size_t count = 0;
  FailureOr<SmallVector<Number>> reduced = reducedDimensions(raiser, node, rank, count);
  if (failed(reduced))
    return failure();
  bool keep = node.intOr("keepdims", 1) != 0;
  bool constantAxes = llvm::all_of(*reduced, [](const Number &n) { return n.constant().has_value(); });
  Fold fold{kind, raiser.internalType(input.elementType), raiser.isUnsigned(input.elementType) || input.elementType == Element::Bool};
  if (kind == Reduction::logSumExp && !fold.real())
    return raiser.fail(node, "integers are not supported (cast them to a float)");

  SmallVector<Number> kept, extents;
  Number total = 0;
  for (int64_t d = 0; d != rank; ++d) {
    kept.push_back(ifEqual((*reduced)[d], 1, 1, input.sizes[d]));
    extents.push_back(ifEqual((*reduced)[d], 1, input.sizes[d], 1));
    total = total + (*reduced)[d];
  }
  SmallVector<Number> remaining = keep ? kept : compacted(input.sizes, *reduced, rank - count);
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, remaining, Check{total, Number(int64_t(count)), "its axes"});
  if (failed(sizes))
    return failure();
  Known result;
  result.elementType = input.elementType;
  result.sizes = *sizes;
  if (foldSizes(input, kind, *reduced, result)) {
    raiser.set(node, std::move(result));
    return success();
  }
  // Axes of data are reduced in the form that keeps them, whose elements come in the same order.
  bool inPlace = keep || !constantAxes;
  FailureOr<SmallVector<Size>> keptSizes = keep ? sizes : settled(raiser, node, kept);
  if (failed(keptSizes))
    return failure();

  result = raiser.generated(input.elementType, inPlace ? *keptSizes : *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> loops, isReduced(rank);
    Value elements = s.index(1);
    for (int64_t d = 0; d != rank; ++d) {
      if ((*reduced)[d].is(0))
        continue;
      loops.push_back(extents[d].emit(s));
      elements = s.mul(elements, loops.back());
      if (!(*reduced)[d].is(1))
        isReduced[d] = s.equal((*reduced)[d].emit(s), s.index(1));
    }
    auto element = [&](Expressions inner, ArrayRef<Value> loop) {
      SmallVector<Value> at;
      size_t nextLoop = 0, nextIndex = 0;
      for (int64_t d = 0; d != rank; ++d) {
        Value index = nextIndex < indices.size() ? indices[nextIndex] : Value();
        Value looped = (*reduced)[d].is(0) ? Value() : loop[nextLoop++];
        at.push_back(!looped ? index : isReduced[d] ? inner.select(isReduced[d], looped, index) : looped);
        nextIndex += inPlace || !looped;
      }
      return raiser.element(inner.b, input, at);
    };
    if (kind != Reduction::logSumExp) {
      Value sum = s.fold(loops, fold.initial(s), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
        return fold.step(inner, carried, element(inner, loop));
      });
      return fold.finish(s, sum, elements);
    }
    // Relative to the largest element, unless that is infinite.
    Fold largest{Reduction::max, fold.type, false};
    Value most = s.fold(loops, largest.initial(s), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      return largest.step(inner, carried, element(inner, loop));
    });
    Value finite = s.less(math::AbsFOp::create(b, s.l, most), Fold{Reduction::min, fold.type, false}.initial(s));
    most = s.select(finite, most, s.zero(fold.type));
    Value sum = s.fold(loops, s.zero(fold.type), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      return inner.add(carried, math::ExpOp::create(inner.b, inner.l, inner.sub(element(inner, loop), most)));
    });
    return s.add(math::LogOp::create(b, s.l, sum), most);
  });
  raiser.set(node, inPlace && !keep ? reshapedTo(raiser, result, *sizes) : std::move(result));
  return success();
}

/// The position of the largest or least element; of equal ones the first or the last. NaN is more than any number.
LogicalResult raiseArg(Raiser &raiser, onnx::NodeOp node, bool largest) {
  Known &input = raiser.input(node, 0);
  std::optional<int64_t> axis = axisInside(node.intOr("axis", 0), input.rank());
  if (!axis)
    return raiser.fail(node, "axis is outside rank " + Twine(input.rank()));
  bool keep = node.intOr("keepdims", 1) != 0, last = node.intOr("select_last_index", 0) != 0;
  SmallVector<Size> sizes(input.sizes);
  if (keep)
    sizes[*axis] = 1;
  else
    sizes.erase(sizes.begin() + *axis);
  Type type = raiser.internalType(input.elementType);
  bool isUnsigned = raiser.isUnsigned(input.elementType);
  raiser.set(node, raiser.generated(Element::Int64, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    using F = arith::CmpFPredicate;
    using I = arith::CmpIPredicate;
    SmallVector<Value> found = s.loop(
        {s.index(input.sizes[*axis])}, {s.index(0), s.zero(type)},
        [&](Expressions inner, ArrayRef<Value> loop, ValueRange carried) -> SmallVector<Value> {
          SmallVector<Value> at(indices);
          if (keep)
            at[*axis] = loop[0];
          else
            at.insert(at.begin() + *axis, loop[0]);
          Value x = raiser.element(inner.b, input, at), best = carried[1], better;
          if (isa<FloatType>(type)) {
            better = inner.compare(largest ? (last ? F::UGE : F::UGT) : (last ? F::ULE : F::ULT), I::eq, x, best);
            Value number = inner.compare(F::ORD, I::eq, best, best);
            if (last)
              number = inner.any(number, inner.compare(F::UNO, I::eq, x, x));
            better = inner.both(better, number);
          } else if (isUnsigned) {
            better = inner.compare(F::OEQ, largest ? (last ? I::uge : I::ugt) : (last ? I::ule : I::ult), x, best);
          } else {
            better = inner.compare(F::OEQ, largest ? (last ? I::sge : I::sgt) : (last ? I::sle : I::slt), x, best);
          }
          better = inner.any(better, inner.equal(loop[0], inner.index(0)));
          return {inner.select(better, loop[0], carried[0]), inner.select(better, x, best)};
        });
    return s.fromIndex(b.getI64Type(), found[0]);
  }));
  return success();
}

} // namespace

void raise::registerReduce(Registry &registry) {
  auto add = [&](StringRef name, Reduction kind) {
    registry.add(name, [kind](Raiser &raiser, onnx::NodeOp node) { return raiseReduction(raiser, node, kind); }, 1, 2);
  };
  add("ReduceSum", Reduction::sum);
  add("ReduceMean", Reduction::mean);
  add("ReduceProd", Reduction::prod);
  add("ReduceMax", Reduction::max);
  add("ReduceMin", Reduction::min);
  add("ReduceL1", Reduction::l1);
  add("ReduceL2", Reduction::l2);
  add("ReduceLogSum", Reduction::logSum);
  add("ReduceLogSumExp", Reduction::logSumExp);
  add("ReduceSumSquare", Reduction::sumSquare);
  registry.add("ArgMax", [](Raiser &raiser, onnx::NodeOp node) { return raiseArg(raiser, node, true); }, 1, 1);
  registry.add("ArgMin", [](Raiser &raiser, onnx::NodeOp node) { return raiseArg(raiser, node, false); }, 1, 1);
}
