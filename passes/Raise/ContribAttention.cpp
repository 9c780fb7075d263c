// SPDX-License-Identifier: Apache-2.0
//
// Attention of com.microsoft: what ONNX Runtime's exporters and optimizer write. Its semantics are ONNX Runtime's, which
// the operators' schema documents leave open in places; those are noted.

#include "passes/Raise/AttentionForm.h"
#include "passes/Raise/Quantized.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

bool isUsed(onnx::NodeOp node, unsigned output) {
  return output < node.getOutputs().size() && !node.getOutputs()[output].use_empty();
}

/// Heads `first` to `first + count` of [B, S, H, D].
Known sliceHeads(Raiser &raiser, Known &x, int64_t first, int64_t count) {
  SmallVector<Size> sizes(x.sizes);
  sizes[2] = count;
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange i) {
    Location l = *raiser.currentLocation;
    Value head = first == 0 ? i[2] : arith::AddIOp::create(b, l, i[2], arith::ConstantIndexOp::create(b, l, first)).getResult();
    return raiser.element(b, x, ValueRange{i[0], i[1], head, i[3]});
  });
}

/// `count` columns of [B, S, N] from `first` on as [B, S, H, D], with a part of `bias` added where there is one.
Known sliceColumns(Raiser &raiser, Known &x, int64_t first, int64_t count, int64_t heads, Known *bias, int64_t biasFirst) {
  SmallVector<Size> sizes(x.sizes);
  sizes.back() = count;
  if (first == 0 && x.sizes.back() == Size(count) && !bias)
    return raiser.reshaped(x, {sizes[0], sizes[1], heads, count / heads});
  Known part = raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange i) {
    Location l = *raiser.currentLocation;
    auto at = [&](int64_t start) -> Value {
      return start == 0 ? i[2] : arith::AddIOp::create(b, l, i[2], arith::ConstantIndexOp::create(b, l, start)).getResult();
    };
    Value value = raiser.element(b, x, ValueRange{i[0], i[1], at(first)});
    if (bias)
      value = arith::AddFOp::create(b, l, value, raiser.element(b, *bias, ValueRange{at(biasFirst)}));
    return value;
  });
  return raiser.reshaped(part, {sizes[0], sizes[1], heads, count / heads});
}

double scaleOf(onnx::NodeOp node, int64_t width) {
  float given = node.floatOr("scale", 0);
  return given == 0 ? 1 / std::sqrt(double(width)) : double(given);
}

//===------------------------------------------------------------------------------------------===//
// GroupQueryAttention
//===------------------------------------------------------------------------------------------===//

LogicalResult refuseGroupQuery(Raiser &raiser, onnx::NodeOp node) {
  for (const char *name : {"k_quant_type", "v_quant_type"})
    if (node.stringOr(name, "NONE") != "NONE")
      return raiser.fail(node, "a quantized cache is not supported (export it in floats; OTF chooses the cache's type itself)");
  if (raiser.hasInput(node, 12) || raiser.hasInput(node, 13))
    return raiser.fail(node, "a quantized cache is not supported (export it in floats; OTF chooses the cache's type itself)");
  if (node.intOr("sliding_window_cache", 0) != 0)
    return raiser.fail(node, "a cache that is cut to the window is not supported (export with windowed_kv_cache=false)");
  if (node.intOr("qk_output", 0) != 0 || isUsed(node, 3))
    return raiser.fail(node, "its output of scores is not supported");
  if (raiser.hasInput(node, 3) != raiser.hasInput(node, 4) || raiser.hasInput(node, 1) != raiser.hasInput(node, 2))
    return raiser.fail(node, "keys and values, and their pasts, belong together");
  return success();
}

