// SPDX-License-Identifier: Apache-2.0
//
// Operators on heads: rope, append, attention. Their tensors are [B, H, S, D] or, with
// positions_first, [B, S, H, D]; `Heads` hides which.

#include "dialects/OTF/Caches.h"
#include "lib/Codegen/CPU/Operators.h"

#include <array>

using namespace mlir;

namespace otf::cpu {

namespace {

struct Heads {
  KernelBuilder &b;
  const Memory &memory;
  bool positionsFirst;

  otf::Size positions() const { return memory.shape[positionsFirst ? 1 : 2]; }
  otf::Size heads() const { return memory.shape[positionsFirst ? 2 : 1]; }
  otf::Size width() const { return memory.shape[3]; }

  /// Batch entry, head and position of a row, rows counted as they lie in memory.
  std::array<Value, 3> split(Value row) const {
    SmallVector<Value> i = b.split(row, ArrayRef(memory.shape).take_front(3));
    return positionsFirst ? std::array{i[0], i[2], i[1]} : std::array{i[0], i[1], i[2]};
  }

  Value row(Value batch, Value head, Value position) const {
    Value second = positionsFirst ? position : head, third = positionsFirst ? head : position;
    Value zero = b.index(0);
    return b.at(memory, b.offset(memory.shape, {batch, second, third, zero}));
  }

  Value positionStride() const { return b.size(positionsFirst ? heads() * width() : width()); }
  Value headStride() const { return b.size(positionsFirst ? width() : positions() * width()); }
};

/// Keys or values: a cache, or a tensor [B, Hkv, T, D].
struct Keys {
  Memory memory;
  int64_t width = 0, stride = 0; ///< elements of a row; from one row to the next
  Value count, headStride; ///< count of keys; elements from one head to the next
  otf::Size heads;

  static std::optional<Keys> of(KernelBuilder &b, Operation *op, Value operand, Value past,
                                Value positions) {
    Keys keys;
    keys.memory = b.memory[operand];
    if (auto state = dyn_cast<StateType>(operand.getType())) {
      keys.width = state.getWidth();
      keys.stride = rowElements(state);
      keys.heads = state.getHeads();
      keys.count = b.add(past, positions);
      keys.headStride = b.mul(b.symbols.at("capacity"), b.index(keys.stride));
      return keys;
    }
    ArrayRef<otf::Size> shape = keys.memory.shape;
    std::optional<int64_t> width = shape[3].constant();
    if (!width) {
      op->emitError() << "the width of a head must be static, got " << operand.getType();
      return std::nullopt;
    }
    keys.width = keys.stride = *width;
    keys.heads = shape[1];
    keys.count = b.size(shape[2]);
    keys.headStride = b.mul(keys.count, b.index(keys.width));
    return keys;
  }

  Value head(KernelBuilder &b, Value batch, Value number) const {
    Value row = b.add(b.mul(batch, b.size(heads)), number);
    return b.at(memory, b.mul(row, headStride));
  }
};

/// "f32", "f16" or "i8", as the names of kernels end.
StringRef nameOf(Operation *op, Type element) {
  if (element.isF32())
    return "f32";
  if (element.isF16())
    return "f16";
  if (element.isInteger(8))
    return "i8";
  op->emitError() << "a cache holds f32, f16 or i8, got " << element;
  return {};
}

} // namespace

bool emitRope(KernelBuilder &b, RopeOp op, const Memory &result) {
  Heads x{b, b.memory[op.getInput()], op.getPositionsFirst()};
  const Memory &cos = b.memory[op.getCos()], &sin = b.memory[op.getSin()];
  Value width = b.size(x.width()), rotary = b.size(cos.shape[2]);
  if (!width || !rotary)
    return false;
  bool shared = cos.shape[0] == otf::Size(1);
  b.loop(b.begin, b.end, 1, [&](Value i) {
    auto [batch, head, position] = x.split(i);
    Value zero = b.index(0);
    Value table = b.offset(cos.shape, {shared ? zero : batch, position, zero});
    Value at = b.mul(i, width);
    b.call(
        "otf_rope", {},
        {b.at(x.memory, at), width, rotary, b.at(cos, table), b.at(sin, table), b.at(result, at)});
  });
  return true;
}

bool emitAppend(KernelBuilder &b, AppendOp op) {
  Heads x{b, b.memory[op.getUpdate()], op.getPositionsFirst()};
  const Memory &cache = b.memory[op.getPast()];
  StateType state = op.getPast().getType();
  StringRef held = nameOf(op, state.getElementType());
  if (held.empty())
    return false;
  const std::string kernel = ("otf_append_" + held).str();
  Value width = b.index(state.getWidth()), stride = b.index(rowElements(state)), past = b.symbols.at("past");
  Value length = b.add(past, b.size(x.positions()));
  b.loop(b.begin, b.end, 1, [&](Value i) {
    auto [batch, head, position] = x.split(i);
    Value row = b.add(b.mul(batch, b.index(state.getHeads())), head);
    row = b.mul(row, b.symbols.at("capacity"));
    auto write = [&](Value place) {
      b.call(kernel, {},
             {b.at(x.memory, b.mul(i, width)), width, b.i64(1), width,
              b.at(cache, b.mul(b.add(row, place), stride)), stride});
    };
    if (!op.getAt())
      return write(b.add(past, position));
    Value first = arith::IndexCastOp::create(b, b.getIndexType(), b.load(b.memory[op.getAt()], batch));
    Value place = b.add(first, position);
    // As unsigned numbers, negative ones are too large.
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, length);
    auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenYield());
    write(place);
    // What this position's own place would be without `at`: zeros, where no position of the step is written there.
    b.setInsertionPointAfter(branch);
    Value end = b.add(past, position);
    Value bare = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, b.sub(end, first), b.size(x.positions()));
    auto fill = scf::IfOp::create(b, bare, /*withElseRegion=*/false);
    b.setInsertionPoint(fill.thenYield());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(state.getElementType()));
    b.loop(b.index(0), stride, 1, [&](Value c) { b.store(zero, cache, b.add(b.mul(b.add(row, end), stride), c)); });
  });
  return true;
}

