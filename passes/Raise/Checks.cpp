// SPDX-License-Identifier: Apache-2.0
//
// What is checked of every node, whatever its operator: attributes of the type that ONNX says, limits before anything is
// made, and afterwards that its results are there and of a size that a compiler can work with.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

/// A file of a hundred bytes can ask for a shape of 2^36 dimensions, or double a list of sizes forty times.
static constexpr int64_t kMostDimensions = 64;
static constexpr size_t kMostContents = 4096, kMostInputs = 512;

namespace {

enum class Kind { Unknown, Integer, Integers, Real, Text };

/// Attributes whose name has one type in all operators.
Kind kindOf(StringRef name) {
  return llvm::StringSwitch<Kind>(name)
      .Cases({"axis", "keepdims", "to", "transA", "transB", "allowzero", "num_outputs", "start", "end"}, Kind::Integer)
      .Cases({"ceil_mode", "count_include_pad", "storage_order", "exclusive", "reverse", "largest"}, Kind::Integer)
      .Cases({"sorted", "select_last_index", "noop_with_empty_axes", "group", "blocksize"}, Kind::Integer)
      .Cases({"block_size", "num_heads", "kv_num_heads", "q_num_heads", "is_causal", "hidden_size"}, Kind::Integer)
      .Cases({"interleaved", "batch_dims", "upper", "fmod", "saturate", "stash_type"}, Kind::Integer)
      .Cases({"perm", "axes", "pads", "strides", "dilations", "kernel_shape", "split"}, Kind::Integers)
      .Cases({"output_shape", "output_padding"}, Kind::Integers)
      .Cases({"alpha", "beta", "epsilon", "gamma", "momentum", "softcap"}, Kind::Real)
      .Cases({"mode", "auto_pad", "equation", "reduction", "nearest_mode", "approximate"}, Kind::Text)
      .Cases({"coordinate_transformation_mode", "padding_mode", "direction"}, Kind::Text)
      .Default(Kind::Unknown);
}

LogicalResult checkAttributes(Raiser &raiser, onnx::NodeOp node) {
  for (NamedAttribute attribute : node.getAttrs()) {
    Attribute value = attribute.getValue();
    const char *expected = nullptr;
    switch (kindOf(attribute.getName())) {
    case Kind::Integer: expected = isa<IntegerAttr>(value) ? nullptr : "an integer"; break;
    case Kind::Integers: expected = isa<DenseI64ArrayAttr>(value) ? nullptr : "a list of integers"; break;
    case Kind::Real: expected = isa<FloatAttr>(value) ? nullptr : "a float"; break;
    case Kind::Text: expected = isa<StringAttr>(value) ? nullptr : "a string"; break;
    case Kind::Unknown: break;
    }
    if (expected)
      return raiser.fail(node, "its attribute " + attribute.getName().strref() + " is not " + expected +
                                   " (the file is corrupt; export the model again)");
  }
  return success();
}

/// Inputs from `first` on have one type; what else a family knows of types it checks itself.
LogicalResult checkSameType(Raiser &raiser, onnx::NodeOp node, unsigned first) {
  int64_t type = 0;
  for (unsigned i = first; i < node.getInputs().size(); ++i) {
    if (!raiser.hasInput(node, i))
      continue;
    int64_t mine = raiser.input(node, i).elementType;
    if (type != 0 && mine != type)
      return raiser.fail(node, "its inputs are of the types " + onnx::elementTypeName(type) + " and " +
                                   onnx::elementTypeName(mine) + " (they must have one type)");
    type = mine;
  }
  return success();
}

} // namespace

LogicalResult raise::checkBefore(Raiser &raiser, onnx::NodeOp node) {
  if (failed(checkAttributes(raiser, node)))
    return failure();
  if (node.getInputs().size() > kMostInputs)
    return raiser.fail(node, "it has " + Twine(node.getInputs().size()) + " inputs, and one kernel reads at most " +
                                 Twine(kMostInputs) + " (join them in groups)");
  StringRef op = node.getOpType();
  if (!node.getDomain().empty())
    return success();
  // The input that has one element for each dimension of the result.
  int shape = llvm::StringSwitch<int>(op).Cases({"Reshape", "Expand", "Tile"}, 1).Case("ConstantOfShape", 0).Default(-1);
  if (shape >= 0 && raiser.hasInput(node, shape)) {
    std::optional<int64_t> rank = elementCount(raiser.input(node, shape).sizes).constant();
    if (rank && *rank > kMostDimensions)
      return raiser.fail(node, "its result would have " + Twine(*rank) + " dimensions (at most " +
                                   Twine(kMostDimensions) + " are supported)");
  }
  if (op == "Concat" || op == "MatMul" || op == "Gemm")
    return checkSameType(raiser, node, 0);
  if (op == "Where" && raiser.input(node, 0).elementType != onnx::ElementType::Bool)
    return raiser.fail(node, "its condition is of type " + onnx::elementTypeName(raiser.input(node, 0).elementType) +
                                 ", not bool");
  return op == "Where" ? checkSameType(raiser, node, 1) : success();
}

LogicalResult raise::checkAfter(Raiser &raiser, onnx::NodeOp node) {
  for (auto [number, output] : llvm::enumerate(node.getOutputs())) {
    Known &what = raiser.known(output);
    if (!output.use_empty() && what.elementType == 0)
      return raiser.fail(node, "it has no output " + Twine(number) + " in this compiler");
    if (what.rank() > size_t(kMostDimensions))
      return raiser.fail(node, "its result would have " + Twine(what.rank()) + " dimensions (at most " +
                                   Twine(kMostDimensions) + " are supported)");
    size_t count = what.integers ? what.integers->size() : what.reals ? what.reals->size() : 0;
    if (count <= kMostContents)
      continue;
    // As data they are one constant; sizes that are not known now would each be code.
    if (what.integers && !llvm::all_of(*what.integers, [](const Size &size) { return size.isConstant(); }))
      return raiser.fail(node, "it holds " + Twine(count) + " sizes (at most " + Twine(kMostContents) + " are supported)");
    raiser.tensor(what);
    what.integers.reset();
    what.reals.reset();
  }
  return success();
}
