// SPDX-License-Identifier: Apache-2.0
//
// A decision like any other: it ends up in the attributes that rewriting reads. Scales decide between encodings, so they are read;
// they are a 32nd of a weight or less.

#include "lib/Compile/KeepGiven.h"

#include "dialects/OTF/Codes.h"
#include "lib/Compile/WeightRows.h"
#include "lib/Import/GivenWeight.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace mlir;

namespace otf {

namespace {

bool fitsHalf(float value) {
  if (value == 0)
    return true;
  if (std::abs(value) < 0x1p-14f) // a subnormal half counts in units of 2^-24
    return std::trunc(value * 0x1p24f) == value * 0x1p24f;
  return std::abs(value) <= 65504 && (std::bit_cast<uint32_t>(value) & 0x1fff) == 0;
}

struct KeepGiven : PassWrapper<KeepGiven, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepGiven)
  KeepGiven(KeepGivenOptions options, const FileSet &files) : options(options), files(&files) {}

  StringRef getArgument() const override { return "otf-keep-given"; }
  StringRef getDescription() const override { return "weights stay as the file has them"; }

  void runOnOperation() override {
    findGridReaders();
    auto half = EncodingAttr::get(&getContext(), EncodingKind::f16, 0);
    for (auto weight : getOperation().getOps<WeightOp>()) {
      std::optional<EncodingAttr> encoding = weight.getEncoding();
      bool given = weight.getVocabulary() ? options.vocabulary : options.linear;
      if (!given || !encoding || encoding->getKind() != EncodingKind::f32)
        continue;
      if (weight.getGiven()) {
        if (failed(keepGrid(weight)))
          return signalPassFailure();
      } else if (weight.getBlob().getType().isF16()) {
        weight.setEncodingAttr(half);
      }
    }
  }

  LogicalResult keepGrid(WeightOp weight) {
    GivenAttr given = *weight.getGiven();
    auto type = cast<RankedTensorType>(weight.getType());
    int64_t rows = type.getDimSize(0), columns = type.getDimSize(1), block = given.getBlock();
    if (given.getTable() || (block % 32 != 0 && block < columns))
      return success();
    llvm::Expected<GivenWeight> source = GivenWeight::open(*files, weight, rows, columns);
    if (!source)
      return weight.emitError() << "cannot be read: " << llvm::toString(source.takeError());
    float middle = given.getIsSigned() ? 0.0f : float(1 << (given.getBits() - 1));
    bool halves = given.getBits() != 2, centred = true;
    for (int64_t row = 0; row < rows && (halves || centred); ++row)
      for (int64_t at = 0; at < source->blocks(); ++at) {
        halves = halves && fitsHalf(source->scale(row, at));
        centred = centred && source->point(row, at) == middle;
      }
    EncodingKind kind = given.getBits() == 8   ? !centred ? EncodingKind::grid8z : halves ? EncodingKind::int8 : EncodingKind::grid8
                        : given.getBits() == 4 ? !centred ? EncodingKind::grid4z : halves ? EncodingKind::int4 : EncodingKind::grid4
                                               : !centred ? EncodingKind::grid2z : EncodingKind::grid2;
    // Records on a grid of the file hold any byte, and kernels of int8 weights take no -128.
    if (gridReaders.contains(weight) && kind == EncodingKind::int8)
      kind = EncodingKind::grid8;
    weight.setEncodingAttr(EncodingAttr::get(&getContext(), kind, block < columns ? block : 0));
    weight.setKeepsGiven(true);
    weight.setFloatActivations(!options.integerActivations);
    if (!gridReaders.contains(weight))
      return success();
    if (block >= columns && !otherReaders.contains(weight)) {
      std::vector<float> scales;
      for (int64_t row = 0; row < rows; ++row)
        scales.push_back(source->scale(row, 0));
      setVector(weight, kRowScalesAttribute, scales);
    }
    return sumRows(weight, rows, columns);
  }

  /// Weights that some linear multiplies with activations on a grid of the file.
  void findGridReaders() {
    SymbolTable symbols(getOperation());
    gridReaders.clear();
    otherReaders.clear();
    getOperation().walk([&](UseOp use) {
      Operation *weight = symbols.lookup<WeightOp>(use.getWeight());
      for (Operation *user : use->getUsers()) {
        auto linear = dyn_cast<LinearOp>(user);
        bool onGrid = linear && linear.getInput().getDefiningOp<OnGridOp>();
        (onGrid ? gridReaders : otherReaders).insert(weight);
      }
    });
  }

  void setVector(WeightOp weight, StringRef name, ArrayRef<float> values) {
    auto type = RankedTensorType::get({int64_t(values.size())}, Float32Type::get(&getContext()));
    weight->setDiscardableAttr(name, DenseElementsAttr::get(type, values));
  }

  /// Sums of rows, for the zero points of such activations.
  LogicalResult sumRows(WeightOp weight, int64_t rows, int64_t columns) {
    llvm::Expected<WeightRows> source = WeightRows::open(*files, weight, rows, columns);
    if (!source)
      return weight.emitError() << "cannot be read: " << llvm::toString(source.takeError());
    int64_t most = std::clamp<int64_t>((int64_t(1) << 20) / columns, 1, 256); // rows of a transposed file come many at once
    std::vector<float> block(size_t(most * columns)), sums;
    bool exact = weight->hasAttr(kRowScalesAttribute); // else these are no codes
    for (int64_t first = 0; first < rows; first += most) {
      int64_t count = std::min(most, rows - first);
      if (llvm::Error error = source->read(first, count, block.data()))
        return weight.emitError() << "cannot be read: " << llvm::toString(std::move(error));
      for (int64_t row = 0; row != count; ++row) {
        double sum = 0, magnitudes = 0;
        for (int64_t column = 0; column != columns; ++column) {
          double value = block[size_t(row * columns + column)];
          sum += value;
          magnitudes += std::abs(value);
        }
        exact &= hasExactSums(magnitudes);
        sums.push_back(float(sum));
      }
    }
    setVector(weight, kRowSumsAttribute, sums);
    if (exact)
      weight->setDiscardableAttr(kExactSumsAttribute, UnitAttr::get(&getContext()));
    return success();
  }

  KeepGivenOptions options;
  const FileSet *files;
  llvm::DenseSet<Operation *> gridReaders, otherReaders;
};

} // namespace

std::unique_ptr<Pass> createKeepGiven(KeepGivenOptions options, const FileSet &files) {
  return std::make_unique<KeepGiven>(options, files);
}

} // namespace otf
