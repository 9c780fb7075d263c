// SPDX-License-Identifier: Apache-2.0
//
// The contracts between stages.
//
// Problem: "is this ready for the next stage?" should be a question with an answer, also for IR
// that a person wrote. Approach: one function a stage, each of which includes the one before as far
// as it still holds; a breach is one sentence at its operator.

#include "passes/Encodings.h"
#include "passes/Passes.h"
#include "passes/Stages.h"

#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_VERIFYSTAGE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// Collects breaches, so that one run reports all.
class Checker {
public:
  explicit Checker(ModuleOp module) : module(module), symbols(module) {}

  InFlightDiagnostic at(Operation *op) {
    result = failure();
    return op->emitOpError();
  }

  template <typename Check> void functions(Check check) {
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        check(function);
  }
  /// Matrices with their weights.
  template <typename Check> void matrices(Check check) {
    module.walk([&](UseOp use) {
      if (auto matrix = dyn_cast<MatrixType>(use.getType()))
        check(use, matrix, symbols.lookup<WeightOp>(use.getWeight()));
    });
  }

  ModuleOp module;
  SymbolTable symbols;
  LogicalResult result = success();
};

//===------------------------------------------------------------------------------------------===//
// imported
//===------------------------------------------------------------------------------------------===//

/// What is wrong with a value inside a function, or empty.
std::string typeBreach(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!tensor)
    return "";
  std::string type;
  llvm::raw_string_ostream(type) << tensor;
  if (!tensor.hasStaticShape() && !tensor.getEncoding())
    return "has a dynamic dimension without a name: " + type;
  Type element = tensor.getElementType();
  // Weights and what main takes may be in the file's own types; bytes are records or bits.
  bool internal = element.isF32() || element.isF64() || element.isInteger(1) ||
                  element.isInteger(8) || element.isInteger(16) || element.isInteger(32) ||
                  element.isInteger(64);
  if (!internal && !isa<BlockArgument>(value) && !value.getDefiningOp<UseOp>() &&
      !llvm::all_of(value.getUsers(), llvm::IsaPred<func::ReturnOp>))
    return "computes in a storage type: " + type;
  return "";
}

/// Also those of branches and loops.
void checkBlock(Checker &checker, Block &block) {
  for (Operation &op : block) {
    if (!isa_and_nonnull<OTFDialect>(op.getDialect()) &&
        !isa<tensor::GenerateOp, arith::ConstantOp, func::ReturnOp>(op))
      checker.at(&op) << "is no operator of otf, tensor.generate or constant";
    for (Value value : op.getResults())
      if (std::string breach = typeBreach(value); !breach.empty())
        checker.at(&op) << breach;
    if (isa<IfOp, LoopOp>(op))
      for (Region &region : op.getRegions())
        checkBlock(checker, region.front());
  }
}

void checkFunction(Checker &checker, func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody())) {
    checker.at(function) << "must have one block";
    return;
  }
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (!function.getArgAttrOfType<StringAttr>(number, "otf.name"))
      checker.at(function) << "argument #" << number << " has no otf.name";
    if (std::string breach = typeBreach(argument); !breach.empty())
      checker.at(function) << "argument #" << number << " " << breach;
  }
  for (unsigned number = 0; number != function.getNumResults(); ++number)
    if (!function.getResultAttrOfType<StringAttr>(number, "otf.name"))
      checker.at(function) << "result #" << number << " has no otf.name";
  checkBlock(checker, function.front());
}

void imported(Checker &checker) {
  checker.module->walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "onnx")
      checker.at(op) << "is not raised";
    if (isa_and_nonnull<plan::PlanDialect>(op->getDialect()))
      checker.at(op) << "belongs to stage planned";
  });
  checker.functions([&](func::FuncOp function) { checkFunction(checker, function); });
}

//===------------------------------------------------------------------------------------------===//
// annotated, quantized, fused
//===------------------------------------------------------------------------------------------===//

void annotated(Checker &checker) {
  imported(checker);
  llvm::SmallPtrSet<Operation *, 16> seen;
  checker.matrices([&](UseOp use, MatrixType matrix, WeightOp weight) {
    if (!seen.insert(weight).second)
      return;
    if (!weight.getEncoding())
      checker.at(weight) << "has no encoding (stage annotated; run otf-choose-bits)";
    else if (weight.getOutliers() && isPlain(*weight.getEncoding()))
      checker.at(weight) << "has outliers and a plain encoding";
  });
}

void quantized(Checker &checker) {
  annotated(checker);
  checker.matrices([&](UseOp use, MatrixType matrix, WeightOp weight) {
    int64_t outliers = weight.getOutliers() ? weight.getOutliers()->getColumns().size() : 0;
    if (weight.getEncoding() &&
        (matrix.getEncoding() != *weight.getEncoding() || matrix.getOutliers() != outliers))
      checker.at(use) << "does not follow its weight, which has " << *weight.getEncoding()
                      << " and " << outliers << " outliers, got " << matrix;
  });
  checker.module->walk([&](OnGridOp op) { checker.at(op) << "is left (run otf-encode)"; });
  checker.module->walk([&](LinearOp linear) {
    bool plain = isPlain(linear.getWeight().getType().getEncoding());
    Type element = getElementTypeOrSelf(linear.getInput().getType());
    auto use = linear.getWeight().getDefiningOp<UseOp>();
    auto weight = use ? SymbolTable::lookupNearestSymbolFrom<WeightOp>(use, use.getWeightAttr()) : WeightOp();
    if (!plain && weight && weight.getFloatActivations() && (element.isF32() || element.isInteger(8)))
      return; // records are those of a grid that the file gives
    if (plain ? !element.isF32() : !element.isInteger(8))
      checker.at(linear) << "must read " << (plain ? "f32" : "records, i8,") << " for "
                         << linear.getWeight().getType() << ", got " << linear.getInput().getType();
  });
}

