// SPDX-License-Identifier: Apache-2.0
//
// Bits go where they save most.
//
// Problem: one width for all weights spends as much on a weight that nothing depends on as on one
// that everything does. Approach: what errors of a weight cost the model was measured
// (lib/Analysis/Sensitivities.h), and how large the errors of an encoding are is known in closed
// form. Their products add up, so the choice is a knapsack problem, which is solved exactly.

#include "dialects/OTF/Codes.h"
#include "lib/Analysis/Allocation.h"
#include "lib/Analysis/Budget.h"
#include "lib/Analysis/EncodingCost.h"
#include "lib/Analysis/Sensitivities.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "llvm/Support/Format.h"

#include <set>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_SPENDBUDGET
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// "2.43 bits a weight".
std::string inWords(Budget::Kind kind, double value) {
  std::string text;
  llvm::raw_string_ostream out(text);
  switch (kind) {
  case Budget::Kind::bits:
    out << llvm::format("%.3f bits a weight", value);
    break;
  case Budget::Kind::bytes:
    out << llvm::format("%.3f MB", value / 1e6);
    break;
  case Budget::Kind::loss:
    out << llvm::format("a loss of %.3g", value);
    break;
  }
  return text;
}

double bytesOf(EncodingAttr encoding, ArrayRef<int64_t> shape, int64_t outliers = 0) {
  return double(
      storedBytes(int(encoding.getKind()), encoding.getGroup(), shape[0], shape[1], outliers));
}

struct SpendBudgetPass : otf::impl::SpendBudgetBase<SpendBudgetPass> {
  using SpendBudgetBase::SpendBudgetBase;

  LogicalResult fail(const llvm::Twine &message) {
    return getOperation().emitError() << getArgument() << ": " << message;
  }

  LogicalResult parseChoices() {
    for (StringRef text : llvm::split(StringRef(choices), '+')) {
      std::optional<EncodingKind> kind = symbolizeEncodingKind(text);
      if (!kind)
        return fail("choices: there is no encoding '" + text + "'");
      auto encoding = EncodingAttr::getChecked(
          [&] { return getOperation().emitError() << getArgument() << ": "; }, &getContext(), *kind,
          int64_t(group));
      if (!encoding)
        return failure();
      if (gaussianDistortion(int(*kind), 32) <= 0)
        return fail("choices: what errors " + text +
                    " makes is not known (int4, int8 and planes may be chosen among)");
      encodings.push_back(encoding);
    }
    return success();
  }

