// SPDX-License-Identifier: Apache-2.0
//
// Weights that the file has quantized: MatMulNBits, MatMulBnb4, GatherBlockQuantized, and constants behind a DequantizeLinear. Where
// codes and parameters are constants they become an otf.weight that says what its bytes mean, so that they can stay as they are;
// else (inputs of the model, g_idx, a few bytes that are not in the file) they are dequantized by a scalar program.

#include "passes/Raise/Quantized.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Elements.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// Bytes of a constant in the file as the otf dialect names them; `type` is that of elements, i8 for codes.
otf::BlobAttr blobOf(onnx::FileBlobAttr from, Type type) {
  return otf::BlobAttr::get(type.getContext(), from.getFile(), from.getOffset(), from.getLength(), type, false);
}

/// A constant tensor of floats, or of integers as floats, for `#otf.given`; null if it is none.
Attribute numbersOf(Raiser &raiser, const Known &what) {
  if (isCoded(what.elementType)) // its contents are bits
    return {};
  if (auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(what.constant)) {
    Type type = raiser.storedType(blob.getElementType());
    return isa_and_nonnull<FloatType>(type) ? Attribute(blobOf(blob, type)) : Attribute();
  }
  SmallVector<float> values;
  if (what.reals)
    for (double value : *what.reals)
      values.push_back(float(value));
  else if (what.integers)
    for (const Size &value : *what.integers) {
      if (!value.isConstant())
        return {};
      values.push_back(float(*value.constant()));
    }
  else
    return {};
  return DenseF32ArrayAttr::get(raiser.builder.getContext(), values);
}

/// Rank 2 and known, and no larger than a matrix may be.
bool isPlainMatrix(const Known &what) {
  return what.rank() == 2 && llvm::all_of(what.sizes, [](const Size &size) {
           return size.isConstant() && *size.constant() > 0 && *size.constant() <= kMostColumns;
         });
}

/// What the fields of `#otf.given` are before they are one attribute.
struct Fields {
  int64_t bits = 0;
  bool isSigned = false, highFirst = false;
  int64_t pitch = 0, rowBlock = 1, block = 0;
  Attribute scales;
  int64_t scaleRow = 0, scaleBlock = 0;
  Attribute zeros;
  int64_t zeroRow = 0, zeroBlock = 0, zero = 0;
  DenseF32ArrayAttr table;

  GivenAttr attribute(MLIRContext *context) const {
    return GivenAttr::get(context, bits, isSigned, highFirst, pitch, rowBlock, block, scales, scaleRow, scaleBlock, zeros, zeroRow,
                          zeroBlock, zero, table);
  }
};

