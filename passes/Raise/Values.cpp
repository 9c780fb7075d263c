// SPDX-License-Identifier: Apache-2.0
//
// What is known of a model's values: sizes by name, contents, constants in the file; and tensors made of them on demand.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/OTF/Taps.h"
#include "passes/Raise/Elements.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

//===------------------------------------------------------------------------------------------===//
// Types and sizes
//===------------------------------------------------------------------------------------------===//

Type Raiser::internalType(int64_t type) {
  switch (type) {
  case Element::Float:
  case Element::Float16:
  case Element::BFloat16:
    return builder.getF32Type();
  case Element::Double:
    return builder.getF64Type();
  case Element::Bool:
    return builder.getI1Type();
  case Element::Int8:
  case Element::UInt8:
  case Element::Int4:
  case Element::UInt4:
  case Element::Int2:
  case Element::UInt2: // as values; below, as bits
  case Element::Float8E4M3FN:
  case Element::Float8E4M3FNUZ:
  case Element::Float8E5M2:
  case Element::Float8E5M2FNUZ:
  case Element::Float8E8M0:
  case Element::Float4E2M1:
    return builder.getI8Type();
  case Element::Int16:
  case Element::UInt16:
    return builder.getIntegerType(16);
  case Element::Int32:
  case Element::UInt32:
    return builder.getI32Type();
  case Element::Int64:
  case Element::UInt64:
    return builder.getI64Type();
  }
  return {};
}

bool Raiser::isUnsigned(int64_t type) {
  return type == Element::UInt8 || type == Element::UInt16 || type == Element::UInt32 || type == Element::UInt64 ||
         type == Element::UInt4 || type == Element::UInt2;
}

Type Raiser::storedType(int64_t type) {
  if (type == Element::Float16)
    return builder.getF16Type();
  if (type == Element::BFloat16)
    return builder.getBF16Type();
  return internalType(type);
}

std::string Raiser::freshSymbol(std::string name) {
  while (!takenSymbols.insert(name).second)
    name += "_";
  return name;
}

/// The symbol of a name in the model. Different names never become one symbol, and none of them the runtime's own.
Size Raiser::symbolFor(StringRef text) {
  auto [it, isNew] = symbolNames.try_emplace(text.str());
  if (isNew) {
    std::set<std::string> names;
    Size::fromDimParam(text).collectSymbols(names);
    it->second = freshSymbol(names.empty() ? "size" : *names.begin());
  }
  return Size::symbol(it->second);
}

Size Raiser::readSize(Attribute dim) {
  if (auto integer = dyn_cast<IntegerAttr>(dim))
    return integer.getInt();
  StringRef text = cast<StringAttr>(dim).getValue();
  if (text == "?")
    return Size::symbol(freshSymbol("size"));
  std::optional<Size> parsed = Size::parse(text);
  if (!parsed)
    return symbolFor(text);
  Size result;
  for (auto &[monomial, coefficient] : parsed->terms()) {
    Size term = coefficient;
    for (const std::string &name : monomial)
      term = term * symbolFor(name);
    result = result + term;
  }
  return result;
}

/// A size like "past_seq_len + seq_len" of symbols that no other input has says no more than a symbol of its own: it
/// becomes one, which the runtime can solve.
std::vector<SmallVector<Size>> Raiser::argumentSizes() {
  std::vector<SmallVector<Size>> sizes(source_.getNumArguments());
  for (auto [number, list] : llvm::enumerate(sizes))
    if (auto dims = source_.getArgAttrOfType<ArrayAttr>(number, "onnx.dims"))
      for (Attribute dim : dims)
        list.push_back(readSize(dim));
  std::set<std::string> solved = {"past"};
  auto open = [&](const Size &size) {
    std::set<std::string> names, left;
    size.collectSymbols(names);
    for (const std::string &name : names)
      if (!solved.count(name))
        left.insert(name);
    return left;
  };
  for (bool again = true; again;) {
    again = false;
    for (auto &list : sizes)
      for (Size &size : list)
        if (std::set<std::string> left = open(size); left.size() == 1)
          again |= solved.insert(*left.begin()).second;
  }
  std::map<std::string, Size> fresh; // by the size's text
  for (auto &list : sizes)
    for (Size &size : list)
      if (open(size).size() > 1) {
        auto [it, isNew] = fresh.try_emplace(size.str());
        if (isNew)
          it->second = Size::symbol(freshSymbol("size"));
        size = it->second;
      }
  return sizes;
}