LogicalResult raiseGroupQueryAttention(Raiser &raiser, onnx::NodeOp node) {
  if (failed(refuseGroupQuery(raiser, node)))
    return failure();
  Location l = node.getLoc();
  int64_t heads = node.intOr("num_heads", 0), shared = node.intOr("kv_num_heads", 0);
  Known &query = raiser.input(node, 0);
  bool packed = !raiser.hasInput(node, 1);
  std::optional<int64_t> columns = query.rank() == 3 ? query.sizes[2].constant() : std::nullopt;
  int64_t all = packed ? heads + 2 * shared : heads;
  if (heads < 1 || shared < 1 || !columns || *columns % all != 0)
    return raiser.fail(node, "expects a query of rank 3 whose last dimension is known and its heads divide");
  int64_t width = *columns / all;
  const Size batch = query.sizes[0], steps = query.sizes[1];

  // [B, S, H, D] of each.
  Known parts[3];
  if (packed) {
    Known apart = raiser.reshaped(query, {batch, steps, all, width});
    parts[0] = sliceHeads(raiser, apart, 0, heads);
    parts[1] = sliceHeads(raiser, apart, heads, shared);
    parts[2] = sliceHeads(raiser, apart, heads + shared, shared);
  } else {
    parts[0] = raiser.reshaped(query, {batch, steps, heads, width});
    for (unsigned i : {1u, 2u}) {
      Known &input = raiser.input(node, i);
      if (input.rank() != 3 || input.sizes[0] != batch || input.sizes[1] != steps || input.sizes[2] != Size(shared * width))
        return raiser.fail(node, "keys and values must be [batch, positions, heads · head size] like the query");
      parts[i] = raiser.reshaped(input, {batch, steps, shared, width});
    }
  }
  for (unsigned i : {0u, 1u}) {
    if (!raiser.hasInput(node, 14 + i))
      continue;
    std::optional<Known> normed = normOfRows(raiser, node, NormKind::rms, parts[i], raiser.input(node, 14 + i), nullptr,
                                             node.floatOr("qk_norm_epsilon", 1e-6f));
    if (!normed)
      return failure();
    parts[i] = std::move(*normed);
  }

  // A row's first position: its length, which counts the step, less the step. A first prompt begins at 0 even where rows
  // are padded behind; its padding is written over by the steps after it.
  PerBatch offset, length;
  bool hasPast = raiser.hasInput(node, 3);
  Known &lengths = raiser.input(node, 5);
  if (lengths.rank() < 1 || lengths.rank() > 2 || lengths.sizes[0] != batch)
    return raiser.fail(node, "seqlens_k must have one element for each batch entry");
  length.own = [&raiser, &lengths, l](OpBuilder &b, Value entry) -> Value {
    SmallVector<Value> at(lengths.rank(), arith::ConstantIndexOp::create(b, l, 0));
    at[0] = entry;
    Value before = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, lengths, at));
    return arith::AddIOp::create(b, l, before, arith::ConstantIndexOp::create(b, l, 1));
  };
  Size past = 0;
  if (hasPast) {
    Known &before = raiser.input(node, 3);
    if (before.rank() != 4)
      return raiser.fail(node, "the past must have rank 4");
    past = before.sizes[2];
    if (!raiser.isCacheOf(node.getInputs()[3], node) && past.isConstant() && past != Size(0))
      return raiser.fail(node, "a past of fixed length, which the present shares, is not supported (export with a past whose "
                               "length is dynamic)");
    offset.own = [&length, past, steps, l](OpBuilder &b, Value entry) -> Value {
      Value zero = arith::ConstantIndexOp::create(b, l, 0);
      Value first = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, extentOf(b, l, past), zero);
      Value own = arith::SubIOp::create(b, l, length.own(b, entry), extentOf(b, l, steps));
      return arith::SelectOp::create(b, l, first, zero, own);
    };
  }

  if (node.intOr("do_rotary", 0) != 0) {
    if (!raiser.hasInput(node, 7) || !raiser.hasInput(node, 8))
      return raiser.fail(node, "do_rotary needs cos_cache and sin_cache");
    Known &cos = raiser.input(node, 7), &sin = raiser.input(node, 8);
    std::optional<int64_t> half = cos.rank() == 2 ? cos.sizes[1].constant() : std::nullopt;
    if (!half || cos.sizes != sin.sizes || *half < 1 || 2 * *half > width)
      return raiser.fail(node, "cos_cache and sin_cache must be alike, of rank 2 and at most half a head wide");
    Known *ids = raiser.hasInput(node, 9) ? &raiser.input(node, 9) : nullptr;
    if (ids && (ids->rank() != 2 || ids->sizes[0] != batch || ids->sizes[1] != steps))
      return raiser.fail(node, "position_ids must be [batch, positions]");
    auto place = [&](OpBuilder &b, Value entry, Value position) -> Value {
      if (ids) {
        Value id = raiser.element(b, *ids, ValueRange{entry, position});
        return arith::IndexCastOp::create(b, l, b.getIndexType(), id);
      }
      return arith::AddIOp::create(b, l, offset.at(b, l, entry), position);
    };
    bool interleaved = node.intOr("rotary_interleaved", 0) != 0;
    if (!ids || !raiser.limitIndices(node.getInputs()[9], cos.sizes[0]))
      limitPositions(raiser, node.getInputs()[ids ? 9 : 5], cos.sizes[0], batch, steps, place);
    const Size rows = ids || offset.own ? batch : Size(1);
    Known c = rotaryTable(raiser, cos, rows, steps, 2 * *half, interleaved, place);
    Known s = rotaryTable(raiser, sin, rows, steps, 2 * *half, interleaved, place);
    for (unsigned i : {0u, 1u})
      parts[i] = rotate(raiser, parts[i], c, s, interleaved, /*positionsFirst=*/true);
  }
  AttentionForm form;
  Known *to[3] = {&form.query, &form.key, &form.value};
  for (unsigned i : {0u, 1u, 2u})
    *to[i] = swapHeads(raiser, parts[i]);
  Known places;
  if (hasPast)
    places = raiser.generated(Element::Int64, {batch}, [&](OpBuilder &b, ValueRange i) -> Value {
      return arith::IndexCastOp::create(b, l, b.getI64Type(), offset.at(b, l, i[0]));
    });
  if (failed(appendPast(raiser, node, form, /*past=*/3, places.tensor)))
    return failure();
  form.scale = scaleOf(node, width);
  form.softcap = node.floatOr("softcap", 0);
  form.visible.offset = offset;
  form.visible.causal = node.intOr("causal", 1) != 0;
  if (!form.visible.causal)
    form.visible.length = length;
  // The window counts the query's own position.
  if (int64_t window = node.intOr("local_window_size", -1); window > 0)
    form.visible.left = window - 1;
  if (raiser.hasInput(node, 10))
    form.visible.mask = &raiser.input(node, 10);
  if (raiser.hasInput(node, 11)) {
    Known &sink = raiser.input(node, 11);
    if (sink.rank() != 1 || sink.sizes[0] != Size(heads))
      return raiser.fail(node, "head_sink must have one element for each head");
    form.sink = raiser.tensor(sink);
  } else if (node.intOr("smooth_softmax", 0) == 1) {
    Known none;
    none.elementType = Element::Float;
    none.sizes = {Size(heads)};
    none.reals = SmallVector<double>(heads, 0.0);
    form.sink = raiser.tensor(none);
  }
  return setAttended(raiser, node, form, /*flat=*/true);
}

