// SPDX-License-Identifier: Apache-2.0
//
// Softmax, its logarithm, Hardmax, and the losses that are gathers from a logarithm.

#include "passes/Raise/IndexLimits.h"
#include "passes/Raise/Scalars.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// Axes that are normalised together.
struct Together {
  size_t begin, end;

  ArrayRef<Size> extents(Known &x) const {
    return ArrayRef<Size>(x.sizes).slice(begin, end - begin);
  }
  SmallVector<Size> reduced(Known &x) const {
    SmallVector<Size> sizes(x.sizes);
    std::fill(sizes.begin() + begin, sizes.begin() + end, Size(1));
    return sizes;
  }
  SmallVector<Value> at(ValueRange indices, ValueRange loop) const {
    SmallVector<Value> all(indices);
    llvm::copy(loop, all.begin() + begin);
    return all;
  }
};

/// Since opset 13 one axis; before, all axes from `axis` on.
FailureOr<Together> axesOf(Raiser &raiser, onnx::NodeOp node, Known &x) {
  bool flattens = node.getVersion() < 13;
  int64_t rank = x.rank(), axis = node.intOr("axis", flattens ? 1 : -1);
  axis = axis < 0 ? axis + rank : axis;
  if (!isa<FloatType>(raiser.internalType(x.elementType)))
    return raiser.fail(node, "only floats are supported");
  if (flattens && axis == rank) // rows of no axis
    return Together{size_t(rank), size_t(rank)};
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(node.intOr("axis", flattens ? 1 : -1)) +
                                 " is outside rank " + Twine(rank));
  return Together{size_t(axis), size_t(flattens ? rank : axis + 1)};
}

Known largest(Raiser &raiser, Location l, Known &x, Together axes) {
  return raiser.generated(x.elementType, axes.reduced(x), [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value least =
        s.number(raiser.internalType(x.elementType), -std::numeric_limits<double>::infinity());
    return s.fold(axes.extents(x), least, [&](Scalars &s, ValueRange loop, Value carried) {
      return s.max(carried, raiser.element(s.b, x, axes.at(at, loop)));
    });
  });
}

/// exp(x − m), and its sum.
Value exponential(Raiser &raiser, Scalars &s, Known &x, Known &m, ValueRange at) {
  return s.exp(s.sub(raiser.element(s.b, x, at), raiser.element(s.b, m, at)));
}

Known sumOfExponentials(Raiser &raiser, Location l, Known &x, Known &m, Together axes) {
  return raiser.generated(x.elementType, axes.reduced(x), [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    return s.sum(raiser.internalType(x.elementType), axes.extents(x),
                 [&](Scalars &s, ValueRange loop) {
                   return exponential(raiser, s, x, m, axes.at(at, loop));
                 });
  });
}

Known logSoftmax(Raiser &raiser, Location l, Known &x, Together axes) {
  Known m = largest(raiser, l, x, axes), sum = sumOfExponentials(raiser, l, x, m, axes);
  return raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value shifted = s.sub(raiser.element(b, x, at), raiser.element(b, m, at));
    return s.sub(shifted, s.log(raiser.element(b, sum, at)));
  });
}

LogicalResult raiseSoftmax(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Together> axes = axesOf(raiser, node, x);
  if (failed(axes))
    return failure();
  Location l = node.getLoc();
  Known m = largest(raiser, l, x, *axes), sum = sumOfExponentials(raiser, l, x, m, *axes);
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    return s.div(exponential(raiser, s, x, m, at), raiser.element(b, sum, at));
  }));
  return success();
}

LogicalResult raiseLogSoftmax(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Together> axes = axesOf(raiser, node, x);
  if (failed(axes))
    return failure();
  raiser.set(node, logSoftmax(raiser, node.getLoc(), x, *axes));
  return success();
}

/// One where the first largest element is.
LogicalResult raiseHardmax(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Together> axes = axesOf(raiser, node, x);
  if (failed(axes))
    return failure();
  Location l = node.getLoc();
  Type type = raiser.internalType(x.elementType);
  auto linear = [&](Scalars &s, ValueRange loop) {
    Value position = s.index(0);
    for (auto [index, size] : llvm::zip(loop, axes->extents(x)))
      position = s.add(s.mul(position, s.index(size)), index);
    return position;
  };
  Known first =
      raiser.generated(Element::Int64, axes->reduced(x), [&](OpBuilder &b, ValueRange at) {
        Scalars s(b, l);
        SmallVector<Value> initial{s.number(type, -std::numeric_limits<double>::infinity()),
                                   s.index(-1)};
        auto found =
            s.loop(axes->extents(x), initial, [&](Scalars &s, ValueRange loop, ValueRange carried) {
              Value element = raiser.element(s.b, x, axes->at(at, loop));
              Value better =
                  s.either(s.less(carried[0], element), s.equal(carried[1], s.index(-1)));
              return SmallVector<Value>{s.select(better, element, carried[0]),
                                        s.select(better, linear(s, loop), carried[1])};
            });
        return s.asInteger(b.getI64Type(), found[1]);
      });
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value here = linear(s, at.slice(axes->begin, axes->end - axes->begin));
    Value is = s.equal(s.asIndex(raiser.element(b, first, at)), here);
    return s.select(is, s.number(type, 1), s.number(type, 0));
  }));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Losses
