// SPDX-License-Identifier: Apache-2.0
//
// otf-exec: flags to options, and nothing else. CLI11 throws; no exception leaves main().
#include "tools/otf-exec/Common.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <fcntl.h>
#include <iostream>
#include <limits>
#include <new>
#include <unistd.h>

using namespace otf::exec;

// CLI11's own ranges print the largest double with all of its 309 digits.

/// Whole numbers from `least` to `most`.
template <typename T> static auto whole(T least, T most = std::numeric_limits<T>::max()) {
  return [=](const std::string &text) -> std::string {
    T value = 0;
    bool isNegative = text.starts_with('-'); // which unsigned types would take as a large number
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most &&
        !(isNegative && least >= 0))
      return {};
    return otf::runtime::cat("expected a whole number from ", least, " to ", most, ", found '", text,
                             "'");
  };
}

/// Numbers from or above `least`, at most `most`. They are floats in the end.
enum class Least { included, excluded };
static auto number(float least, Least kind, float most, const char *expected) {
  return [=](const std::string &text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value))
      if (float f = float(value); (kind == Least::included ? f >= least : f > least) && f <= most)
        return {};
    return otf::runtime::cat("expected ", expected, ", found '", text, "'");
  };
}
static constexpr float kLargest = std::numeric_limits<float>::max();
// Longer than any context of today, and small enough to be held in memory and added up.
static constexpr int64_t kMostBenchTokens = 1 << 24;

/// A device's name comes back in messages that keep their line ends.
static std::string isName(const std::string &text) {
  return printable(text) == text ? "" : "expected a name, found '" + text + "'";
}

static std::string isPath(const std::string &text) {
  return text.empty() ? "the path is empty" : "";
}

static void runFlags(CLI::App &app, PlanOptions &o);

static void planFlags(CLI::App &app, PlanOptions &o, bool runs) {
  app.add_option("plan", o.plan, "plan file, as otf-compile writes it")->required();
  if (runs)
    runFlags(app, o);
}

static void runFlags(CLI::App &app, PlanOptions &o) {
  app.add_option("--device", o.device, "cpu, cpu:<level>, cuda or cuda:<ordinal>")
      ->check(isName)->capture_default_str();
  app.add_option("--threads", o.threads, "of the CPU; 0: all available cores")
      ->check(whole<unsigned>(0, 1024))->capture_default_str();
  app.add_option("--context", o.context,
                 "positions the cache has room for; 0: the model's context, at most 4096")
      ->check(whole<int64_t>(0));
  app.add_option("--iterations", o.iterations,
                 "that all loops of one run may do together before they count as endless")
      ->check(whole<int64_t>(1))->capture_default_str();
}

static void textFlags(CLI::App &app, TextOptions &o) {
  app.add_option("--tokenizer", o.tokenizer, "tokenizer.json, or its folder, to use instead of the plan's")
      ->check(isPath);
  app.add_flag("--greedy", o.greedy, "always the likeliest token");
  app.add_option("--temperature", o.temperature, "how freely tokens are chosen; 0: as --greedy")
      ->check(number(0, Least::included, kLargest, "a number from 0 to 3.4e38"))->capture_default_str();
  app.add_option("--top-k", o.topK, "choose among this many of the likeliest tokens; 0: all")
      ->check(whole<int64_t>(0))->capture_default_str();
  app.add_option("--top-p", o.topP, "choose among the likeliest tokens that have this probability together")
      ->check(number(0, Least::excluded, 1, "a number above 0 and at most 1"))->capture_default_str();
  app.add_option("--min-p", o.minP, "leave out tokens less likely than this times the likeliest")
      ->check(number(0, Least::included, 1, "a number from 0 to 1"))->capture_default_str();
  app.add_option("--repetition-penalty", o.repetitionPenalty, "above 1: tokens of the text so far become less likely")
      ->check(number(0, Least::excluded, kLargest, "a number above 0 and at most 3.4e38"))->capture_default_str();
  app.add_option("--no-repeat-ngram", o.noRepeatNgram, "never repeat as many tokens in a row; 0: off")
      ->check(whole<int64_t>(0))->capture_default_str();
  app.add_option("--seed", o.seed, "of random choices: equal seeds give equal text")
      ->check(whole<uint64_t>(0))->capture_default_str();
  app.add_option("--draft", o.draft, "ngram: guess tokens by what followed in the text before, and check several in one run; the text is the same where linears are coded, and otherwise but for near ties")
      ->check(CLI::IsMember({"none", "ngram"}))->capture_default_str();
  app.add_option("--stop", o.stops, "text that ends the answer; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--max-tokens", o.maxTokens, "at most as many new tokens")
      ->check(whole<int64_t>(0))->capture_default_str();
  app.add_flag("--ignore-eos", o.ignoreEos, "go on after an end token");
}

