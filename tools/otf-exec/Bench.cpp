// SPDX-License-Identifier: Apache-2.0
//
// otf-exec bench: tokens a second for reading a prompt and for writing, the time to open a plan,
// and how much anonymous memory that took. Each repetition begins with an empty cache; the median
// is reported, because other processes only ever make a repetition slower.
#include "tools/otf-exec/Common.h"

#include "runtime/Decoder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

namespace otf::exec {

using namespace runtime;

namespace {

/// A line of /proc/self/status in bytes. RssAnon is what the process itself needs: mapped weights
/// are pages of the file, which the system may drop and read again.
uint64_t statusBytes(const char *key) {
  uint64_t kilobytes = 0;
  if (FILE *file = fopen("/proc/self/status", "re")) {
    char line[256];
    while (fgets(line, sizeof line, file))
      if (std::strncmp(line, key, std::strlen(key)) == 0)
        kilobytes = std::strtoull(line + std::strlen(key) + 1, nullptr, 10);
    fclose(file);
  }
  return kilobytes * 1024;
}

class MemoryWatch {
public:
  MemoryWatch()
      : thread([this] {
          while (!stop) {
            sample();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~MemoryWatch() { finish(); }
  uint64_t finish() {
    stop = true;
    if (thread.joinable())
      thread.join();
    sample();
    return peak;
  }

private:
  void sample() { peak = std::max(peak, statusBytes("RssAnon")); }
  std::atomic<bool> stop = false;
  uint64_t peak = 0;
  std::thread thread; // last: it uses the others
};

/// Of all threads of this process, user and system: what it cost, whatever else the machine does.
double processorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

struct Seconds {
  double wall = 0, processor = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

Status repeat(Decoder &decoder, Session &session, std::span<const int32_t> prompt, int64_t tokens,
              Seconds &prefill, Seconds &decode) {
  OTF_TRY(session.truncateStates(0));
  auto start = std::chrono::steady_clock::now();
  double processor = processorSeconds();
  OTF_TRY(decoder.start(prompt));
  prefill = {secondsSince(start), processorSeconds() - processor};
  start = std::chrono::steady_clock::now();
  processor = processorSeconds();
  for (int64_t i = 0; i < tokens; ++i) {
    Result<int32_t> id = decoder.best();
    if (!id.ok())
      return id.status();
    OTF_TRY(decoder.append(id.value()));
  }
  decode = {secondsSince(start), processorSeconds() - processor};
  return {};
}

} // namespace

int bench(const BenchOptions &options) {
  MemoryWatch watch;
  BenchOptions o = options;
  if (o.context == 0)
    o.context = o.promptTokens + o.tokens;
  Result<Opened> opened = open(o);
  if (!opened.ok())
    return fail(o.plan, opened.status());
  Session &session = *opened.value().session;
  Result<std::unique_ptr<Decoder>> decoder = Decoder::create(session);
  if (!decoder.ok())
    return fail(o.plan, decoder.status());

  decoder.value()->wantOnlyBest(); // as greedy decoding does
  // The first round touches memory and is not counted.
  std::vector<int32_t> prompt = benchPrompt(decoder.value()->vocabularySize(), o.promptTokens);
  std::vector<double> prefill, decode, prefillProcessor, decodeProcessor;
  for (int64_t i = 0; i <= o.repeat; ++i) {
    Seconds p, d;
    int64_t tokens = i ? o.tokens : std::min<int64_t>(o.tokens, 4);
    if (Status s = repeat(*decoder.value(), session, prompt, tokens, p, d); !s.ok())
      return fail(o.plan, s);
    if (i == 0)
      continue;
    prefill.push_back(double(o.promptTokens) / p.wall), decode.push_back(double(tokens) / d.wall);
    prefillProcessor.push_back(double(o.promptTokens) / p.processor);
    decodeProcessor.push_back(double(tokens) / d.processor);
  }
  uint64_t anonymous = watch.finish();

  double perSecond[2] = {median(prefill), o.tokens ? median(decode) : 0};
  if (o.json) {
    nlohmann::ordered_json json;
    json["device"] = opened.value().device->description();
    json["prompt_tokens"] = o.promptTokens;
    json["tokens"] = o.tokens;
    json["repeat"] = o.repeat;
    json["tokens_per_second"] = {{"prefill", perSecond[0]}, {"decode", perSecond[1]}};
    json["tokens_per_cpu_second"] = {{"prefill", median(prefillProcessor)},
                                     {"decode", o.tokens ? median(decodeProcessor) : 0}};
    json["load_seconds"] = opened.value().seconds;
    json["rss_anon_peak_bytes"] = anonymous;
    json["rss_peak_bytes"] = statusBytes("VmHWM");
    std::puts(json.dump().c_str());
    return finishOutput();
  }
  std::printf("device   %s\nload     %.3f s\nprefill  %.1f tokens/s (%lld tokens)\n"
              "decode   %.1f tokens/s (%lld tokens)\nmemory   %.1f MB anonymous at its peak\n",
              opened.value().device->description().c_str(), opened.value().seconds, perSecond[0],
              (long long)o.promptTokens, perSecond[1], (long long)o.tokens, double(anonymous) / 1e6);
  return finishOutput();
}

} // namespace otf::exec