/// One row, whose keys threads share: items are the parts of each key-value head (AttentionParts.h).
static void emitParts(KernelBuilder &b, AttentionOp op, const Heads &q, const Heads &out, const Keys &k, const Keys &v,
                      const Memory *mask, Value maskHeadStride, Value parts, int64_t group, int64_t shared, StringRef held) {
  const std::string kernel = ("otf_attention_part_" + held).str();
  Value zero = b.index(0);
  auto spans = [&](int axis) { return mask && mask->shape[axis] != otf::Size(1); };
  scf::WhileOp::create(
      b, TypeRange{Type(b.getIndexType())}, ValueRange{b.begin},
      [&](OpBuilder &nested, Location loc, ValueRange item) {
        Value more = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt, item[0], b.end);
        scf::ConditionOp::create(nested, loc, more, item);
      },
      [&](OpBuilder &nested, Location loc, ValueRange item) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
        Value problem = arith::DivUIOp::create(b, item[0], parts), first = arith::RemUIOp::create(b, item[0], parts);
        Value count = b.smaller(b.sub(parts, first), b.sub(b.end, item[0]));
        Value batch = arith::DivUIOp::create(b, problem, b.index(shared)), keyHead = arith::RemUIOp::create(b, problem, b.index(shared));
        Value head = b.mul(keyHead, b.index(group));
        Value maskAt = b.null();
        if (mask)
          maskAt = b.at(*mask, b.offset(mask->shape, {spans(0) ? batch : zero, spans(1) ? head : zero, zero, zero}));
        bool keep = mask && mask->element.isInteger(1);
        b.call(kernel, {},
               {q.row(batch, head, zero), b.i64(group), q.headStride(), k.head(b, batch, keyHead), b.i64(k.stride),
                v.head(b, batch, keyHead), b.i64(v.stride), k.count, b.i64(k.width), b.i64(v.width), b.f32(op.getScale()),
                b.f32(op.getSoftcap()), keep ? b.null() : maskAt, keep ? maskAt : b.null(), maskHeadStride,
                out.row(batch, head, zero), out.headStride(), op.getSink() ? b.at(b.memory[op.getSink()], head) : b.null(),
                b.scratch, problem, parts, first, b.add(first, count)});
        scf::YieldOp::create(b, b.add(item[0], count));
      });
}

