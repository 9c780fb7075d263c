// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the otf operators; the numbers in comments are the rules in the td descriptions.

#include "dialects/OTF/OTF.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace otf;

#define GET_OP_CLASSES
#include "dialects/OTF/OTFOps.cpp.inc"

static bool sameLeading(RankedTensorType a, RankedTensorType b, size_t dropA = 1,
                        size_t dropB = 1) {
  SmallVector<Size> left = sizesOf(a), right = sizesOf(b);
  if (left.size() < dropA || right.size() < dropB)
    return false;
  left.pop_back_n(dropA);
  right.pop_back_n(dropB);
  return left == right;
}

/// Whether segments of `rotation` divide rows of `width`.
static LogicalResult verifyRotation(Operation *op, RotationAttr rotation, int64_t width) {
  int64_t segment = rotation.getBlock() * rotation.getFactor();
  if (width >= segment && width % segment == 0)
    return success();
  return op->emitOpError() << "rotates segments of " << segment << " columns, which do not divide a row of "
                           << (ShapedType::isDynamic(width) ? Twine("unknown length") : Twine(width));
}

static LogicalResult verifyVector(Operation *op, Value vector, int64_t size, StringRef what) {
  if (!vector)
    return success();
  auto type = cast<ShapedType>(vector.getType());
  if (!type.hasStaticShape() || type.getNumElements() != size)
    return op->emitOpError() << what << " must have " << size << " elements, got " << type;
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Weights and caches
//===------------------------------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError() << "must have a static shape, got " << type;
  if (getScale() && type.getRank() != 2) // rule 1
    return emitOpError() << "only a matrix has a scale, got " << type;
  if ((getEncoding() || getOutliers()) && type.getRank() != 2) // rule 2
    return emitOpError() << "only a matrix has an encoding, got " << type;
  if (getOutliers() && !getOutliers()->getColumns().empty() &&
      getOutliers()->getColumns().back() >= type.getDimSize(1))
    return emitOpError() << "outlier column " << getOutliers()->getColumns().back() << " is past the "
                         << type.getDimSize(1) << " columns";
  if (getGiven() && type.getRank() != 2) // rule 5
    return emitOpError() << "only a matrix has codes, got " << type;
  if (getKeepsGiven() && !(getGiven() && getEncoding())) // rule 5
    return emitOpError() << "keeps codes that are not given";
  if (getFeedback() && (!getEncoding() || getKeepsGiven())) // rule 7
    return emitOpError() << "has feedback, and no codes to choose";
  if (getFeedback() && !(getFeedback()->convertToDouble() > 0 && getFeedback()->convertToDouble() <= 1)) // rule 7
    return emitOpError() << "feedback must be damped by a fraction above 0 and up to 1, got "
                         << getFeedback()->convertToDouble();
  if (getRotation()) { // rule 8
    if (type.getRank() != 2)
      return emitOpError() << "only a matrix has a rotation, got " << type;
    if (getOutliers() && !getOutliers()->getColumns().empty())
      return emitOpError() << "has a rotation and outlier columns, which it would mix into the others (choose one of both)";
    if (getKeepsGiven())
      return emitOpError() << "has a rotation, and keeps codes that are of no rotated weight";
    if (failed(verifyRotation(*this, *getRotation(), type.getDimSize(1))))
      return failure();
  }
  if (getJointFit() && !(getEncoding() && getEncoding()->getKind() == EncodingKind::ternary_sign)) // rule 9
    return emitOpError() << "has a joint fit, which only ternary_sign knows";
  if (getGiven())
    return success(); // whether its codes are enough is known to who reads them
  // In bits: elements of 4 and 2 lie packed, and a bool takes a byte.
  int64_t width = getBlob().getType().getIntOrFloatBitWidth(), expected = width == 1 ? 8 : width;
  bool fits = true;
  for (int64_t extent : type.getShape())
    fits = fits && !__builtin_mul_overflow(expected, extent, &expected);
  expected = expected / 8 + (expected % 8 != 0);
  if (!fits || getBlob().getLength() != expected) // rule 3
    return emitOpError() << "a blob of " << type.getShape() << " elements of " << getBlob().getType()
                         << " has " << (fits ? Twine(expected) : Twine("too many"))
                         << " bytes, got " << getBlob().getLength();
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getScaleAttr())
    return success();
  auto scale = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getScaleAttr());
  if (!scale)
    return emitOpError() << "names no otf.weight as scale: " << getScaleAttr();
  auto type = cast<RankedTensorType>(getType()), gain = cast<RankedTensorType>(scale.getType());
  if (!gain.hasStaticShape() || gain.getNumElements() != type.getDimSize(1)) // rule 1
    return emitOpError() << "scale must have " << type.getDimSize(1) << " elements, got " << gain;
  return success();
}

