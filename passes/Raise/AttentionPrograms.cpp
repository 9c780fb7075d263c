// SPDX-License-Identifier: Apache-2.0
//
// What an attention becomes: a mask, then otf.attention, or scores, weights and their products as scalar programs where
// the operator does not take the operands or somebody reads the scores.

#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Program.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

Value compare(OpBuilder &b, Location l, arith::CmpIPredicate predicate, Value left, Value right) {
  return arith::CmpIOp::create(b, l, predicate, left, right);
}

Value both(OpBuilder &b, Location l, Value left, Value right) {
  return left ? arith::AndIOp::create(b, l, left, right).getResult() : right;
}

Value infinity(OpBuilder &b, Location l, Type type) {
  auto real = cast<FloatType>(type);
  return arith::ConstantOp::create(b, l, b.getFloatAttr(type, APFloat::getInf(real.getFloatSemantics(), /*Negative=*/true)));
}

/// What hides keys, as one tensor of [B or 1, H or 1, S or 1, T]; null where nothing does. Fails with a diagnostic.
FailureOr<std::optional<Known>> maskOf(Raiser &raiser, onnx::NodeOp node, AttentionForm &form) {
  Visibility &visible = form.visible;
  Location l = node.getLoc();
  ArrayRef<Size> q = form.query.sizes;
  const Size keys = form.key.sizes[2];
  const Size full[4] = {q[0], q[1], q[2], keys};
  SmallVector<Size> sizes(4, Size(1));
  sizes[3] = keys;
  std::optional<Known> given;
  bool whole = true; // the mask reaches over all keys
  if (visible.mask) {
    if (visible.mask->rank() > 4)
      return raiser.fail(node, "a mask of rank " + Twine(visible.mask->rank()) + " is not supported");
    SmallVector<Size> aligned(visible.mask->sizes);
    while (aligned.size() < 4)
      aligned.insert(aligned.begin(), Size(1));
    given = raiser.reshaped(*visible.mask, aligned);
    for (size_t axis = 0; axis != 3; ++axis) {
      if (aligned[axis] != Size(1) && aligned[axis] != full[axis])
        return raiser.fail(node, "the mask's dimension " + Twine(axis) + " is " + aligned[axis].str() + ", not 1 or " +
                                     full[axis].str());
      sizes[axis] = aligned[axis];
    }
    const Size &have = aligned[3];
    whole = have == keys;
    if (have.isConstant() && keys.isConstant() && !keys.isAtLeast(have))
      return raiser.fail(node, "the mask has " + have.str() + " keys, and there are " + keys.str());
    // Of sizes that only a run tells, it is looked at once for all layers.
    std::string key = "mask " + have.str() + " of " + keys.str();
    if (!keys.isAtLeast(have) &&
        raiser.boundNumbers.insert({{raiser.builder.getInsertionBlock(), key}, keys}).second)
      endUnless(raiser, "mask_fits", "the mask has more keys than there are",
                [&](Program &p) { return p.negate(p.less(p.extent(keys), p.extent(have))); });
  }
  bool byPosition = visible.causal || visible.left >= 0 || visible.right >= 0;
  bool perBatch = (byPosition && visible.offset.own) || (visible.length && visible.length->own);
  if (!given && !byPosition && !visible.length)
    return std::optional<Known>();
  if (byPosition)
    sizes[2] = q[2];
  if (perBatch)
    sizes[0] = q[0];
  bool added = given && given->elementType != Element::Bool;
  if (given && whole && !byPosition && !visible.length)
    return given;

  Type type = added ? raiser.internalType(given->elementType) : raiser.builder.getI1Type();
  int64_t elementType = added ? given->elementType : int64_t(Element::Bool);
  std::optional<Known> mask = raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value keep;
    if (byPosition) {
      Value place = arith::AddIOp::create(b, l, visible.offset.at(b, l, i[0]), i[2]);
      auto bound = [&](int64_t distance, arith::CmpIPredicate predicate) {
        Value edge = arith::AddIOp::create(b, l, place, arith::ConstantIndexOp::create(b, l, distance));
        keep = both(b, l, keep, compare(b, l, predicate, i[3], edge));
      };
      if (visible.causal)
        bound(0, arith::CmpIPredicate::sle);
      if (visible.left >= 0)
        bound(-visible.left, arith::CmpIPredicate::sge);
      if (visible.right >= 0)
        bound(visible.right, arith::CmpIPredicate::sle);
    }
    if (visible.length)
      keep = both(b, l, keep, compare(b, l, arith::CmpIPredicate::slt, i[3], visible.length->at(b, l, i[0])));
    if (!given)
      return keep;
    auto element = [&](OpBuilder &inner) { return raiser.element(inner, *given, i); };
    Value value;
    if (whole) {
      value = element(b);
    } else {
      Value inside = compare(b, l, arith::CmpIPredicate::slt, i[3], extentOf(b, l, given->sizes[3]));
      auto branch = scf::IfOp::create(b, l, TypeRange(type), inside, /*withElseRegion=*/true);
      OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
      scf::YieldOp::create(then, l, element(then));
      Value hidden = added ? infinity(otherwise, l, type)
                           : arith::ConstantOp::create(otherwise, l, otherwise.getBoolAttr(false)).getResult();
      scf::YieldOp::create(otherwise, l, hidden);
      value = branch.getResult(0);
    }
    if (!added)
      return both(b, l, keep, value);
    return keep ? arith::SelectOp::create(b, l, keep, value, infinity(b, l, type)).getResult() : value;
  });
  return mask;
}