SmallVector<Size> Raiser::checked(ArrayRef<Size> sizes) {
  SmallVector<Size> result(sizes);
  for (Size &size : result) {
    std::optional<int64_t> constant = size.constant();
    if (size.isValid() && (!constant || *constant >= 0))
      continue;
    impossibleSize = size.isValid() ? "a dimension of size " + size.str() : "a size beyond 64 bits";
    size = 0;
  }
  return result;
}

std::optional<SmallVector<Size>> Raiser::broadcast(ArrayRef<Size> a, ArrayRef<Size> b) {
  SmallVector<Size> result(std::max(a.size(), b.size()), Size(1));
  for (size_t i = 0; i != result.size(); ++i) {
    Size left = i < a.size() ? a[a.size() - 1 - i] : Size(1);
    Size right = i < b.size() ? b[b.size() - 1 - i] : Size(1);
    if (left != right && left != Size(1) && right != Size(1))
      return std::nullopt;
    result[result.size() - 1 - i] = left == Size(1) ? right : left;
  }
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Values
//===------------------------------------------------------------------------------------------===//

Value Raiser::generate(Type elementType, ArrayRef<Size> unchecked, Body body) {
  SmallVector<Size> sizes = checked(unchecked);
  SmallVector<Value> extents;
  for (const Size &size : sizes)
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, *currentLocation, size));
  // A builder of its own: what the body reads is made by `builder`, before the generate.
  OpBuilder own(builder);
  return tensor::GenerateOp::create(own, *currentLocation, tensorType(elementType, sizes), extents,
                                    [&](OpBuilder &inner, Location at, ValueRange indices) {
                                      tensor::YieldOp::create(inner, at, body(inner, indices));
                                    });
}

Known Raiser::generated(int64_t elementType, ArrayRef<Size> sizes, Body body) {
  Known result;
  result.elementType = elementType;
  result.sizes.assign(sizes.begin(), sizes.end());
  result.tensor = generate(internalType(elementType), sizes, body);
  return result;
}

SmallVector<Size> Raiser::bind(Value values, StringRef name, const Twine &message) {
  SmallVector<Size> sizes;
  for (int64_t i = 0; i != cast<RankedTensorType>(values.getType()).getNumElements(); ++i)
    sizes.push_back(freshSize((name + "_" + Twine(i)).str()));
  bindAs(values, sizes, message);
  return sizes;
}

void Raiser::bindAs(Value values, ArrayRef<Size> symbols, const Twine &message) {
  SmallVector<Attribute> names;
  for (const Size &symbol : symbols)
    names.push_back(builder.getStringAttr(symbol.str()));
  std::string text = message.str();
  BindOp::create(builder, *currentLocation, values, builder.getArrayAttr(names),
                 text.empty() ? StringAttr() : builder.getStringAttr(text));
}

Known Raiser::reshapedChecked(Known &what, ArrayRef<Size> sizes) {
  Value source = tensor(what);
  Known result;
  result.elementType = what.elementType;
  result.sizes.assign(sizes.begin(), sizes.end());
  RankedTensorType type = tensorType(internalType(what.elementType), sizes);
  result.tensor = ReshapeOp::create(builder, *currentLocation, type, source, /*checked=*/true);
  return result;
}

/// An integer as an attribute of a type that may be narrower than it: its low bits.
static TypedAttr integerAttr(Type type, int64_t value) {
  unsigned width = type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, APInt(64, uint64_t(value)).trunc(width));
}

/// One scalar of constant contents.
static Value constantElement(OpBuilder &builder, Location location, Type type, const Known &what,
                             size_t position) {
  if (what.reals)
    return arith::ConstantOp::create(builder, location,
                                     builder.getFloatAttr(type, (*what.reals)[position]));
  const Size &size = (*what.integers)[position];
  if (std::optional<int64_t> constant = size.constant())
    return arith::ConstantOp::create(builder, location, integerAttr(type, *constant));
  Value index = SizeOp::create(builder, location, size);
  return arith::IndexCastOp::create(builder, location, type, index);
}

