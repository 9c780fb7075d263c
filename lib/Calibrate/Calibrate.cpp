// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Calibrate.h"

#include "lib/Analysis/Statistics.h"
#include "lib/Calibrate/Samples.h"
#include "lib/Calibrate/Source.h"
#include "lib/Compile/Progress.h"

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

namespace {

class Calibration {
public:
  explicit Calibration(const CalibrationOptions &options) : options(options) {}
  CompileStatus run(std::string &made);

private:
  Status observe(const std::map<std::string, std::string> &weights, const std::string &planFile);
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

Status Calibration::observe(const std::map<std::string, std::string> &weights, const std::string &planFile) {
  // Without a name before it is read, so a killed run leaves none.
  int file = open(planFile.c_str(), O_RDONLY | O_CLOEXEC);
  unlink(planFile.c_str());
  Result<std::unique_ptr<runtime::PlanFile>> plan = runtime::PlanFile::open(cat("/proc/self/fd/", file));
  close(file);
  if (!plan.ok())
    return badInput(planFile, ": ", plan.status().message());
  Result<std::unique_ptr<Sidecar>> sidecar = Sidecar::create(output, *plan.value(), weights);
  if (!sidecar.ok())
    return sidecar.status();
  Sidecar &statistics = *sidecar.value();
  Result<std::unique_ptr<Samples>> samples =
      makeSamples(*plan.value(), &statistics, source,
                  {options.tokens - options.tokens / kBeginnings, options.window, options.tokens / kBeginnings});
  if (!samples.ok())
    return samples.status();
  Result<std::unique_ptr<runtime::Device>> device = runtime::makeDevice(*plan.value(), "cpu");
  if (!device.ok())
    return device.status();
  runtime::SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  sessionOptions.capacity = std::max<int64_t>(options.window, 1);
  Result<std::unique_ptr<runtime::Session>> session = runtime::Session::create(*plan.value(), *device.value(), sessionOptions);
  if (!session.ok())
    return session.status();
  OTF_TRY(statistics.lendTo(*session.value()));

  std::string what = samples.value()->words(), warning = samples.value()->warning(statistics.widest());
  if (!warning.empty())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  size_t count = samples.value()->count();
  for (size_t i = 0; i < count; ++i) {
    double seconds = progress.seconds();
    std::string left = i == 0 ? "" : cat(", ", int64_t(seconds / double(i) * double(count - i) + 0.5), " s left");
    progress.show(cat("calibrating on ", what, left), i, count);
    if (Status status = samples.value()->run(*session.value(), i); !status.ok())
      return Status(status.code(), cat(model.file, ": sample ", i, " of ", what, ": ", status.message()));
    OTF_TRY(check(statistics, cat("in sample ", i, " of ", what), i + 1 == count));
  }
  progress.clear();
  if (size_t left = statistics.weightsLeftOut())
    std::fprintf(stderr, "warning: %s: statistics of %zu weights are NaN or infinite, and left out\n", model.file.c_str(), left);
  OTF_TRY(statistics.finish({{"format", kStatisticsFormat.str()}, {"model", model.key}, {"source", what}, {"settings", source.settings}}));
  std::printf("wrote %s: %s, %.1f s\n", output.c_str(), what.c_str(), progress.seconds());
  return {};
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
  compiled.observed = &weights;
  compiled.quiet = true;
  if (CompileStatus status = compile(compiled); status != CompileStatus::done)
    return status;
  if (weights.empty()) {
    unlink(compiled.output.c_str());
    return fail(badInput(model.file, ": no linear multiplies by a weight, so there is nothing to calibrate"));
  }
  if (Status status = observe(weights, compiled.output); !status.ok())
    return fail(status);
  return CompileStatus::done;
}

} // namespace

CompileStatus calibrate(const CalibrationOptions &options, std::string &made) { return Calibration(options).run(made); }

} // namespace otf
