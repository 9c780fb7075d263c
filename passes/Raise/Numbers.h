// SPDX-License-Identifier: Apache-2.0
//
// Integers that an operator takes beside its data: bounds, pads, repeats, depths. One may be known as a size, or only as
// an element of a tensor at run time. Arithmetic on numbers stays a size where the sizes decide the answer, and is a
// scalar program otherwise; `settled` makes a size of that by binding it at run time. So an operator is written once, for
// constants, sizes and data alike.
#ifndef OTF_PASSES_RAISE_NUMBERS_H
#define OTF_PASSES_RAISE_NUMBERS_H

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Expressions.h"

namespace otf::raise {

class Number {
public:
  using Compute = std::function<mlir::Value(Expressions)>; // gives an index

  Number(Size size) : size_(std::move(size)) {}
  Number(int64_t value) : size_(Size(value)) {}
  /// `name` tells this program from others, so that what is computed twice is one size; empty if nothing does.
  explicit Number(Compute compute, std::string name = "") : compute(std::move(compute)), name(std::move(name)) {}

  const std::optional<Size> &size() const { return size_; }
  std::optional<int64_t> constant() const { return size_ ? size_->constant() : std::nullopt; }
  bool is(int64_t value) const { return size_ && *size_ == Size(value); }
  /// Whether it is known not to be less.
  bool isAtLeast(const Number &other) const { return size_ && other.size_ && size_->isAtLeast(*other.size_); }

  std::string key() const { return size_ ? size_->str() : name; }

  mlir::Value emit(Expressions s) const { return size_ ? s.index(*size_) : compute(s); }

private:
  std::optional<Size> size_;
  Compute compute;
  std::string name;
};

Number operator+(const Number &a, const Number &b);
Number operator-(const Number &a, const Number &b);
Number operator*(const Number &a, const Number &b);
Number minimum(const Number &a, const Number &b);
Number maximum(const Number &a, const Number &b);
/// a / b for b > 0 and a >= 0, rounded down.
Number quotient(const Number &a, const Number &b);
inline Number quotientUp(const Number &a, const Number &b) { return quotient(a + b - Number(1), b); }
/// a < 0 ? x : y
Number ifNegative(const Number &a, const Number &x, const Number &y);
/// a == b ? x : y
Number ifEqual(const Number &a, const Number &b, const Number &x, const Number &y);

/// Element `position`, in row-major order, of a tensor with a constant number of elements.
Number numberAt(Raiser &, Known &, size_t position);

/// The numbers of an input, or of an attribute where there is no such input; none where there is neither. Fails where
/// their count is not constant.
mlir::FailureOr<llvm::SmallVector<Number>> numbersOf(Raiser &, onnx::NodeOp, unsigned input, llvm::StringRef attribute = "");

/// Two numbers that must be the same. `what` names them in the plural.
struct Check {
  Number left, right;
  std::string what;
};

/// The numbers as sizes. Those that depend on data are computed at run time, before what is raised next; a negative one
/// ends the run there. So does a check that fails, where only data says whether it does.
mlir::FailureOr<llvm::SmallVector<Size>> settled(Raiser &, onnx::NodeOp, llvm::ArrayRef<Number>, llvm::ArrayRef<Check> = {});

/// The sizes that two broadcast to. Where they are different sizes and neither is 1 it is checked at run time that they are
/// the same.
mlir::FailureOr<llvm::SmallVector<Size>> broadcastOrCheck(Raiser &, onnx::NodeOp, llvm::ArrayRef<Size>, llvm::ArrayRef<Size>);

/// Contents of Div, Mod, Min and Max of sizes that no polynomial says: bound, so that they stay sizes. False where the
/// operator is another, or where one might be negative; then nothing was done.
bool boundContents(Raiser &, onnx::NodeOp, llvm::ArrayRef<Known *> inputs, Known &result);

/// Moves contents where there are any: `position` maps each output position to an input position.
template <typename Position>
void moveContents(const Known &input, Known &result, size_t count, Position position) {
  if (input.integers) {
    result.integers.emplace();
    for (size_t i = 0; i != count; ++i)
      result.integers->push_back((*input.integers)[position(i)]);
  }
  if (input.reals) {
    result.reals.emplace();
    for (size_t i = 0; i != count; ++i)
      result.reals->push_back((*input.reals)[position(i)]);
  }
}

/// The same elements under another shape. Where no polynomial says that there are equally many, `settled` was given that as a
/// check or the numbers leave no choice.
Known reshapedTo(Raiser &, Known &, llvm::ArrayRef<Size> sizes);

/// The values whose `dropped` is 0, in order, where all but `count` are dropped.
llvm::SmallVector<Number> compacted(llvm::ArrayRef<Size> values, llvm::ArrayRef<Number> dropped, size_t count);

/// An element of a tensor that may have none at run time; of an empty one, zero.
mlir::Value guardedElement(Raiser &, Expressions, Known &, mlir::ValueRange at);

/// ONNX's number of the element type of a constant in the IR; Undefined where there is none.
int64_t elementNumber(mlir::Type);

/// The axis, counted from the front; nothing where it is outside the rank.
std::optional<int64_t> axisInside(int64_t axis, int64_t rank);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_NUMBERS_H
