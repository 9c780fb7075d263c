// SPDX-License-Identifier: Apache-2.0
//
// Attention and its neighbours of the default domain: Attention 23 to 25, RotaryEmbedding, RMSNormalization, TensorScatter,
// Swish and SwiGLU.

#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

bool isUsed(onnx::NodeOp node, unsigned output) {
  return output < node.getOutputs().size() && !node.getOutputs()[output].use_empty();
}

/// An integer of a vector of one element each batch entry.
PerBatch integersOf(Raiser &raiser, Known &vector, Size minus) {
  return {0, [&raiser, &vector, minus](OpBuilder &b, Value batch) -> Value {
            Location l = *raiser.currentLocation;
            Value value = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, vector, ValueRange{batch}));
            return minus == Size(0) ? value : arith::SubIOp::create(b, l, value, extentOf(b, l, minus)).getResult();
          }};
}

LogicalResult raiseAttention(Raiser &raiser, onnx::NodeOp node) {
  AttentionForm form;
  Known *parts[3] = {&form.query, &form.key, &form.value};
  bool flat = raiser.input(node, 0).rank() == 3;
  int64_t queryHeads = node.intOr("q_num_heads", 0), sharedHeads = node.intOr("kv_num_heads", 0);
  for (unsigned i = 0; i != 3; ++i) {
    // Heads that the exporter repeated are shared ones.
    Known &input = raiser.known(flat ? node.getInputs()[i] : i == 0 ? raiser.source(node.getInputs()[0])
                                                                    : unrepeated(raiser, node.getInputs()[i]));
    if (!flat) {
      *parts[i] = input;
      continue;
    }
    std::optional<Known> split = splitHeads(raiser, input, i == 0 ? queryHeads : sharedHeads);
    if (!split)
      return raiser.fail(node, "inputs of rank 3 need q_num_heads and kv_num_heads that divide their last dimension");
    *parts[i] = std::move(*split);
  }
  if (form.query.rank() != 4)
    return raiser.fail(node, "queries must have rank 3 or 4, got " + Twine(form.query.rank()));

  bool hasPast = raiser.hasInput(node, 4), hasLengths = raiser.hasInput(node, 6);
  if (hasPast != raiser.hasInput(node, 5))
    return raiser.fail(node, "past_key and past_value belong together");
  if (hasPast && hasLengths)
    return raiser.fail(node, "nonpad_kv_seqlen and a past exclude each other");
  Visibility &visible = form.visible;
  if (hasPast && raiser.input(node, 4).rank() == 4)
    visible.offset.same = raiser.input(node, 4).sizes[2];
  if (failed(appendPast(raiser, node, form, /*past=*/4)))
    return failure();
  if (hasLengths) {
    Known &lengths = raiser.input(node, 6);
    if (lengths.rank() != 1 || lengths.sizes[0] != form.query.sizes[0])
      return raiser.fail(node, "nonpad_kv_seqlen must have one element for each batch entry");
    visible.offset = integersOf(raiser, lengths, form.query.sizes[2]);
    visible.length = integersOf(raiser, lengths, 0);
  }
  if (raiser.hasInput(node, 3))
    visible.mask = &raiser.known(raiser.source(node.getInputs()[3]));
  visible.causal = node.intOr("is_causal", 0) != 0;
  visible.left = node.intOr("left_window_size", -1);
  visible.right = node.intOr("right_window_size", -1);
  if (visible.left < -1 || visible.right < -1)
    return raiser.fail(node, "a window size must be −1 or not negative");
  form.softcap = node.floatOr("softcap", 0);
  std::optional<int64_t> width = form.query.sizes[3].constant();
  if (!node.attribute("scale") && (!width || *width < 1))
    return raiser.fail(node, "the default scale needs a head size that is known and not 0");
  form.scale = node.attribute("scale") ? double(node.floatOr("scale", 1)) : 1 / std::sqrt(double(*width));

  if (failed(setAttended(raiser, node, form, flat)))
    return failure();
  int64_t mode = node.intOr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return raiser.fail(node, "qk_matmul_output_mode must be 0 to 3, got " + Twine(mode));
  if (node.getOutputs().size() > 3) {
    Known shape = form.query;
    if (isUsed(node, 3)) {
      std::optional<Known> seen = scores(raiser, node, form, ScoreStage(mode));
      if (!seen)
        return failure();
      shape = std::move(*seen);
    }
    raiser.set(node, std::move(shape), 3);
  }
  return success();
}

