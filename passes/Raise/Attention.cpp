// SPDX-License-Identifier: Apache-2.0
//
// Rotary embeddings and attention, recognised by what they compute: scores of queries and keys,
// scaled wherever the exporter put the factor, masked, soft-maxed, applied to values; heads
// repeated by Expand.

#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Expressions.h"

#include <limits>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

/// [B, Hkv, T, D] repeated for the heads that share it: Unsqueeze, Expand, Reshape to [B, H, T, D];
/// or as it is.
Value raise::unrepeated(Raiser &raiser, Value value) {
  value = raiser.source(value);
  onnx::NodeOp reshape = raiser.node(value, "Reshape");
  onnx::NodeOp expand = reshape ? raiser.node(reshape.getInputs()[0], "Expand") : onnx::NodeOp();
  onnx::NodeOp unsqueeze =
      expand ? raiser.node(expand.getInputs()[0], "Unsqueeze") : onnx::NodeOp();
  if (!unsqueeze)
    return value;
  Value inner = raiser.source(unsqueeze.getInputs()[0]);
  ArrayRef<Size> whole = raiser.known(value).sizes,
                 wide = raiser.known(expand.getOutputs()[0]).sizes,
                 shared = raiser.known(inner).sizes;
  bool repeats = shared.size() == 4 && wide.size() == 5 && whole.size() == 4 &&
                 wide[0] == shared[0] && wide[1] == shared[1] && wide[3] == shared[2] &&
                 wide[4] == shared[3] && whole[0] == shared[0] && whole[1] == wide[1] * wide[2] &&
                 whole[2] == shared[2] && whole[3] == shared[3];
  return repeats ? inner : value;
}

