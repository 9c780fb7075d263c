// SPDX-License-Identifier: Apache-2.0
//
// Windows of a convolution, for a few rows of its product at a time: taps are copied from the tensor with channels last into
// the thread's scratch memory, where they stay in cache while all tiles of the weight pass. Writing all windows to memory took
// as long as multiplying them.

#include "lib/Codegen/CPU/Operators.h"

using namespace mlir;

namespace otf::cpu {

namespace {

/// The taps of one row, axis after axis.
struct Row {
  KernelBuilder &b;
  WindowAttr window;
  ArrayRef<Value> sizes;   // of the input's spatial axes
  ArrayRef<Value> indices; // batch and output position
  function_ref<void(Value pixel, Value inside, Value tap, int64_t count)> copy;

  size_t axes() const { return sizes.size(); }

  Value position(size_t axis, Value tap) {
    Value p = b.mul(indices[1 + axis], b.index(window.getStride()[axis]));
    p = b.add(p, b.mul(tap, b.index(window.getDilation()[axis])));
    return b.sub(p, b.index(window.getBefore()[axis]));
  }
  /// Unsigned, so that what is negative is too large.
  Value fits(size_t axis, Value position) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position, sizes[axis]);
  }
  Value both(Value a, Value c) { return a ? arith::AndIOp::create(b, a, c).getResult() : c; }

  /// `pixel`, `inside` and `tap` are of the axes before `axis`.
  void walk(size_t axis, Value pixel, Value inside, Value tap, bool runs) {
    int64_t kernel = window.getKernel()[axis];
    bool last = axis + 1 == axes();
    auto each = [&] {
      b.loop(b.index(0), b.index(kernel), 1, [&](Value k) {
        Value p = position(axis, k), in = both(inside, fits(axis, p));
        Value at = b.add(b.mul(pixel, sizes[axis]), p);
        Value number = b.add(b.mul(tap, b.index(kernel)), k);
        if (last)
          copy(at, in, number, 1);
        else
          walk(axis + 1, at, in, number, runs);
      });
    };
    if (!last || !runs || kernel == 1 || window.getDilation()[axis] != 1)
      return each();
    // Taps along the last axis are neighbours in memory, and one copy where all of them are inside.
    Value from = position(axis, b.index(0));
    Value all = both(fits(axis, from), fits(axis, b.add(from, b.index(kernel - 1))));
    all = both(inside, all);
    auto branch = scf::IfOp::create(b, all, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&branch.getThenRegion().front());
    copy(b.add(b.mul(pixel, sizes[axis]), from), all, b.mul(tap, b.index(kernel)), kernel);
    b.setInsertionPointToStart(&branch.getElseRegion().front());
    each();
  }
};

} // namespace

bool emitWindows(KernelBuilder &b, LinearOp op, const Memory &x, ArrayRef<otf::Size> result,
                 Value panel, int64_t rowBytes, Value firstRow, Value count) {
  WindowAttr window = op.getWindowAttr();
  bool records = x.element.isInteger(8);
  int64_t taps = window.getTaps(), channels = op.getWeight().getType().getColumns() / taps;
  int64_t pixelBytes = records ? recordBytes(channels, 0) : 4 * channels;
  SmallVector<Value> sizes;
  for (const otf::Size &size : ArrayRef(x.shape).drop_front().drop_back()) {
    sizes.push_back(b.size(size));
    if (!sizes.back())
      return false;
  }
  b.loop(b.index(0), count, 1, [&](Value m) {
    SmallVector<Value> indices = b.split(b.add(firstRow, m), result.drop_back());
    Value row = b.atByte(panel, b.mul(m, b.index(rowBytes)));
    auto copy = [&](Value pixel, Value inside, Value tap, int64_t many) {
      // The address of what lies outside is made, and not used.
      Value from = b.atByte(x.pointer, b.mul(pixel, b.index(pixelBytes)));
      Value flag = arith::ExtUIOp::create(b, b.getI64Type(), inside);
      if (records)
        b.call("otf_tap_i8", {}, {from, flag, b.i64(channels), tap, b.i64(taps), row});
      else
        b.call("otf_tap_f32", {},
               {from, flag, b.i64(channels * many), b.atByte(row, b.mul(tap, b.index(4 * channels)))});
    };
    Row{b, window, sizes, indices, copy}.walk(0, indices.front(), Value(), b.index(0), !records);
  });
  return true;
}

} // namespace otf::cpu
