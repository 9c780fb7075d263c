// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands share: options as the command line gives them, opening a plan, and the one
// form of an error, "error: <file>: <thing>: <what> (<why, and what to try>)".
#ifndef OTF_TOOLS_OTF_EXEC_COMMON_H
#define OTF_TOOLS_OTF_EXEC_COMMON_H

#include "runtime/Device.h"
#include "runtime/LanguageModel.h"
#include "runtime/Session.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace otf::exec {

struct PlanOptions {
  std::string plan, device = "cpu";
  unsigned threads = 0;
  int64_t context = 0;
  int64_t iterations = int64_t(1) << 20;
  bool json = false;
};

struct RunOptions : PlanOptions {
  std::vector<std::string> inputs; // name=file.npy
  std::string outputFolder;
  int64_t repeat = 0; // timed runs after the first
  bool profile = false;
};

struct TextOptions : PlanOptions {
  std::string prompt, chatPrompt, system, tokenizer;
  std::string promptIds; // "1,2,3"
  bool hasPrompt = false, hasPromptIds = false, hasChatPrompt = false;
  bool greedy = false, noStream = false, ignoreEos = false;
  double temperature = 0.8, topP = 1, minP = 0, repetitionPenalty = 1;
  int64_t topK = 0, noRepeatNgram = 0, maxTokens = 256;
  uint64_t seed = 0;
  std::string draft = "none";
  std::vector<std::string> stops;
};

struct BenchOptions : PlanOptions {
  int64_t promptTokens = 128, tokens = 128, repeat = 3;
  bool limits = false;
  std::string peers; // the JSON of bench/cpu
};

struct ProfileOptions : PlanOptions {
  int64_t promptTokens = 64, tokens = 64, repeat = 20;
  std::vector<std::string> inputs; // name=file.npy, for other models
  std::string trace;
  bool each = false; // steps one by one, and not equal kernels together
};

struct EvalOptions : PlanOptions {
  std::string reference, text, tokenizer;
  std::string inputs;                // folder of arrays, for other models
  std::optional<double> leastCosine; // its gate
  // Those of the table of peers: 16 windows, of each the last 448 tokens are scored.
  int64_t tokens = 8192, window = 512, scoreFrom = 64;
  std::optional<double> mostDivergence, leastSameBest, mostRatio; // gates
  std::string gate = "bound"; // what they judge: the interval's worse end, or else "point"
};

struct CompareOptions : PlanOptions {
  std::string other, text, tokenizer;
  std::vector<std::string> inputs; // name=file.npy
  int64_t tokens = 128;
  double threshold = 0.1;
  bool all = false, byLayer = false;
};

/// The exit status of a measurement that was made and does not meet its gate. Those below 4 mean that
/// there is none (runtime::Code).
inline constexpr int kGateMissed = 4;

// Each returns the exit status.
int run(const RunOptions &options);
/// Runs what lines of standard input say, {"plan", "inputs": {name: file}, "output_dir"} each, and prints the
/// status of each. A GPU is opened once for all: that takes longer than most tests.
int batch(const PlanOptions &options);
int generate(const TextOptions &options);
int chat(const TextOptions &options);
int bench(const BenchOptions &options);
int profile(const ProfileOptions &options);
int eval(const EvalOptions &options);
int evalArrays(const EvalOptions &options);
int compare(const CompareOptions &options);
int info(const PlanOptions &options);
int verify(const PlanOptions &options);

/// Prints the error and returns its exit status.
int fail(const std::string &file, const runtime::Status &status);

/// Names come from files: control characters as \x0a, so that an error stays one line.
std::string printable(std::string_view text);

/// What an error is about, and the error.
struct Failure {
  std::string file;
  runtime::Status status;
};

/// Whether inputs are given as name=file.npy, each once; before a plan is opened for nothing.
runtime::Status checkInputs(const std::vector<std::string> &inputs);

/// Sets inputs that checkInputs() has seen.
Failure giveInputs(runtime::Session &session, const std::string &plan,
                   const std::vector<std::string> &inputs);

/// A prompt of as many tokens for measuring: any do.
std::vector<int32_t> benchPrompt(int64_t vocabulary, int64_t tokens);

/// The end of a command that printed: 0, or the exit status after a write that failed.
int finishOutput();
/// Whether nobody can read what is printed any more.
bool outputIsGone();

/// A plan, a device and one session, in the order in which they need each other.
struct Opened {
  std::unique_ptr<runtime::PlanFile> plan;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Session> session;
  double seconds = 0;
};
runtime::Result<Opened> open(const PlanOptions &options);

/// `tokenizer` is a tokenizer.json or its folder, and replaces the plan's unless it is empty.
runtime::Result<runtime::LanguageModel> openLanguageModel(const runtime::PlanFile &plan,
                                                          const std::string &tokenizer);
runtime::Result<std::string> readText(const std::string &path);

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace otf::exec

#endif // OTF_TOOLS_OTF_EXEC_COMMON_H