LogicalResult UseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  if (!weight)
    return emitOpError() << "names no otf.weight: " << getWeightAttr();
  auto type = cast<RankedTensorType>(weight.getType());
  if (auto matrix = dyn_cast<MatrixType>(getResult().getType())) {
    if (type.getRank() != 2 || type.getDimSize(0) != matrix.getRows() ||
        type.getDimSize(1) != matrix.getColumns())
      return emitOpError() << "expects a matrix of " << type << ", got " << matrix; // rule 2
    return success();
  }
  if (getResult().getType() != type)
    return emitOpError() << "expects " << type << ", got " << getResult().getType(); // rule 1
  return success();
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto cache = symbols.lookupNearestSymbolFrom<CacheOp>(*this, getCacheAttr());
  if (!cache)
    return emitOpError() << "names no otf.cache: " << getCacheAttr();
  if (cache.getType() != getResult().getType())
    return emitOpError() << "expects " << cache.getType() << ", got " << getResult().getType();
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Sizes and shapes
//===------------------------------------------------------------------------------------------===//

void SizeOp::build(OpBuilder &builder, OperationState &state, const otf::Size &size) {
  build(builder, state, builder.getIndexType(), builder.getStringAttr(size.str()));
}

LogicalResult SizeOp::verify() {
  if (!otf::Size::parse(getSize()))
    return emitOpError() << "\"" << getSize() << "\" is not a sum of products of symbols";
  return success();
}

LogicalResult BindOp::verify() {
  auto type = cast<RankedTensorType>(getValues().getType());
  int64_t count = getSymbols().size();
  if (count == 0 || type.getShape() != ArrayRef<int64_t>(count)) // rule 1
    return emitOpError() << "must have a value for each of " << count << " symbols, got " << type;
  llvm::StringSet<> seen;
  for (auto symbol : getSymbols().getAsRange<StringAttr>()) {
    StringRef name = symbol.getValue();
    if (std::optional<otf::Size> size = otf::Size::parse(name); !size || *size != otf::Size::symbol(name))
      return emitOpError() << "\"" << name << "\" is not the name of a symbol";
    if (name == "past" || name == "capacity" || !seen.insert(name).second) // rule 2
      return emitOpError() << "cannot bind \"" << name << "\"" << (seen.contains(name) ? " twice" : "");
  }
  return success();
}

/// Whether a region ends in a yield of `types`.
static LogicalResult yields(Operation *op, Region &region, TypeRange types) {
  auto yield = dyn_cast<YieldOp>(region.front().back());
  if (!yield || TypeRange(yield.getValues()) != types) // rule 1
    return op->emitOpError() << "must have regions that yield " << types;
  return success();
}

LogicalResult IfOp::verify() {
  return success(succeeded(yields(*this, getThenBranch(), getResultTypes())) &&
                 succeeded(yields(*this, getElseBranch(), getResultTypes())));
}

LogicalResult LoopOp::verify() {
  SmallVector<Type> yielded = {getCondition().getType()};
  llvm::append_range(yielded, getResultTypes());
  if (TypeRange(getInits()) != getResultTypes() || TypeRange(getBody().front().getArguments()) != getResultTypes())
    return emitOpError() << "must have inits and body arguments of the types of its results"; // rule 1
  return yields(*this, getBody(), yielded);
}

