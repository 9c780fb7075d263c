// SPDX-License-Identifier: Apache-2.0
//
// otf-exec eval: how far a plan's next-token distributions are from those of a reference plan, over
// a text. The text is cut into windows of equal length that each begin without a past, as a text
// begins; both plans read a window in one run, and the logits of one window are all that is kept.
#include "tools/otf-exec/Common.h"

#include "lib/Compile/Progress.h"
#include "runtime/Decoder.h"
#include "runtime/Evaluation.h"
#include "runtime/CPU/Team.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

/// One of the two plans.
struct Reader {
  std::string path;
  Opened opened;
  std::optional<LanguageModel> model;
  std::unique_ptr<Decoder> decoder;
};

Status prepare(Reader &reader, const EvalOptions &o, const std::string &path) {
  PlanOptions options = o;
  reader.path = options.plan = path;
  if (options.context == 0)
    options.context = o.window;
  Result<Opened> opened = open(options);
  if (!opened.ok())
    return opened.status();
  reader.opened = std::move(opened.value());
  Result<LanguageModel> model = openLanguageModel(*reader.opened.plan, o.tokenizer);
  if (!model.ok())
    return model.status();
  reader.model.emplace(std::move(model.value()));
  if (int64_t most = reader.model->context; most != 0 && o.window > most)
    return badInput("a window of ", o.window, " tokens is longer than the model's context of ",
                    most, " (give a smaller --window)");
  Result<std::unique_ptr<Decoder>> decoder = Decoder::create(*reader.opened.session);
  if (!decoder.ok())
    return decoder.status();
  reader.decoder = std::move(decoder.value());
  return {};
}

/// The text as windows.
struct Windows {
  std::vector<int32_t> ids; // without the token that begins a text
  std::optional<int32_t> begin;
  int64_t count = 0, length = 0;

  /// Tokens of `ids` in a window.
  int64_t own() const { return length - (begin ? 1 : 0); }
  std::vector<int32_t> operator[](int64_t window) const {
    std::vector<int32_t> result;
    if (begin)
      result.push_back(*begin);
    result.insert(result.end(), ids.begin() + window * own(), ids.begin() + (window + 1) * own());
    return result;
  }
};

Result<Windows> cut(const Reader &reader, const std::string &text, const EvalOptions &o) {
  Windows windows;
  Result<std::vector<int32_t>> empty = reader.model->encode("");
  if (!empty.ok())
    return empty.status();
  Result<std::vector<int32_t>> ids = reader.model->encode(text);
  if (!ids.ok())
    return ids.status();
  windows.ids = std::move(ids.value());
  // What the tokenizer puts before every text begins every window too.
  if (!empty.value().empty() && !windows.ids.empty() && windows.ids[0] == empty.value()[0]) {
    windows.begin = windows.ids[0];
    windows.ids.erase(windows.ids.begin());
  }
  windows.length = o.window;
  const int64_t given = int64_t(windows.ids.size()), wanted = o.tokens ? o.tokens : INT64_MAX;
  windows.count = std::min(given / windows.own(), wanted / o.window);
  return windows;
}

/// Compares the predictions of one window, rows on several threads. The result does not depend on
/// how many.
struct Comparison {
  std::span<const float> reference, plan;
  std::span<const int32_t> ids;
  size_t first = 0; // token that is predicted first
  std::vector<std::optional<Prediction>> predictions;

  void run(Team &team) {
    const size_t width = reference.size() / ids.size();
    team.run(int64_t(predictions.size()), [&](int64_t i) {
      const size_t row = first + size_t(i) - 1;
      predictions[size_t(i)] = comparePredictions(reference.subspan(row * width, width),
                                                  plan.subspan(row * width, width), ids[row + 1]);
    });
  }
};

