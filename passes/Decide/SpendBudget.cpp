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

  /// Encodings with + between; a number of columns after a colon is a group of its own.
  LogicalResult parse(StringRef option, StringRef list, SmallVector<EncodingAttr> &to) {
    for (StringRef text : llvm::split(list, '+')) {
      auto [name, columns] = text.split(':');
      int64_t together = group;
      std::optional<EncodingKind> kind = symbolizeEncodingKind(name);
      if (!kind || (!columns.empty() && columns.getAsInteger(10, together)))
        return fail(option + ": there is no encoding '" + text + "'");
      auto encoding = EncodingAttr::getChecked(
          [&] { return getOperation().emitError() << getArgument() << ": "; }, &getContext(), *kind,
          together);
      if (!encoding)
        return failure();
      if (gaussianDistortion(int(*kind), 32) <= 0)
        return fail(option + ": what errors " + name +
                    " makes is not known (int4, int8 and planes may be chosen among)");
      to.push_back(encoding);
    }
    return success();
  }

  /// What each encoding of a list costs a weight: bytes and loss.
  static std::vector<Choice> choicesOf(WeightOp weight, ArrayRef<EncodingAttr> among, double loss, double noise) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
    std::vector<Choice> list;
    for (EncodingAttr encoding : among) {
      int64_t together = encoding.getGroup() ? encoding.getGroup() : shape[1];
      double distortion = gaussianDistortion(int(encoding.getKind()), together);
      list.push_back({bytesOf(encoding, shape), loss * distortion / noise});
    }
    return list;
  }

  /// Tables that a budget of bytes chooses for, and what that costs: those that were measured and share their bytes with no other weight.
  void addTables(const Sensitivities &known, std::vector<WeightOp> &weights, std::vector<std::vector<Choice>> &items) {
    llvm::DenseMap<Attribute, int> readers;
    for (WeightOp weight : getOperation().getOps<WeightOp>())
      ++readers[weight.getBlob()];
    for (WeightOp weight : getOperation().getOps<WeightOp>()) {
      auto found = known.tables.find(weight.getSymName().str());
      if (found == known.tables.end() || !hasTableChoice(weight) || readers[weight.getBlob()] != 1)
        continue;
      items.push_back(choicesOf(weight, tableEncodings, found->second, known.noise));
      weights.push_back(weight);
    }
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
    if (failed(parse("choices", choices, encodings)) || (!tables.empty() && failed(parse("tables", tables, tableEncodings))))
      return failure();
    llvm::Expected<Sensitivities> known = Sensitivities::open(sensitivities);
    if (!known)
      return fail(llvm::toString(known.takeError()));

    std::vector<WeightOp> weights;
    std::vector<std::vector<Choice>> items; // weight: bytes; value: loss
    double elements = 0;
    for (WeightOp weight : getOperation().getOps<WeightOp>()) {
      if (!hasChoice(weight))
        continue;
      auto found = known->weights.find(weight.getSymName().str());
      if (found == known->weights.end())
        return weight.emitOpError()
               << "was not measured, so nothing says what its errors cost (calibrate again)";
      ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
      items.push_back(choicesOf(weight, encodings, found->second, known->noise));
      weights.push_back(weight);
      elements += double(shape[0]) * double(shape[1]);
    }
    if (weights.empty())
      return fail("no weight is left to spend a budget on");
    size_t linears = weights.size();
    if (parsed->kind != Budget::Kind::bits && !tableEncodings.empty()) {
      addTables(*known, weights, items);
      tablesUnknown = known->tables.empty() && llvm::any_of(getOperation().getOps<WeightOp>(), hasTableChoice);
    }
    std::set<Operation *> candidates(weights.begin(), weights.end());

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
      for (size_t i = 0; i < linears; ++i)
        sum.weight += items[i][choice].weight, sum.value += items[i][choice].value;
      return sum;
    };
    if (!chosen) {
      Choice least{HUGE_VAL, HUGE_VAL};
      for (size_t choice = 0; choice < encodings.size(); ++choice) {
        least.weight = std::min(least.weight, uniform(choice).weight);
        least.value = std::min(least.value, uniform(choice).value);
      }
      for (size_t i = linears; i < items.size(); ++i) {
        auto smallest = [&](double Choice::*what) {
          return (*llvm::min_element(items[i], [&](auto &a, auto &b) { return a.*what < b.*what; })).*what;
        };
        least.weight += smallest(&Choice::weight);
        least.value += smallest(&Choice::value);
      }
      double possible =
          parsed->kind == Budget::Kind::loss ? known->foretell(least.value) : unit(least.weight);
      return fail("the budget " + budget + " cannot be met: the least that is possible is " +
                  inWords(parsed->kind, possible));
    }

    Choice sum{0, 0};
    double linearBytes = 0;
    for (auto [i, weight] : llvm::enumerate(weights)) {
      unsigned choice = (*chosen)[i];
      weight.setEncodingAttr(i < linears ? encodings[choice] : tableEncodings[choice]);
      if (i < linears)
        linearBytes += items[i][choice].weight;
      weight->setAttr(kForetoldAttribute,
                      FloatAttr::get(Float64Type::get(&getContext()), items[i][choice].value));
      sum.weight += items[i][choice].weight, sum.value += items[i][choice].value;
      ++numWeights;
    }
    say(*known, uniform, {linearBytes, sum.value}, elements, ArrayRef(*chosen).take_front(linears),
        ArrayRef(*chosen).drop_front(linears));
    return success();
  }

  /// Why, as a module attribute for whoever reports.
  void say(const Sensitivities &known, llvm::function_ref<Choice(size_t)> uniform, Choice sum,
           double elements, ArrayRef<unsigned> chosen, ArrayRef<unsigned> chosenTables) {
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
    for (auto [choice, encoding] : llvm::enumerate(tableEncodings))
      if (int64_t count = llvm::count(chosenTables, unsigned(choice))) {
        out << ", " << count << (count == 1 ? " table " : " tables ") << stringifyEncodingKind(encoding.getKind()) << " with a scale ";
        if (encoding.getGroup())
          out << "each " << encoding.getGroup();
        else
          out << "a row";
      }
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
    if (tablesUnknown)
      out << "; tables keep their encodings, since nothing measured what errors of theirs cost (calibrate again)";
    getOperation()->setAttr(kForetoldAttribute, StringAttr::get(&getContext(), text));
  }

  void runOnOperation() override {
    if (failed(spend()))
      signalPassFailure();
  }

  SmallVector<EncodingAttr> encodings, tableEncodings;
  bool tablesUnknown = false; ///< there are some to choose for, and the file of sensitivities is of before
};

} // namespace