LogicalResult ReshapeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "must keep the element type, got " << source << " to " << result;
  otf::Size before = elementCount(sizesOf(source)), after = elementCount(sizesOf(result));
  if (before != after && !getChecked()) // rule 1
    return emitOpError() << "must keep the number of elements, got " << before.str() << " and "
                         << after.str();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    setChecked(getChecked() || inner.getChecked());
    return getResult();
  }
  return {};
}

//===------------------------------------------------------------------------------------------===//
// Operators
//===------------------------------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  auto weight = cast<MatrixType>(getWeight().getType());
  bool records = input.getElementType().isInteger(8);
  int64_t columns = weight.getColumns();
  if (WindowAttr window = getWindowAttr()) { // rule 5
    int64_t taps = window.getTaps(), rank = int64_t(window.getKernel().size()) + 2;
    if (input.getRank() != rank || result.getRank() != rank || sizesOf(input)[0] != sizesOf(result)[0])
      return emitOpError() << "input and result of its window have rank " << rank
                           << " and one batch, got " << input << " and " << result;
    if (columns % taps != 0 || (records && (columns / taps % 32 != 0 || weight.getOutliers() != 0)))
      return emitOpError() << "has windows of " << taps << " taps that do not divide " << weight
                           << (records ? " into records" : "");
    columns /= taps;
  } else if (!sameLeading(input, result)) { // rule 1
    return emitOpError() << "input and result must agree but in the last dimension, got " << input
                         << " and " << result;
  }
  int64_t expected =
      records ? recordBytes(columns - weight.getOutliers(), weight.getOutliers()) : columns;
  if (input.getShape().back() != expected) // rule 2
    return emitOpError() << "expects a last input dimension of " << expected << ", got " << input;
  if (result.getShape().back() != weight.getRows())
    return emitOpError() << "expects a last result dimension of " << weight.getRows() << ", got "
                         << result;
  if (failed(verifyVector(*this, getBias(), weight.getRows(), "bias"))) // rule 3
    return failure();
  if (getEpilogue().empty())
    return success();
  Block &block = getEpilogue().front();
  bool arguments = block.getNumArguments() == size_t(result.getRank()) + 1 &&
                   block.getArgument(0).getType().isF32();
  for (unsigned index = 1; arguments && index != block.getNumArguments(); ++index)
    arguments = block.getArgument(index).getType().isIndex();
  if (!arguments) // rule 4
    return emitOpError() << "the epilogue takes f32 and " << result.getRank() << " indices";
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValue().getType() != result.getElementType())
    return emitOpError() << "the epilogue must yield " << result.getElementType();
  return success();
}

bool LinearOp::isDividedByRows() {
  if (getWindow())
    return true;
  // Rank 4 or more: what is between batch and channels are positions of an image. With many channels
  // there are tiles enough, and each is read once only if its thread takes all rows.
  constexpr int64_t kFewChannels = 256, kManyPositions = 64;
  SmallVector<otf::Size> sizes = sizesOf(cast<RankedTensorType>(getResult().getType()));
  if (sizes.size() < 4 || getWeight().getType().getRows() > kFewChannels)
    return false;
  std::optional<int64_t> positions =
      elementCount(ArrayRef(sizes).drop_front().drop_back()).constant();
  return !positions || *positions >= kManyPositions;
}

LogicalResult EmbeddingOp::verify() {
  auto ids = cast<RankedTensorType>(getIds().getType());
  SmallVector<otf::Size> expected = sizesOf(ids);
  expected.push_back(cast<MatrixType>(getTable().getType()).getColumns());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (sizesOf(result) != expected) // rule 1
    return emitOpError() << "expects " << tensorType(result.getElementType(), expected) << ", got "
                         << result;
  return success();
}

LogicalResult NormOp::verify() {
  if (getKind() == NormKind::none)
    return emitOpError() << "must normalise: rms or layer";
  if (getInput().getType() != getResult().getType())
    return emitOpError() << "input and result must be alike, got " << getInput().getType() << " and "
                         << getResult().getType();
  auto input = cast<RankedTensorType>(getInput().getType());
  if (input.getRank() == 0)
    return emitOpError() << "input must have a row, got " << input;
  int64_t width = input.getShape().back();
  if (failed(verifyVector(*this, getScale(), width, "scale")))
    return failure();
  return verifyVector(*this, getBias(), width, "bias");
}

