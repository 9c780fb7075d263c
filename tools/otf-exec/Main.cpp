// SPDX-License-Identifier: Apache-2.0
//
// otf-exec: flags to options, and nothing else. CLI11 throws; no exception leaves main().
#include "tools/otf-exec/Common.h"

#include <CLI/CLI.hpp>

#include <csignal>

using namespace otf::exec;

static void planFlags(CLI::App &app, PlanOptions &o, bool runs) {
  app.add_option("plan", o.plan, "plan file, as otf-compile writes it")->required();
  if (!runs)
    return;
  app.add_option("--device", o.device, "cpu, cpu:<level>, cuda or cuda:<ordinal>")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "of the CPU; 0: all available cores")->capture_default_str();
  app.add_option("--context", o.context,
                 "positions the cache has room for; 0: the model's context, at most 4096")
      ->check(CLI::NonNegativeNumber);
}

static void textFlags(CLI::App &app, TextOptions &o) {
  app.add_option("--tokenizer", o.tokenizer, "tokenizer.json to use instead of the plan's");
  app.add_flag("--greedy", o.greedy, "always the likeliest token");
  app.add_option("--temperature", o.temperature)->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--top-k", o.topK, "0: all")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--top-p", o.topP)->check(CLI::Range(0.0, 1.0))->capture_default_str();
  app.add_option("--min-p", o.minP)->check(CLI::Range(0.0, 1.0))->capture_default_str();
  app.add_option("--repetition-penalty", o.repetitionPenalty)->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--no-repeat-ngram", o.noRepeatNgram, "0: off")->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", o.seed)->capture_default_str();
  app.add_option("--stop", o.stops, "text that ends the answer; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--max-tokens", o.maxTokens)->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_flag("--ignore-eos", o.ignoreEos, "go on after an end token");
}

static int parseAndRun(int argc, char **argv) {
  CLI::App app("Runs plans that otf-compile made.", "otf-exec");
  app.require_subcommand(1);
  RunOptions r;
  TextOptions g, c;
  BenchOptions b;
  PlanOptions i, v;

  CLI::App *run = app.add_subcommand("run", "arrays in, arrays out");
  planFlags(*run, r, true);
  run->add_option("--input", r.inputs, "name=file.npy; may be repeated")->allow_extra_args(false);
  run->add_option("--output-dir", r.outputFolder, "folder for <output>.npy");

  CLI::App *generate = app.add_subcommand("generate", "continue a text");
  planFlags(*generate, g, true);
  auto *prompt = generate->add_option("--prompt", g.prompt, "text to continue");
  auto *ids = generate->add_option("--prompt-ids", g.promptIds, "tokens to continue: 1,2,3")
                  ->delimiter(',')->excludes(prompt);
  auto *chatPrompt = generate->add_option("--chat-prompt", g.chatPrompt, "message to answer")
                         ->excludes(prompt)->excludes(ids);
  generate->add_option("--system", g.system, "system message before --chat-prompt");
  textFlags(*generate, g);
  generate->add_flag("--json", g.json);
  generate->add_flag("--no-stream", g.noStream, "print the text at the end");

  CLI::App *chat = app.add_subcommand("chat", "answer line after line of standard input");
  planFlags(*chat, c, true);
  chat->add_option("--system", c.system, "system message");
  textFlags(*chat, c);

  CLI::App *bench = app.add_subcommand("bench", "measure speed and memory");
  planFlags(*bench, b, true);
  bench->add_option("--prompt-tokens", b.promptTokens)->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("--tokens", b.tokens)->check(CLI::NonNegativeNumber)->capture_default_str();
  bench->add_option("--repeat", b.repeat)->check(CLI::PositiveNumber)->capture_default_str();
  bench->add_flag("--json", b.json);

  CLI::App *info = app.add_subcommand("info", "what a plan holds");
  planFlags(*info, i, false);
  info->add_flag("--json", i.json);
  CLI::App *verify = app.add_subcommand("verify", "check a plan to the last byte");
  planFlags(*verify, v, false);
  verify->add_flag("--json", v.json);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0) // --help
      return app.exit(e);
    std::fprintf(stderr, "error: command line: %s (see otf-exec --help)\n", e.what());
    return 2;
  }
  g.hasPrompt = prompt->count() > 0;
  g.hasChatPrompt = chatPrompt->count() > 0;
  return *run        ? otf::exec::run(r)
         : *generate ? otf::exec::generate(g)
         : *chat     ? otf::exec::chat(c)
         : *bench    ? otf::exec::bench(b)
         : *info     ? otf::exec::info(i)
                     : otf::exec::verify(v);
}

int main(int argc, char **argv) {
  // A reader that goes away is a failed write, not a death by signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return parseAndRun(argc, argv);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "error: otf-exec: %s\n", e.what());
    return 3;
  }
}
