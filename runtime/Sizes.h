// SPDX-License-Identifier: Apache-2.0
//
// Symbolic sizes at run time. A plan gives every shape, scratch size and kernel dimension as a
// polynomial over symbols. Layers share most of them, so a plan's sizes are interned into one table
// that is evaluated once a step; everything else is an index into the result. The symbols
// themselves come from the shapes of the inputs: `Binding` solves for one unknown at a time and
// then checks the rest, so a wrong shape is reported with what was expected.
#ifndef OTF_RUNTIME_SIZES_H
#define OTF_RUNTIME_SIZES_H

#include "runtime/Status.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace otf::runtime {

/// Index into a SizeTable, and into the values it evaluates to.
using SizeId = uint32_t;

struct SizeTerm {
  int64_t coefficient;
  std::vector<uint32_t> symbols; // ascending; a square appears twice
  auto operator<=>(const SizeTerm &) const = default;
};
using Polynomial = std::vector<SizeTerm>;

/// The value of a size that is not known yet.
inline constexpr int64_t kUnknown = INT64_MIN;

class SizeTable {
public:
  /// The caller has checked that every symbol index is below the number of symbols.
  SizeId intern(Polynomial polynomial);
  size_t count() const { return polynomials_.size(); }
  const Polynomial &operator[](SizeId id) const { return polynomials_[id]; }

  /// Values of all sizes; fails on overflow of int64 or a symbol without a value. A size of a late symbol
  /// (one that the run has yet to find, a flag for each symbol) is kUnknown until then. `values` is resized once and
  /// then reused.
  Status evaluate(const class Binding &binding, std::span<const uint8_t> late,
                  std::vector<int64_t> &values) const;

private:
  std::vector<Polynomial> polynomials_;
  std::map<Polynomial, SizeId> ids_;
};

/// Values of symbols, found from equations "this size is that number".
class Binding {
public:
  explicit Binding(std::span<const std::string_view> names)
      : names_(names), values_(names.size()), known_(names.size()) {}

  /// Forgets all values and equations, and keeps the memory.
  void clear();
  void set(uint32_t symbol, int64_t value) { values_[symbol] = value, known_[symbol] = true; }
  bool known(uint32_t symbol) const { return known_[symbol]; }
  int64_t value(uint32_t symbol) const { return values_[symbol]; }

  /// `what` and `name` say in an error where the number was found: input 'x'. They and `size` must
  /// outlive solve().
  void require(const Polynomial &size, int64_t actual, const char *what, std::string_view name,
               size_t axis);
  void require(Polynomial &&, int64_t, const char *, std::string_view, size_t) = delete;
  /// Solves equations with one linear unknown until nothing changes, then checks all of them.
  Status solve();

  Result<int64_t> evaluate(const Polynomial &size) const;
  /// Whether `size` has a symbol without a value among the flagged.
  bool waitsFor(const Polynomial &size, std::span<const uint8_t> flagged) const;
  /// As people write it: "past + 2*length".
  std::string text(const Polynomial &size) const;
  std::string_view name(uint32_t symbol) const { return names_[symbol]; }

private:
  friend class SizeTable;
  struct Equation {
    const Polynomial *size;
    int64_t actual;
    const char *what;
    std::string_view name;
    size_t axis;
    bool done;
  };
  Status mismatch(const Equation &equation, int64_t expected) const;
  bool evaluateInto(const Polynomial &size, int64_t &value) const;

  std::span<const std::string_view> names_;
  std::vector<int64_t> values_;
  std::vector<uint8_t> known_;
  std::vector<Equation> equations_;
};

/// Product that refuses to wrap.
inline bool multiply(int64_t a, int64_t b, int64_t &product) {
  return !__builtin_mul_overflow(a, b, &product);
}

} // namespace otf::runtime

#endif // OTF_RUNTIME_SIZES_H
