// SPDX-License-Identifier: Apache-2.0
//
// Contractions and what reads or feeds them: linear, embedding, prologue. All sizes that depend on
// an encoding come from lib/Encoding/Layout.h and reach the micro-kernels as constants.

#include "dialects/OTF/Codes.h"
#include "include/otf/KernelABI.h"
#include "lib/Codegen/CPU/MatrixShape.h"
#include "lib/Codegen/CPU/Operators.h"
#include "lib/Codegen/CPU/ScalarProgram.h"
#include "lib/Codegen/CPU/kernels/Kernels.h"
#include "lib/Encoding/Rotation.h"

using namespace mlir;

namespace otf::cpu {

/// Tiles whose weights stay in the second-level cache while all rows of x pass, and rows of x that
/// stay in the first-level cache while these tiles pass.
static constexpr int64_t kTiles = 8, kRows = 16;
/// Plain tiles go to their kernel in blocks of six or eight rows; of coded ones a chunk is unpacked for all rows of a call.
static constexpr int64_t kPlainRows = 24, kCodedRows = 64;
/// Of records that stay in the second-level cache while all tiles pass. A chunk reads a line of each row, which no
/// prefetcher foresees; tiles come in a stream.
static constexpr int64_t kCachedBytes = 256 << 10;
static constexpr int64_t kTileRows = 8;
/// Rows of windows that are copied at once, less where more would not leave the second-level cache room for weights.
static constexpr int64_t kPanelBytes = OTF_KERNEL_SCRATCH / 2, kFewestRows = 6;

static std::optional<MatrixShape> shapeOf(Operation *op, MatrixType type) {
  EncodingAttr encoding = type.getEncoding();
  MatrixShape shape = matrixShape(unsigned(encoding.getKind()), encoding.getGroup(), type.getRows(),
                                  type.getColumns(), type.getOutliers());
  if (!shape.error)
    return shape;
  op->emitError() << type << ": " << shape.error;
  return std::nullopt;
}

/// What tile and row kernels take after their pointers: k, or kb, group, outliers and the table.
static void appendParameters(KernelBuilder &b, const MatrixShape &shape,
                             SmallVectorImpl<Value> &arguments, bool exactSums = false) {
  if (shape.plain) {
    arguments.push_back(b.i64(shape.columns));
    return;
  }
  for (int64_t parameter : {shape.background, exactSums ? OTF_EXACT_SUMS : shape.group, shape.outliers})
    arguments.push_back(b.i64(parameter));
  if (shape.table)
    arguments.push_back(
        arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(shape.tableBytes))));
}