Failure measure(Reader &reference, Reader &plan, const Windows &windows, const EvalOptions &o,
                Evaluation &evaluation) {
  Result<std::unique_ptr<Team>> team = Team::create(o.threads);
  if (!team.ok())
    return {o.plan, team.status()};
  Progress progress;
  for (int64_t w = 0; w < windows.count; ++w) {
    progress.show(cat("window ", w + 1, " of ", windows.count), uint64_t(w),
                  uint64_t(windows.count));
    const std::vector<int32_t> ids = windows[w];
    Comparison comparison;
    comparison.ids = ids;
    for (auto [reader, logits] :
         {std::pair(&reference, &comparison.reference), {&plan, &comparison.plan}}) {
      Result<std::span<const float>> read = reader->decoder->readAll(ids);
      if (!read.ok())
        return {reader->path, read.status()};
      *logits = read.value();
    }
    const size_t width = comparison.reference.size() / ids.size();
    if (comparison.plan.size() != comparison.reference.size())
      return {plan.path, badInput("output 'logits': is for ", comparison.plan.size() / ids.size(),
                                  " tokens, and the reference's for ", width,
                                  " (both must be plans of one model)")};
    for (int32_t id : ids)
      if (size_t(id) >= width)
        return {o.text, badInput("token id ", id, ": the models give logits for 0 to ", width - 1,
                                 " (is this their tokenizer?)")};
    comparison.first = size_t(std::max<int64_t>(o.scoreFrom, 1));
    comparison.predictions.resize(ids.size() - comparison.first);
    comparison.run(*team.value());
    evaluation.beginWindow();
    for (size_t i = 0; i < comparison.predictions.size(); ++i) {
      const std::optional<Prediction> &prediction = comparison.predictions[i];
      if (!prediction) {
        auto row = comparison.plan.subspan((comparison.first + i - 1) * width, width);
        bool ours = !std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
        return {ours ? plan.path : reference.path,
                badInput("output 'logits': is not finite after token ", comparison.first + i - 1,
                         " of window ", w, " (the model overflows on this text)")};
      }
      evaluation.add(*prediction);
    }
  }
  return {};
}

/// A bound and whether a figure keeps it.
struct Gate {
  const char *option, *figure;
  double bound, value, low, high;
  bool atMost, atPoint;
  double judged() const { return atPoint ? value : atMost ? high : low; }
  bool kept() const { return atMost ? judged() <= bound : judged() >= bound; } // not of NaN
};

std::vector<Gate> gates(const Figures &f, const EvalOptions &o) {
  std::vector<Gate> list;
  auto add = [&](const std::optional<double> &bound, const char *option, const char *figure,
                 const Estimate &e, bool atMost) {
    if (bound)
      list.push_back({option, figure, *bound, e.value, e.low, e.high, atMost, o.gate == "point"});
  };
  add(o.mostDivergence, "--max-kl", "mean KL", f.divergence, true);
  add(o.leastSameBest, "--min-top1", "top-1 agreement", f.sameBest, false);
  add(o.mostRatio, "--max-perplexity-ratio", "perplexity ratio", f.ratio, true);
  return list;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

Json json(const Estimate &e) {
  auto orNull = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"value", orNull(e.value)}, {"low", orNull(e.low)}, {"high", orNull(e.high)}};
}

void printTable(const Figures &f) {
  std::printf("%-24s %10s   95 %% interval\n", "", "");
  auto line = [](const char *what, const Estimate &e) {
    std::printf("%-24s %10s", what, number(e.value).c_str());
    if (std::isfinite(e.low))
      std::printf("   %s to %s", number(e.low).c_str(), number(e.high).c_str());
    std::puts("");
  };
  line("KL, mean", f.divergence);
  line("KL, median", f.divergenceMedian);
  line("KL, 99 %", f.divergence99);
  line("KL, 99.9 %", f.divergence999);
  line("top-1 agreement", f.sameBest);
  line("best in the plan's five", f.bestInFive);
  line("perplexity, reference", f.referencePerplexity);
  line("perplexity, plan", f.perplexity);
  line("perplexity ratio", f.ratio);
  std::printf("%-24s %10s\n", "logits, relative error", number(f.logitsError).c_str());
}

} // namespace

