// SPDX-License-Identifier: Apache-2.0
//
// otf-compile: flags to options, and nothing else. Exit status: 0 done, 1 bad input, 2 usage,
// 3 a device, a library or memory is missing.

#include "lib/Analysis/Statistics.h"
#include "lib/Calibrate/Calibrate.h"
#include "lib/Calibrate/Sensitivity.h"
#include "lib/Compile/Compile.h"

#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>

using otf::CompileOptions;

static const std::map<std::string, CompileOptions::Emit> stages = {
    {"onnx-ir", CompileOptions::Emit::onnxIr},      {"imported", CompileOptions::Emit::imported},
    {"annotated", CompileOptions::Emit::annotated}, {"quantized", CompileOptions::Emit::quantized},
    {"fused", CompileOptions::Emit::fused},         {"planned", CompileOptions::Emit::planned},
    {"cuda", CompileOptions::Emit::cuda},           {"llvm", CompileOptions::Emit::llvm},
    {"plan", CompileOptions::Emit::plan},
};

static int usageError(const std::string &what) {
  std::fprintf(stderr, "error: command line: %s (see otf-compile --help)\n", what.c_str());
  return 2;
}

/// "75", "sm_75" and "sm_90a" are architectures.
static bool isArchitecture(std::string &name) {
  if (name.rfind("sm_", 0) != 0)
    name = "sm_" + name;
  llvm::StringRef number = llvm::StringRef(name).drop_front(3);
  number.consume_back("a");
  unsigned value;
  return !number.empty() && !number.getAsInteger(10, value) && value >= 50 && value < 1000;
}

