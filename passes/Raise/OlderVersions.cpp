// SPDX-License-Identifier: Apache-2.0
//
// Operator sets 1 to 6. The families are right from 7 on; most operators meant the same before, and what differed is
// here: where it cannot be told apart from today's meaning it is refused.

#include "passes/Raise/Raiser.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// The first version from which an operator means what it does at 7, where that is not 1.
int64_t sameSince(StringRef op) {
  return llvm::StringSwitch<int64_t>(op)
      .Cases({"Cast", "Tile", "Selu"}, 6)            // type by name; repeats as two scalars; other constants
      .Case("Reshape", 5)                            // the shape was an attribute
      .Cases({"Concat", "GRU"}, 4)                   // axis had a default; linear_before_reset was missing
      .Cases({"Pad", "Split", "LpPool", "GlobalLpPool"}, 2) // attributes of other names or types
      .Cases({"Upsample", "LSTM", "RNN"}, 7)
      .Default(1);
}

bool isBinary(StringRef op) {
  return llvm::is_contained({"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"}, op);
}

} // namespace

/// Until 6 a binary operator broadcast only where `broadcast` said so, and then its second input alone, whose
/// dimensions began at `axis` of the first.
static LogicalResult checkBroadcast(Raiser &raiser, onnx::NodeOp node) {
  ArrayRef<Size> left = raiser.input(node, 0).sizes, right = raiser.input(node, 1).sizes;
  if (node.intOr("broadcast", 0) == 0) {
    if (left != right)
      return raiser.fail(node, "its inputs differ in shape and its attribute broadcast is 0");
    return success();
  }
  if (right.size() > left.size())
    return raiser.fail(node, "its second input has more dimensions than its first (before operator set 7 only the "
                             "second was broadcast)");
  int64_t last = int64_t(left.size()) - int64_t(right.size()), axis = node.intOr("axis", last);
  axis = axis < 0 ? axis + int64_t(left.size()) : axis;
  if (axis != last && llvm::any_of(right, [](const Size &size) { return size != Size(1); }))
    return raiser.fail(node, "its attribute axis broadcasts along other dimensions than the last ones (convert the "
                             "model to operator set 7 or newer)");
  return success();
}

LogicalResult raise::checkOlder(Raiser &raiser, onnx::NodeOp node) {
  StringRef op = node.getOpType();
  if (int64_t since = sameSince(op); int64_t(node.getVersion()) < since)
    return raiser.fail(node, "it had another form in operator set " + Twine(node.getVersion()) +
                                 " (convert the model to operator set 7 or newer)");
  if (isBinary(op) && raiser.hasInput(node, 0) && raiser.hasInput(node, 1))
    return checkBroadcast(raiser, node);
  if ((op == "BatchNormalization" || op == "Dropout") && node.intOr("is_test", 0) == 0)
    return raiser.fail(node, "it is in training mode (its attribute is_test is 0; export the model for inference)");
  return success();
}