/// Whether queries, keys and values belong together; says what does not.
LogicalResult check(Raiser &raiser, onnx::NodeOp node, AttentionForm &form) {
  ArrayRef<Size> q = form.query.sizes, k = form.key.sizes, v = form.value.sizes;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return raiser.fail(node, "queries, keys and values must have rank 4 once their heads are apart");
  std::optional<int64_t> heads = q[1].constant(), shared = k[1].constant();
  if (!heads || !shared || *shared < 1 || *heads % *shared != 0 || v[1] != k[1])
    return raiser.fail(node, q[1].str() + " query heads cannot share " + k[1].str() + " key heads and " + v[1].str() +
                                 " value heads");
  if (k[0] != q[0] || v[0] != q[0] || k[2] != v[2] || k[3] != q[3])
    return raiser.fail(node, "queries, keys and values differ in batch, length or width (check the model's shapes)");
  if (!isa<FloatType>(raiser.internalType(form.query.elementType)))
    return raiser.fail(node, "expects floats");
  return success();
}

/// Σ over `count` of what `step` adds.
Value sumOver(OpBuilder &b, Location l, const Size &count, Value initial,
              function_ref<Value(OpBuilder &, Value index, Value sum)> step) {
  Value zero = arith::ConstantIndexOp::create(b, l, 0), one = arith::ConstantIndexOp::create(b, l, 1);
  return scf::ForOp::create(b, l, zero, extentOf(b, l, count), one, ValueRange(initial),
                            [&](OpBuilder &inner, Location, Value index, ValueRange carried) {
                              scf::YieldOp::create(inner, l, step(inner, index, carried[0]));
                            })
      .getResult(0);
}

} // namespace

std::optional<Known> raise::scores(Raiser &raiser, onnx::NodeOp node, AttentionForm &form, ScoreStage stage) {
  if (failed(check(raiser, node, form)))
    return std::nullopt;
  Location l = node.getLoc();
  int64_t elementType = form.query.elementType, group = *form.query.sizes[1].constant() / *form.key.sizes[1].constant();
  Type type = raiser.internalType(elementType);
  FailureOr<std::optional<Known>> mask = std::optional<Known>();
  if (stage == ScoreStage::masked || stage == ScoreStage::weights)
    mask = maskOf(raiser, node, form);
  if (failed(mask))
    return std::nullopt;
  SmallVector<Size> sizes(form.query.sizes), row(form.query.sizes);
  sizes[3] = form.key.sizes[2];
  row[3] = 1;
  auto constant = [&](OpBuilder &b, double value) -> Value {
    return arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
  };
  Known product = raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value head = arith::DivUIOp::create(b, l, i[1], arith::ConstantIndexOp::create(b, l, group));
    Value dot = sumOver(b, l, form.query.sizes[3], constant(b, 0), [&](OpBuilder &inner, Value d, Value sum) -> Value {
      Value x = raiser.element(inner, form.query, ValueRange{i[0], i[1], i[2], d});
      Value y = raiser.element(inner, form.key, ValueRange{i[0], head, i[3], d});
      return arith::AddFOp::create(inner, l, sum, arith::MulFOp::create(inner, l, x, y));
    });
    Value score = arith::MulFOp::create(b, l, dot, constant(b, form.scale));
    if (stage != ScoreStage::product && form.softcap != 0) {
      Value cap = constant(b, form.softcap);
      score = arith::MulFOp::create(b, l, cap, math::TanhOp::create(b, l, arith::DivFOp::create(b, l, score, cap)));
    }
    if (!*mask)
      return score;
    Value element = raiser.element(b, **mask, i);
    if ((*mask)->elementType == Element::Bool)
      return arith::SelectOp::create(b, l, element, score, infinity(b, l, type));
    return arith::AddFOp::create(b, l, score, element);
  });
  if (stage != ScoreStage::weights)
    return product;
  auto sink = [&](OpBuilder &b, ValueRange i) -> Value {
    return tensor::ExtractOp::create(b, l, form.sink, ValueRange{i[1]});
  };
  Known largest = raiser.generated(elementType, row, [&](OpBuilder &b, ValueRange i) -> Value {
    return sumOver(b, l, sizes[3], infinity(b, l, type), [&](OpBuilder &inner, Value j, Value top) -> Value {
      return arith::MaximumFOp::create(inner, l, top, raiser.element(inner, product, ValueRange{i[0], i[1], i[2], j}));
    });
  });
  // A row without a key has no weights: 0, and not −∞ − −∞.
  auto weight = [&](OpBuilder &b, ValueRange i) -> Value {
    Value top = raiser.element(b, largest, i), score = raiser.element(b, product, i);
    Value none = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, top, infinity(b, l, type));
    Value some = math::ExpOp::create(b, l, arith::SubFOp::create(b, l, score, top));
    return arith::SelectOp::create(b, l, none, constant(b, 0), some);
  };
  Known total = raiser.generated(elementType, row, [&](OpBuilder &b, ValueRange i) -> Value {
    Value sum = sumOver(b, l, sizes[3], constant(b, 0), [&](OpBuilder &inner, Value j, Value part) -> Value {
      return arith::AddFOp::create(inner, l, part, weight(inner, ValueRange{i[0], i[1], i[2], j}));
    });
    if (form.sink) {
      Value extra = arith::SubFOp::create(b, l, sink(b, i), raiser.element(b, largest, i));
      sum = arith::AddFOp::create(b, l, sum, math::ExpOp::create(b, l, extra));
    }
    Value empty = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, sum, constant(b, 0));
    return arith::SelectOp::create(b, l, empty, constant(b, 1), sum);
  });
  return raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    return arith::DivFOp::create(b, l, weight(b, i), raiser.element(b, total, i));
  });
}