//===------------------------------------------------------------------------------------------===//
// MultiHeadAttention and Attention
//===------------------------------------------------------------------------------------------===//

/// Masks of both: integers where 0 hides a key, by adding `mask_filter_value` (so a row without any key is not 0), or a
/// vector of lengths; and a bias that is added.
LogicalResult addMasks(Raiser &raiser, onnx::NodeOp node, Known *padding, Known *bias, AttentionForm &form, Known &sum) {
  Location l = node.getLoc();
  const Size batch = form.query.sizes[0], steps = form.query.sizes[2], keys = form.key.sizes[2];
  if (padding && padding->rank() == 1) {
    if (padding->sizes[0] != batch)
      return raiser.fail(node, "a mask of rank 1 must have one length for each batch entry");
    form.visible.length = PerBatch{0, [&raiser, padding, l](OpBuilder &b, Value entry) -> Value {
                                     return arith::IndexCastOp::create(b, l, b.getIndexType(),
                                                                       raiser.element(b, *padding, ValueRange{entry}));
                                   }};
    padding = nullptr;
  }
  if (!padding) {
    form.visible.mask = bias;
    return success();
  }
  ArrayRef<Size> have = padding->sizes;
  bool rows = have.size() == 3;
  if ((have.size() != 2 && !rows) || have[0] != batch || have.back() != keys || (rows && have[1] != steps))
    return raiser.fail(node, "a mask must be [batch], [batch, keys] or [batch, positions, keys]");
  SmallVector<Size> sizes = {batch, Size(1), rows ? steps : Size(1), keys};
  if (bias) {
    std::optional<SmallVector<Size>> merged = raiser.broadcast(sizes, bias->sizes);
    if (!merged || merged->size() != 4)
      return raiser.fail(node, "mask and attention bias do not broadcast");
    sizes = *merged;
  }
  Type type = raiser.internalType(form.query.elementType);
  float filter = node.floatOr("mask_filter_value", -10000.0f);
  sum = raiser.generated(form.query.elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value keep = rows ? raiser.element(b, *padding, ValueRange{i[0], i[2], i[3]})
                      : raiser.element(b, *padding, ValueRange{i[0], i[3]});
    Value zero = arith::ConstantOp::create(b, l, b.getZeroAttr(keep.getType()));
    Value hidden = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, keep, zero);
    Value none = arith::ConstantOp::create(b, l, b.getZeroAttr(type));
    Value added = arith::ConstantOp::create(b, l, b.getFloatAttr(type, filter));
    Value value = arith::SelectOp::create(b, l, hidden, added, none);
    return bias ? arith::AddFOp::create(b, l, value, raiser.element(b, *bias, i)).getResult() : value;
  });
  form.visible.mask = &sum;
  return success();
}