Known givenMatrix(Raiser &raiser, onnx::FileBlobAttr codes, StringRef name, const Fields &fields, int64_t type, int64_t rows,
                  int64_t columns) {
  Known result;
  result.elementType = type;
  result.sizes = {Size(rows), Size(columns)};
  result.given = GivenCodes{codes, fields.attribute(raiser.builder.getContext()), name.str(), {}};
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Operators of com.microsoft
//===------------------------------------------------------------------------------------------===//

Value integer(OpBuilder &b, Location l, int64_t value) { return arith::ConstantOp::create(b, l, b.getI32IntegerAttr(value)); }
Value at(OpBuilder &b, Location l, int64_t value) { return arith::ConstantIndexOp::create(b, l, value); }

/// Code number `place` of bytes that hold codes of `bits` bits, lowest first, as i32 from 0; `byteAt` gives byte number i.
Value codeAt(OpBuilder &b, Location l, int64_t bits, Value place, bool highFirst, function_ref<Value(Value)> byteAt) {
  int64_t perByte = 8 / bits;
  Value byte = arith::ExtUIOp::create(b, l, b.getI32Type(), byteAt(arith::DivUIOp::create(b, l, place, at(b, l, perByte))));
  Value rest = arith::IndexCastOp::create(b, l, b.getI32Type(), arith::RemUIOp::create(b, l, place, at(b, l, perByte)));
  if (highFirst)
    rest = arith::SubIOp::create(b, l, integer(b, l, perByte - 1), rest);
  Value shift = arith::MulIOp::create(b, l, rest, integer(b, l, bits));
  return arith::AndIOp::create(b, l, arith::ShRUIOp::create(b, l, byte, shift), integer(b, l, (1 << bits) - 1));
}

/// The element at the row-major place `place` of a tensor.
Value flatElement(OpBuilder &b, Raiser &raiser, Known &what, Value place) {
  Location l = *raiser.currentLocation;
  SmallVector<Value> indices(what.rank());
  for (size_t i = what.rank(); i-- != 0;) {
    Value extent = at(b, l, *what.sizes[i].constant());
    indices[i] = i == 0 ? place : arith::RemUIOp::create(b, l, place, extent).getResult();
    if (i != 0)
      place = arith::DivUIOp::create(b, l, place, extent);
  }
  return raiser.element(b, what, indices);
}

struct NBits {
  int64_t n, k, bits, block, blocks, pitch;
};

/// Is it a constant of exactly `count` elements of known sizes?
bool hasCount(const Known &what, int64_t count) { return elementCount(what.sizes) == Size(count); }

LogicalResult raiseMatMulNBits(Raiser &raiser, onnx::NodeOp node) {
  NBits s{node.intOr("N", 0), node.intOr("K", 0), node.intOr("bits", 4), node.intOr("block_size", 0), 0, 0};
  Known &a = raiser.input(node, 0), &codes = raiser.input(node, 1), &scales = raiser.input(node, 2);
  if (node.intOr("weight_prepacked", 0) != 0)
    return raiser.fail(node, "its weight is packed for one device's kernel (export it with weight_prepacked = 0)");
  if (s.bits != 2 && s.bits != 4 && s.bits != 8)
    return raiser.fail(node, "codes of " + Twine(s.bits) + " bits are not supported (2, 4 and 8 are)");
  if (s.n < 1 || s.k < 1 || s.n > kMostColumns || s.k > kMostColumns || s.block < 16 || s.block > kMostColumns ||
      (s.block & (s.block - 1)) != 0)
    return raiser.fail(node, "expects sizes N and K and a block_size that is a power of two from 16 on, got " + Twine(s.n) + ", " +
                                 Twine(s.k) + " and " + Twine(s.block));
  s.blocks = (s.k + s.block - 1) / s.block;
  s.pitch = s.blocks * s.block;
  if (a.rank() == 0 || a.sizes.back() != Size(s.k))
    return raiser.fail(node, "cannot contract " + (a.rank() ? a.sizes.back().str() : "a scalar") + " with " + Twine(s.k));
  if (codes.elementType != Element::UInt8 || !hasCount(codes, s.n * s.pitch * s.bits / 8) || !hasCount(scales, s.n * s.blocks))
    return raiser.fail(node, "codes must be " + Twine(s.n) + " x " + Twine(s.blocks) + " blocks of " + Twine(s.block * s.bits / 8) +
                                 " uint8, and scales one a block");
  if (!raiser.isFloat(a.elementType) || !raiser.isFloat(scales.elementType))
    return raiser.fail(node, "activations and scales must be floats below f64");
  Known *zeros = raiser.hasInput(node, 3) ? &raiser.input(node, 3) : nullptr;
  Known *groups = raiser.hasInput(node, 4) ? &raiser.input(node, 4) : nullptr;
  bool packed = zeros && zeros->elementType == Element::UInt8;
  int64_t zeroBytes = (s.blocks * s.bits + 7) / 8, perByte = 8 / s.bits;
  if (zeros && (!hasCount(*zeros, packed ? s.n * zeroBytes : s.n * s.blocks) || !(packed || raiser.isFloat(zeros->elementType))))
    return raiser.fail(node, "zero points must be floats, one a block, or packed uint8, " + Twine(zeroBytes) + " bytes a row");
  if (groups && (!hasCount(*groups, s.k) && !hasCount(*groups, s.pitch)))
    return raiser.fail(node, "g_idx must have K elements");
  if (raiser.hasInput(node, 5) && !hasCount(raiser.input(node, 5), s.n))
    return raiser.fail(node, "bias must have N elements");

  Fields fields;
  fields.bits = s.bits;
  fields.pitch = s.pitch;
  fields.block = s.block;
  fields.scales = numbersOf(raiser, scales);
  fields.scaleRow = s.blocks;
  fields.scaleBlock = 1;
  fields.zero = int64_t(1) << (s.bits - 1);
  bool known = isa_and_nonnull<onnx::FileBlobAttr>(codes.constant) && fields.scales && !groups;
  if (zeros && known) {
    fields.zeroBlock = 1;
    if (auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(zeros->constant); packed && blob) {
      fields.zeros = blobOf(blob, raiser.builder.getI8Type());
      fields.zeroRow = zeroBytes * perByte;
    } else if (packed && zeros->integers) { // a few bytes: unpacked here
      SmallVector<float> points;
      for (int64_t row = 0; row < s.n; ++row)
        for (int64_t i = 0; i < s.blocks; ++i)
          points.push_back(float(*(*zeros->integers)[row * zeroBytes + i / perByte].constant() >> (i % perByte * s.bits) &
                                 ((1 << s.bits) - 1)));
      fields.zeros = DenseF32ArrayAttr::get(raiser.builder.getContext(), points);
      fields.zeroRow = s.blocks;
    } else {
      fields.zeros = packed ? Attribute() : numbersOf(raiser, *zeros);
      fields.zeroRow = s.blocks;
    }
    known = bool(fields.zeros);
  }
  Known bias;
  Value vector;
  if (raiser.hasInput(node, 5)) {
    bias = raiser.input(node, 5);
    vector = raiser.tensor(bias);
  }
  if (known) {
    Known matrix = givenMatrix(raiser, cast<onnx::FileBlobAttr>(codes.constant), codes.name, fields, a.elementType, s.n, s.k);
    raiser.set(node, raiseLinear(raiser, node, a, matrix, /*transposed=*/false, vector));
    return success();
  }
  Location l = node.getLoc();
  Known matrix = raiser.generated(Element::Float, {Size(s.k), Size(s.n)}, [&](OpBuilder &b, ValueRange i) -> Value {
    Value k = i[0], n = i[1];
    auto place = [&](Value major, int64_t extent, Value minor) -> Value {
      return arith::AddIOp::create(b, l, arith::MulIOp::create(b, l, major, at(b, l, extent)), minor);
    };
    Value code = codeAt(b, l, s.bits, place(n, s.pitch, k), false, [&](Value byte) { return flatElement(b, raiser, codes, byte); });
    Value block = arith::DivUIOp::create(b, l, k, at(b, l, s.block));
    if (groups)
      block = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, *groups, k));
    Value which = place(n, s.blocks, block), point;
    Value value = arith::SIToFPOp::create(b, l, b.getF32Type(), code);
    if (packed)
      point = arith::SIToFPOp::create(b, l, b.getF32Type(),
                                      codeAt(b, l, s.bits, place(n, zeroBytes * perByte, block), false,
                                             [&](Value byte) { return flatElement(b, raiser, *zeros, byte); }));
    else if (zeros)
      point = flatElement(b, raiser, *zeros, which);
    else
      point = arith::ConstantOp::create(b, l, b.getF32FloatAttr(float(1 << (s.bits - 1))));
    return arith::MulFOp::create(b, l, arith::SubFOp::create(b, l, value, point), flatElement(b, raiser, scales, which));
  });
  return raiseProduct(raiser, node, std::move(matrix), node.inputOrNull(5));
}