namespace {

/// Takes constant factors off a value: x · c, c · x, x / c.
Value unscaled(Raiser &raiser, Value value, double &factor) {
  while (true) {
    value = raiser.source(value);
    onnx::NodeOp mul = raiser.node(value, "Mul"), div = raiser.node(value, "Div");
    if (mul) {
      std::optional<double> left = raiser.scalar(mul.getInputs()[0]),
                            right = raiser.scalar(mul.getInputs()[1]);
      if (!left && !right)
        return value;
      factor *= right ? *right : *left;
      value = mul.getInputs()[right ? 0 : 1];
    } else if (div) {
      std::optional<double> right = raiser.scalar(div.getInputs()[1]);
      if (!right)
        return value;
      factor /= *right;
      value = div.getInputs()[0];
    } else {
      return value;
    }
  }
}

struct Scores {
  Value query, key;            // ONNX values
  bool positionsFirst = false; // the key is [B, T, H, D]
  double scale = 1, softcap = 0;
};

/// `value` as the key of `scores` with its dimensions in a product's order: [B, H, D, T], made of
/// [B, H, T, D] or, where an optimiser joined two transposes, of [B, T, H, D]. Null if it is none.
Value transposedKey(Raiser &raiser, Value value, Scores &scores) {
  onnx::NodeOp transpose = raiser.node(value, "Transpose");
  if (!transpose)
    return {};
  auto permutation = dyn_cast_or_null<DenseI64ArrayAttr>(transpose.attribute("perm"));
  if (!permutation)
    return {};
  scores.positionsFirst = permutation.asArrayRef() == ArrayRef<int64_t>({0, 2, 3, 1});
  if (!scores.positionsFirst && permutation.asArrayRef() != ArrayRef<int64_t>({0, 1, 3, 2}))
    return {};
  return transpose.getInputs()[0];
}

/// (q · a) (k · b)ᵀ · c, or cap · tanh of such a product.
std::optional<Scores> matchScores(Raiser &raiser, Value value) {
  Scores scores;
  Value source = unscaled(raiser, value, scores.scale);
  if (onnx::NodeOp tanh = raiser.node(source, "Tanh"); tanh && scores.scale > 0) {
    scores.softcap = scores.scale; // and what is inside is the score divided by it
    source = unscaled(raiser, tanh.getInputs()[0], scores.scale);
  }
  onnx::NodeOp product = raiser.node(source, "MatMul");
  if (!product)
    return std::nullopt;
  scores.query = unscaled(raiser, product.getInputs()[0], scores.scale);
  Value key = transposedKey(raiser, unscaled(raiser, product.getInputs()[1], scores.scale), scores);
  if (!key)
    return std::nullopt;
  key = unscaled(raiser, key, scores.scale);
  scores.key = scores.positionsFirst ? key : unrepeated(raiser, key);
  return scores;
}

/// The mask as attention takes it: what keeps, where the addend is Where(keep, 0, very negative);
/// else the addend itself.
Value maskOperand(Raiser &raiser, Value mask) {
  if (onnx::NodeOp where = raiser.node(mask, "Where")) {
    std::optional<double> kept = raiser.scalar(where.getInputs()[1]),
                          dropped = raiser.scalar(where.getInputs()[2]);
    if (kept == 0.0 && dropped && *dropped <= std::numeric_limits<float>::lowest())
      return where.getInputs()[0];
  }
  return mask;
}

/// A key or value as attention reads it: the cache, or a tensor.
Value cacheOrTensor(Raiser &raiser, Value value) {
  Known &what = raiser.known(value);
  return what.state ? what.state : raiser.tensor(what);
}

/// x[..., first .. last) by a Slice of the last dimension, with x and bounds.
struct LastSlice {
  Value source;
  Size first, size;
};
std::optional<LastSlice> matchLastSlice(Raiser &raiser, Value value) {
  onnx::NodeOp slice = raiser.node(value, "Slice");
  if (!slice || slice.getInputs().size() < 4)
    return std::nullopt;
  auto starts = raiser.constants(slice.getInputs()[1]),
       axes = raiser.constants(slice.getInputs()[3]);
  Value source = raiser.source(slice.getInputs()[0]);
  int64_t rank = raiser.known(source).rank();
  if (!starts || !axes || starts->size() != 1 || axes->size() != 1 ||
      (axes->front() != rank - 1 && axes->front() != -1))
    return std::nullopt;
  return LastSlice{source, Size(starts->front()), raiser.known(value).sizes.back()};
}

} // namespace