std::optional<Known> raise::attend(Raiser &raiser, onnx::NodeOp node, AttentionForm &form) {
  if (failed(check(raiser, node, form)))
    return std::nullopt;
  Location l = node.getLoc();
  OpBuilder &b = raiser.builder;
  SmallVector<Size> sizes(form.query.sizes);
  sizes[3] = form.value.sizes[3];
  bool single = true, wide = false;
  for (Known *part : {&form.query, &form.key, &form.value}) {
    single &= isa<Float32Type>(raiser.internalType(part->elementType)) && part->sizes[3].isConstant();
    wide |= part->sizes[3].isConstant() && *part->sizes[3].constant() > 512; // the operator's kernels end there
  }
  if (single && !wide) {
    FailureOr<std::optional<Known>> mask = maskOf(raiser, node, form);
    if (failed(mask))
      return std::nullopt;
    auto cacheOrTensor = [&](Known &what) { return what.state ? what.state : raiser.tensor(what); };
    Known result;
    result.elementType = form.query.elementType;
    result.sizes = sizes;
    Value query = raiser.tensor(form.query), key = cacheOrTensor(form.key), value = cacheOrTensor(form.value);
    Value hidden = *mask ? raiser.tensor(**mask) : Value();
    result.tensor = AttentionOp::create(b, l, tensorType(b.getF32Type(), sizes), query, key, value, hidden, form.sink,
                                        b.getF32FloatAttr(form.scale), b.getF32FloatAttr(form.softcap),
                                        /*positions_first=*/UnitAttr());
    return result;
  }
  std::optional<Known> weights = scores(raiser, node, form, ScoreStage::weights);
  if (!weights)
    return std::nullopt;
  Type type = raiser.internalType(form.query.elementType);
  int64_t group = *form.query.sizes[1].constant() / *form.key.sizes[1].constant();
  return raiser.generated(form.query.elementType, sizes, [&](OpBuilder &inner, ValueRange i) -> Value {
    Value head = arith::DivUIOp::create(inner, l, i[1], arith::ConstantIndexOp::create(inner, l, group));
    Value zero = arith::ConstantOp::create(inner, l, inner.getZeroAttr(type));
    return sumOver(inner, l, form.key.sizes[2], zero, [&](OpBuilder &deep, Value j, Value sum) -> Value {
      Value w = raiser.element(deep, *weights, ValueRange{i[0], i[1], i[2], j});
      Value x = raiser.element(deep, form.value, ValueRange{i[0], head, j, i[3]});
      return arith::AddFOp::create(deep, l, sum, arith::MulFOp::create(deep, l, w, x));
    });
  });
}