// The sixteen values of bitsandbytes, by code.
constexpr float kFp4[16] = {0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
                            -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr float kNf4[16] = {-1.0f,
                            -0.6961928009986877f,
                            -0.5250730514526367f,
                            -0.39491748809814453f,
                            -0.28444138169288635f,
                            -0.18477343022823334f,
                            -0.09105003625154495f,
                            0.0f,
                            0.07958029955625534f,
                            0.16093020141124725f,
                            0.24611230194568634f,
                            0.33791524171829224f,
                            0.44070982933044434f,
                            0.5626170039176941f,
                            0.7229568362236023f,
                            1.0f};

/// Codes of N x K in blocks that run over the whole matrix, the first of two in the high half of a byte.
LogicalResult raiseMatMulBnb4(Raiser &raiser, onnx::NodeOp node) {
  int64_t n = node.intOr("N", 0), k = node.intOr("K", 0), block = node.intOr("block_size", 0), kind = node.intOr("quant_type", -1);
  Known &a = raiser.input(node, 0), &codes = raiser.input(node, 1), &scales = raiser.input(node, 2);
  if (n < 1 || k < 1 || n > kMostColumns || k > kMostColumns || block < 1 || (kind != 0 && kind != 1))
    return raiser.fail(node, "expects sizes N and K, a block_size, and quant_type 0 (FP4) or 1 (NF4)");
  if (node.intOr("transB", 1) != 1 || a.rank() == 0 || a.sizes.back() != Size(k))
    return raiser.fail(node, "cannot contract its operands (the weight must be N x K)");
  if (codes.elementType != Element::UInt8 || !hasCount(codes, (n * k + 1) / 2) || !hasCount(scales, (n * k + block - 1) / block))
    return raiser.fail(node, "codes must be N x K halves of uint8, and scales one a block");
  ArrayRef<float> table = kind == 0 ? ArrayRef(kFp4) : ArrayRef(kNf4);
  Fields fields;
  fields.bits = 4;
  fields.highFirst = true;
  fields.pitch = k;
  fields.block = block < k ? block : k;
  fields.scales = numbersOf(raiser, scales);
  fields.scaleRow = k / fields.block;
  fields.scaleBlock = 1;
  fields.table = DenseF32ArrayAttr::get(raiser.builder.getContext(), table);
  if (isa_and_nonnull<onnx::FileBlobAttr>(codes.constant) && fields.scales && k % block == 0) {
    Known matrix = givenMatrix(raiser, cast<onnx::FileBlobAttr>(codes.constant), codes.name, fields, a.elementType, n, k);
    raiser.set(node, raiseLinear(raiser, node, a, matrix, /*transposed=*/false, {}));
    return success();
  }
  Location l = node.getLoc();
  Known matrix = raiser.generated(Element::Float, {Size(k), Size(n)}, [&](OpBuilder &b, ValueRange i) -> Value {
    Value place = arith::AddIOp::create(b, l, arith::MulIOp::create(b, l, i[1], at(b, l, k)), i[0]);
    Value code = codeAt(b, l, 4, place, true, [&](Value byte) { return flatElement(b, raiser, codes, byte); });
    auto entry = [&](int64_t which) -> Value { return arith::ConstantOp::create(b, l, b.getF32FloatAttr(table[which])); };
    Value value = entry(0);
    for (int64_t which = 1; which != 16; ++which)
      value = arith::SelectOp::create(
          b, l, arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, code, integer(b, l, which)), entry(which), value);
    Value scale = flatElement(b, raiser, scales, arith::DivUIOp::create(b, l, place, at(b, l, block)));
    return arith::MulFOp::create(b, l, value, scale);
  });
  return raiseProduct(raiser, node, std::move(matrix), {});
}