/// Work items are counted [B][H][S] whatever the layout. Consecutive items that share keys go into
/// one call: positions of one head, or, with a single position (decoding), heads of one group.
bool emitAttention(KernelBuilder &b, AttentionOp op, const Memory &result) {
  Heads q{b, b.memory[op.getQuery()], op.getPositionsFirst()};
  Heads out{b, result, op.getPositionsFirst()};
  auto past = b.symbols.find("past");
  Value positions = b.size(q.positions()), heads = b.size(q.heads());
  if (!positions || !heads)
    return false;
  std::optional<int64_t> constantHeads = q.heads().constant();
  auto k =
      Keys::of(b, op, op.getKey(), past == b.symbols.end() ? Value() : past->second, positions);
  auto v =
      Keys::of(b, op, op.getValue(), past == b.symbols.end() ? Value() : past->second, positions);
  StringRef held = k && v ? nameOf(op, k->memory.element) : StringRef();
  if (held.empty())
    return false;
  std::optional<int64_t> shared = k->heads.constant();
  if (k->memory.element != v->memory.element || k->heads != v->heads || !constantHeads || !shared ||
      *shared < 1 || *constantHeads % *shared != 0) {
    op.emitError() << "keys and values must agree in element type and number of heads, and divide "
                      "the query's, got "
                   << op.getQuery().getType() << ", " << op.getKey().getType() << ", "
                   << op.getValue().getType();
    return false;
  }
  if (q.width() != otf::Size(k->width) || result.shape[3] != otf::Size(v->width)) {
    op.emitError() << "the query must be as wide as a key and the result as a value";
    return false;
  }
  int64_t group = *constantHeads / *shared;
  const std::string kernel = ("otf_attention_" + held).str();

  const Memory *mask = op.getMask() ? &b.memory[op.getMask()] : nullptr;
  auto spans = [&](int axis) { return mask && mask->shape[axis] != otf::Size(1); };
  Value zero = b.index(0), one = b.index(1);
  Value maskRowStride = spans(2) ? b.size(mask->shape[3]) : zero;
  Value maskHeadStride = spans(1) ? b.size(mask->shape[2] * mask->shape[3]) : zero;
  if (!maskRowStride || !maskHeadStride || (mask && !b.size(mask->shape[3])))
    return false;
  SmallVector<otf::Size> order{q.memory.shape[0], q.heads(), q.positions()};
  Value decoding = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, positions, one);

  Value begin = b.begin, end = b.end;
  if (isa<StateType>(op.getKey().getType())) {
    // Work items are parts of heads where there is one row (dialects/OTF/Caches.h).
    Value most = b.index(group * kAttentionParts), batches = b.size(q.memory.shape[0]);
    Value parts = b.call("otf_attention_parts", b.getI64Type(),
                         {b.scratch, positions, b.mul(batches, b.index(*shared)), b.i64(group), k->count, b.i64(v->width), most});
    parts = arith::IndexCastOp::create(b, b.getIndexType(), parts);
    Value whole = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, parts, zero);
    auto divided = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(divided.elseBlock()->getTerminator());
      emitParts(b, op, q, out, *k, *v, mask, maskHeadStride, parts, group, *shared, held);
    }
    // What is left for the loop below: nothing, or heads and rows in proportion.
    Value of = b.add(positions, b.index(kAttentionParts - 1));
    auto share = [&](Value item) {
      Value scaled = arith::CeilDivUIOp::create(b, b.mul(item, positions), of);
      return Value(arith::SelectOp::create(b, whole, scaled, zero));
    };
    begin = share(begin);
    end = share(end);
  }

  auto calls = [&](Value item) -> Value {
    SmallVector<Value> i = b.split(item, order);
    Value batch = i[0], head = i[1], position = i[2];
    Value left = b.sub(end, item), groupSize = b.index(group);
    Value inGroup = arith::RemUIOp::create(b, head, groupSize);
    Value sharing = b.smaller(left, b.sub(groupSize, inGroup));
    Value together = b.smaller(left, b.sub(positions, position));
    Value headCount = arith::SelectOp::create(b, decoding, sharing, one);
    Value rowCount = arith::SelectOp::create(b, decoding, one, together);
    Value keyHead = arith::DivUIOp::create(b, head, groupSize);

    Value maskAt = b.null();
    if (mask)
      maskAt = b.at(*mask, b.offset(mask->shape, {spans(0) ? batch : zero, spans(1) ? head : zero,
                                                  spans(2) ? position : zero, zero}));
    bool keep = mask && mask->element.isInteger(1);
    b.call(kernel, {},
           {q.row(batch, head, position),
            rowCount,
            headCount,
            q.positionStride(),
            q.headStride(),
            k->head(b, batch, keyHead),
            b.i64(k->stride),
            v->head(b, batch, keyHead),
            b.i64(v->stride),
            k->count,
            b.i64(k->width),
            b.i64(v->width),
            b.f32(op.getScale()),
            b.f32(op.getSoftcap()),
            /*visible=*/k->count,
            /*window=*/b.i64(0),
            keep ? b.null() : maskAt,
            keep ? maskAt : b.null(),
            maskRowStride,
            maskHeadStride,
            out.row(batch, head, position),
            out.positionStride(),
            out.headStride(),
            op.getSink() ? b.at(b.memory[op.getSink()], head) : b.null()});
    return b.add(item, b.mul(headCount, rowCount));
  };

  scf::WhileOp::create(
      b, TypeRange{Type(b.getIndexType())}, ValueRange{begin},
      [&](OpBuilder &nested, Location loc, ValueRange item) {
        Value more = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt, item[0], end);
        scf::ConditionOp::create(nested, loc, more, item);
      },
      [&](OpBuilder &nested, Location loc, ValueRange item) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
        Value next = calls(item[0]);
        scf::YieldOp::create(b, next);
      });
  return true;
}

} // namespace otf::cpu