static void evalFlags(CLI::App &app, EvalOptions &o) {
  app.add_option("--reference", o.reference, "plan of the same model, usually of recipe none")->required()->check(isPath);
  auto *text = app.add_option("--text", o.text, "file of UTF-8 text, for language models")->check(isPath);
  auto *inputs = app.add_option("--inputs", o.inputs, "for other models: folder with <input>.npy for each input, or with a "
                                                      "folder of those for each sample")
                     ->check(isPath)->excludes(text);
  app.add_option("--min-cosine", o.leastCosine, "with --inputs: exit status 4 if an output of a sample is below it")
      ->check(number(-1, Least::included, 1, "a number from -1 to 1"))->needs(inputs);
  app.add_option("--tokenizer", o.tokenizer, "tokenizer.json, or its folder, to use instead of the plans'")
      ->check(isPath);
  app.add_option("--tokens", o.tokens, "how much of the text, in whole windows; 0: all of it")
      ->check(whole<int64_t>(0))->capture_default_str();
  app.add_option("--window", o.window, "tokens seen at once; every window begins without a past")
      ->check(whole<int64_t>(2, kMostBenchTokens))->capture_default_str();
  app.add_option("--score-from", o.scoreFrom, "the first token of a window whose prediction counts")
      ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str();
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_option("--max-kl", o.mostDivergence, "exit status 4 if the mean KL divergence (nats) is above it")
      ->check(number(0, Least::included, kLargest, "a number from 0 to 3.4e38"))->needs(text);
  app.add_option("--min-top1", o.leastSameBest, "the same if less than this fraction of likeliest tokens agrees")
      ->check(number(0, Least::included, 1, "a number from 0 to 1"))->needs(text);
  app.add_option("--max-perplexity-ratio", o.mostRatio, "the same for the plan's perplexity over the reference's")
      ->check(number(0, Least::excluded, kLargest, "a number above 0 and at most 3.4e38"))->needs(text);
  app.add_option("--gate", o.gate, "what gates judge: bound, the worse end of the 95 % interval, or point")
      ->check(CLI::IsMember({"bound", "point"}))->capture_default_str();
}

static void compareFlags(CLI::App &app, CompareOptions &o) {
  auto *text = app.add_option("--text", o.text, "file of UTF-8 text, whose first tokens a language model reads; a built-in text by default")
                   ->check(isPath);
  app.add_option("--input", o.inputs, "name=file.npy, for other models; may be repeated")
      ->allow_extra_args(false)->excludes(text);
  app.add_option("--tokenizer", o.tokenizer, "tokenizer.json, or its folder, to use instead of the plans'")
      ->check(isPath)->needs(text);
  app.add_option("--tokens", o.tokens, "how many tokens of the text")
      ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str();
  app.add_option("--threshold", o.threshold, "names the first value whose relative error is above it")
      ->check(number(0, Least::included, kLargest, "a number from 0 to 3.4e38"))->capture_default_str();
  app.add_flag("--by-layer", o.byLayer, "of a text: what KL each layer costs, by a run a layer");
  app.add_flag("--all", o.all, "print all values, and not the largest jumps only");
  app.add_flag("--json", o.json, "print one JSON object with all values");
}

static void profileFlags(CLI::App &app, ProfileOptions &o) {
  auto *prompt = app.add_option("--prompt-tokens", o.promptTokens, "length of a language model's prompt")
                     ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str();
  auto *tokens = app.add_option("--tokens", o.tokens, "how many are written after it, a run each; 0: the prompt is the run")
                     ->check(whole<int64_t>(0, kMostBenchTokens))->capture_default_str();
  auto *input = app.add_option("--input", o.inputs, "name=file.npy, for other models; may be repeated")
                    ->allow_extra_args(false)->excludes(prompt)->excludes(tokens);
  app.add_option("--repeat", o.repeat, "runs on the inputs")
      ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str()->needs(input);
  app.add_option("--trace", o.trace, "file for the steps in Chrome's trace format")->check(isPath);
  app.add_flag("--each", o.each, "each step, and not equal kernels together");
  app.add_flag("--json", o.json, "print one JSON object");
}