/// data, indices, scales, zero points: rows of a quantized table, as floats.
LogicalResult raiseGatherBlockQuantized(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &ids = raiser.input(node, 1), &scales = raiser.input(node, 2);
  int64_t rank = data.rank(), gather = node.intOr("gather_axis", 0), along = node.intOr("quantize_axis", 1),
          block = node.intOr("block_size", 128);
  gather += gather < 0 ? rank : 0;
  along += along < 0 ? rank : 0;
  bool bytes = data.elementType == Element::UInt8;
  int64_t bits = bytes ? node.intOr("bits", 4) : int64_t(onnx::elementBits(data.elementType));
  bool isSigned = data.elementType == Element::Int4;
  Known *zeros = raiser.hasInput(node, 3) ? &raiser.input(node, 3) : nullptr;
  if ((bits != 2 && bits != 4 && bits != 8) || (!bytes && data.elementType != Element::Int4 && data.elementType != Element::UInt4))
    return raiser.fail(node, "codes of " + Twine(bits) + " bits in " + onnx::elementTypeName(data.elementType) + " are not supported");
  if (gather != 0 || along != rank - 1 || rank != 2 || block < 16 || !isPlainMatrix(data))
    return raiser.fail(node, "only rows (gather_axis 0) of a constant matrix that is quantized along its last axis are supported");
  int64_t rows = *data.sizes[0].constant(), perByte = 8 / bits, columns = *data.sizes[1].constant() * (bytes ? perByte : 1);
  int64_t blocks = (columns + block - 1) / block, zeroBytes = (blocks + perByte - 1) / perByte;
  if (columns > kMostColumns || !hasCount(scales, rows * blocks) || !raiser.isFloat(scales.elementType))
    return raiser.fail(node, "scales must be floats, one for each row and " + Twine(block) + " columns");
  if (zeros && (zeros->elementType != data.elementType || !hasCount(*zeros, bytes ? rows * zeroBytes : rows * blocks)))
    return raiser.fail(node, "zero points must be codes like the data's, one for each scale");
  Fields fields;
  fields.bits = bits;
  fields.isSigned = isSigned;
  fields.pitch = columns;
  fields.block = block;
  fields.scales = numbersOf(raiser, scales);
  fields.scaleRow = blocks;
  fields.scaleBlock = 1;
  fields.zero = bytes ? int64_t(1) << (bits - 1) : 0;
  bool known = isa_and_nonnull<onnx::FileBlobAttr>(data.constant) && fields.scales;
  if (zeros) {
    auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(zeros->constant);
    known = known && blob;
    if (known)
      fields.zeros = blobOf(blob, raiser.builder.getI8Type());
    fields.zeroRow = bytes ? zeroBytes * perByte : blocks;
    fields.zeroBlock = 1;
  }
  Known result;
  result.elementType = scales.elementType;
  result.sizes.assign(ids.sizes.begin(), ids.sizes.end());
  result.sizes.push_back(columns);
  if (known && !ids.integers) {
    Known matrix =
        givenMatrix(raiser, cast<onnx::FileBlobAttr>(data.constant), data.name, fields, scales.elementType, rows, columns);
    result.tensor = EmbeddingOp::create(raiser.builder, node.getLoc(), tensorType(raiser.builder.getF32Type(), result.sizes),
                                        raiser.tensor(ids), raiser.matrix(matrix, false));
    raiser.set(node, std::move(result));
    return success();
  }
  Location l = node.getLoc();
  raiser.set(node, raiser.generated(scales.elementType, result.sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value id = arith::IndexCastOp::create(b, l, b.getIndexType(), raiser.element(b, ids, i.drop_back()));
    Value negative = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, id, at(b, l, 0));
    id = arith::SelectOp::create(b, l, negative, arith::AddIOp::create(b, l, id, at(b, l, rows)), id);
    id = arith::MaxSIOp::create(b, l, arith::MinSIOp::create(b, l, id, at(b, l, rows - 1)), at(b, l, 0));
    auto place = [&](int64_t extent, Value minor) -> Value {
      return arith::AddIOp::create(b, l, arith::MulIOp::create(b, l, id, at(b, l, extent)), minor);
    };
    auto codeOf = [&](Known &from, Value where) -> Value {
      if (!bytes)
        return widened(b, l, flatElement(b, raiser, from, where), from.elementType);
      return codeAt(b, l, bits, where, false, [&](Value byte) { return flatElement(b, raiser, from, byte); });
    };
    Value block_ = arith::DivUIOp::create(b, l, i.back(), at(b, l, block));
    Value code = codeOf(data, place(columns, i.back()));
    Value point = zeros ? codeOf(*zeros, place(fields.zeroRow, block_)) : integer(b, l, fields.zero);
    Value value = arith::SIToFPOp::create(b, l, b.getF32Type(), arith::SubIOp::create(b, l, code, point));
    return arith::MulFOp::create(b, l, value, flatElement(b, raiser, scales, place(blocks, block_)));
  }));
  return success();
}

} // namespace