Value Raiser::tensor(Known &what) {
  if (what.tensor)
    return what.tensor;
  if (what.given)
    return what.tensor = what.given->dequantize();
  Location location = *currentLocation;
  if (what.state) // left over where attention is not recognised; refused after the walk
    return what.tensor = ReadOp::create(builder, location,
                                        tensorType(builder.getF32Type(), what.sizes), what.state);
  Type elementType = internalType(what.elementType);
  if (auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(what.constant)) {
    WeightOp op = weight(blob, what.name, tensorType(elementType, what.sizes), false);
    return what.tensor = UseOp::create(builder, location, op.getType(), op.getSymName());
  }
  bool constant = what.reals.has_value() ||
                  llvm::all_of(*what.integers, [](const Size &s) { return s.isConstant(); });
  RankedTensorType type = tensorType(elementType, what.sizes);
  if (constant) {
    SmallVector<Attribute> elements;
    if (what.reals)
      for (double value : *what.reals)
        elements.push_back(builder.getFloatAttr(elementType, value));
    else
      for (const Size &value : *what.integers)
        elements.push_back(integerAttr(elementType, *value.constant()));
    return what.tensor = arith::ConstantOp::create(builder, location,
                                                   DenseElementsAttr::get(type, elements));
  }
  // Sizes as data: select by the linear index.
  return what.tensor = generate(elementType, what.sizes, [&](OpBuilder &b, ValueRange indices) {
    Value linear;
    for (auto [index, size] : llvm::zip(indices, what.sizes)) {
      Value extent = arith::ConstantIndexOp::create(b, location, *size.constant());
      linear = linear ? arith::AddIOp::create(
                            b, location, arith::MulIOp::create(b, location, linear, extent), index)
                            .getResult()
                      : index;
    }
    Value result = constantElement(b, location, elementType, what, 0);
    for (size_t i = 1; i < what.integers->size(); ++i) {
      Value here = arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, linear,
                                         arith::ConstantIndexOp::create(b, location, i));
      result = arith::SelectOp::create(b, location, here,
                                       constantElement(b, location, elementType, what, i), result);
    }
    return result;
  });
}

Value Raiser::element(OpBuilder &inner, Known &what, ValueRange indices) {
  Location location = *currentLocation;
  size_t count = what.integers ? what.integers->size() : what.reals ? what.reals->size() : 0;
  if (count == 1)
    return constantElement(inner, location, internalType(what.elementType), what, 0);
  Value source = tensor(what);
  SmallVector<Value> at;
  for (size_t i = 0; i != what.rank(); ++i) {
    bool hasIndex = what.rank() <= indices.size() + i;
    if (!hasIndex && what.sizes[i] != Size(1))
      impossibleSize = "fewer dimensions than an input of it";
    at.push_back(what.sizes[i] == Size(1) || !hasIndex
                     ? arith::ConstantIndexOp::create(inner, location, 0).getResult()
                     : indices[indices.size() + i - what.rank()]);
  }
  return tensor::ExtractOp::create(inner, location, source, at);
}

