// SPDX-License-Identifier: Apache-2.0
#include "lib/Analysis/Budget.h"

#include <cmath>

namespace otf {

llvm::Expected<Budget> parseBudget(llvm::StringRef text) {
  struct Unit {
    llvm::StringLiteral name;
    double factor;
  };
  static constexpr Unit units[] = {{"GB", 1e9}, {"MB", 1e6}, {"GiB", 0x1p30}, {"MiB", 0x1p20}};
  auto wrong = [&] {
    return llvm::createStringError("a budget looks like 2.5bpw, 1.2GB or kl=0.05, not '" + text +
                                   "'");
  };
  llvm::StringRef number = text;
  Budget budget{Budget::Kind::bits, 0};
  double factor = 1;
  if (number.consume_front("kl="))
    budget.kind = Budget::Kind::loss;
  else if (!number.consume_back("bpw")) {
    budget.kind = Budget::Kind::bytes;
    factor = 0;
    for (const Unit &unit : units)
      if (factor == 0 && number.consume_back(unit.name))
        factor = unit.factor;
  }
  // getAsDouble takes "inf", hexadecimals and signs too.
  if (factor == 0 || number.empty() ||
      number.find_first_not_of("0123456789.") != llvm::StringRef::npos ||
      number.getAsDouble(budget.value))
    return wrong();
  budget.value *= factor;
  if (!(budget.value > 0) || !std::isfinite(budget.value))
    return wrong();
  return budget;
}

} // namespace otf