  /// Bytes of what there is nothing to choose for, each blob once in each encoding.
  double otherBytes(const std::set<Operation *> &candidates) {
    double bytes = 0;
    llvm::DenseSet<std::pair<Attribute, Attribute>> seen;
    for (WeightOp weight : getOperation().getOps<WeightOp>()) {
      auto type = dyn_cast<RankedTensorType>(weight.getType());
      if (candidates.count(weight) || !type || !seen.insert({weight.getBlob(), weight.getEncodingAttr()}).second)
        continue;
      auto encoding = weight.getEncoding();
      bytes +=
          encoding && type.getRank() == 2
              ? bytesOf(*encoding, type.getShape(),
                        weight.getOutliers() ? int64_t(weight.getOutliers()->getColumns().size())
                                             : 0)
              : double(type.getNumElements()) *
                    double(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
    }
    return bytes;
  }

  LogicalResult spend() {
    llvm::Expected<Budget> parsed = parseBudget(budget);
    if (!parsed)
      return fail(llvm::toString(parsed.takeError()));
    if (failed(parseChoices()))
      return failure();
    llvm::Expected<Sensitivities> known = Sensitivities::open(sensitivities);
    if (!known)
      return fail(llvm::toString(known.takeError()));

    std::vector<WeightOp> weights;
    std::vector<std::vector<Choice>> items; // weight: bytes; value: loss
    std::set<Operation *> candidates;
    double elements = 0;
    for (WeightOp weight : getOperation().getOps<WeightOp>()) {
      if (!hasChoice(weight))
        continue;
      auto found = known->weights.find(weight.getSymName().str());
      if (found == known->weights.end())
        return weight.emitOpError()
               << "was not measured, so nothing says what its errors cost (calibrate again)";
      ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
      std::vector<Choice> &list = items.emplace_back();
      for (EncodingAttr encoding : encodings) {
        int64_t together = encoding.getGroup() ? encoding.getGroup() : shape[1];
        double distortion = gaussianDistortion(int(encoding.getKind()), together);
        list.push_back({bytesOf(encoding, shape), found->second * distortion / known->noise});
      }
      weights.push_back(weight);
      candidates.insert(weight);
      elements += double(shape[0]) * double(shape[1]);
    }
    if (weights.empty())
      return fail("no weight is left to spend a budget on");

    std::optional<std::vector<unsigned>> chosen;
    double other = parsed->kind == Budget::Kind::bytes ? otherBytes(candidates) : 0;
    auto unit = [&](double bytes) {
      return parsed->kind == Budget::Kind::bits ? bytes * 8 / elements : bytes + other;
    };
    if (parsed->kind != Budget::Kind::loss) {
      double limit =
          parsed->kind == Budget::Kind::bits ? parsed->value * elements / 8 : parsed->value - other;
      chosen = allocate(items, limit);
    } else {
      // The largest sum of losses that the model's loss allows.
      double low = 0, high = 1;
      while (known->foretell(high) < parsed->value && high < 1e6)
        high *= 2;
      for (int step = 0; step < 60; ++step) {
        double middle = low + (high - low) / 2;
        (known->foretell(middle) > parsed->value ? high : low) = middle;
      }
      std::vector<std::vector<Choice>> turned = items;
      for (std::vector<Choice> &list : turned)
        for (Choice &choice : list)
          std::swap(choice.weight, choice.value);
      chosen = allocate(turned, low);
    }
    // The same for all: what a mixture has to be better than.
    auto uniform = [&](size_t choice) {
      Choice sum{0, 0};
      for (const std::vector<Choice> &list : items)
        sum.weight += list[choice].weight, sum.value += list[choice].value;
      return sum;
    };
    if (!chosen) {
      Choice least{HUGE_VAL, HUGE_VAL};
      for (size_t choice = 0; choice < encodings.size(); ++choice) {
        least.weight = std::min(least.weight, uniform(choice).weight);
        least.value = std::min(least.value, uniform(choice).value);
      }
      double possible =
          parsed->kind == Budget::Kind::loss ? known->foretell(least.value) : unit(least.weight);
      return fail("the budget " + budget + " cannot be met: the least that is possible is " +
                  inWords(parsed->kind, possible));
    }

    Choice sum{0, 0};
    for (auto [i, weight] : llvm::enumerate(weights)) {
      unsigned choice = (*chosen)[i];
      weight.setEncodingAttr(encodings[choice]);
      weight->setAttr(kForetoldAttribute,
                      FloatAttr::get(Float64Type::get(&getContext()), items[i][choice].value));
      sum.weight += items[i][choice].weight, sum.value += items[i][choice].value;
      ++numWeights;
    }
    say(*known, uniform, sum, elements, *chosen);
    return success();
  }

  /// Why, as a module attribute for whoever reports.
  void say(const Sensitivities &known, llvm::function_ref<Choice(size_t)> uniform, Choice sum,
           double elements, ArrayRef<unsigned> chosen) {
    std::string text;
    llvm::raw_string_ostream out(text);
    auto loss = [&](double value) {
      out << llvm::format("%.3f bits, %s %.4f", sum.weight * 8 / elements, known.measure.c_str(),
                          known.foretell(value));
    };
    for (auto [choice, encoding] : llvm::enumerate(encodings))
      if (int64_t count = llvm::count(chosen, unsigned(choice)))
        out << (text.empty() ? "" : ", ") << count << " "
            << stringifyEncodingKind(encoding.getKind());
    out << ": ";
    loss(sum.value);
    out << " foretold";
    const char *join = "; all alike ";
    for (auto [choice, encoding] : llvm::enumerate(encodings)) {
      Choice all = uniform(choice);
      out << join << stringifyEncodingKind(encoding.getKind()) << " "
          << llvm::format("%.3f bits, %.4f", all.weight * 8 / elements, known.foretell(all.value));
      join = ", ";
    }
    getOperation()->setAttr(kForetoldAttribute, StringAttr::get(&getContext(), text));
  }

  void runOnOperation() override {
    if (failed(spend()))
      signalPassFailure();
  }

  SmallVector<EncodingAttr> encodings;
};

} // namespace