void fused(Checker &checker) {
  quantized(checker);
  checker.module->walk([&](GatedActivationOp gated) {
    checker.at(gated) << "is not fused (run otf-fuse-elementwise)";
  });
}

//===------------------------------------------------------------------------------------------===//
// planned
//===------------------------------------------------------------------------------------------===//

void checkLaunch(Checker &checker, plan::LaunchOp launch) {
  if (!launch.getExtent() || !launch.getGrain())
    checker.at(launch) << "has no extent or grain (run otf-schedule)";
  else if (!otf::Size::parse(*launch.getExtent()))
    checker.at(launch) << "has an extent that is no size: \"" << *launch.getExtent() << "\"";
  else if (std::optional<int64_t> extent = otf::Size::parse(*launch.getExtent())->constant();
           extent && *extent < 0)
    checker.at(launch) << "has a negative extent: " << *extent;
  // The accessor's value is unsigned.
  else if (int64_t grain = launch.getGrainAttr().getInt(); grain < 1 || grain > UINT32_MAX)
    checker.at(launch) << "has a grain of " << grain << ", which must be from 1 to " << UINT32_MAX;
  for (auto size : launch.getSizes().getAsRange<StringAttr>())
    if (!otf::Size::parse(size.getValue()))
      checker.at(launch) << "gives a size that is none: " << size;

  auto kernel = checker.symbols.lookup<plan::KernelOp>(launch.getKernel());
  bool hasStates = llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<StateType>);
  size_t expected = kernel.getSymbols().size() + (hasStates ? 3 : 0);
  if (launch.getSizes().size() != expected)
    checker.at(launch) << "gives " << launch.getSizes().size() << " sizes, and @"
                       << kernel.getSymName() << " names " << expected;
}

void planned(Checker &checker) {
  checker.functions([&](func::FuncOp function) {
    llvm::StringSet<> inputs, outputs;
    if (function.getNumArguments() != 0 || function.getNumResults() != 0)
      checker.at(function) << "still has arguments or results (run otf-bufferize)";
    for (Block &block : function.getBody())
      for (Operation &op : block) {
        if (auto launch = dyn_cast<plan::LaunchOp>(op))
          checkLaunch(checker, launch);
        else if (auto alloc = dyn_cast<plan::AllocOp>(op)) {
          if (!alloc.getSlot())
            checker.at(alloc) << "has no slot (run otf-schedule)";
          else if (alloc.getSlotAttr().getInt() < 0)
            checker.at(alloc) << "has the slot " << alloc.getSlotAttr().getInt();
        } else if (auto input = dyn_cast<plan::InputOp>(op)) {
          if (!inputs.insert(input.getName()).second)
            checker.at(input) << "is a second input of the name \"" << input.getName() << "\"";
        } else if (auto output = dyn_cast<plan::OutputOp>(op)) {
          if (!outputs.insert(output.getName()).second)
            checker.at(output) << "is a second output of the name \"" << output.getName() << "\"";
        } else if (isa<plan::CallOp>(op))
          checker.at(&op) << "has no buffers (run otf-bufferize)";
        else if (!isa_and_nonnull<plan::PlanDialect>(op.getDialect()) && !isa<func::ReturnOp>(op))
          checker.at(&op) << "is not of the plan dialect";
      }
  });
  for (auto kernel : checker.module.getOps<plan::KernelOp>())
    if (!kernel.getRoot())
      checker.at(kernel) << "returns no operator's result";
}

template <void (*check)(Checker &)> LogicalResult run(ModuleOp module) {
  Checker checker(module);
  check(checker);
  return checker.result;
}

struct VerifyStagePass : otf::impl::VerifyStageBase<VerifyStagePass> {
  using VerifyStageBase::VerifyStageBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    if (!(imported || annotated || quantized || fused || planned)) {
      module.emitError()
          << getArgument()
          << ": names no stage; write imported, annotated, quantized, fused or planned";
      return signalPassFailure();
    }
    bool valid = (!imported || succeeded(verifyImported(module))) &&
                 (!annotated || succeeded(verifyAnnotated(module))) &&
                 (!quantized || succeeded(verifyQuantized(module))) &&
                 (!fused || succeeded(verifyFused(module))) &&
                 (!planned || succeeded(verifyPlanned(module)));
    if (!valid)
      signalPassFailure();
  }
};

} // namespace

LogicalResult otf::verifyImported(ModuleOp module) { return run<imported>(module); }
LogicalResult otf::verifyAnnotated(ModuleOp module) { return run<annotated>(module); }
LogicalResult otf::verifyQuantized(ModuleOp module) { return run<quantized>(module); }
LogicalResult otf::verifyFused(ModuleOp module) { return run<fused>(module); }
LogicalResult otf::verifyPlanned(ModuleOp module) { return run<planned>(module); }
