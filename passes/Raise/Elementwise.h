// SPDX-License-Identifier: Apache-2.0
//
// Operators from elements to an element. A family describes each as an `Elementwise`, a few lines; the broadcast, the
// check of types and what is computed of known contents are the same for all.
#ifndef OTF_PASSES_RAISE_ELEMENTWISE_H
#define OTF_PASSES_RAISE_ELEMENTWISE_H

#include "passes/Raise/Elements.h"
#include "passes/Raise/Raiser.h"

namespace otf::raise {

using Scalar = std::function<mlir::Value(mlir::OpBuilder &, mlir::Location, llvm::ArrayRef<mlir::Value>)>;
using FoldReal = std::function<double(llvm::ArrayRef<double>)>;
/// Nothing where the answer depends on the symbols in a way that no polynomial says.
using FoldSize = std::function<std::optional<Size>(llvm::ArrayRef<Size>)>;

/// How one operator computes, by kind of element. A missing function means that the operator refuses such elements.
struct Elementwise {
  Scalar real = nullptr;     // f32 and f64
  Scalar integer = nullptr;  // signed
  Scalar natural = nullptr;  // unsigned
  Scalar boolean = nullptr;  // i1
  FoldReal foldReal = nullptr;
  FoldSize foldSize = nullptr; // of integers and booleans
  bool toBool = false;
  bool movesBits = false;    // fp8 and fp4 too, by `integer`: no arithmetic is done
  unsigned others = 0;       // leading inputs that have a type of their own

  Elementwise &integers(Scalar scalar) { // wrapping arithmetic is the same for both
    integer = natural = std::move(scalar);
    return *this;
  }
};

/// Raises a node whose inputs all broadcast.
mlir::LogicalResult raiseElementwise(Raiser &, onnx::NodeOp, const Elementwise &);

/// The same with the known inputs given, for operators that have others besides.
mlir::LogicalResult raiseElementwise(Raiser &, onnx::NodeOp, llvm::ArrayRef<Known *> inputs, const Elementwise &);

/// An operator of `arity` inputs, or of any number from one on, tried after `recognize`.
void addElementwise(Registry &, llvm::StringRef name, unsigned arity, Elementwise,
                    std::function<bool(Raiser &, onnx::NodeOp)> recognize = nullptr, int64_t since = 7);

/// One whose description depends on the node's attributes.
void addElementwise(Registry &, llvm::StringRef name, unsigned arity, std::function<Elementwise(onnx::NodeOp)>,
                    int64_t since = 7);

//===-- scalars -------------------------------------------------------------------------------===//

/// One operation on all operands.
template <typename Op> Scalar scalarOp() {
  return [](mlir::OpBuilder &b, mlir::Location l, llvm::ArrayRef<mlir::Value> v) -> mlir::Value {
    return Op::create(b, l, v[0].getType(), mlir::ValueRange(v));
  };
}

/// A binary operation over all operands.
template <typename Op> Scalar overAll() {
  return [](mlir::OpBuilder &b, mlir::Location l, llvm::ArrayRef<mlir::Value> v) -> mlir::Value {
    mlir::Value result = v[0];
    for (mlir::Value next : v.drop_front())
      result = Op::create(b, l, result, next);
    return result;
  };
}

Scalar compare(mlir::arith::CmpFPredicate predicate);
Scalar compare(mlir::arith::CmpIPredicate predicate);

/// Arithmetic on one float type at one place, to write formulas as they are in books.
struct Formula {
  mlir::OpBuilder &b;
  mlir::Location l;
  mlir::Type type;

  mlir::Value number(double value) const { return raise::number(b, l, type, value); }
  mlir::Value add(mlir::Value x, mlir::Value y) const { return mlir::arith::AddFOp::create(b, l, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) const { return mlir::arith::SubFOp::create(b, l, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) const { return mlir::arith::MulFOp::create(b, l, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) const { return mlir::arith::DivFOp::create(b, l, x, y); }
  mlir::Value neg(mlir::Value x) const { return mlir::arith::NegFOp::create(b, l, x); }
  mlir::Value abs(mlir::Value x) const { return mlir::math::AbsFOp::create(b, l, x); }
  mlir::Value exp(mlir::Value x) const { return mlir::math::ExpOp::create(b, l, x); }
  mlir::Value log(mlir::Value x) const { return mlir::math::LogOp::create(b, l, x); }
  mlir::Value tanh(mlir::Value x) const { return mlir::math::TanhOp::create(b, l, x); }
  mlir::Value larger(mlir::Value x, mlir::Value y) const { return mlir::arith::MaximumFOp::create(b, l, x, y); }
  mlir::Value smaller(mlir::Value x, mlir::Value y) const { return mlir::arith::MinimumFOp::create(b, l, x, y); }
  mlir::Value less(mlir::Value x, mlir::Value y) const {
    return mlir::arith::CmpFOp::create(b, l, mlir::arith::CmpFPredicate::OLT, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no) const {
    return mlir::arith::SelectOp::create(b, l, condition, yes, no);
  }
  mlir::Value sigmoid(mlir::Value x) const {
    mlir::Value one = number(1);
    return div(one, add(one, exp(neg(x))));
  }
};

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_ELEMENTWISE_H