//===------------------------------------------------------------------------------------------===//

/// −scores[n, target[n, …], …] · weight[target], reduced. Targets that are `ignore_index` count
/// nothing.
LogicalResult gatherLoss(Raiser &raiser, onnx::NodeOp node, Known &scores) {
  Known &target = raiser.input(node, 1);
  Location l = node.getLoc();
  Type type = raiser.internalType(scores.elementType);
  if (scores.rank() < 2 || target.rank() != scores.rank() - 1 || !isa<FloatType>(type) ||
      !isa<IntegerType>(raiser.internalType(target.elementType)))
    return raiser.fail(node, "expects scores [N, C, ...] of floats and integer targets [N, ...]");
  SmallVector<Size> expected{scores.sizes[0]};
  expected.append(scores.sizes.begin() + 2, scores.sizes.end());
  if (target.sizes != expected)
    return raiser.fail(node, "its targets do not have the scores' shape without the classes");
  Size classes = scores.sizes[1];
  if (!classes.isAtLeast(1))
    return raiser.fail(node, "its scores may have no classes: " + classes.str());
  if (raiser.hasInput(node, 2) && raiser.input(node, 2).sizes != SmallVector<Size>{classes})
    return raiser.fail(node, "its weights must have an element for each class");
  StringRef reduction = node.stringOr("reduction", "mean");
  bool mean = reduction == "mean";
  if (!mean && reduction != "sum" && reduction != "none")
    return raiser.fail(node, "reduction is " + reduction + ", and must be mean, sum or none");
  bool ignores = bool(node.attribute("ignore_index"));
  int64_t ignored = node.intOr("ignore_index", 0);
  bool weighted = raiser.hasInput(node, 2);

  if (failed(checkIndices(raiser, node, node.getInputs()[1], classes, ignores ? std::optional(ignored) : std::nullopt)))
    return failure();
  // No read leaves its tensor, whatever the targets.
  auto classAt = [&](Scalars &s, Value t) { return s.clamp(s.asIndex(t), classes); };
  auto counts = [&](Scalars &s, Value t) -> Value { // whether a target counts, or null
    return ignores ? arith::CmpIOp::create(s.b, s.l, arith::CmpIPredicate::ne, t,
                                           s.number(t.getType(), double(ignored)))
                         .getResult()
                   : Value();
  };
  auto weightOf = [&](Scalars &s, ValueRange at) -> Value {
    Value t = raiser.element(s.b, target, at);
    Value w =
        weighted ? raiser.element(s.b, raiser.input(node, 2), {classAt(s, t)}) : s.number(type, 1);
    Value does = counts(s, t);
    return does ? s.select(does, w, s.number(type, 0)) : w;
  };
  auto loss = [&](Scalars &s, ValueRange at) -> Value {
    Value t = raiser.element(s.b, target, at);
    SmallVector<Value> from{at[0], classAt(s, t)};
    llvm::append_range(from, at.drop_front());
    Value value = arith::NegFOp::create(s.b, s.l, raiser.element(s.b, scores, from));
    if (weighted)
      value = s.mul(value, raiser.element(s.b, raiser.input(node, 2), {from[1]}));
    Value does = counts(s, t);
    return does ? s.select(does, value, s.number(type, 0)) : value;
  };
  if (reduction == "none") {
    raiser.set(node,
               raiser.generated(scores.elementType, target.sizes, [&](OpBuilder &b, ValueRange at) {
                 Scalars s(b, l);
                 return loss(s, at);
               }));
    return success();
  }
  raiser.set(node, raiser.generated(scores.elementType, {}, [&](OpBuilder &b, ValueRange) {
    Scalars s(b, l);
    Value sum = s.sum(type, target.sizes, loss);
    if (!mean)
      return sum;
    Value total = weighted || ignores ? s.sum(type, target.sizes, weightOf)
                                      : s.real(type, s.index(elementCount(target.sizes)));
    return s.div(sum, total);
  }));
  return success();
}

LogicalResult raiseCrossEntropy(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  if (x.rank() < 2 || !isa<FloatType>(raiser.internalType(x.elementType)))
    return raiser.fail(node, "expects scores [N, C, ...] of floats");
  Known logarithm = logSoftmax(raiser, node.getLoc(), x, Together{1, 2});
  if (failed(gatherLoss(raiser, node, logarithm)))
    return failure();
  if (node.getOutputs().size() > 1)
    raiser.set(node, std::move(logarithm), 1);
  return success();
}

} // namespace

void raise::registerSoftmax(Registry &registry) {
  registry.add("Softmax", raiseSoftmax, 1, 1);
  registry.add("LogSoftmax", raiseLogSoftmax, 1, 1);
  registry.add("Hardmax", raiseHardmax, 1, 1);
  registry.add("SoftmaxCrossEntropyLoss", raiseCrossEntropy, 2, 3, 12);
  registry.add(
      "NegativeLogLikelihoodLoss",
      [](Raiser &raiser, onnx::NodeOp node) {
        return gatherLoss(raiser, node, raiser.input(node, 0));
      },
      2, 3, 12);
}