static LogicalResult verifyGrid(Operation *op, Value grid) {
  auto type = cast<RankedTensorType>(grid.getType());
  if (type.getRank() == 1 && type.getDimSize(0) == 2)
    return success();
  return op->emitOpError() << "grid must be a scale and a zero point, got " << type;
}

LogicalResult OnGridOp::verify() { return verifyGrid(*this, getGrid()); } // rule 1

LogicalResult RotateOp::verify() {
  auto type = cast<RankedTensorType>(getInput().getType());
  if (type.getRank() == 0)
    return emitOpError() << "input must have a row, got " << type;
  return verifyRotation(*this, getRotation(), type.getShape().back()); // rule 1
}

LogicalResult PrologueOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (!sameLeading(input, result))
    return emitOpError() << "input and result must agree but in the last dimension, got " << input
                         << " and " << result;
  int64_t width = input.getShape().back();
  if (width < 1 || width > kMostColumns) // rule 2, and recordBytes() must not overflow
    return emitOpError() << "input must have a static row of 1 to " << kMostColumns
                         << " elements, got " << input;
  if (getColumns() && getColumns().getType().getColumns() != width)
    return emitOpError() << "columns must be those of a matrix of " << width << ", got "
                         << getColumns().getType();
  if (getKind() == NormKind::none && (getScale() || getBias())) // rule 3
    return emitOpError() << "has a scale or bias and no norm that they belong to";
  int64_t outliers = getColumns() ? getColumns().getType().getOutliers() : 0;
  if (getGrid() && failed(verifyGrid(*this, getGrid()))) // rule 4
    return failure();
  if (getGrid() && outliers != 0)
    return emitOpError() << "has a grid and " << outliers << " outliers, which are on none";
  if (getRotation() && (getGrid() || outliers != 0)) // rule 5
    return emitOpError() << "has a rotation and " << (getGrid() ? "a grid, which it leaves" : "outliers, which it would mix into the rest");
  if (getRotation() && failed(verifyRotation(*this, *getRotation(), width)))
    return failure();
  int64_t expected = recordBytes(width - outliers, outliers);
  if (result.getShape().back() != expected) // rule 1
    return emitOpError() << "expects records of " << expected << " bytes, got " << result;
  if (failed(verifyVector(*this, getScale(), width, "scale")))
    return failure();
  return verifyVector(*this, getBias(), width, "bias");
}

LogicalResult RopeOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto cos = cast<RankedTensorType>(getCos().getType());
  if (input != getResult().getType()) // rule 1
    return emitOpError() << "input and result must be alike, got " << input << " and "
                         << getResult().getType();
  if (input.getRank() != 4 || cos.getRank() != 3 || cos != getSin().getType())
    return emitOpError() << "expects input of rank 4, and cos and sin alike of rank 3, got " << input
                         << ", " << cos << ", " << getSin().getType();
  SmallVector<otf::Size> x = sizesOf(input), table = sizesOf(cos);
  otf::Size positions = getPositionsFirst() ? x[1] : x[2];
  // Rule 2. One table may serve every row of the batch.
  if ((table[0] != x[0] && table[0] != otf::Size(1)) || table[1] != positions)
    return emitOpError() << "cos and sin must be [batch or 1, positions, rotated], got " << cos
                         << " for " << input;
  int64_t rotated = cos.getDimSize(2); // rule 3
  if (cos.isDynamicDim(2) || input.isDynamicDim(3))
    return emitOpError() << "width and rotated width must be static, got " << input << " and " << cos;
  if (rotated % 2 != 0 || rotated > input.getDimSize(3))
    return emitOpError() << "rotates an even width of at most " << input.getDimSize(3) << ", got "
                         << rotated;
  return success();
}