/// The end of both: scale, causality and the masks at inputs `padding` and `bias`.
LogicalResult attendMasked(Raiser &raiser, onnx::NodeOp node, AttentionForm &form, unsigned padding,
                           unsigned bias) {
  std::optional<int64_t> width = form.query.sizes[3].constant();
  if (!width || *width < 1)
    return raiser.fail(node, "the head size must be known");
  form.scale = scaleOf(node, *width);
  form.visible.causal = node.intOr("unidirectional", 0) != 0;
  auto optional = [&](unsigned input) {
    return raiser.hasInput(node, input) ? &raiser.input(node, input) : nullptr;
  };
  Known sum; // which the form refers to
  if (failed(addMasks(raiser, node, optional(padding), optional(bias), form, sum)))
    return failure();
  return setAttended(raiser, node, form, /*flat=*/true);
}

/// One of the heads packed side by side in [B, S, H, P, D], as [B, S, H, D].
Known unpacked(Raiser &raiser, Known &x, int64_t which) {
  SmallVector<Size> sizes = {x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[4]};
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange i) {
    Value at = arith::ConstantIndexOp::create(b, *raiser.currentLocation, which);
    return raiser.element(b, x, ValueRange{i[0], i[1], i[2], at, i[3]});
  });
}

LogicalResult raiseMultiHeadAttention(Raiser &raiser, onnx::NodeOp node) {
  int64_t heads = node.intOr("num_heads", 0);
  Known &query = raiser.input(node, 0);
  for (unsigned i : {8u, 9u})
    if (raiser.hasInput(node, i))
      return raiser.fail(node, "a shared past buffer or a cache indirection is not supported");
  if (isUsed(node, 3))
    return raiser.fail(node, "its output of scores is not supported");
  if (heads < 1 || raiser.hasInput(node, 6) != raiser.hasInput(node, 7))
    return raiser.fail(node, "num_heads must be positive, and past keys and values belong together");
  Known *bias = raiser.hasInput(node, 3) ? &raiser.input(node, 3) : nullptr;
  AttentionForm form;
  Known *to[3] = {&form.query, &form.key, &form.value};
  int64_t biasFirst = 0;
  for (int64_t i = 0; i != 3; ++i) {
    if (i > 0 && !raiser.hasInput(node, i) && query.rank() != 5 && !(i == 2 && raiser.input(node, 1).rank() == 5))
      return raiser.fail(node, "keys or values are missing");
    Known &input = raiser.hasInput(node, i) ? raiser.input(node, i) : i == 2 && query.rank() != 5 ? raiser.input(node, 1) : query;
    if (input.rank() == 5 && !bias) {
      int64_t which = query.rank() == 5 ? i : i - 1;
      if (input.sizes[2] != Size(heads) || input.sizes[3] != Size(query.rank() == 5 ? 3 : 2))
        return raiser.fail(node, "packed heads must be [batch, positions, heads, parts, head size]");
      Known part = unpacked(raiser, input, which);
      *to[i] = swapHeads(raiser, part);
      continue;
    }
    if (input.rank() == 4 && i > 0) { // the keys or values of a cross attention, ready
      *to[i] = input;
      continue;
    }
    std::optional<int64_t> columns = input.rank() == 3 ? input.sizes[2].constant() : std::nullopt;
    if (!columns || *columns % heads != 0)
      return raiser.fail(node, "expects inputs of rank 3 whose last dimension its heads divide");
    if (bias && (bias->rank() != 1 || !bias->sizes[0].isAtLeast(Size(biasFirst + *columns))))
      return raiser.fail(node, "the bias is shorter than queries, keys and values are wide");
    Known part = sliceColumns(raiser, input, 0, *columns, heads, bias, biasFirst);
    *to[i] = swapHeads(raiser, part);
    biasFirst += *columns;
  }
  if (raiser.hasInput(node, 6) && raiser.input(node, 6).rank() == 4)
    form.visible.offset.same = raiser.input(node, 6).sizes[2];
  if (failed(appendPast(raiser, node, form, /*past=*/6)))
    return failure();
  return attendMasked(raiser, node, form, /*padding=*/4, /*bias=*/5);
}