static int parseAndRun(int argc, char **argv) {
  CLI::App app("Runs plans that otf-compile made.", "otf-exec");
  app.require_subcommand(1);
  RunOptions r;
  TextOptions g, c;
  BenchOptions b;
  EvalOptions e;
  CompareOptions p;
  ProfileOptions f;
  PlanOptions i, v, s;

  CLI::App *run = app.add_subcommand("run", "arrays in, arrays out");
  planFlags(*run, r, true);
  run->add_option("--input", r.inputs, "name=file.npy; may be repeated")->allow_extra_args(false);
  run->add_option("--repeat", r.repeat, "timed runs after the first; prints their milliseconds")
      ->check(whole<int64_t>(0));
  run->add_flag("--profile", r.profile, "which steps the runs of --repeat spend their time in (CPU)");
  run->add_option("--output-dir", r.outputFolder, "folder for <output>.npy")->check(isPath);

  CLI::App *batch = app.add_subcommand("batch", "runs of many plans: a line of JSON on standard input each");
  runFlags(*batch, s);

  CLI::App *generate = app.add_subcommand("generate", "continue a text");
  planFlags(*generate, g, true);
  auto *prompt = generate->add_option("--prompt", g.prompt, "text to continue");
  auto *ids = generate->add_option("--prompt-ids", g.promptIds, "tokens to continue: 1,2,3")
                  ->excludes(prompt);
  auto *chatPrompt = generate->add_option("--chat-prompt", g.chatPrompt, "message to answer")
                         ->excludes(prompt)->excludes(ids);
  generate->add_option("--system", g.system, "system message before --chat-prompt")
      ->needs(chatPrompt);
  textFlags(*generate, g);
  generate->add_flag("--json", g.json, "print one JSON object: ids, text, reason, times");
  generate->add_flag("--no-stream", g.noStream, "print the text at the end");

  CLI::App *chat = app.add_subcommand("chat", "answer line after line of standard input");
  planFlags(*chat, c, true);
  chat->add_option("--system", c.system, "system message");
  textFlags(*chat, c);

  CLI::App *bench = app.add_subcommand("bench", "measure speed and memory");
  planFlags(*bench, b, true);
  bench->add_option("--prompt-tokens", b.promptTokens, "length of the prompt that is read")
      ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str();
  bench->add_option("--tokens", b.tokens, "how many are written after it")
      ->check(whole<int64_t>(0, kMostBenchTokens))->capture_default_str();
  bench->add_option("--repeat", b.repeat, "measurements, of which the median counts")
      ->check(whole<int64_t>(1, kMostBenchTokens))->capture_default_str();
  bench->add_flag("--limits", b.limits, "also what the machine could do, and each kernel's share of it");
  bench->add_option("--peers", b.peers, "file that bench/cpu --json wrote: also the peers it measured, and --limits")
      ->check(isPath);
  bench->add_flag("--json", b.json, "print one JSON object");

  CLI::App *profile = app.add_subcommand("profile", "where the time of a run goes, beside what the machine could do");
  planFlags(*profile, f, true);
  profileFlags(*profile, f);

  CLI::App *eval = app.add_subcommand("eval", "distance from a reference plan over a text");
  planFlags(*eval, e, true);
  evalFlags(*eval, e);

  CLI::App *compare = app.add_subcommand("compare", "where two plans of one model part");
  compare->add_option("first", p.plan, "plan that counts as right")->required();
  compare->add_option("second", p.other, "plan of the same model")->required();
  runFlags(*compare, p);
  compareFlags(*compare, p);

  CLI::App *info = app.add_subcommand("info", "what a plan holds");
  planFlags(*info, i, false);
  info->add_flag("--json", i.json, "print one JSON object");
  CLI::App *verify = app.add_subcommand("verify", "check a plan to the last byte");
  planFlags(*verify, v, false);
  verify->add_flag("--json", v.json, "print one JSON object");

  // CLI11 would only say that a subcommand is missing.
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first != "--help" && first != "-h" &&
      app.get_subcommands([&](const CLI::App *s) { return s->get_name() == first; }).empty())
    return fail("command line", otf::runtime::usageError("'", first, "': unknown (expected run, "
                                                         "batch, generate, chat, bench, profile, eval, compare, info or verify)"));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0) { // --help
      app.exit(e);
      std::cout.flush();
      return finishOutput();
    }
    return fail("command line", otf::runtime::usageError(e.what(), " (see otf-exec --help)"));
  }
  g.hasPrompt = prompt->count() > 0;
  g.hasPromptIds = ids->count() > 0;
  g.hasChatPrompt = chatPrompt->count() > 0;
  return *run        ? otf::exec::run(r)
         : *batch    ? otf::exec::batch(s)
         : *generate ? otf::exec::generate(g)
         : *chat     ? otf::exec::chat(c)
         : *bench    ? otf::exec::bench(b)
         : *profile  ? otf::exec::profile(f)
         : *eval     ? e.inputs.empty() ? otf::exec::eval(e) : otf::exec::evalArrays(e)
         : *compare  ? otf::exec::compare(p)
         : *info     ? otf::exec::info(i)
                     : otf::exec::verify(v);
}

int main(int argc, char **argv) {
  // A file that takes the number of a closed standard output would get what is printed. This one
  // takes it and cannot be written.
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0)
      (void)open("/dev/null", O_RDONLY);
  // A reader that goes away is a failed write, not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return parseAndRun(argc, argv);
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: otf-exec: memory: there is not enough of it\n");
    return 3;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "error: otf-exec: %s\n", e.what());
    return 3;
  }
}