LogicalResult ObserveOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto shapeIs = [](Value value, ArrayRef<int64_t> shape) { return cast<RankedTensorType>(value.getType()).getShape() == shape; };
  if (input.getRank() == 0 || input.isDynamicDim(input.getRank() - 1)) // rule 1
    return emitOpError() << "observes rows of a static width, got " << input;
  int64_t k = input.getShape().back();
  if (!shapeIs(getRows(), {1}) || !shapeIs(getMoments(), {5, k}) || !shapeIs(getHistogram(), {4096}))
    return emitOpError() << "expects rows of [1], moments of [5, " << k << "] and a histogram of [4096], got " << getRows().getType() << ", "
                         << getMoments().getType() << " and " << getHistogram().getType();
  int64_t triangle;
  if (__builtin_mul_overflow(k, k + 1, &triangle) || (!shapeIs(getProducts(), {triangle / 2}) && !shapeIs(getProducts(), {0}))) // rule 2
    return emitOpError() << "expects " << triangle / 2 << " products or none, got " << getProducts().getType();
  llvm::SmallPtrSet<Value, 4> different; // rule 3
  for (Value memory : getOperands().drop_front())
    if (!isa<BlockArgument>(memory) || !different.insert(memory).second)
      return emitOpError() << "adds to memory that is no argument, or one of two statistics";
  return success();
}

LogicalResult AppendOp::verify() {
  StateType state = getPast().getType();
  auto update = cast<RankedTensorType>(getUpdate().getType());
  if (state != getResult().getType())
    return emitOpError() << "cannot change the cache's type";
  unsigned headAxis = getPositionsFirst() ? 2 : 1;
  if (update.getRank() != 4 || update.getDimSize(headAxis) != state.getHeads() ||
      update.getDimSize(3) != state.getWidth())
    return emitOpError() << "cannot append " << update << " to " << state;
  if (!getAt())
    return success();
  auto at = cast<RankedTensorType>(getAt().getType());
  if (at.getRank() != 1 || sizesOf(at)[0] != sizesOf(update)[0]) // rule 1
    return emitOpError() << "at must have one element for each batch entry of " << update << ", got " << at;
  return success();
}

LogicalResult ReadOp::verify() {
  StateType state = getState().getType();
  auto result = cast<RankedTensorType>(getResult().getType());
  if (result.getRank() != 4 || result.getDimSize(1) != state.getHeads() ||
      result.getDimSize(3) != state.getWidth()) // rule 1
    return emitOpError() << "cannot read " << state << " as " << result;
  return success();
}