/// com.microsoft has the positions as its second input: [batch, positions], or [1], the first position of all.
LogicalResult raiseRotaryEmbedding(Raiser &raiser, onnx::NodeOp node, bool microsoft) {
  Value cosValue = node.getInputs()[microsoft ? 2 : 1], sinValue = node.getInputs()[microsoft ? 3 : 2];
  unsigned idsAt = microsoft ? 1 : 3;
  Known *ids = raiser.hasInput(node, idsAt) ? &raiser.input(node, idsAt) : nullptr;
  Value idsValue = ids ? node.getInputs()[idsAt] : Value();
  // Rows that a Gather took from tables are taken here: as an otf.embedding the tables could be quantized.
  if (onnx::NodeOp c = raiser.node(cosValue, "Gather"), s = raiser.node(sinValue, "Gather");
      !ids && c && s && c.intOr("axis", 0) == 0 && s.intOr("axis", 0) == 0 && c.getInputs()[1] == s.getInputs()[1] &&
      raiser.input(c, 0).rank() == 2 && raiser.input(s, 0).rank() == 2 && raiser.input(c, 1).rank() == 2) {
    ids = &raiser.input(c, 1);
    idsValue = c.getInputs()[1];
    cosValue = raiser.source(c.getInputs()[0]);
    sinValue = raiser.source(s.getInputs()[0]);
  }
  Known &input = raiser.input(node, 0), &cos = raiser.known(cosValue), &sin = raiser.known(sinValue);
  bool flat = input.rank() == 3, interleaved = node.intOr("interleaved", 0) != 0;
  Known x = input;
  if (flat) {
    int64_t heads = node.intOr("num_heads", 0);
    std::optional<int64_t> columns = input.sizes[2].constant(), half = cos.rank() == 2 ? cos.sizes[1].constant() : std::nullopt;
    if (microsoft && heads == 0 && columns && half && *half > 0)
      heads = *columns / (2 * *half);
    std::optional<Size> width = heads > 0 ? input.sizes[2].divide(heads) : std::nullopt;
    if (!width)
      return raiser.fail(node, "an input of rank 3 needs num_heads that divide its last dimension");
    x = raiser.reshaped(input, {input.sizes[0], input.sizes[1], heads, *width});
  }
  if (x.rank() != 4 || !x.sizes[3].isConstant())
    return raiser.fail(node, "expects an input of rank 3 or 4 with a head size that is known");
  int64_t rotated = node.intOr("rotary_embedding_dim", 0), width = *x.sizes[3].constant();
  rotated = rotated == 0 ? width : rotated;
  const Size batch = x.sizes[0], positions = x.sizes[flat ? 1 : 2];
  bool first = microsoft && ids && ids->rank() == 1;
  if (microsoft && node.intOr("is_packed_batching", 0) != 0)
    return raiser.fail(node, "packed batching is not supported");
  if (rotated % 2 != 0 || rotated < 2 || rotated > width)
    return raiser.fail(node, "it rotates an even part of a head, got " + Twine(rotated) + " of " + Twine(width));
  size_t rank = ids ? 2 : 3;
  if (cos.rank() != rank || cos.sizes != sin.sizes || cos.sizes.back() != Size(rotated / 2))
    return raiser.fail(node, "cos and sin must be alike, of rank " + Twine(rank) + " and " + Twine(rotated / 2) + " wide");
  Size rows = batch;
  if (first) {
    if (ids->sizes[0] != Size(1))
      return raiser.fail(node, "position_ids must be [batch, positions] or [1]");
    rows = 1;
  } else if (ids) {
    if (ids->rank() != 2 || ids->sizes[1] != positions || (ids->sizes[0] != batch && ids->sizes[0] != Size(1)))
      return raiser.fail(node, "position_ids must be [batch, positions]");
    rows = ids->sizes[0];
  } else {
    if (cos.sizes[1] != positions || (cos.sizes[0] != batch && cos.sizes[0] != Size(1)))
      return raiser.fail(node, "cos and sin must be [batch, positions, half a rotation]");
    rows = cos.sizes[0];
  }
  auto place = [&](OpBuilder &b, Value entry, Value position) -> Value {
    Value id = first ? raiser.element(b, *ids, ValueRange{entry}) : raiser.element(b, *ids, ValueRange{entry, position});
    Value index = arith::IndexCastOp::create(b, node.getLoc(), b.getIndexType(), id);
    return first ? arith::AddIOp::create(b, node.getLoc(), index, position).getResult() : index;
  };
  if (ids && (!raiser.limitIndices(idsValue, cos.sizes[0]) || first))
    limitPositions(raiser, idsValue, cos.sizes[0], rows, positions, place);
  Known c = rotaryTable(raiser, cos, rows, positions, rotated, interleaved, place);
  Known s = rotaryTable(raiser, sin, rows, positions, rotated, interleaved, place);
  Known result = rotate(raiser, x, c, s, interleaved, /*positionsFirst=*/flat);
  raiser.set(node, flat ? raiser.reshaped(result, input.sizes) : result);
  return success();
}