/// The loop over the up to eight rows of a tile is one vector; unrolled, it would be left to the
/// superword vectoriser, which gives up on selects and calls.
static void vectoriseTile(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto no = BoolAttr::get(context, false), yes = BoolAttr::get(context, true);
  auto i32 = [&](int32_t value) { return IntegerAttr::get(IntegerType::get(context, 32), value); };
  auto vectorise = LLVM::LoopVectorizeAttr::get(context, no, {}, {}, i32(kTileRows), {}, {}, {});
  auto interleave = LLVM::LoopInterleaveAttr::get(context, i32(1));
  auto unroll = LLVM::LoopUnrollAttr::get(context, yes, {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(context, {}, vectorise, interleave, unroll, {}, {},
                                              {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

bool emitLinear(KernelBuilder &b, LinearOp op, const Memory &result, IRMapping &mapping) {
  std::optional<MatrixShape> shape = shapeOf(op, op.getWeight().getType());
  if (!shape)
    return false;
  const Memory &x = b.memory[op.getInput()], &weight = b.memory[op.getWeight()];
  bool records = x.element.isInteger(8);
  bool floats = !records && !shape->plain; // f32 activations by a coded weight
  if ((records && shape->plain) || (floats && (shape->table || shape->signs || shape->outliers != 0))) {
    op.emitError() << "a weight of type " << op.getWeight().getType() << " cannot read "
                   << op.getInput().getType()
                   << "; plain encodings read f32, others records of otf.prologue or, without "
                      "table, signs and outliers, f32";
    return false;
  }

  ArrayRef<otf::Size> lead = ArrayRef(result.shape).drop_back();
  Value rows = b.size(elementCount(lead)), rowWidth = b.size(x.shape.back());
  if (!rows || !rowWidth)
    return false;
  bool windows = bool(op.getWindow());
  int64_t panelRow = records ? recordBytes(shape->columns, 0) : 4 * shape->columns;
  if (windows && panelRow > OTF_KERNEL_SCRATCH / kFewestRows) {
    op.emitError() << "a window of " << shape->columns << " columns is larger than the scratch memory of a kernel on a CPU";
    return false;
  }
  Value stride = windows ? b.index(panelRow) : b.mul(rowWidth, b.index(records ? 1 : 4));
  StringRef name = shape->name;
  bool together = !floats; // the kernel takes neighbouring tiles
  bool exactSums = records && op->hasAttr(kExactSumsAttribute);
  int64_t mostRows = shape->plain ? kPlainRows : together ? kCodedRows : kRows;
  if (windows)
    mostRows = std::clamp(kPanelBytes / panelRow / kFewestRows * kFewestRows, kFewestRows, mostRows);
  Memory acc{b.stack(b.getF32Type(), mostRows * kTileRows * (together ? kTiles : 1)),
             b.getF32Type(),
             {},
             false};
  std::string kernel = (together ? "otf_tiles_" : "otf_float_") + name.str();
  bool fine = true;

  auto element = [&](Value accOffset, Value row, ArrayRef<Value> leadIndices, Value n) {
    Value value = b.load(acc, accOffset);
    if (op.getBias())
      value = arith::AddFOp::create(b, value, b.load(b.memory[op.getBias()], n));
    Value offset = b.add(b.mul(row, b.index(shape->rows)), n);
    if (!op.getEpilogue().empty()) {
      Block &block = op.getEpilogue().front();
      Position position{SmallVector<Value>(leadIndices), offset, result.shape};
      position.indices.push_back(n);
      mapping.map(block.getArgument(0), value);
      for (size_t i = 0; i < position.indices.size(); ++i)
        mapping.map(block.getArgument(i + 1), position.indices[i]);
      auto yielded = emitProgram(b, block, mapping, position);
      if (!yielded) {
        fine = false;
        return;
      }
      value = yielded->front();
      b.setLoc(op.getLoc());
    }
    b.store(value, result, offset);
  };

  auto tileAt = [&](Value t) {
    return b.atByte(weight.pointer,
                    b.add(b.index(shape->indexBytes), b.mul(t, b.index(shape->tileBytes))));
  };
  // What follows the sums of tile t, which begin at `accOffset`.
  auto finish = [&](Value t, Value firstRow, Value count, Value accOffset) {
    Value n0 = b.mul(t, b.index(kTileRows)), width = b.index(kTileRows);
    if (shape->rows % kTileRows != 0)
      width = b.smaller(width, b.sub(b.index(shape->rows), n0));
    b.loop(b.index(0), count, 1, [&](Value m) {
      Value row = b.add(firstRow, m);
      SmallVector<Value> indices = b.split(row, lead);
      Value from = b.add(accOffset, b.mul(m, b.index(kTileRows)));
      vectoriseTile(b.loop(b.index(0), width, 1,
                           [&](Value r) { element(b.add(from, r), row, indices, b.add(n0, r)); }));
    });
  };
  auto rowsFrom = [&](Value firstRow) {
    return windows ? b.scratch : b.at(x, b.mul(firstRow, rowWidth));
  };
  auto tile = [&](Value t, Value firstRow, Value count) {
    SmallVector<Value> arguments{tileAt(t), rowsFrom(firstRow), stride, count};
    appendParameters(b, *shape, arguments, exactSums);
    arguments.push_back(acc.pointer);
    b.call(kernel, {}, arguments);
    finish(t, firstRow, count, b.index(0));
  };
  auto tiles = [&](Value firstTile, Value lastTile, Value firstRow, Value count) {
    SmallVector<Value> arguments{tileAt(firstTile),
                                 b.index(shape->tileBytes),
                                 b.sub(lastTile, firstTile),
                                 rowsFrom(firstRow),
                                 stride,
                                 count};
    appendParameters(b, *shape, arguments, exactSums);
    arguments.push_back(acc.pointer);
    b.call(kernel, {}, arguments);
    b.loop(firstTile, lastTile, 1, [&](Value t) {
      Value before = b.mul(b.sub(t, firstTile), count);
      finish(t, firstRow, count, b.mul(before, b.index(kTileRows)));
    });
  };

  auto block = [&](Value firstTile, Value lastTile, Value firstRow, Value count) {
    if (together)
      tiles(firstTile, lastTile, firstRow, count);
    else
      b.loop(firstTile, lastTile, 1, [&](Value t) { tile(t, firstRow, count); });
  };
  auto tilesFrom = [&](Value begin, Value end, llvm::function_ref<void(Value, Value)> body) {
    b.loop(begin, end, kTiles, [&](Value first) {
      body(first, b.smaller(b.add(first, b.index(kTiles)), end));
    });
  };
  auto rowsUntil = [&](Value begin, Value end, llvm::function_ref<void(Value, Value)> body) {
    b.loop(begin, end, mostRows, [&](Value first) {
      body(first, b.smaller(b.sub(end, first), b.index(mostRows)));
    });
  };
  auto tilesTimesRows = [&](Value begin, Value end) { // rows from begin to end
    tilesFrom(b.begin, b.end, [&](Value firstTile, Value lastTile) {
      rowsUntil(begin, end,
                [&](Value firstRow, Value count) { block(firstTile, lastTile, firstRow, count); });
    });
  };
  std::optional<int64_t> record = x.shape.back().constant();
  if (op.isDividedByRows()) {
    rowsUntil(b.begin, b.end, [&](Value firstRow, Value count) {
      if (windows)
        fine = emitWindows(b, op, x, result.shape, b.scratch, panelRow, firstRow, count) && fine;
      tilesFrom(b.index(0), b.index((shape->rows + kTileRows - 1) / kTileRows),
                [&](Value firstTile, Value lastTile) { block(firstTile, lastTile, firstRow, count); });
    });
  } else if (!records || record.value_or(0) < 1) {
    tilesTimesRows(b.index(0), rows);
  } else {
    int64_t cached = std::max(kCachedBytes / *record / kCodedRows, int64_t(1)) * kCodedRows;
    b.loop(b.index(0), rows, cached, [&](Value begin) {
      tilesTimesRows(begin, b.smaller(b.add(begin, b.index(cached)), rows));
    });
  }
  return fine;
}

bool emitEmbedding(KernelBuilder &b, EmbeddingOp op, const Memory &result) {
  std::optional<MatrixShape> shape = shapeOf(op, op.getTable().getType());
  if (!shape)
    return false;
  const Memory &ids = b.memory[op.getIds()], &table = b.memory[op.getTable()];
  std::string kernel = std::string("otf_row_") + shape->name;
  b.loop(b.begin, b.end, 1, [&](Value i) {
    Value id = arith::IndexCastOp::create(b, b.getIndexType(), b.load(ids, i));
    Value zero = b.index(0), rows = b.index(shape->rows);
    Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, id, zero);
    id = arith::SelectOp::create(b, negative, b.add(id, rows), id);
    // The runtime refuses ids past the table; a kernel cannot fail, so it stays inside.
    id = arith::MaxSIOp::create(b, b.smaller(id, b.index(shape->rows - 1)), zero);
    SmallVector<Value> arguments{table.pointer, id};
    appendParameters(b, *shape, arguments);
    arguments.push_back(b.at(result, b.mul(i, b.index(shape->columns))));
    b.call(kernel, {}, arguments);
  });
  return true;
}

/// block, factor, seed and matrix, as kernels take them.
static SmallVector<Value> rotationArguments(KernelBuilder &b, RotationAttr rotation) {
  std::vector<float> factor = rotationFactor32({rotation.getBlock(), rotation.getFactor(), rotation.getSeed()});
  auto type = RankedTensorType::get({int64_t(factor.size())}, b.getF32Type());
  return {b.i64(rotation.getBlock()), b.i64(rotation.getFactor()), b.i64(int64_t(rotation.getSeed())),
          b.constant(DenseElementsAttr::get(type, ArrayRef<float>(factor))).pointer};
}

bool emitRotate(KernelBuilder &b, RotateOp op, const Memory &result) {
  const Memory &x = b.memory[op.getInput()];
  Value width = b.size(x.shape.back());
  if (!width)
    return false;
  SmallVector<Value> rotating = rotationArguments(b, op.getRotation());
  b.loop(b.begin, b.end, 1, [&](Value i) {
    Value at = b.mul(i, width);
    SmallVector<Value> arguments{b.at(x, at), width};
    arguments.append(rotating);
    arguments.push_back(b.at(result, at));
    b.call("otf_rotate", {}, arguments);
  });
  return true;
}

bool emitPrologue(KernelBuilder &b, PrologueOp op, const Memory &result) {
  const Memory &x = b.memory[op.getInput()];
  int64_t outliers = op.getColumns() ? op.getColumns().getType().getOutliers() : 0;
  Value width = b.size(x.shape.back()), record = b.size(result.shape.back());
  if (!width || !record)
    return false;
  auto vector = [&](Value v) { return v ? b.memory[v].pointer : b.null(); };
  Value scale = vector(op.getScale()), bias = vector(op.getBias());
  if (std::optional<RotationAttr> rotation = op.getRotation()) {
    SmallVector<Value> rotating = rotationArguments(b, *rotation);
    b.loop(b.begin, b.end, 1, [&](Value i) {
      SmallVector<Value> arguments{b.at(x, b.mul(i, width)), width, b.i64(int64_t(op.getKind())), b.f32(op.getEpsilon()),
                                   scale, bias};
      arguments.append(rotating);
      arguments.push_back(b.at(result, b.mul(i, record)));
      b.call("otf_record_rotated", {}, arguments);
    });
    return true;
  }
  // A weight blob begins with its column index, when it has outliers.
  Value columns = outliers != 0 ? b.memory[op.getColumns()].pointer : b.null();
  b.loop(b.begin, b.end, 1, [&](Value i) {
    b.call("otf_record_i8", {},
           {b.at(x, b.mul(i, width)), width, b.i64(int64_t(op.getKind())), b.f32(op.getEpsilon()),
            scale, bias, columns, vector(op.getGrid()), b.sub(width, b.index(outliers)), b.i64(outliers),
            b.at(result, b.mul(i, record))});
  });
  return true;
}

bool emitNorm(KernelBuilder &b, NormOp op, const Memory &result) {
  const Memory &x = b.memory[op.getInput()];
  Value width = b.size(x.shape.back());
  if (!width)
    return false;
  auto vector = [&](Value v) { return v ? b.memory[v].pointer : b.null(); };
  Value scale = vector(op.getScale()), bias = vector(op.getBias());
  b.loop(b.begin, b.end, 1, [&](Value i) {
    Value at = b.mul(i, width);
    b.call("otf_norm", {},
           {b.at(x, at), width, b.i64(int64_t(op.getKind())), b.f32(op.getEpsilon()), scale, bias,
            b.at(result, at)});
  });
  return true;
}

bool emitObserve(KernelBuilder &b, ObserveOp op) {
  const Memory &x = b.memory[op.getInput()];
  Value rows = b.size(elementCount(ArrayRef(x.shape).drop_back())), width = b.size(x.shape.back());
  if (!rows || !width)
    return false;
  bool diagonal = cast<RankedTensorType>(op.getProducts().getType()).getDimSize(0) == 0;
  Value scratch = b.getInsertionBlock()->getArgument(4); // of the kernel's function
  auto pointer = [&](Value of) { return b.memory[of].pointer; };
  b.loop(b.begin, b.end, 1, [&](Value item) {
    b.call("otf_observe", {},
           {x.pointer, rows, width, item, b.i64(diagonal), pointer(op.getRows()), pointer(op.getMoments()), pointer(op.getHistogram()),
            pointer(op.getProducts()), scratch});
  });
  return true;
}

} // namespace otf::cpu