LogicalResult AttentionOp::verify() {
  auto query = cast<RankedTensorType>(getQuery().getType());
  if (query.getRank() != 4) // rule 1
    return emitOpError() << "query must have rank 4, got " << query;
  SmallVector<otf::Size> q = sizesOf(query);
  if (getPositionsFirst())
    std::swap(q[1], q[2]);
  const otf::Size batch = q[0], heads = q[1], positions = q[2];

  // Of key and value: heads and width, and the length where it is known.
  otf::Size shared[2], width[2];
  std::optional<otf::Size> length;
  const Type types[2] = {getKey().getType(), getValue().getType()};
  for (size_t index = 0; index != 2; ++index) {
    if (auto state = dyn_cast<StateType>(types[index])) {
      shared[index] = state.getHeads();
      width[index] = state.getWidth();
      continue;
    }
    auto tensor = cast<RankedTensorType>(types[index]);
    if (tensor.getRank() != 4)
      return emitOpError() << "key and value must have rank 4, got " << tensor;
    SmallVector<otf::Size> sizes = sizesOf(tensor);
    if (sizes[0] != batch || (length && sizes[2] != *length))
      return emitOpError() << "key and value must have the query's batch and one length, got "
                           << types[0] << " and " << types[1] << " for " << query;
    shared[index] = sizes[1];
    width[index] = sizes[3];
    length = sizes[2];
  }
  if (shared[0] != shared[1]) // rule 2
    return emitOpError() << "key and value must have equally many heads, got " << shared[0].str()
                         << " and " << shared[1].str();
  std::optional<int64_t> all = heads.constant(), few = shared[0].constant();
  if (!all || !few || *few < 1 || *all % *few != 0)
    return emitOpError() << heads.str() << " query heads cannot share " << shared[0].str() << " heads";
  if (width[0] != q[3]) // rule 3
    return emitOpError() << "key and query must have one width, got " << width[0].str() << " and "
                         << q[3].str();

  if (getMask()) { // rule 4
    auto mask = cast<RankedTensorType>(getMask().getType());
    if (mask.getRank() != 4)
      return emitOpError() << "mask must have rank 4, got " << mask;
    SmallVector<otf::Size> sizes = sizesOf(mask);
    bool fits = !length || sizes[3] == *length;
    const otf::Size expected[] = {batch, heads, positions};
    for (size_t axis = 0; axis != 3; ++axis)
      fits = fits && (sizes[axis] == expected[axis] || sizes[axis] == otf::Size(1));
    if (!fits)
      return emitOpError() << "mask must be [" << batch.str() << " or 1, " << heads.str()
                           << " or 1, " << positions.str() << " or 1, "
                           << (length ? length->str() : "keys") << "], got " << mask;
  }

  if (getSink()) { // rule 6
    auto sink = cast<RankedTensorType>(getSink().getType());
    if (sink.getRank() != 1 || sizesOf(sink)[0] != heads)
      return emitOpError() << "sink must have " << heads.str() << " elements, got " << sink;
  }

  q[3] = width[1]; // rule 5
  if (getPositionsFirst())
    std::swap(q[1], q[2]);
  auto result = cast<RankedTensorType>(getResult().getType());
  if (sizesOf(result) != q)
    return emitOpError() << "expects " << tensorType(result.getElementType(), q) << ", got " << result;
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Computing
//===------------------------------------------------------------------------------------------===//

/// The type of a result's handle.
static MemRefType handleType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

void ComputeOp::build(
    OpBuilder &builder, OperationState &state, TypeRange results, const otf::Size &extent,
    function_ref<void(OpBuilder &, Value item, ValueRange handles)> body) {
  state.addTypes(results);
  state.addAttribute(getExtentAttrName(state.name), builder.getStringAttr(extent.str()));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
  for (Type type : results)
    block.addArgument(handleType(cast<RankedTensorType>(type)), state.location);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  body(builder, block.getArgument(0), block.getArguments().drop_front());
  builder.setInsertionPointToEnd(&block);
  EndOp::create(builder, state.location);
}

LogicalResult ComputeOp::verify() {
  if (!otf::Size::parse(getExtent())) // rule 1
    return emitOpError() << "extent \"" << getExtent() << "\" is not a sum of products of symbols";
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 + getNumResults() || !body.getArgument(0).getType().isIndex()) // rule 2
    return emitOpError() << "body must take an index and " << getNumResults() << " handles, got "
                         << body.getArgumentTypes();
  ArrayRef<BlockArgument> handles = body.getArguments().drop_front();
  for (auto [handle, type] : llvm::zip(handles, getResultTypes()))
    if (handle.getType() != handleType(cast<RankedTensorType>(type))) // rule 2
      return emitOpError() << "handle of " << type << " must be "
                           << handleType(cast<RankedTensorType>(type)) << ", got "
                           << handle.getType();
  WalkResult walk = getBody().walk([&](Operation *op) -> WalkResult {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (!llvm::is_contained(handles, load.getMemRef())) // rule 3
        return op->emitOpError() << "must load from a handle of its otf.compute";
      return WalkResult::advance();
    }
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (!llvm::is_contained(handles, store.getMemRef())) // rule 3
        return op->emitOpError() << "must store to a handle of its otf.compute";
      return WalkResult::advance();
    }
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType())) // rule 3
        return op->emitOpError() << "cannot use a handle; only memref.load and memref.store can";
    StringRef dialect = op->getName().getDialectNamespace();
    if (!isa<tensor::ExtractOp, tensor::DimOp, SizeOp, EndOp>(op) && dialect != "arith" &&
        dialect != "math" && dialect != "index" && dialect != "scf") // rule 4
      return op->emitOpError() << "cannot be part of an otf.compute";
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
