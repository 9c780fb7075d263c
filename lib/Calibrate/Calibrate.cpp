// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Calibrate.h"

#include "dialects/OTF/Observed.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Calibrate/SampleRun.h"
#include "lib/Calibrate/Source.h"
#include "lib/Compile/Progress.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace otf {

using runtime::badInput;
using runtime::cat;
using runtime::Result;
using runtime::Status;

// A fifth of a text's tokens is in windows of 16. All heads attend to the first token and its values are small, so error feedback gives
// it up where it is one of 512 tokens: on SmolLM2 (ldlq2) KL is .75 with and .83 without.
static constexpr int64_t kBeginnings = 5;

static constexpr size_t kNamed = 8; // weights, in a warning

namespace {

class Calibration {
public:
  explicit Calibration(const CalibrationOptions &options) : options(options) {}
  CompileStatus run(std::string &made);

private:
  Status observe(const std::map<std::string, std::string> &weights, int planFile);
  Status tellCoverage() const;
  Status check(Sidecar &sidecar, const std::string &when, bool last);
  bool isMade() const;

  const CalibrationOptions &options;
  Progress progress;
  ModelIdentity model;
  Source source;
  std::string output;
};

/// Whether the file that would be written is there already.
bool Calibration::isMade() const {
  llvm::Expected<Statistics> there = Statistics::open(output);
  if (!there) {
    llvm::consumeError(there.takeError());
    return false;
  }
  return there->model() == model.key && there->settings() == source.settings;
}

Status Calibration::check(Sidecar &sidecar, const std::string &when, bool last) {
  for (;;) {
    auto [set, channel] = sidecar.findNonfinite(last);
    if (set.empty())
      return {};
    if (!options.allowNonfinite)
      return badInput(model.file, ": ", set, ": what this weight is multiplied with is NaN, infinite or too large at channel ", channel, " ", when,
                      " (check the model on it; --allow-nonfinite leaves these statistics out)");
    sidecar.leaveOut(set);
  }
}

/// How far what caches hold goes, and which experts no token has chosen.
Status Calibration::tellCoverage() const {
  llvm::Expected<Statistics> made = Statistics::open(output);
  if (!made)
    return badInput(llvm::toString(made.takeError()));
  double least = 0, largest = 0;
  std::vector<std::string> caches = made->namesOf(kCacheSet);
  for (const std::string &name : caches) {
    const ChannelStatistics &cache = *made->find(name);
    least = std::min(least, *llvm::min_element(cache.least));
    largest = std::max(largest, *llvm::max_element(cache.largest));
  }
  if (!caches.empty())
    std::printf("%zu caches were given values from %.4g to %.4g (--report says it of each)\n", caches.size(), least, largest);
  for (const std::string &name : made->namesOf(kExpertsSet)) {
    std::string unseen;
    for (auto [expert, tokens] : llvm::enumerate(made->find(name)->sums))
      if (tokens == 0)
        unseen += (unseen.empty() ? "" : ", ") + std::to_string(expert);
    if (!unseen.empty())
      std::fprintf(stderr, "warning: %s: %s: no token chose expert %s, so nothing is known of them (calibrate on more or other text)\n",
                   model.file.c_str(), name.substr(kExpertsSet.size()).c_str(), unseen.c_str());
  }
  return {};
}

/// `planFile`: the instrumented plan's descriptor.
Status Calibration::observe(const std::map<std::string, std::string> &weights, int planFile) {
  Result<std::unique_ptr<runtime::PlanFile>> plan = runtime::PlanFile::open(cat("/proc/self/fd/", planFile));
  if (!plan.ok())
    return badInput(output, ": its plan: ", plan.status().message());
  Result<std::unique_ptr<Sidecar>> sidecar = Sidecar::create(output, *plan.value(), weights);
  if (!sidecar.ok())
    return sidecar.status();
  Sidecar &statistics = *sidecar.value();
  Result<SampleRun> made =
      SampleRun::create(*plan.value(), &statistics, source,
                        {options.tokens - options.tokens / kBeginnings, options.window, options.tokens / kBeginnings}, options.threads);
  if (!made.ok())
    return made.status();
  SampleRun &run = made.value();
  OTF_TRY(statistics.lendTo(*run.session));

  std::string what = run.samples->words(), warning = run.samples->warning(statistics.widest());
  if (!warning.empty())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  size_t count = run.samples->count();
  for (size_t i = 0; i < count; ++i) {
    double seconds = progress.seconds();
    std::string left = i == 0 ? "" : cat(", ", int64_t(seconds / double(i) * double(count - i) + 0.5), " s left");
    progress.show(cat("calibrating on ", what, left), i, count);
    OTF_TRY(run.run(i, model.file));
    OTF_TRY(check(statistics, cat("in sample ", i, " of ", what), i + 1 == count));
  }
  progress.clear();
  if (std::vector<std::string> left = statistics.weightsLeftOut(); !left.empty()) {
    std::string rest = left.size() > kNamed ? cat(" and ", left.size() - kNamed, " more") : "";
    left.resize(std::min(left.size(), kNamed));
    std::fprintf(stderr, "warning: %s: statistics are NaN or infinite, and left out, of what these weights are multiplied with: %s%s\n", model.file.c_str(),
                 llvm::join(left, ", ").c_str(), rest.c_str());
  }
  OTF_TRY(statistics.finish({{"format", kStatisticsFormat.str()}, {"model", model.key}, {"source", what}, {"settings", source.settings}}));
  std::printf("wrote %s: %s, %.1f s\n", output.c_str(), what.c_str(), progress.seconds());
  return tellCoverage();
}

CompileStatus Calibration::run(std::string &made) {
  auto fail = [&](const Status &status) {
    progress.clear();
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return status.code() == runtime::Code::device ? CompileStatus::missing : CompileStatus::badInput;
  };
  Result<Source> read = Source::read(
      options.source, cat(kStatisticsFormat.str(), " ", options.tokens, " ", options.window, " ", int(options.allowNonfinite), " ", kBeginnings));
  if (!read.ok())
    return fail(read.status());
  source = std::move(read.value());
  if (CompileStatus status = identifyModel(options.model, model); status != CompileStatus::done)
    return status;
  output = made = options.output.empty() ? defaultStatistics(model.file) : options.output;
  if (isMade()) {
    std::printf("using %s, which was made of the same\n", output.c_str());
    return CompileStatus::done;
  }
  std::map<std::string, std::string> weights;
  CompileOptions compiled;
  compiled.model = options.model;
  // Beside the statistics: where they have room the plan probably has, too.
  compiled.output = output + "." + std::to_string(getpid()) + ".plan";
  compiled.recipe = llvm::cantFail(findRecipe("none"));
  compiled.threads = options.threads;
  compiled.cpuLevels = {"native"}; // it runs here and nowhere else
  compiled.observed = &weights;
  compiled.quiet = true;
  compiled.allowNonfinite = options.allowNonfinite;
  int plan = -1;
  compiled.written = [&] {
    plan = open(compiled.output.c_str(), O_RDONLY | O_CLOEXEC);
    unlink(compiled.output.c_str());
  };
  llvm::scope_exit closing([&] { close(plan); });
  if (CompileStatus status = compile(compiled); status != CompileStatus::done)
    return status;
  if (weights.empty())
    return fail(badInput(model.file, ": no linear multiplies by a weight, so there is nothing to calibrate"));
  if (Status status = observe(weights, plan); !status.ok())
    return fail(status);
  return CompileStatus::done;
}

} // namespace

CompileStatus calibrate(const CalibrationOptions &options, std::string &made) { return Calibration(options).run(made); }

} // namespace otf
