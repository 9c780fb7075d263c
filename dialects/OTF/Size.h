// SPDX-License-Identifier: Apache-2.0
//
// A tensor size that is known when the model's symbols are: a polynomial with integer coefficients
// over symbol names, kept in a canonical form, so equal sizes compare equal and print alike
// ("past_sequence_length + sequence_length", "2*batch_size*sequence_length - 1"). Polynomials suffice
// because shape arithmetic adds, multiplies and divides exactly; what they cannot say (a
// rounded-up half) is refused where it arises.
#ifndef OTF_DIALECTS_OTF_SIZE_H
#define OTF_DIALECTS_OTF_SIZE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace otf {

class Size {
public:
  /// Sorted symbol names, one for each power; empty for the constant term.
  using Monomial = std::vector<std::string>;

  Size() = default;
  Size(int64_t value) { add(Monomial(), value); }
  static Size symbol(llvm::StringRef name);

  /// Reads sums, differences, products and parentheses of integers and identifiers; nothing else
  /// (an empty optional). A model's free-form dimension name goes through `fromDimParam`.
  static std::optional<Size> parse(llvm::StringRef text);

  /// `text` as an expression where it is one; otherwise one symbol with its odd characters
  /// replaced by '_'. Digit strings, which some exporters write for fixed sizes, are constants.
  static Size fromDimParam(llvm::StringRef text);

  std::string str() const;
  std::optional<int64_t> constant() const;
  bool isConstant() const { return constant().has_value(); }
  const std::map<Monomial, int64_t> &terms() const { return polynomial; }
  void collectSymbols(std::set<std::string> &names) const;

  /// The quotient when `divisor` is one term and divides every term; nothing otherwise.
  std::optional<Size> divide(const Size &divisor) const;

  /// True if this is not less than `other` whatever the symbols are, which are not negative. False may mean that it
  /// depends on them.
  bool isAtLeast(const Size &other) const;

  /// False where a coefficient left int64, or where there were too many terms or factors to be a real size. Everything
  /// computed from such a size is such a size.
  bool isValid() const { return valid; }

  /// The value for the given symbols; nothing if one is missing or the value leaves int64.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t> &symbols) const;

  friend Size operator+(Size a, const Size &b) {
    a.valid &= b.valid;
    for (auto &[monomial, coefficient] : b.polynomial)
      a.add(monomial, coefficient);
    return a;
  }
  friend Size operator-(const Size &a, const Size &b) { return a + b * Size(-1); }
  friend Size operator*(const Size &a, const Size &b);
  friend bool operator==(const Size &a, const Size &b) {
    return a.valid && b.valid && a.polynomial == b.polynomial;
  }
  friend bool operator!=(const Size &a, const Size &b) { return !(a == b); }

private:
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> polynomial; // no zero coefficients
  bool valid = true;
};

} // namespace otf

#endif // OTF_DIALECTS_OTF_SIZE_H
