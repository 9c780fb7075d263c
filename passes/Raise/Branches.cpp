// SPDX-License-Identifier: Apache-2.0
//
// If. A branch that a constant picks is raised in place; so sizes stay known. What depends on data becomes otf.if.

#include "passes/Raise/Bodies.h"
#include "passes/Raise/Program.h"
#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// One branch, raised, with what is known of its outputs.
struct Branch {
  Region region;
  Knowns outputs;
};

LogicalResult raiseBranch(Raiser &raiser, Block &nodes, Branch &branch) {
  return raiser.inRegion(branch.region, {}, [&](Block &) {
    if (failed(raiser.raiseNodes(nodes)))
      return failure();
    for (Value output : yielded(nodes)) {
      Known what = raiser.known(output);
      if (what.state)
        return failure(); // unreachable: a cache is updated outside of branches
      (void)raiser.tensor(what);
      branch.outputs.push_back(std::move(what));
    }
    return success();
  });
}

/// Ends a branch: sizes in which the branches differ get their values, and the outputs are yielded.
void finishBranch(Raiser &raiser, Branch &branch, ArrayRef<SmallVector<Size>> sizes) {
  OpBuilder::InsertionGuard guard(raiser.builder);
  raiser.builder.setInsertionPointToEnd(&branch.region.front());
  SmallVector<Size> symbols, values;
  for (auto [output, merged] : llvm::zip_equal(branch.outputs, sizes))
    for (auto [mine, common] : llvm::zip_equal(output.sizes, merged))
      if (mine != common) {
        symbols.push_back(common);
        values.push_back(mine);
      }
  if (!symbols.empty()) {
    Known known;
    known.elementType = Element::Int64;
    known.sizes = {Size(int64_t(values.size()))};
    known.integers = values;
    // Of its own memory: a constant has none that a bind could read.
    Value computed = raiser.generate(raiser.builder.getI64Type(), known.sizes, [&](OpBuilder &b, ValueRange at) {
      return raiser.element(b, known, at);
    });
    raiser.bindAs(computed, symbols);
  }
  SmallVector<Value> results;
  for (auto [output, merged] : llvm::zip_equal(branch.outputs, sizes)) {
    if (auto constant = output.tensor.getDefiningOp<arith::ConstantOp>();
        constant && ArrayRef(output.sizes) != ArrayRef(merged))
      output.tensor =
          raiser.generate(raiser.internalType(output.elementType), output.sizes,
                          [&](OpBuilder &b, ValueRange at) -> Value {
                            return tensor::ExtractOp::create(b, *raiser.currentLocation, constant,
                                                             at); // which has no memory either
                          });
    results.push_back(ArrayRef(output.sizes) == ArrayRef(merged) ? output.tensor
                                                                  : raiser.reshapedChecked(output, merged).tensor);
  }
  YieldOp::create(raiser.builder, *raiser.currentLocation, results);
}

/// What torch writes for squeeze(dim): a Squeeze where the dimension is 1, and else the value as it
/// is.
bool isSqueeze(Block &thenNodes, Block &elseNodes) {
  if (yielded(thenNodes).size() != 1 || yielded(elseNodes).size() != 1)
    return false;
  auto squeeze = yielded(thenNodes).front().getDefiningOp<onnx::NodeOp>();
  auto identity = yielded(elseNodes).front().getDefiningOp<onnx::NodeOp>();
  return squeeze && identity && squeeze.is("Squeeze") && identity.is("Identity") &&
         squeeze.getInputs()[0] == identity.getInputs()[0];
}

LogicalResult raiseIf(Raiser &raiser, onnx::NodeOp node) {
  Block *thenNodes = node.body("then_branch"), *elseNodes = node.body("else_branch");
  size_t count = node.getOutputs().size();
  if (!thenNodes || !elseNodes || yielded(*thenNodes).size() != count || yielded(*elseNodes).size() != count)
    return raiser.fail(node, "its branches do not give its outputs (the file is corrupt; export the model again)");
  Known &condition = raiser.input(node, 0);
  if (condition.elementType != Element::Bool || elementCount(condition.sizes) != Size(1))
    return raiser.fail(node, "its condition must be one boolean");
  // A rank is not data. The model goes on with the one that squeezing gives, and a run ends where the
  // condition picks the other.
  std::optional<double> picked = raiser.scalar(node.getInputs()[0]);
  if (picked || isSqueeze(*thenNodes, *elseNodes)) {
    Block &nodes = picked.value_or(1) != 0 ? *thenNodes : *elseNodes;
    if (failed(raiser.raiseNodes(nodes)))
      return failure();
    for (auto [number, output] : llvm::enumerate(yielded(nodes)))
      raiser.set(node, Known(raiser.known(output)), number);
    if (!picked) {
      endUnless(raiser, "squeezed", "the branch that does not squeeze has another rank than the plan was made for",
                [&](Program &p) { return raiser.element(p.b, condition, SmallVector<Value>(condition.rank(), p.index(0))); });
    }
    return success();
  }

  Value picks = raiser.tensor(condition);
  if (condition.rank() != 0)
    picks = raiser.reshaped(condition, {}).tensor;
  Branch thenBranch, elseBranch;
  if (failed(raiseBranch(raiser, *thenNodes, thenBranch)) || failed(raiseBranch(raiser, *elseNodes, elseBranch)))
    return failure();
  SmallVector<SmallVector<Size>> sizes;
  SmallVector<Type> types;
  for (auto [one, other] : llvm::zip_equal(thenBranch.outputs, elseBranch.outputs)) {
    if (one.elementType != other.elementType || one.rank() != other.rank())
      return raiser.fail(node, "its branches give values of different type or rank, and which is taken depends on data");
    SmallVector<Size> merged;
    for (auto [a, b] : llvm::zip_equal(one.sizes, other.sizes))
      merged.push_back(a == b ? a : raiser.freshSize("branch"));
    types.push_back(tensorType(raiser.internalType(one.elementType), merged));
    sizes.push_back(merged);
  }
  finishBranch(raiser, thenBranch, sizes);
  finishBranch(raiser, elseBranch, sizes);
  auto op = IfOp::create(raiser.builder, node.getLoc(), types, picks);
  op.getThenBranch().takeBody(thenBranch.region);
  op.getElseBranch().takeBody(elseBranch.region);
  for (auto [number, result] : llvm::enumerate(op.getResults())) {
    Known what;
    what.elementType = thenBranch.outputs[number].elementType;
    what.sizes = sizes[number];
    what.tensor = result;
    raiser.set(node, std::move(what), number);
  }
  return success();
}

} // namespace

void raise::registerBranches(Registry &registry) { registry.add("If", raiseIf, 1, 1); }