int eval(const EvalOptions &o) {
  if (o.text.empty())
    return fail("command line",
                usageError("eval: expected --text, or --inputs for a model that reads no text"));
  if (o.scoreFrom >= o.window)
    return fail("command line",
                usageError("--score-from ", o.scoreFrom, ": leaves no token of a window of ",
                           o.window, " to score"));
  auto start = std::chrono::steady_clock::now();
  Reader reference, plan;
  for (auto [reader, path] : {std::pair(&reference, &o.reference), {&plan, &o.plan}})
    if (Status status = prepare(*reader, o, *path); !status.ok())
      return fail(*path, status);
  Result<std::string> text = readText(o.text);
  if (!text.ok())
    return fail(o.text, text.status());
  // A plan without a tokenizer takes the other's ids.
  Reader &tokenizes = reference.model->tokenizer || !plan.model->tokenizer ? reference : plan;
  Result<Windows> windows = cut(tokenizes, text.value(), o);
  if (!windows.ok())
    return fail(tokenizes.path, windows.status());
  if (&tokenizes == &reference && plan.model->tokenizer) {
    Result<Windows> again = cut(plan, text.value(), o);
    if (!again.ok())
      return fail(plan.path, again.status());
    if (again.value().ids != windows.value().ids || again.value().begin != windows.value().begin)
      return fail(plan.path,
                  badInput("tokenizer: reads the text as other tokens than the reference's (both "
                           "must be plans of one model)"));
  }
  if (windows.value().count == 0)
    return fail(o.text,
                badInput("holds ", windows.value().ids.size(), " tokens, less than a window of ",
                         windows.value().own(), " (give a longer text or a smaller --window)"));
  const bool hasGates = o.mostDivergence || o.leastSameBest || o.mostRatio;
  if (hasGates && o.gate == "bound" && windows.value().count < 2)
    return fail(
        o.text,
        badInput("is one window, so there is no interval to judge by (give a longer text, a "
                 "smaller --window or --gate=point)"));

  Evaluation evaluation;
  if (Failure failure = measure(reference, plan, windows.value(), o, evaluation);
      !failure.status.ok())
    return fail(failure.file, failure.status);
  const Figures f = evaluation.figures();
  const std::vector<Gate> judged = gates(f, o);

  if (o.json) {
    Json out;
    out["plan"] = o.plan;
    out["reference"] = o.reference;
    out["device"] = plan.opened.device->description();
    out["text"] = {{"path", o.text},
                   {"windows", f.windows},
                   {"window", o.window},
                   {"score_from", o.scoreFrom},
                   {"predictions", f.predictions},
                   {"tokens_left_over", int64_t(windows.value().ids.size()) -
                                            windows.value().count * windows.value().own()}};
    out["kl"] = {{"mean", json(f.divergence)},
                 {"median", json(f.divergenceMedian)},
                 {"q99", json(f.divergence99)},
                 {"q99.9", json(f.divergence999)}};
    out["top1"] = json(f.sameBest);
    out["top5"] = json(f.bestInFive);
    out["perplexity"] = {{"reference", json(f.referencePerplexity)}, {"plan", json(f.perplexity)}};
    out["perplexity_ratio"] = json(f.ratio);
    out["logits_relative_error"] = f.logitsError;
    out["gates"] = Json::array();
    for (const Gate &gate : judged)
      out["gates"].push_back({{"gate", gate.option},
                              {"bound", gate.bound},
                              {"judged", gate.judged()},
                              {"kept", gate.kept()}});
    out["seconds"] = secondsSince(start);
    std::puts(out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s against %s on %s\n%s: %zu windows of %lld tokens, from token %lld on: %zu "
                "predictions\n",
                printable(o.plan).c_str(), printable(o.reference).c_str(),
                plan.opened.device->description().c_str(), printable(o.text).c_str(), f.windows,
                (long long)o.window, (long long)o.scoreFrom, f.predictions);
    printTable(f);
  }
  if (int status = finishOutput())
    return status;
  std::string missed;
  for (const Gate &gate : judged)
    if (!gate.kept())
      missed += cat(missed.empty() ? "" : "; ", gate.figure, " is ", number(gate.value),
                    gate.atPoint ? ""
                                 : cat(gate.atMost ? ", at most " : ", at least ",
                                       number(gate.judged()), " with 95 % confidence"),
                    ", and ", gate.option, " wants ", number(gate.bound));
  if (missed.empty())
    return 0;
  std::fprintf(stderr, "error: %s: gate missed: %s\n", printable(o.plan).c_str(), missed.c_str());
  return kGateMissed;
}

} // namespace otf::exec
