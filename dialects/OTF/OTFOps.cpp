// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the otf operators; the numbers in comments are the rules in the td descriptions.

#include "dialects/OTF/OTF.h"

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
  if ((getEncoding() || getOutliers()) && type.getRank() != 2) // rule 3 of the op
    return emitOpError() << "only a matrix has an encoding, got " << type;
  if (getOutliers() && !getOutliers()->getColumns().empty() &&
      getOutliers()->getColumns().back() >= type.getDimSize(1))
    return emitOpError() << "outlier column " << getOutliers()->getColumns().back() << " is past the "
                         << type.getDimSize(1) << " columns";
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

LogicalResult ReshapeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "must keep the element type, got " << source << " to " << result;
  otf::Size before = elementCount(sizesOf(source)), after = elementCount(sizesOf(result));
  if (before != after) // rule 1
    return emitOpError() << "must keep the number of elements, got " << before.str() << " and "
                         << after.str();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
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
  if (!sameLeading(input, result)) // rule 1
    return emitOpError() << "input and result must agree but in the last dimension, got " << input
                         << " and " << result;
  int64_t expected = input.getElementType().isInteger(8)
                         ? recordBytes(weight.getColumns() - weight.getOutliers(),
                                       weight.getOutliers())
                         : weight.getColumns();
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

LogicalResult PrologueOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (!sameLeading(input, result))
    return emitOpError() << "input and result must agree but in the last dimension, got " << input
                         << " and " << result;
  int64_t width = input.getShape().back();
  int64_t outliers = getColumns() ? cast<MatrixType>(getColumns().getType()).getOutliers() : 0;
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
  if (input != getResult().getType())
    return emitOpError() << "input and result must be alike, got " << input << " and "
                         << getResult().getType();
  if (input.getRank() != 4 || cos.getRank() != 3 || cos != getSin().getType())
    return emitOpError() << "expects input of rank 4, and cos and sin alike of rank 3, got " << input
                         << ", " << cos << ", " << getSin().getType();
  SmallVector<otf::Size> x = sizesOf(input), table = sizesOf(cos);
  otf::Size positions = getPositionsFirst() ? x[1] : x[2];
  // One table may serve every row of the batch.
  if ((table[0] != x[0] && table[0] != otf::Size(1)) || table[1] != positions)
    return emitOpError() << "cos and sin must be [batch or 1, positions, rotated], got " << cos
                         << " for " << input;
  int64_t rotated = cos.getDimSize(2);
  if (rotated % 2 != 0 || rotated > input.getDimSize(3))
    return emitOpError() << "rotates an even width of at most " << input.getDimSize(3) << ", got "
                         << rotated;
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
  return success();
}

LogicalResult AttentionOp::verify() {
  auto query = cast<RankedTensorType>(getQuery().getType());
  if (query.getRank() != 4)
    return emitOpError() << "query must have rank 4, got " << query;
  int64_t heads = query.getDimSize(getPositionsFirst() ? 2 : 1);
  for (Value operand : {getKey(), getValue()}) {
    int64_t shared;
    if (auto state = dyn_cast<StateType>(operand.getType()))
      shared = state.getHeads();
    else if (cast<RankedTensorType>(operand.getType()).getRank() == 4)
      shared = cast<RankedTensorType>(operand.getType()).getDimSize(1);
    else
      return emitOpError() << "key and value must have rank 4, got " << operand.getType();
    if (shared < 1 || heads % shared != 0)
      return emitOpError() << heads << " query heads cannot share " << shared << " heads";
  }
  if (getMask() && cast<RankedTensorType>(getMask().getType()).getRank() != 4)
    return emitOpError() << "mask must have rank 4, got " << getMask().getType();
  return success();
}