Known Raiser::reshaped(Known &what, ArrayRef<Size> unchecked) {
  SmallVector<Size> sizes = checked(unchecked);
  Known result = what;
  result.sizes.assign(sizes.begin(), sizes.end());
  result.tensor = nullptr;
  result.state = nullptr;
  result.given.reset(); // what it says is of the other shape
  bool contents = what.integers || what.reals;
  // The bytes of a constant in the file have no other order under another shape.
  if (auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(what.constant)) {
    SmallVector<int64_t> dims;
    for (const Size &size : sizes)
      dims.push_back(*size.constant());
    result.constant =
        onnx::FileBlobAttr::get(blob.getContext(), blob.getFile(), blob.getOffset(), blob.getLength(),
                                blob.getElementType(), dims);
    return result;
  }
  if (contents)
    return result;
  Value source = tensor(what);
  // Behind a checked reshape the sizes are others, and only the run knows that they agree.
  if (auto inner = source.getDefiningOp<ReshapeOp>(); inner && !inner.getChecked())
    source = inner.getSource();
  RankedTensorType type = tensorType(internalType(what.elementType), sizes);
  result.tensor = source.getType() == type
                      ? source
                      : ReshapeOp::create(builder, *currentLocation, type, source).getResult();
  if (result.onGrid && result.onGrid->of == what.tensor)
    result.onGrid = OnGrid{result.tensor, what.onGrid->grid, {}};
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Constants
//===------------------------------------------------------------------------------------------===//

WeightOp Raiser::givenWeight(const GivenCodes &given, RankedTensorType type, bool transposed, int64_t taps) {
  auto how = cast<GivenAttr>(given.how);
  if (transposed) // its rows are the file's columns
    how = GivenAttr::get(builder.getContext(), how.getBits(), how.getIsSigned(), how.getHighFirst(), how.getPitch(),
                         how.getBlock(), how.getRowBlock(), how.getScales(), how.getScaleBlock(), how.getScaleRow(),
                         how.getZeros(), how.getZeroBlock(), how.getZeroRow(), how.getZero(), how.getTable());
  return weight(given.codes, given.name, type, transposed, how, taps);
}

WeightOp Raiser::weight(onnx::FileBlobAttr blob, StringRef name, RankedTensorType type,
                        bool transposed, GivenAttr given, int64_t taps) {
  // Packed elements are known by the type they have in the file; in memory they are bytes.
  Type stored = given ? Type(builder.getI8Type())
                : onnx::elementBits(blob.getElementType()) < 8
                    ? onnx::elementTypeOf(builder.getContext(), blob.getElementType())
                    : storedType(blob.getElementType());
  auto where = otf::BlobAttr::get(builder.getContext(), blob.getFile(), blob.getOffset(),
                                  blob.getLength(), stored, transposed);
  for (WeightOp existing : weights[where])
    if (existing.getType() == type && existing.getGivenAttr() == given && tapsOf(existing) == taps)
      return existing;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(target);
  WeightOp op = WeightOp::create(builder, NameLoc::get(builder.getStringAttr(name)), builder.getStringAttr(name),
                                 TypeAttr::get(type), where, /*scale=*/FlatSymbolRefAttr(),
                                 /*encoding=*/EncodingAttr(), /*outliers=*/OutliersAttr(),
                                 /*vocabulary=*/UnitAttr(), given, /*keeps_given=*/UnitAttr(),
                                 /*float_activations=*/UnitAttr(), /*feedback=*/FloatAttr(),
                                 /*rotation=*/RotationAttr(), /*joint_fit=*/UnitAttr());
  if (taps != 1)
    op->setDiscardableAttr(kTapsAttribute, builder.getI64IntegerAttr(taps));
  symbols.insert(op); // renames on a clash
  weights[where].push_back(op);
  return op;
}

bool Raiser::isMatrix(const Known &what) {
  if (what.given)
    return what.rank() == 2; // all else by who gave it
  auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(what.constant);
  return blob && what.rank() == 2 && isa_and_nonnull<Float32Type>(internalType(what.elementType)) &&
         llvm::all_of(what.sizes, [](const Size &size) {
           return size != Size(0) && Size(kMostColumns).isAtLeast(size);
         });
}

Value Raiser::matrix(Known &what, bool transposed, int64_t taps) {
  if (!isMatrix(what))
    return {};
  SmallVector<Size> sizes(what.sizes);
  if (transposed)
    std::swap(sizes[0], sizes[1]);
  RankedTensorType shape = tensorType(builder.getF32Type(), sizes);
  WeightOp op = what.given ? givenWeight(*what.given, shape, transposed, taps)
                           : weight(cast<onnx::FileBlobAttr>(what.constant), what.name, shape, transposed,
                                    /*given=*/{}, taps);
  auto plain = EncodingAttr::get(builder.getContext(), EncodingKind::f32, 0);
  auto type = MatrixType::get(builder.getContext(), *sizes[0].constant(), *sizes[1].constant(),
                              plain, 0);
  return UseOp::create(builder, *currentLocation, type, op.getSymName());
}

LogicalResult Raiser::setConstant(Value result, Attribute value, StringRef name) {
  Known what;
  what.name = name.str();
  if (auto blob = dyn_cast<onnx::FileBlobAttr>(value)) {
    what.elementType = blob.getElementType();
    for (int64_t dim : blob.getDims())
      what.sizes.push_back(dim);
    what.constant = blob;
    if (!internalType(what.elementType))
      return emitError(result.getLoc()) << "element type " << onnx::elementTypeName(what.elementType)
                                        << " is not supported";
    known(result) = std::move(what);
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return emitError(result.getLoc()) << "a constant must be numbers";
  Type elementType = dense.getElementType();
  for (int64_t dim : dense.getType().getShape())
    what.sizes.push_back(dim);
  what.elementType = onnx::elementNumberOf(elementType);
  if (isCoded(what.elementType)) {
    what.integers.emplace();
    for (APFloat element : dense.getValues<APFloat>())
      what.integers->push_back(Size(int64_t(element.bitcastToAPInt().getZExtValue())));
  } else if (isa<FloatType>(elementType)) {
    what.reals.emplace();
    for (APFloat element : dense.getValues<APFloat>()) {
      bool lost;
      element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      what.reals->push_back(element.convertToDouble());
    }
  } else if (auto integer = dyn_cast<IntegerType>(elementType)) {
    bool isNatural = integer.isUnsigned() || integer.getWidth() == 1;
    what.integers.emplace();
    for (APInt element : dense.getValues<APInt>())
      what.integers->push_back(Size(isNatural ? int64_t(element.getZExtValue()) : element.getSExtValue()));
  } else {
    return emitError(result.getLoc()) << "constants of " << elementType << " are not supported";
  }
  if (!internalType(what.elementType))
    return emitError(result.getLoc()) << "constants of " << elementType << " are not supported";
  known(result) = std::move(what);
  return success();
}

Attribute Raiser::denseConstant(Attribute value) {
  if (auto real = dyn_cast_or_null<FloatAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({}, real.getType()), ArrayRef<Attribute>(real));
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({}, integer.getType()),
                                  ArrayRef<Attribute>(integer));
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({array.size()}, builder.getI64Type()),
                                  array.asArrayRef());
  if (auto array = dyn_cast_or_null<DenseF32ArrayAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({array.size()}, builder.getF32Type()),
                                  array.asArrayRef());
  return {};
}

