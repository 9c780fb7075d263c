// SPDX-License-Identifier: Apache-2.0
//
// Weights that no file has: factors of a low rank, references and units of a relative linear, bases
// that layers share. Each is an `otf.weight` whose `otf.derived` says what it is made of while the
// plan is written (lib/Compile/DerivedWeights.h); its blob says a type and a length and is not
// read.
//
// The decisions that lead to them are attributes of the weights that they are made of.
#ifndef OTF_DIALECTS_OTF_DERIVED_H
#define OTF_DIALECTS_OTF_DERIVED_H

#include "dialects/OTF/OTF.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace otf {

/// i64: the rank of what is added to the coded weight, or to its base.
inline constexpr llvm::StringLiteral kRankAttribute = "otf.rank";

/// f32[K]: the units s of a relative linear. Column k of the weight is multiplied by element k
/// before it is coded, and its inputs are divided by it.
inline constexpr llvm::StringLiteral kUnitAttribute = "otf.unit";

/// f32[K]: what comes off the inputs first; only with `otf.unit`.
inline constexpr llvm::StringLiteral kCenterAttribute = "otf.center";

/// f32[N]: W c, which a linear adds for its center.
inline constexpr llvm::StringLiteral kCenterProductsAttribute = "otf.center_products";

/// A string: the name of the base that this weight shares with others of its kind.
inline constexpr llvm::StringLiteral kBaseAttribute = "otf.base";

/// i64: how often bases are fitted again.
inline constexpr llvm::StringLiteral kSweepsAttribute = "otf.sweeps";

/// Unit: a vocabulary table that is coded as linears are, with all that is decided about those.
inline constexpr llvm::StringLiteral kAsLinearAttribute = "otf.as_linear";

/// A string: the weight that this one is a second encoding of; statistics are that one's.
inline constexpr llvm::StringLiteral kCopyOfAttribute = "otf.copy_of";

/// Unit: linears quantize each row of their input with one scale.
inline constexpr llvm::StringLiteral kRowActivationsAttribute = "otf.row_activations";

/// Of a derived weight, a dictionary: `part` and what that needs.
///   part = "left" | "right", of = @w           P (N x r), Q (r x K) of W ~ coded W + P Q
///   part = "base", of = [@w, ...]              the base of these weights
///   part = "base_left" | "base_right",         A (N x r), Bᵀ (r x K) of W ~ base + A Bᵀ
///     of = @w, base = @base
///   part = "quotient", unit, otherwise,        (v − center) / unit of a vector, or of a
///     of = @v                                  constant without `of`; `center` may be left out
///   part = "values"                            `otf.values`, f32
inline constexpr llvm::StringLiteral kDerivedAttribute = "otf.derived";
inline constexpr llvm::StringLiteral kValuesAttribute = "otf.values";

/// The part's name; empty for a weight of a file.
inline llvm::StringRef derivedPart(WeightOp weight) {
  auto derived = weight->getAttrOfType<mlir::DictionaryAttr>(kDerivedAttribute);
  auto part = derived ? derived.getAs<mlir::StringAttr>("part") : mlir::StringAttr();
  return part ? part.getValue() : llvm::StringRef();
}

/// The weight that a derived one is made of, or null.
inline WeightOp derivedFrom(WeightOp weight) {
  auto derived = weight->getAttrOfType<mlir::DictionaryAttr>(kDerivedAttribute);
  auto of = derived ? derived.getAs<mlir::FlatSymbolRefAttr>("of") : mlir::FlatSymbolRefAttr();
  return of ? mlir::SymbolTable::lookupNearestSymbolFrom<WeightOp>(weight, of) : WeightOp();
}

/// The weight of the model whose elements are counted with a stored one: itself; of those that are
/// derived, only the factor that stands for the weight beside its base counts any, and others give
/// null. So bits a weight are those of all parts over the model's elements.
inline WeightOp countedWith(WeightOp stored) {
  llvm::StringRef part = derivedPart(stored);
  return part.empty() ? stored : part == "base_left" ? derivedFrom(stored) : WeightOp();
}

inline int64_t rankOf(WeightOp weight) {
  auto rank = weight->getAttrOfType<mlir::IntegerAttr>(kRankAttribute);
  return rank ? rank.getInt() : 0;
}

/// The name under which calibration knows a weight.
inline llvm::StringRef observedName(WeightOp weight) {
  auto copied = weight->getAttrOfType<mlir::StringAttr>(kCopyOfAttribute);
  return copied ? copied.getValue() : weight.getSymName();
}

/// Whether decisions about linears are about this weight too: it is no table, or one that is coded
/// as they are.
inline bool isCodedAsLinear(WeightOp weight) {
  return !weight.getVocabulary() || weight->hasAttr(kAsLinearAttribute);
}

} // namespace otf

#endif // OTF_DIALECTS_OTF_DERIVED_H