LogicalResult raiseRmsNormalization(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1);
  int64_t rank = x.rank(), axis = node.intOr("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(rank));
  if (isUsed(node, 1))
    return raiser.fail(node, "its deviation output is not supported");
  Known rows = x, gain = scale;
  ArrayRef<Size> normed = ArrayRef<Size>(x.sizes).drop_front(axis);
  if (normed.size() > 1) { // several axes are one of all their elements
    if (ArrayRef<Size>(scale.sizes) != normed)
      return raiser.fail(node, "scale must have the sizes of the axes that are normalised");
    SmallVector<Size> flat(x.sizes.begin(), x.sizes.begin() + axis);
    flat.push_back(elementCount(normed));
    rows = raiser.reshaped(x, flat);
    gain = raiser.reshaped(gain, {flat.back()});
  }
  std::optional<Known> result =
      normOfRows(raiser, node, NormKind::rms, rows, gain, nullptr, node.floatOr("epsilon", 1e-5f));
  if (!result)
    return failure();
  raiser.set(node, normed.size() > 1 ? raiser.reshaped(*result, x.sizes) : std::move(*result));
  return success();
}

/// A cache of fixed size with an update written at an index of each batch entry.
LogicalResult raiseTensorScatter(Raiser &raiser, onnx::NodeOp node) {
  Known &past = raiser.input(node, 0), &update = raiser.input(node, 1);
  Known *indices = raiser.hasInput(node, 2) ? &raiser.input(node, 2) : nullptr;
  int64_t rank = past.rank(), axis = node.intOr("axis", -2);
  axis = axis < 0 ? axis + rank : axis;
  StringRef mode = node.stringOr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return raiser.fail(node, "mode '" + mode + "' is not supported");
  if (axis < 1 || axis >= rank || update.rank() != past.rank() || update.elementType != past.elementType)
    return raiser.fail(node, "expects an update like the cache and an axis behind the batch");
  for (int64_t i = 0; i != rank; ++i)
    if (i != axis && past.sizes[i] != update.sizes[i])
      return raiser.fail(node, "cache and update differ in dimension " + Twine(i));
  if (indices && (indices->rank() != 1 || indices->sizes[0] != past.sizes[0]))
    return raiser.fail(node, "write_indices must have one element for each batch entry");
  raiser.set(node, raiser.generated(past.elementType, past.sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Location l = node.getLoc();
    Value zero = arith::ConstantIndexOp::create(b, l, 0), local = i[axis];
    if (indices) {
      Value first = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, *indices, ValueRange{i[0]}));
      local = arith::SubIOp::create(b, l, local, first);
      if (mode == "circular") {
        Value all = extentOf(b, l, past.sizes[axis]);
        local = arith::RemSIOp::create(b, l, local, all);
        Value negative = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, local, zero);
        local = arith::SelectOp::create(b, l, negative, arith::AddIOp::create(b, l, local, all), local);
      }
    }
    // As unsigned numbers, negative ones are too large.
    Value count = extentOf(b, l, update.sizes[axis]);
    Value fresh = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, local, count);
    auto branch = scf::IfOp::create(b, l, TypeRange(raiser.internalType(past.elementType)), fresh, /*withElseRegion=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    SmallVector<Value> at(i);
    at[axis] = local;
    scf::YieldOp::create(then, l, raiser.element(then, update, at));
    scf::YieldOp::create(otherwise, l, raiser.element(otherwise, past, i));
    return branch.getResult(0);
  }));
  return success();
}

/// x · sigmoid(alpha · x), times `up` if present.
Known swish(Raiser &raiser, onnx::NodeOp node, Known &x, Known *up, double alpha) {
  Type type = raiser.internalType(x.elementType);
  return raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Location l = node.getLoc();
    Value value = raiser.element(b, x, i), one = arith::ConstantOp::create(b, l, b.getFloatAttr(type, 1));
    Value scaled = arith::MulFOp::create(b, l, value, arith::ConstantOp::create(b, l, b.getFloatAttr(type, -alpha)));
    Value sum = arith::AddFOp::create(b, l, one, math::ExpOp::create(b, l, scaled));
    Value result = arith::DivFOp::create(b, l, value, sum);
    return up ? arith::MulFOp::create(b, l, result, raiser.element(b, *up, i)).getResult() : result;
  });
}

LogicalResult raiseSwish(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  if (!isa<FloatType>(raiser.internalType(x.elementType)))
    return raiser.fail(node, "expects floats");
  raiser.set(node, swish(raiser, node, x, nullptr, node.floatOr("alpha", 1)));
  return success();
}

LogicalResult raiseSwiGlu(Raiser &raiser, onnx::NodeOp node) {
  Known &gate = raiser.known(raiser.source(node.getInputs()[0])), &up = raiser.known(raiser.source(node.getInputs()[1]));
  Type type = raiser.internalType(gate.elementType);
  if (!isa<FloatType>(type) || type != raiser.internalType(up.elementType) || gate.sizes != up.sizes)
    return raiser.fail(node, "expects floats of equal sizes");
  float alpha = node.floatOr("alpha", 1);
  if (!type.isF32() || alpha != 1) {
    raiser.set(node, swish(raiser, node, gate, &up, alpha));
    return success();
  }
  Value gateTensor = raiser.tensor(gate), upTensor = raiser.tensor(up);
  Known result = up;
  result.tensor = GatedActivationOp::create(raiser.builder, node.getLoc(), upTensor.getType(),
                                            ActivationAttr::get(raiser.builder.getContext(), Activation::silu), gateTensor,
                                            upTensor);
  raiser.set(node, std::move(result));
  return success();
}

} // namespace

void raise::registerStandardAttention(Registry &registry) {
  registerLinearAttention(registry);
  registry.add("Attention", raiseAttention, 3, 7, 23);
  auto rotary = [](bool microsoft) {
    return [microsoft](Raiser &raiser, onnx::NodeOp node) { return raiseRotaryEmbedding(raiser, node, microsoft); };
  };
  registry.add("RotaryEmbedding", rotary(false), 3, 4, 23);
  registry.add("com.microsoft::RotaryEmbedding", rotary(true), 4, 4, 1);
  registry.add("RMSNormalization", raiseRmsNormalization, 2, 2, 23);
  // The genai builder and ONNX Runtime's optimizer write it into the default domain.
  registry.add("SimplifiedLayerNormalization", raiseRmsNormalization, 2, 2, 1);
  registry.add("TensorScatter", raiseTensorScatter, 2, 3, 24);
  registry.add("Swish", raiseSwish, 1, 1, 24);
  registry.add("SwiGLU", raiseSwiGlu, 2, 2, 28);
  registry.add("ai.onnx.preview::FlexAttention", [](Raiser &raiser, onnx::NodeOp node) {
    return raiser.fail(node, "it is a preview operator whose form may change (export with Attention)");
  }, 0, kAnyNumber, 1);
}
