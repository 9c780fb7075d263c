// SPDX-License-Identifier: Apache-2.0
//
// Polynomial sizes: arithmetic, a recursive-descent reader with bounded depth, and printing.

#include "dialects/OTF/Size.h"

#include <algorithm>
#include <cctype>
#include <limits>

using namespace otf;

namespace {

// Text of sizes comes from files; these bound the work that it can ask for. The runtime accepts as many factors.
constexpr int kMaxDepth = 64;
constexpr size_t kMaxFactors = 16;
constexpr size_t kMaxTerms = 256;

bool isIdentifierStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool isIdentifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

class Parser {
public:
  explicit Parser(llvm::StringRef text) : text(text) {}

  std::optional<Size> whole() {
    std::optional<Size> size = sum(0);
    if (!size || !rest().empty())
      return std::nullopt;
    return size;
  }

private:
  llvm::StringRef rest() { return text = text.ltrim(); }

  std::optional<Size> sum(int depth) {
    rest();
    bool negative = text.consume_front("-");
    std::optional<Size> left = product(depth);
    if (!left)
      return std::nullopt;
    if (negative)
      left = *left * Size(-1);
    while (!rest().empty() && (text.front() == '+' || text.front() == '-')) {
      bool minus = text.front() == '-';
      text = text.drop_front();
      std::optional<Size> right = product(depth);
      if (!right)
        return std::nullopt;
      left = minus ? *left - *right : *left + *right;
    }
    return left;
  }

  std::optional<Size> product(int depth) {
    std::optional<Size> left = atom(depth);
    while (left && !rest().empty() && text.front() == '*') {
      text = text.drop_front();
      std::optional<Size> right = atom(depth);
      if (!right || !left->isValid())
        return std::nullopt;
      left = *left * *right;
    }
    return left;
  }

  std::optional<Size> atom(int depth) {
    if (rest().empty() || depth > kMaxDepth)
      return std::nullopt;
    if (text.front() == '(') {
      text = text.drop_front();
      std::optional<Size> inner = sum(depth + 1);
      if (!inner || rest().empty() || text.front() != ')')
        return std::nullopt;
      text = text.drop_front();
      return inner;
    }
    int64_t value;
    if (std::isdigit(static_cast<unsigned char>(text.front()))) {
      llvm::StringRef digits =
          text.take_while([](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
      if (digits.getAsInteger(10, value))
        return std::nullopt;
      text = text.drop_front(digits.size());
      return Size(value);
    }
    if (!isIdentifierStart(text.front()))
      return std::nullopt;
    llvm::StringRef name = text.take_while(isIdentifier);
    text = text.drop_front(name.size());
    return Size::symbol(name);
  }

  llvm::StringRef text;
};

} // namespace

Size Size::symbol(llvm::StringRef name) {
  Size size;
  size.add({name.str()}, 1);
  return size;
}

std::optional<Size> Size::parse(llvm::StringRef text) {
  std::optional<Size> size = Parser(text).whole();
  if (size && !size->isValid())
    return std::nullopt;
  return size;
}

Size Size::fromDimParam(llvm::StringRef text) {
  if (std::optional<Size> size = parse(text))
    return *size;
  std::string name = text.str();
  for (char &c : name)
    if (!isIdentifier(c))
      c = '_';
  if (name.empty() || !isIdentifierStart(name.front()))
    name.insert(name.begin(), '_');
  return symbol(name);
}

void Size::add(const Monomial &monomial, int64_t coefficient) {
  auto it = polynomial.try_emplace(monomial, 0).first;
  valid &= !__builtin_add_overflow(it->second, coefficient, &it->second);
  if (it->second == 0)
    polynomial.erase(it);
  valid &= polynomial.size() <= kMaxTerms && monomial.size() <= kMaxFactors;
}

Size otf::operator*(const Size &a, const Size &b) {
  Size product;
  product.valid = a.valid && b.valid;
  for (auto &[left, leftCoefficient] : a.polynomial) {
    for (auto &[right, rightCoefficient] : b.polynomial) {
      if (!product.valid)
        return product;
      Size::Monomial merged;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(merged));
      int64_t coefficient;
      product.valid &= !__builtin_mul_overflow(leftCoefficient, rightCoefficient, &coefficient);
      product.add(merged, coefficient);
    }
  }
  return product;
}

bool Size::isAtLeast(const Size &other) const {
  Size difference = *this - other;
  for (auto &[monomial, coefficient] : difference.polynomial)
    if (coefficient < 0)
      return false;
  return difference.valid;
}

std::optional<int64_t> Size::constant() const {
  if (!valid)
    return std::nullopt;
  if (polynomial.empty())
    return 0;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty())
    return polynomial.begin()->second;
  return std::nullopt;
}

void Size::collectSymbols(std::set<std::string> &names) const {
  for (auto &[monomial, coefficient] : polynomial)
    names.insert(monomial.begin(), monomial.end());
}

std::optional<Size> Size::divide(const Size &divisor) const {
  if (divisor.polynomial.size() != 1 || !valid || !divisor.valid)
    return std::nullopt;
  auto &[bottom, bottomCoefficient] = *divisor.polynomial.begin();
  Size quotient;
  for (auto &[top, coefficient] : polynomial) {
    if ((bottomCoefficient == -1 && coefficient == std::numeric_limits<int64_t>::min()) ||
        coefficient % bottomCoefficient != 0 ||
        !std::includes(top.begin(), top.end(), bottom.begin(), bottom.end()))
      return std::nullopt;
    Monomial left;
    std::set_difference(top.begin(), top.end(), bottom.begin(), bottom.end(),
                        std::back_inserter(left));
    quotient.add(left, coefficient / bottomCoefficient);
  }
  return quotient;
}

std::optional<int64_t> Size::evaluate(const std::map<std::string, int64_t> &symbols) const {
  int64_t sum = 0;
  for (auto &[monomial, coefficient] : polynomial) {
    int64_t value = coefficient;
    for (const std::string &name : monomial) {
      auto it = symbols.find(name);
      if (it == symbols.end() || __builtin_mul_overflow(value, it->second, &value))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, value, &sum))
      return std::nullopt;
  }
  return sum;
}

std::string Size::str() const {
  if (polynomial.empty())
    return "0";
  std::string text;
  // The constant term, which sorts first, reads best last.
  std::vector<const std::pair<const Monomial, int64_t> *> order;
  for (auto &term : polynomial)
    order.push_back(&term);
  if (order.front()->first.empty())
    std::rotate(order.begin(), order.begin() + 1, order.end());
  for (auto *term : order) {
    int64_t coefficient = term->second;
    if (text.empty())
      text += coefficient < 0 ? "-" : "";
    else
      text += coefficient < 0 ? " - " : " + ";
    uint64_t magnitude = coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
    bool first = true;
    if (magnitude != 1 || term->first.empty()) {
      text += std::to_string(magnitude);
      first = false;
    }
    for (const std::string &name : term->first) {
      text += (first ? "" : "*") + name;
      first = false;
    }
  }
  return text;
}
