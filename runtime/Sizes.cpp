// SPDX-License-Identifier: Apache-2.0
#include "runtime/Sizes.h"

#include <algorithm>

namespace otf::runtime {

SizeId SizeTable::intern(Polynomial polynomial) {
  for (SizeTerm &term : polynomial)
    std::sort(term.symbols.begin(), term.symbols.end());
  auto [it, isNew] = ids_.try_emplace(std::move(polynomial), SizeId(polynomials_.size()));
  if (isNew)
    polynomials_.push_back(it->first);
  return it->second;
}

Status SizeTable::evaluate(const Binding &binding, std::span<const uint8_t> late,
                           std::vector<int64_t> &values) const {
  values.resize(polynomials_.size());
  for (size_t i = 0; i < polynomials_.size(); ++i) {
    if (binding.evaluateInto(polynomials_[i], values[i]))
      continue;
    values[i] = kUnknown;
    if (binding.waitsFor(polynomials_[i], late))
      continue;
    Result<int64_t> value = binding.evaluate(polynomials_[i]);
    if (!value.ok())
      return value.status();
  }
  return {};
}

void Binding::clear() {
  std::fill(known_.begin(), known_.end(), 0);
  equations_.clear();
}

void Binding::require(const Polynomial &size, int64_t actual, const char *what,
                      std::string_view name, size_t axis) {
  equations_.push_back({&size, actual, what, name, axis, false});
}

bool Binding::evaluateInto(const Polynomial &size, int64_t &value) const {
  int64_t sum = 0;
  for (const SizeTerm &term : size) {
    int64_t product = term.coefficient;
    for (uint32_t symbol : term.symbols)
      if (!known_[symbol] || __builtin_mul_overflow(product, values_[symbol], &product))
        return false;
    if (__builtin_add_overflow(sum, product, &sum))
      return false;
  }
  value = sum;
  return true;
}

bool Binding::waitsFor(const Polynomial &size, std::span<const uint8_t> flagged) const {
  for (const SizeTerm &term : size)
    for (uint32_t symbol : term.symbols)
      if (flagged[symbol] && !known_[symbol])
        return true;
  return false;
}

Result<int64_t> Binding::evaluate(const Polynomial &size) const {
  int64_t value;
  if (evaluateInto(size, value))
    return value;
  for (const SizeTerm &term : size)
    for (uint32_t symbol : term.symbols)
      if (!known_[symbol])
        return badInput("size '", names_[symbol], "': no input says what it is");
  return badInput("size '", text(size), "': larger than 64 bits (the inputs are too large)");
}

std::string Binding::text(const Polynomial &size) const {
  std::string text;
  for (const SizeTerm &term : size) {
    int64_t coefficient = term.coefficient;
    if (!text.empty())
      text += coefficient < 0 ? " - " : " + ";
    else if (coefficient < 0)
      text += "-";
    uint64_t magnitude = coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
    bool shown = magnitude != 1 || term.symbols.empty();
    if (shown)
      text += std::to_string(magnitude);
    for (uint32_t symbol : term.symbols) {
      if (shown)
        text += '*';
      text += names_[symbol];
      shown = true;
    }
  }
  return text.empty() ? "0" : text;
}

Status Binding::mismatch(const Equation &e, int64_t expected) const {
  std::string why;
  std::vector<uint32_t> seen;
  for (const SizeTerm &term : *e.size)
    for (uint32_t symbol : term.symbols)
      if (std::find(seen.begin(), seen.end(), symbol) == seen.end()) {
        seen.push_back(symbol);
        why += cat(why.empty() ? " (" : ", ", names_[symbol], " = ", values_[symbol]);
      }
  if (seen.size() > 1 || e.size->size() > 1)
    why = cat(" = ", text(*e.size), why);
  return badInput(e.what, " '", e.name, "': expected ", expected, " on axis ", e.axis, why,
                  seen.empty() ? "" : ")", ", found ", e.actual);
}

/// If `e` has one unknown symbol and is linear in it: size = constant + factor * unknown.
static bool linear(const Polynomial &size, const std::vector<int64_t> &values,
                   const std::vector<uint8_t> &known, uint32_t &unknown, int64_t &constant,
                   int64_t &factor) {
  unknown = UINT32_MAX, constant = 0, factor = 0;
  for (const SizeTerm &term : size) {
    int64_t product = term.coefficient;
    bool hasUnknown = false;
    for (uint32_t symbol : term.symbols) {
      if (known[symbol]) {
        if (__builtin_mul_overflow(product, values[symbol], &product))
          return false;
        continue;
      }
      if (hasUnknown || (unknown != UINT32_MAX && unknown != symbol))
        return false;
      unknown = symbol, hasUnknown = true;
    }
    if (__builtin_add_overflow(hasUnknown ? factor : constant, product,
                               hasUnknown ? &factor : &constant))
      return false;
  }
  return unknown != UINT32_MAX && factor != 0;
}

Status Binding::solve() {
  for (bool progress = true; progress;) {
    progress = false;
    for (Equation &e : equations_) {
      uint32_t unknown;
      int64_t constant, factor, rest;
      if (e.done || !linear(*e.size, values_, known_, unknown, constant, factor))
        continue;
      bool possible = !__builtin_sub_overflow(e.actual, constant, &rest);
      if (rest < 0 || factor < 0) // both, or the symbol would be negative; -2^63 / -1 would trap
        possible = possible && !__builtin_sub_overflow(int64_t(0), rest, &rest) &&
                   !__builtin_sub_overflow(int64_t(0), factor, &factor) && rest >= 0 && factor > 0;
      if (!possible || rest % factor != 0)
        return badInput(e.what, " '", e.name, "': ", e.actual, " on axis ", e.axis,
                        " is not possible for ", text(*e.size));
      set(unknown, rest / factor);
      e.done = progress = true;
    }
  }
  for (const Equation &e : equations_) {
    Result<int64_t> value = evaluate(*e.size);
    if (!value.ok())
      return badInput(e.what, " '", e.name, "': axis ", e.axis, ": ", value.status().message());
    if (value.value() != e.actual)
      return mismatch(e, value.value());
  }
  return {};
}

} // namespace otf::runtime
