// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Sensitivity.h"

#include "lib/Analysis/Sensitivities.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Calibrate/Loss.h"
#include "lib/Calibrate/Noise.h"
#include "lib/Calibrate/SampleRun.h"
#include "lib/Compile/FeedbackSource.h"
#include "lib/Compile/Progress.h"
#include "passes/Encodings.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <unistd.h>

namespace otf {

using runtime::badInput;
using runtime::cat;
using runtime::Result;
using runtime::Status;

// Errors of between two and three bits, where losses still add.
static constexpr double kNoise = 0.03;
// Errors of all weights together: those of planes at 4, 3 and 2 bits.
static constexpr double kTogether[] = {0.0055, 0.022, 0.085};
// Every weight is a run of all of these tokens, so they are few: an eighth of 2,048 tokens of
// SmolLM2 chose as all of them did but for 1 to 4 % of the foretold loss (13 % with one eighth).
static constexpr SampleOptions kSamples{256, 128, 0};
static constexpr size_t kMostSamples = 8;

namespace {

class Measurement {
public:
  explicit Measurement(const SensitivityOptions &options) : options(options) {}
  CompileStatus run(std::string &made);

private:
  Status measure(mlir::ModuleOp module);
  Status prepare();
  Status runSamples(const std::function<Status(size_t)> &after);
  Result<double> probe(FeedbackSource &feedbacks, WeightOp weight, const runtime::WeightInfo &info);
  Status probeTogether();
  Result<double> loss();
  bool isMade() const;

  const SensitivityOptions &options;
  Progress progress;
  ModelIdentity model;
  Source source;
  std::optional<Statistics> statistics; // which shape the errors
  Sensitivities result;
  std::string output, planFile;
  std::unique_ptr<WritablePlan> plan;
  std::unique_ptr<ScratchFloats> errors; // of each weight, where the plan has its floats
  std::vector<const runtime::WeightInfo *> probed;
  SampleRun running;
  std::unique_ptr<Loss> losses;
  size_t sampleCount = 0;
};

bool Measurement::isMade() const {
  llvm::Expected<Sensitivities> there = Sensitivities::open(output);
  if (!there) {
    llvm::consumeError(there.takeError());
    return false;
  }
  return there->model == model.key && there->settings == source.settings;
}

/// Sees what the plan says without errors.
Status Measurement::prepare() {
  auto scratch = ScratchFloats::create(planFile + ".errors",
                                       plan->plan().weightBytes().size() / sizeof(float));
  if (!scratch.ok())
    return scratch.status();
  errors = std::move(scratch.value());
  auto made = SampleRun::create(plan->plan(), nullptr, source, kSamples, options.threads);
  if (!made.ok())
    return made.status();
  running = std::move(made.value());
  auto loss = Loss::create(*running.session, source.folder.empty(), options.threads);
  if (!loss.ok())
    return loss.status();
  losses = std::move(loss.value());
  sampleCount = std::min(running.samples->count(), kMostSamples);
  result.measure = losses->measure();
  result.source = running.samples->words();
  return runSamples([&](size_t) { return losses->remember(); });
}

Status Measurement::runSamples(const std::function<Status(size_t)> &after) {
  for (size_t i = 0; i < sampleCount; ++i) {
    OTF_TRY(running.run(i, model.file));
    if (Status status = after(i); !status.ok())
      return Status(status.code(), cat(model.file, ": sample ", i, " of ", result.source, ": ", status.message()));
  }
  return {};
}

Result<double> Measurement::loss() {
  OTF_TRY(runSamples([&](size_t i) { return losses->add(i); }));
  return losses->take();
}

/// Runs the model with errors in one weight, which is as before afterwards.
Result<double> Measurement::probe(FeedbackSource &feedbacks, WeightOp weight,
                          const runtime::WeightInfo &info) {
  llvm::Expected<const Feedback *> feedback = feedbacks.of(weight, nullptr);
  if (!feedback)
    return badInput(model.file, ": ", weight.getSymName().str(), ": ",
                    llvm::toString(feedback.takeError()));
  Rounding rounding{*feedback, nullptr, std::nullopt};
  if (RotationAttr by = weight.getRotationAttr())
    rounding.rotation = Rotation{by.getBlock(), by.getFactor(), by.getSeed()};
  float *floats = plan->floats(info), *error = errors->data() + info.offset / sizeof(float);
  size_t count = info.size / sizeof(float);
  makeErrors(info, floats, rounding, result.weights.size() + result.tables.size() + 1, options.threads, error);
  std::vector<float> before(floats, floats + count);
  auto scale = float(std::sqrt(kNoise));
  for (size_t i = 0; i < count; ++i)
    floats[i] += scale * error[i];
  Result<double> lost = loss();
  std::copy(before.begin(), before.end(), floats);
  if (!lost.ok())
    return lost.status();
  return std::min(lost.value(), 1e6);
}

/// Runs the model with errors in all weights, larger and larger. The plan is of no use afterwards.
Status Measurement::probeTogether() {
  double before = 0;
  for (double noise : kTogether) {
    progress.show("measuring what errors of all weights cost");
    auto scale = float(std::sqrt(noise) - std::sqrt(before));
    for (const runtime::WeightInfo *info : probed) {
      float *floats = plan->floats(*info), *error = errors->data() + info->offset / sizeof(float);
      for (size_t i = 0, count = info->size / sizeof(float); i < count; ++i)
        floats[i] += scale * error[i];
    }
    Result<double> lost = loss();
    if (!lost.ok())
      return lost.status();
    double least = result.together.empty() ? 0 : result.together.back().second; // more noise loses no less
    result.together.emplace_back(noise, std::clamp(lost.value(), least, 1e6));
    before = noise;
  }
  return {};
}

Status Measurement::measure(mlir::ModuleOp module) {
  FeedbackSource feedbacks(statistics ? &*statistics : nullptr);
  std::vector<std::pair<WeightOp, const runtime::WeightInfo *>> weights;
  for (auto weight : module.getOps<WeightOp>())
    if (hasChoice(weight))
      weights.emplace_back(weight, plan->find(weight.getSymName().str()));
  if (weights.empty())
    return badInput(model.file, ": the recipe '", options.recipe.name,
                    "' has no weight to choose an encoding for");
  for (auto [weight, info] : weights)
    if (!info)
      return badInput(model.file, ": ", weight.getSymName().str(), ": is another weight's data too, so what its errors cost cannot be measured (take a recipe without choices)");
  // Tables come last. What cannot be measured, since other weights read the same bytes, keeps its encoding.
  const size_t linears = weights.size();
  if (!options.recipe.vocabularyChoices.empty())
    for (auto weight : module.getOps<WeightOp>())
      if (const runtime::WeightInfo *info = hasTableChoice(weight) ? plan->find(weight.getSymName().str()) : nullptr)
        weights.emplace_back(weight, info);
  // Probes take equally long, but for the first, which has pages to read.
  double begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i == 1)
      begin = progress.seconds();
    std::string left = i < 2 ? ""
                             : cat(", ",
                                   int64_t((progress.seconds() - begin) / double(i - 1) *
                                               double(weights.size() - i) +
                                           0.5),
                                   " s left");
    progress.show(cat("measuring what errors cost: ", weights[i].first.getSymName().str(), left), i,
                  weights.size());
    Result<double> lost = probe(feedbacks, weights[i].first, *weights[i].second);
    if (!lost.ok())
      return lost.status();
    std::string name = weights[i].first.getSymName().str();
    if (i >= linears) {
      result.tables[name] = lost.value();
      continue;
    }
    result.weights[name] = lost.value();
    probed.push_back(weights[i].second);
  }
  return probeTogether();
}

