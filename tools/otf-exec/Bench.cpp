// SPDX-License-Identifier: Apache-2.0
//
// otf-exec bench: tokens a second for reading a prompt and for writing, the time to open a plan,
// and how much anonymous memory that took. Each repetition begins with an empty cache; the median
// is reported, because other processes only ever make a repetition slower. --limits adds what the machine
// could do and each kernel's share of it, --peers what bench/cpu measured of others.
#include "tools/otf-exec/Common.h"
#include "tools/otf-exec/StepProfile.h"

#include "runtime/CPU/Cores.h"
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

/// The decode of a few tokens, step by step, and what the machine could do.
struct Limits {
  Ceilings ceilings;
  StepProfile profile;
};

Result<Limits> findLimits(Session &session, Decoder &decoder, std::span<const int32_t> prompt, const BenchOptions &o) {
  constexpr int64_t most = 16;
  std::vector<StepEvent> events;
  OTF_TRY(session.truncateStates(0));
  OTF_TRY(decoder.start(prompt));
  const int64_t runs = std::min(o.tokens, most);
  session.timeSteps(&events);
  for (int64_t i = 0; i < runs; ++i) {
    Result<int32_t> id = decoder.best();
    if (!id.ok())
      return id.status();
    OTF_TRY(decoder.append(id.value()));
  }
  session.timeSteps(nullptr);
  Result<Ceilings> ceilings = measureCeilings(o.threads);
  if (!ceilings.ok())
    return ceilings.status();
  const unsigned threads = o.threads ? o.threads : availableCores();
  StepProfile profile(session, events, size_t(runs), 1, threads);
  return Limits{ceilings.value(), std::move(profile)};
}

/// The rows of bench/cpu's JSON, which measures peers: this process has no Python and none of them.
Status readPeers(const std::string &path, nlohmann::json &to) {
  Result<std::string> text = readText(path);
  if (!text.ok())
    return Status(text.status().code(), cat("--peers: '", path, "': ", text.status().message()));
  auto json = nlohmann::json::parse(text.value(), nullptr, /*allow_exceptions=*/false);
  bool good = json.is_object() && json.contains("ratios") && json["ratios"].is_array();
  for (size_t i = 0; good && i < json["ratios"].size(); ++i) {
    const auto &row = json["ratios"][i];
    for (const char *key : {"what", "otf", "peer", "met"})
      good = good && row.is_object() && row.contains(key) && row[key].is_string();
    for (const char *key : {"threads", "ratio", "judged", "bar", "aim"})
      good = good && row.contains(key) && row[key].is_number();
  }
  if (!good)
    return badInput("--peers: '", path, "' is not what bench/cpu --json writes");
  to = json["ratios"];
  return {};
}

void printPeers(const nlohmann::json &rows) {
  std::printf("%-16s %7s  %-8s %-26s %7s %7s %5s %5s\n", "peers", "threads", "OTF", "peer", "ratio", "judged", "bar", "aim");
  for (const auto &row : rows)
    std::printf("%-16s %7d  %-8s %-26s %7.2f %7.2f %5.2f %5.2f  %s\n", printable(row["what"].get<std::string>()).c_str(),
                row["threads"].get<int>(), printable(row["otf"].get<std::string>()).c_str(),
                printable(row["peer"].get<std::string>()).c_str(), row["ratio"].get<double>(), row["judged"].get<double>(),
                row["bar"].get<double>(), row["aim"].get<double>(), printable(row["met"].get<std::string>()).c_str());
}

} // namespace

int bench(const BenchOptions &options) {
  nlohmann::json peers;
  if (!options.peers.empty()) {
    if (Status status = readPeers(options.peers, peers); !status.ok())
      return fail("command line", status);
  }
  MemoryWatch watch;
  BenchOptions o = options;
  o.limits = o.limits || !o.peers.empty();
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
  std::optional<Limits> limits;
  if (o.limits && session.hostVisible() && o.tokens > 0) {
    Result<Limits> found = findLimits(session, *decoder.value(), prompt, o);
    if (!found.ok())
      return fail(o.plan, found.status());
    limits.emplace(std::move(found.value()));
  } else if (o.limits) {
    return fail(o.plan, usageError("--limits: needs --device=cpu and --tokens above 0"));
  }

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
    if (limits) {
      json["ceilings"] = {{"read_bytes_per_second", limits->ceilings.readBytes},
                          {"integer_macs_per_second", limits->ceilings.integerMacs},
                          {"integers", limits->ceilings.integers}};
      json["kernels"] = limits->profile.json(/*each=*/false, limits->ceilings);
    }
    if (!peers.is_null())
      json["peers"] = peers;
    std::puts(json.dump().c_str());
    return finishOutput();
  }
  std::printf("device   %s\nload     %.3f s\nprefill  %.1f tokens/s (%lld tokens)\n"
              "decode   %.1f tokens/s (%lld tokens)\nmemory   %.1f MB anonymous at its peak\n",
              opened.value().device->description().c_str(), opened.value().seconds, perSecond[0],
              (long long)o.promptTokens, perSecond[1], (long long)o.tokens, double(anonymous) / 1e6);
  if (limits) {
    std::printf("machine  reads %.1f GB/s, multiplies %.0f G bytes/s (%s)\n", limits->ceilings.readBytes * 1e-9,
                limits->ceilings.integerMacs * 1e-9, limits->ceilings.integers);
    limits->profile.print(/*each=*/false, limits->ceilings);
  }
  if (!peers.is_null())
    printPeers(peers);
  return finishOutput();
}

} // namespace otf::exec