bool raise::recognizeAttention(Raiser &raiser, onnx::NodeOp matmul) {
  Value weights = raiser.source(matmul.getInputs()[0]);
  // A guard for rows without a key: Where(IsNaN(p), 0, p). Our attention gives 0 there.
  if (onnx::NodeOp where = raiser.node(weights, "Where")) {
    onnx::NodeOp isNan = raiser.node(where.getInputs()[0], "IsNaN");
    Value kept = raiser.source(where.getInputs()[2]);
    if (!isNan || raiser.source(isNan.getInputs()[0]) != kept ||
        raiser.scalar(where.getInputs()[1]) != 0.0)
      return false;
    weights = kept;
  }
  onnx::NodeOp softmax = raiser.node(weights, "Softmax");
  if (!softmax || raiser.known(weights).rank() != 4)
    return false;
  int64_t axis = softmax.intOr("axis", softmax.getVersion() < 13 ? 1 : -1);
  if (axis != -1 && axis != 3)
    return false;
  Value logits = raiser.source(softmax.getInputs()[0]), mask;
  std::optional<Scores> scores = matchScores(raiser, logits);
  if (onnx::NodeOp add = raiser.node(logits, "Add"); !scores && add) {
    for (unsigned side : {0u, 1u}) {
      if (scores = matchScores(raiser, add.getInputs()[side]); scores) {
        mask = maskOperand(raiser, raiser.source(add.getInputs()[1 - side]));
        break;
      }
    }
  }
  if (!scores)
    return false;
  Value value = unrepeated(raiser, matmul.getInputs()[1]);
  Known &q = raiser.known(scores->query);
  SmallVector<Size> k(raiser.known(scores->key).sizes);
  ArrayRef<Size> v = raiser.known(value).sizes;
  if (scores->positionsFirst && k.size() == 4)
    std::swap(k[1], k[2]);
  if (q.rank() != 4 || k.size() != 4 || v.size() != 4 || !q.sizes[1].isConstant() ||
      !k[1].isConstant() || k[1] != v[1] || *k[1].constant() < 1 ||
      *q.sizes[1].constant() % *k[1].constant() != 0 || k[0] != q.sizes[0] || v[0] != q.sizes[0] ||
      k[2] != v[2] || k[3] != q.sizes[3])
    return false;
  Value maskTensor;
  if (mask) {
    Known what = raiser.known(mask);
    if (what.rank() > 4 || what.rank() < 2)
      return false;
    SmallVector<Size> sizes(what.sizes);
    while (sizes.size() < 4)
      sizes.insert(sizes.begin(), Size(1));
    // A mask that broadcasts along keys, or over more than the scores, is not attention's. Where its sizes have other
    // names, the sum of scores and mask has taken them to be equal, and a run looks.
    ArrayRef<Size> sum = raiser.known(logits).sizes;
    bool fits = sum.size() == 4, renamed = false;
    for (size_t i = 0; fits && i != 4; ++i) {
      const Size &whole = i == 3 ? k[2] : q.sizes[i];
      if (sizes[i] == whole || (i != 3 && sizes[i] == Size(1)))
        continue;
      fits = !sizes[i].isConstant() && sum[i] == whole;
      renamed = true;
      sizes[i] = whole;
    }
    if (!fits)
      return false;
    Known wide = renamed ? raiser.generated(what.elementType, sizes,
                                            [&](OpBuilder &b, ValueRange i) { return raiser.element(b, what, i.take_back(what.rank())); })
                         : raiser.reshaped(what, sizes);
    maskTensor = raiser.tensor(wide);
  }
  Known result;
  result.elementType = q.elementType;
  result.sizes = q.sizes;
  result.sizes[3] = v[3];
  OpBuilder &b = raiser.builder;
  Value query = raiser.tensor(q);
  Value key, valueOperand = cacheOrTensor(raiser, value);
  if (scores->positionsFirst) {
    Known headsFirst = swapHeads(raiser, raiser.known(scores->key));
    key = raiser.tensor(headsFirst);
  } else {
    key = cacheOrTensor(raiser, scores->key);
  }
  result.tensor = AttentionOp::create(
      b, matmul.getLoc(), tensorType(b.getF32Type(), result.sizes), query, key, valueOperand,
      maskTensor, /*sink=*/Value(), b.getF32FloatAttr(scores->scale),
      b.getF32FloatAttr(scores->softcap), /*positions_first=*/UnitAttr());
  raiser.set(matmul, std::move(result));
  return true;
}