CompileStatus Measurement::run(std::string &made) {
  auto fail = [&](const Status &status) {
    progress.clear();
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return status.code() == runtime::Code::device ? CompileStatus::missing
                                                  : CompileStatus::badInput;
  };
  result.errors = describeErrors(options.recipe);
  if (!options.statistics.empty()) {
    llvm::Expected<Statistics> opened = Statistics::open(options.statistics);
    if (!opened)
      return fail(badInput(llvm::toString(opened.takeError())));
    statistics = std::move(*opened);
  }
  Result<Source> read = Source::read(
      options.source, cat(result.errors, " ", statistics ? statistics->settings() : "", " ", kNoise, " ", kSamples.tokens, " ", kSamples.window,
                          options.recipe.vocabularyChoices.empty() ? "" : " and tables"));
  if (!read.ok())
    return fail(read.status());
  source = std::move(read.value());
  if (CompileStatus status = identifyModel(options.model, model); status != CompileStatus::done)
    return status;
  output = made = options.output.empty() ? defaultSensitivities(model.file) : options.output;
  if (isMade()) {
    std::printf("using %s, which was made of the same\n", output.c_str());
    return CompileStatus::done;
  }
  result.model = model.key;
  result.settings = source.settings;
  result.noise = kNoise;

  planFile = output + "." + std::to_string(getpid()) + ".plan";
  CompileOptions floats;
  floats.model = options.model;
  floats.output = planFile;
  floats.recipe = llvm::cantFail(findRecipe("none"));
  floats.recipe.linear = floats.recipe.vocabulary = "f32"; // codes of the file become floats too
  floats.threads = options.threads;
  floats.cpuLevels = {"native"}; // it runs here and nowhere else
  floats.quiet = floats.keepNorms = true;
  floats.allowNonfinite = options.allowNonfinite;
  Status opening;
  floats.written = [&] {
    auto opened = WritablePlan::open(planFile);
    if (opened.ok())
      plan = std::move(opened.value());
    else
      opening = opened.status();
  };
  if (CompileStatus status = compile(floats); status != CompileStatus::done)
    return status;
  if (Status status = opening.ok() ? prepare() : opening; !status.ok())
    return fail(status);

  CompileOptions decided;
  decided.model = options.model;
  decided.recipe = options.recipe;
  decided.statistics = options.statistics;
  decided.emit = CompileOptions::Emit::annotated;
  decided.uniform = decided.quiet = true;
  decided.allowNonfinite = options.allowNonfinite;
  Status measured;
  decided.decided = [&](mlir::ModuleOp module) { measured = measure(module); };
  if (CompileStatus status = compile(decided); status != CompileStatus::done)
    return status;
  if (!measured.ok())
    return fail(measured);
  progress.clear();
  llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &out) {
    out << result.json();
    return llvm::Error::success();
  });
  if (error)
    return fail(badInput(output, ": cannot be written (", llvm::toString(std::move(error)), ")"));
  std::printf("wrote %s: %zu weights on %s, %.1f s\n", output.c_str(), result.weights.size(),
              result.source.c_str(), progress.seconds());
  return CompileStatus::done;
}

} // namespace

CompileStatus measureSensitivities(const SensitivityOptions &options, std::string &made) {
  return Measurement(options).run(made);
}

} // namespace otf