LogicalResult raiseContribAttention(Raiser &raiser, onnx::NodeOp node) {
  Location l = node.getLoc();
  Known &input = raiser.input(node, 0), &weights = raiser.input(node, 1);
  int64_t heads = node.intOr("num_heads", 0);
  if (raiser.hasInput(node, 6) || node.intOr("past_present_share_buffer", 0) != 0)
    return raiser.fail(node, "a shared past buffer is not supported");
  if (node.intOr("do_rotary", 0) != 0)
    return raiser.fail(node, "do_rotary is not supported");
  if (input.rank() != 3 || !raiser.isMatrix(weights) || weights.sizes[0] != input.sizes[2] || heads < 1)
    return raiser.fail(node, "expects an input of rank 3, constant weights of [inputs, outputs], and num_heads");
  int64_t columns = *weights.sizes[1].constant(), widths[3] = {columns / 3, columns / 3, columns / 3};
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("qkv_hidden_sizes")); given && given.size() == 3)
    llvm::copy(given.asArrayRef(), widths);
  if (widths[0] + widths[1] + widths[2] != columns || llvm::any_of(widths, [&](int64_t w) { return w < 1 || w % heads; }))
    return raiser.fail(node, "its " + Twine(columns) + " columns are not queries, keys and values of " + Twine(heads) + " heads");
  Value bias;
  if (raiser.hasInput(node, 2)) {
    if (raiser.input(node, 2).rank() != 1 || raiser.input(node, 2).sizes[0] != weights.sizes[1])
      return raiser.fail(node, "the bias must have " + Twine(columns) + " elements");
    bias = raiser.tensor(raiser.input(node, 2));
  }
  Known product = raiseLinear(raiser, node, input, weights, /*transposed=*/true, bias);
  AttentionForm form;
  Known *to[3] = {&form.query, &form.key, &form.value};
  for (int64_t i = 0, first = 0; i != 3; first += widths[i++]) {
    Known part = sliceColumns(raiser, product, first, widths[i], heads, nullptr, 0);
    *to[i] = swapHeads(raiser, part);
  }
  // Past keys and values are one tensor, [2, B, H, P, D].
  if (raiser.hasInput(node, 4)) {
    Known &past = raiser.input(node, 4);
    if (past.rank() != 5 || widths[1] != widths[2])
      return raiser.fail(node, "the past must be [2, batch, heads, positions, head size]");
    form.visible.offset.same = past.sizes[3];
    for (int64_t i : {1, 2}) {
      Known before = raiser.generated(past.elementType, ArrayRef<Size>(past.sizes).drop_front(), [&](OpBuilder &b, ValueRange at) {
        Value which = arith::ConstantIndexOp::create(b, l, i - 1);
        return raiser.element(b, past, ValueRange{which, at[0], at[1], at[2], at[3]});
      });
      std::optional<Known> present = concatStep(raiser, node, before, *to[i], {});
      if (!present)
        return failure();
      *to[i] = std::move(*present);
    }
  }
  if (node.getOutputs().size() > 1) {
    SmallVector<Size> sizes = {Size(2)};
    llvm::append_range(sizes, form.key.sizes);
    if (isUsed(node, 1))
      raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
        Value first = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, i[0], arith::ConstantIndexOp::create(b, l, 0));
        ValueRange rest = i.drop_front();
        return arith::SelectOp::create(b, l, first, raiser.element(b, form.key, rest), raiser.element(b, form.value, rest));
      }), 1);
  }
  return attendMasked(raiser, node, form, /*padding=*/3, /*bias=*/5);
}

} // namespace

void raise::registerContribAttention(Registry &registry) {
  registry.add("com.microsoft::GroupQueryAttention", raiseGroupQueryAttention, 1, 16, 1);
  registry.add("com.microsoft::MultiHeadAttention", raiseMultiHeadAttention, 1, 10, 1);
  registry.add("com.microsoft::Attention", raiseContribAttention, 2, 7, 1);
}
