// SPDX-License-Identifier: Apache-2.0
//
// Element types as this compiler has them, and sizes by name: each size of the model is a constant, a symbol, or made of them.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "passes/Raise/Elements.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

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