//===------------------------------------------------------------------------------------------===//
// Questions
//===------------------------------------------------------------------------------------------===//

bool Raiser::isFloat(int64_t type) {
  return type == Element::Float || type == Element::Float16 || type == Element::BFloat16;
}

Value Raiser::source(Value value) {
  while (auto producer = value.getDefiningOp<onnx::NodeOp>()) {
    bool cast = producer.is("Cast") && isFloat(producer.intOr("to", 0)) &&
                isFloat(known(producer.getInputs()[0]).elementType);
    if (!cast && !producer.is("Identity"))
      break;
    value = producer.getInputs()[0];
  }
  return value;
}

onnx::NodeOp Raiser::node(Value value) { return source(value).getDefiningOp<onnx::NodeOp>(); }

std::optional<double> Raiser::scalar(Value value) {
  Known &what = known(source(value));
  if (what.reals && what.reals->size() == 1)
    return what.reals->front();
  if (!isCoded(what.elementType) && what.integers && what.integers->size() == 1 && what.integers->front().isConstant())
    return double(*what.integers->front().constant());
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> Raiser::constants(Value value) {
  Known &what = known(value);
  if (!what.integers)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (const Size &size : *what.integers) {
    if (!size.isConstant())
      return std::nullopt;
    result.push_back(*size.constant());
  }
  return result;
}

bool Raiser::limitIndices(Value value, const Size &extent) {
  // A branch that is not taken asks nothing of its inputs.
  if (builder.getInsertionBlock()->getParentOp() != target.getOperation())
    return false;
  std::optional<int64_t> rows = extent.constant();
  while (auto producer = value.getDefiningOp<onnx::NodeOp>()) {
    bool moves = producer.is("Reshape") || producer.is("Unsqueeze") || producer.is("Squeeze") || producer.is("Flatten") ||
                 producer.is("Identity") || (producer.is("Cast") && internalType(producer.intOr("to", 0)) &&
                                             isa<IntegerType>(internalType(producer.intOr("to", 0))));
    if (!moves)
      return false;
    value = producer.getInputs()[0];
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (!rows || *rows == 0 || !argument || argument.getOwner() != &source_.getBody().front())
    return false;
  auto parameter = dyn_cast_or_null<BlockArgument>(known(value).tensor);
  int64_t type = known(value).elementType;
  if (!parameter || (type != Element::Int32 && type != Element::Int64))
    return false;
  auto before = target.getArgAttrOfType<IntegerAttr>(parameter.getArgNumber(), "otf.limit");
  target.setArgAttr(parameter.getArgNumber(), "otf.limit",
                    builder.getI64IntegerAttr(before ? std::min(before.getInt(), *rows) : *rows));
  return true;
}
