// SPDX-License-Identifier: Apache-2.0
//
// LinearAttention: a state of keys times values that each position decays, corrects and reads. A column of the state knows
// no other, so a work item has a column of a head of a batch entry, and walks the positions.

#include "passes/Raise/AttentionForm.h"
#include "passes/Raise/Program.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

static LogicalResult raiseLinearAttention(Raiser &raiser, onnx::NodeOp node) {
  Known &query = raiser.input(node, 0), &key = raiser.input(node, 1), &value = raiser.input(node, 2);
  auto optional = [&](unsigned i) { return raiser.hasInput(node, i) ? &raiser.input(node, i) : nullptr; };
  Known *past = optional(3), *decay = optional(4), *beta = optional(5);
  StringRef rule = node.stringOr("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return raiser.fail(node, "update_rule '" + rule + "' is not supported");
  if (gated != bool(decay) || delta != bool(beta))
    return raiser.fail(node, "decay belongs to the gated rules and beta to those with a delta, and they need it");
  int64_t queryHeads = node.intOr("q_num_heads", 0), heads = node.intOr("kv_num_heads", 0);
  if (heads < 1 || queryHeads < 1 || queryHeads % heads != 0)
    return raiser.fail(node, Twine(queryHeads) + " query heads cannot share " + Twine(heads) + " heads");
  for (Known *x : {&query, &key, &value, decay, beta})
    if (x && (x->rank() != 3 || x->sizes[0] != query.sizes[0] || x->sizes[1] != query.sizes[1] ||
              !x->sizes[2].isConstant() || !isa<Float32Type>(raiser.internalType(x->elementType))))
      return raiser.fail(node, "expects floats of [batch, positions, heads · size] with sizes that are known");
  int64_t keyColumns = *key.sizes[2].constant(), valueColumns = *value.sizes[2].constant();
  int64_t depth = keyColumns / heads, width = valueColumns / heads, group = queryHeads / heads;
  if (keyColumns % heads != 0 || valueColumns % heads != 0 || depth < 1 || query.sizes[2] != Size(queryHeads * depth))
    return raiser.fail(node, "the heads do not divide queries, keys and values into equal sizes");
  bool eachKey = decay && decay->sizes[2] == Size(heads * depth);
  if ((decay && !eachKey && decay->sizes[2] != Size(heads)) || (beta && beta->sizes[2] != Size(heads) && beta->sizes[2] != Size(1)))
    return raiser.fail(node, "decay must have one element a head or a key, and beta one a head or one");
  SmallVector<Size> stateSizes = {query.sizes[0], heads, depth, width};
  if (past && (ArrayRef<Size>(past->sizes) != ArrayRef<Size>(stateSizes) || !isa<Float32Type>(raiser.internalType(past->elementType))))
    return raiser.fail(node, "the past must be floats of [batch, heads, key size, value size]");
  float given = node.floatOr("scale", 0);
  double scale = given == 0 ? 1 / std::sqrt(double(depth)) : double(given);

  const Size batch = query.sizes[0], positions = query.sizes[1];
  int64_t stateType = past ? past->elementType : query.elementType;
  std::vector<Known> results = raiser.computed(
      {{query.elementType, {batch, positions, Size(queryHeads * width)}}, {stateType, stateSizes}}, batch * Size(heads * width),
      [&](OpBuilder &b, Value item, ValueRange out) {
        Program p(b, node.getLoc());
        Type type = b.getF32Type();
        SmallVector<Value> i = p.split(item, {batch, Size(heads), Size(width)});
        Value entry = i[0], head = i[1], column = i[2], count = p.index(depth), zero = p.number(type, 0);
        auto part = [&](Known &x, Value t, Value h, int64_t size, Value at) {
          return raiser.element(b, x, ValueRange{entry, t, p.add(p.mul(h, p.index(size)), at)});
        };
        auto state = [&](Value d) { return SmallVector<Value>{entry, head, d, column}; };
        p.loop(count, [&](Value d) { p.store(past ? raiser.element(b, *past, state(d)) : zero, out[1], state(d)); });
        p.loop(p.extent(positions), [&](Value t) {
          if (gated)
            p.loop(count, [&](Value d) {
              Value rate = eachKey ? part(*decay, t, head, depth, d) : raiser.element(b, *decay, ValueRange{entry, t, head});
              p.store(p.mul(p.load(out[1], state(d)), math::ExpOp::create(b, node.getLoc(), rate)), out[1], state(d));
            });
          Value x = part(value, t, head, width, column);
          if (delta) {
            Value found = p.fold(count, zero, [&](Value d, Value sum) {
              return p.add(sum, p.mul(p.load(out[1], state(d)), part(key, t, head, depth, d)));
            });
            x = p.mul(raiser.element(b, *beta, ValueRange{entry, t, head}), p.sub(x, found));
          }
          p.loop(count, [&](Value d) {
            p.store(p.add(p.load(out[1], state(d)), p.mul(part(key, t, head, depth, d), x)), out[1], state(d));
          });
          p.loop(p.index(group), [&](Value member) {
            Value reader = p.add(p.mul(head, p.index(group)), member);
            Value sum = p.fold(count, zero, [&](Value d, Value carried) {
              return p.add(carried, p.mul(part(query, t, reader, depth, d), p.load(out[1], state(d))));
            });
            p.store(p.mul(sum, p.number(type, scale)), out[0],
                    ValueRange{entry, t, p.add(p.mul(reader, p.index(width)), column)});
          });
        });
      });
  raiser.set(node, std::move(results[0]));
  if (node.getOutputs().size() > 1)
    raiser.set(node, std::move(results[1]), 1);
  return success();
}

void raise::registerLinearAttention(Registry &registry) {
  registry.add("LinearAttention", raiseLinearAttention, 3, 6, 27);
}
