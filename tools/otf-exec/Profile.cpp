// SPDX-License-Identifier: Apache-2.0
//
// otf-exec profile: where the time of a run goes, step by step, beside what the machine could do. A
// language model writes tokens after a prompt, or reads one; any other model runs on the inputs given.
#include "tools/otf-exec/Common.h"
#include "tools/otf-exec/StepProfile.h"

#include "runtime/CPU/Cores.h"
#include "runtime/Decoder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

struct Measured {
  std::vector<StepEvent> events;
  size_t runs = 0;
  int64_t rows = 1;   // tokens of a run
  double seconds = 0; // a run, with what lies between steps
};

Status next(Decoder &decoder) {
  Result<int32_t> id = decoder.best();
  return id.ok() ? decoder.append(id.value()) : id.status();
}

Status decode(Session &session, const ProfileOptions &o, Measured &to) {
  Result<std::unique_ptr<Decoder>> made = Decoder::create(session);
  if (!made.ok())
    return badInput(made.status().message(), "; or give inputs with --input, as in --input x=x.npy");
  Decoder &decoder = *made.value();
  decoder.wantOnlyBest();
  std::vector<int32_t> prompt = benchPrompt(decoder.vocabularySize(), o.promptTokens);
  OTF_TRY(decoder.start(prompt));
  if (o.tokens == 0) { // the prompt itself
    OTF_TRY(session.truncateStates(0));
    session.timeSteps(&to.events);
    auto start = std::chrono::steady_clock::now();
    OTF_TRY(decoder.start(prompt));
    to.seconds = secondsSince(start);
    to.runs = 1, to.rows = o.promptTokens;
    return {};
  }
  for (int64_t i = 0; i < std::min<int64_t>(o.tokens, 4); ++i) // memory is touched, threads are awake
    OTF_TRY(next(decoder));
  session.timeSteps(&to.events);
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < o.tokens; ++i)
    OTF_TRY(next(decoder));
  to.seconds = secondsSince(start) / double(o.tokens);
  to.runs = size_t(o.tokens);
  return {};
}

Status repeat(Session &session, const ProfileOptions &o, Measured &to) {
  if (!session.plan.states.empty())
    return usageError("profile: a run of this model changes its states, so it cannot be repeated");
  OTF_TRY(session.run());
  session.timeSteps(&to.events);
  auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < o.repeat; ++i)
    OTF_TRY(session.run());
  to.seconds = secondsSince(start) / double(o.repeat);
  to.runs = size_t(o.repeat);
  return {};
}

} // namespace

int profile(const ProfileOptions &options) {
  if (Status status = checkInputs(options.inputs); !status.ok())
    return fail("command line", status);
  ProfileOptions o = options;
  if (o.context == 0 && o.inputs.empty())
    o.context = o.promptTokens + o.tokens + 4;
  Result<Opened> opened = open(o);
  if (!opened.ok())
    return fail(o.plan, opened.status());
  Session &session = *opened.value().session;
  if (Failure failure = giveInputs(session, o.plan, o.inputs); !failure.status.ok())
    return fail(failure.file, failure.status);
  Measured measured;
  if (Status status = o.inputs.empty() ? decode(session, o, measured) : repeat(session, o, measured); !status.ok())
    return fail(o.plan, status);
  session.timeSteps(nullptr);

  std::optional<Ceilings> ceilings;
  const bool onHost = session.hostVisible();
  if (onHost) {
    Result<Ceilings> found = measureCeilings(o.threads);
    if (!found.ok())
      return fail(o.plan, found.status());
    ceilings = found.value();
  }
  const unsigned threads = !onHost ? 0 : o.threads ? o.threads : availableCores();
  StepProfile profile(session, measured.events, measured.runs, measured.rows, threads);
  if (profile.empty())
    return fail(o.plan, deviceError("profile: this device does not say when steps run (use --device=cpu)"));
  if (!o.trace.empty())
    if (Status status = profile.writeTrace(o.trace, measured.events); !status.ok())
      return fail("command line", status);

  const std::string device = opened.value().device->description();
  if (o.json) {
    Json json = {{"device", device}, {"threads", threads}, {"runs", measured.runs}, {"rows", measured.rows},
                 {"seconds", measured.seconds}, {"seconds_in_steps", profile.seconds()}};
    if (ceilings)
      json["ceilings"] = {{"read_bytes_per_second", ceilings->readBytes},
                          {"integer_macs_per_second", ceilings->integerMacs}, {"integers", ceilings->integers}};
    json["kernels"] = profile.json(o.each, ceilings);
    std::puts(json.dump().c_str());
    return finishOutput();
  }
  std::printf("device   %s", device.c_str());
  if (threads)
    std::printf(", %u threads", threads);
  std::printf("\nruns     %zu of %lld %s, %.1f us each, of it %.1f us in steps (medians)\n", measured.runs,
              (long long)measured.rows, measured.rows == 1 ? "row" : "rows", measured.seconds * 1e6, profile.seconds() * 1e6);
  if (ceilings)
    std::printf("machine  reads %.1f GB/s, multiplies %.0f G bytes/s (%s)\n", ceilings->readBytes * 1e-9,
                ceilings->integerMacs * 1e-9, ceilings->integers);
  profile.print(o.each, ceilings);
  return finishOutput();
}

} // namespace otf::exec