bool raise::recognizeEmptyRows(Raiser &raiser, onnx::NodeOp where) {
  Known &empty = raiser.input(where, 0), &rows = raiser.input(where, 2);
  auto attention = rows.tensor ? rows.tensor.getDefiningOp<AttentionOp>() : AttentionOp();
  if (!attention || !attention.getMask() || !attention->use_empty() ||
      attention->getBlock() != raiser.builder.getInsertionBlock() ||
      raiser.scalar(where.getInputs()[1]) != 0.0 || !where.getInputs()[2].hasOneUse() ||
      raiser.input(where, 1).rank() > 4 || empty.rank() != 4 || rows.rank() != 4 ||
      empty.sizes[3] != Size(1))
    return false;
  Known mask;
  auto type = cast<RankedTensorType>(attention.getMask().getType());
  bool added = type.getElementType().isF32();
  mask.elementType = added ? Element::Float : Element::Bool;
  mask.sizes = sizesOf(type);
  mask.tensor = attention.getMask();
  SmallVector<Size> sizes(mask.sizes);
  for (size_t axis = 0; axis != 3; ++axis) {
    if (empty.sizes[axis] != Size(1) && empty.sizes[axis] != rows.sizes[axis])
      return false;
    if (sizes[axis] == Size(1))
      sizes[axis] = empty.sizes[axis];
  }
  Location l = where.getLoc();
  Known hidden =
      raiser.generated(mask.elementType, sizes, [&](OpBuilder &inner, ValueRange i) -> Value {
        Type element = type.getElementType();
        double none = added ? -std::numeric_limits<double>::infinity() : 0;
        Value nothing = Expressions{inner, l}.constant(element, none);
        return arith::SelectOp::create(inner, l, raiser.element(inner, empty, i), nothing,
                                       raiser.element(inner, mask, i));
      });
  // Nothing else reads the rows, so they may come out right in the first place.
  attention.getMaskMutable().assign(hidden.tensor);
  attention->moveAfter(hidden.tensor.getDefiningOp());
  raiser.set(where, Known(rows));
  return true;
}

/// x · cos + concat(−x[h..], x[..h]) · sin
bool raise::recognizeRope(Raiser &raiser, onnx::NodeOp add) {
  for (unsigned side : {0u, 1u}) {
    onnx::NodeOp straight = raiser.node(add.getInputs()[side], "Mul"),
                 turned = raiser.node(add.getInputs()[1 - side], "Mul");
    if (!straight || !turned)
      return false;
    for (unsigned concatSide : {0u, 1u}) {
      onnx::NodeOp concat = raiser.node(turned.getInputs()[concatSide], "Concat");
      if (!concat || concat.getInputs().size() != 2)
        continue;
      onnx::NodeOp neg = raiser.node(concat.getInputs()[0], "Neg");
      auto upper = neg ? matchLastSlice(raiser, neg.getInputs()[0]) : std::nullopt;
      auto lower = matchLastSlice(raiser, concat.getInputs()[1]);
      if (!upper || !lower || upper->source != lower->source)
        continue;
      Known &x = raiser.known(upper->source);
      int64_t rank = x.rank(), axis = concat.intOr("axis", 0);
      std::optional<int64_t> width = rank == 4 ? x.sizes[3].constant() : std::nullopt;
      if (!width || *width % 2 != 0 || (axis != -1 && axis != 3) ||
          upper->first != Size(*width / 2) || lower->first != Size(0) ||
          upper->size != Size(*width / 2) || lower->size != Size(*width / 2))
        continue;
      for (unsigned xSide : {0u, 1u}) {
        if (raiser.source(straight.getInputs()[xSide]) != upper->source)
          continue;
        Known cos = raiser.known(raiser.source(straight.getInputs()[1 - xSide]));
        Known sin = raiser.known(raiser.source(turned.getInputs()[1 - concatSide]));
        // One table for all heads: [batch or 1, 1, positions, width].
        if (cos.sizes != sin.sizes || cos.rank() != 4 || cos.sizes[1] != Size(1) ||
            cos.sizes[2] != x.sizes[2] || cos.sizes[3] != x.sizes[3] ||
            (cos.sizes[0] != x.sizes[0] && cos.sizes[0] != Size(1)))
          continue;
        SmallVector<Size> table = {cos.sizes[0], cos.sizes[2], cos.sizes[3]};
        Known c = raiser.reshaped(cos, table), s = raiser.reshaped(sin, table);
        Value input = raiser.tensor(x), cosTensor = raiser.tensor(c), sinTensor = raiser.tensor(s);
        Known result = x;
        result.tensor = RopeOp::create(raiser.builder, add.getLoc(), input.getType(), input,
                                       cosTensor, sinTensor,
                                       /*positions_first=*/false);
        raiser.set(add, std::move(result));
        return true;
      }
    }
  }
  return false;
}