static int parseAndRun(int argc, char **argv) {
  CLI::App app("Compiles an ONNX model to one plan file that otf-exec runs.", "otf-compile");
  CompileOptions options;
  std::string recipe = "none";
  std::vector<std::string> targets = {"cpu"};
  bool printRecipe = false;

  std::string known;
  for (llvm::StringRef name : otf::builtinRecipes())
    known += (known.empty() ? "" : ", ") + name.str();
  auto *model = app.add_option("model", options.model, "ONNX file, or folder with a model.onnx");
  app.add_option("-o,--output", options.output,
                 "plan file; for text: file, or - for standard output");
  auto *named = app.add_option("--recipe", recipe, known + ", or a JSON file")->capture_default_str();
  std::string budget;
  auto *asked = app.add_option("--budget", budget,
                               "what recipe auto, or a file with choices, may spend: 2.5bpw (bits a weight of linears, everything counted), "
                               "1.2GB (all weights) or kl=0.05; with no --recipe, auto takes it");
  app.add_flag("--print-recipe", printRecipe, "print the recipe as JSON and stop");
  app.add_option("--target", targets, "cpu, cuda or both: cpu,cuda")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--cpu-arch", options.cpuLevels,
                 "instruction sets to put code for in the plan: avx2,avx512vnni by default; native: the best that this machine runs, "
                 "in half the time")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"avx2", "avx512vnni", "native"}).description(""));
  auto *architectures =
      app.add_option("--cuda-arch", options.cudaArchitectures,
                     "cubins to put in the plan: sm_75,sm_86,sm_89,sm_90,sm_120 by default with "
                     "target cuda; none: compile when the plan runs")
          ->delimiter(',')
          ->allow_extra_args(false);
  auto *strict = app.add_flag("--strict-placement", options.strictPlacement,
                              "with target cuda, a kernel that only the host can run is an error");
  app.add_option("--emit", options.emit,
                 "plan, or text of a stage: onnx-ir, imported, annotated, quantized, fused, "
                 "planned, cuda, llvm")
      ->transform(CLI::CheckedTransformer(stages).description(""));
  app.add_flag("--dry-run", options.dryRun, "do all the work and say what it gives; write no plan");
  auto *context = app.add_option("--context", options.context,
                                 "with --dry-run: positions of the cache whose memory is told; the "
                                 "model's context by default, at most 4096")
                      ->check(CLI::Range(int64_t(1), int64_t(1) << 40).description(""));
  auto *bandwidth = app.add_option("--bandwidth", options.bandwidth,
                                   "with --dry-run: bytes a second that weights are read at, 50GB for instance, by which speed is "
                                   "foretold; measured here by default")
                        ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true).description(""));
  app.add_option("--report", options.report,
                 "what became of each tensor, as JSON; prints a table of their types");
  otf::CalibrationOptions calibration;
  auto *calibrate = app.add_option("--calibrate", calibration.source,
                                   "text, folder of .npy files (one for each input; the first axis counts samples), "
                                   "statistics made before, default (a built-in text) or none");
  auto *made = app.add_option("--calibration-out", calibration.output,
                              "statistics to write; MODEL.onnx.calibration.safetensors by default, where later "
                              "compilations find them");
  auto *tokens = app.add_option("--calibrate-tokens", calibration.tokens, "of a text to run on, in windows of 512")
                     ->check(CLI::Range(int64_t(1), int64_t(1) << 32))
                     ->capture_default_str();
  app.add_flag("--allow-nonfinite", options.allowNonfinite,
               "keep weights that hold NaN or infinity as f32, and leave out statistics that are NaN or infinite");
  app.add_option("--threads", options.threads, "that encode weights, and run for --calibrate")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--max-host-memory", options.hostMemory,
                 "that compiling may take beside its files, 256MB for instance")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true).description(""));
  auto *resume = app.add_flag("--resume", options.resume,
                              "go on where the same compilation was killed, with the weights of PLAN.unfinished");
  app.add_option("--synthetic-weights", options.syntheticSeed,
                 "SEED: weights whose external data file is absent get Gaussian values made of it, to measure a model whose weights are elsewhere")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 32));
  app.add_flag("--verbose", options.verbose, "a line for each weight");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help
      return app.exit(error);
    return usageError(error.what());
  }

  if (asked->count() && !named->count())
    recipe = "auto";
  llvm::Expected<otf::Recipe> found = otf::findRecipe(recipe);
  if (!found) {
    std::fprintf(stderr, "error: %s\n", llvm::toString(found.takeError()).c_str());
    return 1;
  }
  options.recipe = std::move(*found);
  if (asked->count())
    if (llvm::Error error = otf::setBudget(options.recipe, budget)) {
      std::fprintf(stderr, "error: --budget: %s\n", llvm::toString(std::move(error)).c_str());
      return 1;
    }
  if (printRecipe) {
    std::fputs(otf::printRecipe(options.recipe).c_str(), stdout);
    return 0;
  }
  if (model->count() == 0)
    return usageError("a model is required");
  options.cpu = options.cuda = false;
  for (const std::string &target : targets)
    (target == "cpu" ? options.cpu : options.cuda) = true;
  if (architectures->count() && !options.cuda)
    return usageError("--cuda-arch needs --target=cuda");
  if (context->count() && !options.dryRun)
    return usageError("--context needs --dry-run (otf-exec takes one too)");
  if (bandwidth->count() && !options.dryRun)
    return usageError("--bandwidth needs --dry-run");
  if (strict->count() && !options.cuda)
    return usageError("--strict-placement needs --target=cuda");
  if (options.cuda && !architectures->count())
    options.cudaArchitectures = {"sm_75", "sm_86", "sm_89", "sm_90", "sm_120"};
  if (options.cudaArchitectures == std::vector<std::string>{"none"})
    options.cudaArchitectures.clear();
  for (std::string &name : options.cudaArchitectures)
    if (!isArchitecture(name))
      return usageError("--cuda-arch: no architecture '" + name + "'; one looks like sm_90");
  bool plan = options.emit == CompileOptions::Emit::plan;
  if (plan && options.output.empty() && !options.dryRun)
    return usageError("-o is required: the plan file to write");
  if (plan && options.output == "-")
    return usageError("-o -: a plan is not written to standard output; name a file");
  if (!options.report.empty() && options.report == options.output)
    return usageError("--report and -o name the same file");
  if (!plan && (options.dryRun || !options.report.empty()))
    return usageError("--dry-run and --report need --emit=plan");
  if (resume->count() && (!plan || options.dryRun))
    return usageError("--resume needs a plan to write");
  bool isRun = calibrate->count() && calibration.source != "none" && !otf::Statistics::isStatistics(calibration.source);
  if (!isRun && (made->count() || tokens->count()))
    return usageError("--calibration-out and --calibrate-tokens need --calibrate with a text or a folder");
  if (options.syntheticSeed && isRun)
    return usageError("--synthetic-weights and --calibrate exclude each other: nothing is to be learnt from such weights");
  if (calibrate->count() && calibration.source == "none") {
    options.ignoreStatistics = true;
  } else if (isRun) {
    calibration.model = options.model;
    calibration.threads = options.threads;
    calibration.allowNonfinite = options.allowNonfinite;
    if (otf::CompileStatus status = otf::calibrate(calibration, options.statistics); status != otf::CompileStatus::done)
      return int(status);
    if (!options.recipe.choices.empty()) {
      otf::SensitivityOptions measured{options.model, calibration.source, options.recipe, options.statistics, {}, options.threads, options.allowNonfinite};
      if (made->count()) // elsewhere, as the statistics are
        measured.output = otf::defaultSensitivities(calibration.output);
      if (otf::CompileStatus status = otf::measureSensitivities(measured, options.sensitivities); status != otf::CompileStatus::done)
        return int(status);
    }
  } else if (calibrate->count()) {
    options.statistics = calibration.source;
    std::error_code ignored;
    if (std::string beside = otf::defaultSensitivities(calibration.source); std::filesystem::exists(beside, ignored))
      options.sensitivities = beside;
  }
  return int(otf::compile(options));
}

int main(int argc, char **argv) {
  // A reader that goes away is a failed write, not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return parseAndRun(argc, argv);
  } catch (const std::bad_alloc &) {
    std::fputs("error: otf-compile: out of memory (close other programs or use a smaller model)\n",
               stderr);
    return 3;
  }
}
