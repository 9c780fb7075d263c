// SPDX-License-Identifier: Apache-2.0
//
// Tensors made on demand of what is known of a value, and questions about values.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "passes/Raise/Elements.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

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