//===------------------------------------------------------------------------------------------===//
// DequantizeLinear of constants
//===------------------------------------------------------------------------------------------===//

/// A convolution's weight is one row for each output channel.
static Known asMatrix(const Known &x) {
  Known matrix;
  matrix.sizes = x.sizes;
  if (x.rank() > 2)
    matrix.sizes = {x.sizes[0], elementCount(ArrayRef<Size>(x.sizes).drop_front())};
  return matrix;
}

bool raise::isGivenWeight(const Known &codes) {
  return isa_and_nonnull<onnx::FileBlobAttr>(codes.constant) && isPlainMatrix(asMatrix(codes)) &&
         (codes.elementType == Element::UInt8 || codes.elementType == Element::Int8);
}

std::optional<GivenCodes> raise::givenCodes(Raiser &raiser, const Known &x, const Known &scale, const Known *zero,
                                            const Spread &spread) {
  auto codes = dyn_cast_or_null<onnx::FileBlobAttr>(x.constant);
  unsigned bits = onnx::elementBits(x.elementType);
  if (!codes || !isPlainMatrix(asMatrix(x)) || !quantizedRange(x.elementType) || bits > 8)
    return std::nullopt;
  if (x.rank() > 2 && (spread.kind == Spread::block || (spread.kind == Spread::axis && spread.along != 0)))
    return std::nullopt;
  int64_t rows = *x.sizes[0].constant(), columns = *asMatrix(x).sizes[1].constant();
  Fields fields;
  fields.bits = bits;
  fields.isSigned = quantizedRange(x.elementType)->first != 0;
  fields.pitch = columns;
  fields.rowBlock = rows;
  fields.block = columns;
  fields.scales = numbersOf(raiser, scale);
  if (spread.kind != Spread::tensor && spread.along == 0) {
    fields.rowBlock = spread.size;
    fields.scaleRow = 1;
  } else if (spread.kind != Spread::tensor) {
    fields.block = spread.size;
    fields.scaleBlock = 1;
  }
  if (spread.kind == Spread::block) { // one along the other axis for each of its elements too
    fields.scaleRow = spread.along == 0 ? columns : (columns + spread.size - 1) / spread.size;
    fields.scaleBlock = 1;
    (spread.along == 0 ? fields.block : fields.rowBlock) = 1;
  }
  if (zero) {
    auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(zero->constant);
    fields.zeros = blob ? Attribute(blobOf(blob, raiser.builder.getI8Type())) : numbersOf(raiser, *zero);
    fields.zeroRow = fields.scaleRow;
    fields.zeroBlock = fields.scaleBlock;
  }
  if (!fields.scales || (zero && !fields.zeros))
    return std::nullopt;
  return GivenCodes{codes, fields.attribute(raiser.builder.getContext()), x.name, {}};
}

void raise::registerGivenWeights(Registry &registry) {
  registry.add("com.microsoft::MatMulNBits", raiseMatMulNBits, 3, 6, 1);
  registry.add("com.microsoft::MatMulBnb4", raiseMatMulBnb4, 3, 3, 1);
  registry.add("com.microsoft::GatherBlockQuantized", raiseGatherBlockQuantized, 3, 4, 1);
}
