// SPDX-License-Identifier: Apache-2.0
#include "tools/otf-exec/StepProfile.h"

#include "tools/otf-exec/Common.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

/// "#otf.encoding<int4, group = 32>" -> "int4".
static std::string shortEncoding(std::string_view encoding) {
  const size_t open = encoding.find('<');
  if (open == encoding.npos)
    return std::string(encoding);
  return std::string(encoding.substr(open + 1, encoding.find_first_of(",>", open) - open - 1));
}

/// "linear_12" -> "linear".
static std::string_view kindOf(std::string_view kernel) {
  const size_t end = kernel.find_last_not_of("0123456789");
  return end != kernel.npos && kernel[end] == '_' ? kernel.substr(0, end) : kernel;
}

/// What a step reads, from the buffers it is given.
static void countWork(const Session &session, const StepInfo &step, int64_t tokens,
                      const std::map<uint64_t, const WeightInfo *> &weights, StepProfile::Row &row) {
  const ProgramInfo &program = session.steps();
  const std::string_view kind = kindOf(step.kernel);
  std::map<std::string, uint64_t> columns; // of weights, by what they are
  for (uint32_t b = 0; b < step.bufferCount; ++b) {
    const BufferInfo &buffer = program.buffers[step.firstBuffer + b];
    if (buffer.space == Space::state && kind == "attention") {
      row.bytes += uint64_t(session.stateBytesHeld(buffer.index));
      row.what = "cache";
    }
    auto it = buffer.space == Space::weight ? weights.find(buffer.offset) : weights.end();
    if (it == weights.end() || it->second->columns < 2)
      continue; // a bias or a gain
    const WeightInfo &w = *it->second;
    if (kind == "embedding") {
      row.bytes += w.size / std::max<uint64_t>(w.rows, 1) * uint64_t(tokens);
    } else if (kind == "linear" || kind == "row") { // row: several in one launch (EmitMerged.cpp)
      row.bytes += w.size;
      row.macs += w.rows * w.columns * uint64_t(tokens);
    } else {
      continue;
    }
    const std::string text = cat(row.what.empty() ? "" : ", ", shortEncoding(w.encoding), " ", w.rows, " x ", w.columns);
    if (row.what.size() < 60)
      row.what += text;
  }
}

StepProfile::StepProfile(const Session &session, const std::vector<StepEvent> &events, size_t runs, int64_t tokens,
                         unsigned threads)
    : threads(threads) {
  const ProgramInfo &program = session.steps();
  std::map<uint64_t, const WeightInfo *> weights;
  for (const WeightInfo &w : session.plan.weights)
    weights.emplace(w.offset, &w);
  struct Times {
    std::vector<uint64_t> took, busy;
  };
  std::vector<Times> times(program.steps.size());
  for (const StepEvent &event : events) {
    times[event.step].took.push_back(event.clock.end - event.clock.begin);
    times[event.step].busy.push_back(event.clock.busy);
  }
  auto median = [](std::vector<uint64_t> &v) {
    std::nth_element(v.begin(), v.begin() + ptrdiff_t(v.size() / 2), v.end());
    return double(v[v.size() / 2]);
  };
  rowOf.assign(program.steps.size(), 0);
  for (size_t s = 0; s < times.size(); ++s) {
    if (times[s].took.empty())
      continue;
    const StepInfo &step = program.steps[s];
    Row row{step.kernel, "", printable(step.label), 1, 0, 0, 0, 0};
    const double perRun = double(times[s].took.size()) / double(std::max<size_t>(runs, 1)); // loops
    row.seconds = median(times[s].took) * 1e-9 * perRun;
    if (threads)
      row.waiting = std::max(0.0, row.seconds * threads - median(times[s].busy) * 1e-9 * perRun);
    countWork(session, step, tokens, weights, row);
    rowOf[s] = steps.size();
    steps.push_back(std::move(row));
  }
}

double StepProfile::seconds() const {
  double sum = 0;
  for (const Row &row : steps)
    sum += row.seconds;
  return sum;
}

std::vector<StepProfile::Row> StepProfile::rows(bool each) const {
  std::vector<Row> rows;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const Row &step : steps) {
    auto [it, isNew] = places.try_emplace({step.kernel, step.what}, rows.size());
    if (each || isNew) {
      rows.push_back(step);
      continue;
    }
    Row &row = rows[it->second];
    row.label.clear();
    row.steps += step.steps, row.seconds += step.seconds, row.waiting += step.waiting;
    row.bytes += step.bytes, row.macs += step.macs;
  }
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    return std::tie(b.seconds, a.kernel) < std::tie(a.seconds, b.kernel);
  });
  return rows;
}

std::optional<double> limitShare(const StepProfile::Row &row, const Ceilings &ceilings) {
  if (row.bytes == 0 || row.seconds <= 0 || ceilings.readBytes <= 0)
    return std::nullopt;
  const double products = ceilings.integerMacs > 0 ? double(row.macs) / ceilings.integerMacs : 0;
  return std::max(double(row.bytes) / ceilings.readBytes, products) / row.seconds;
}

void StepProfile::print(bool each, const std::optional<Ceilings> &ceilings) const {
  const double total = seconds();
  std::printf("%10s %6s %6s %7s %9s %7s %6s  %s\n", "us a run", "share", "steps", threads > 1 ? "waiting" : "",
              "MB a run", "GB/s", ceilings ? "limit" : "", "kernel");
  for (const Row &row : rows(each)) {
    std::printf("%10.1f %5.1f%% %6zu ", row.seconds * 1e6, 100 * row.seconds / total, row.steps);
    if (threads > 1)
      std::printf("%6.0f%% ", 100 * row.waiting / (row.seconds * threads));
    else
      std::printf("%7s ", "");
    if (row.bytes)
      std::printf("%9.3f %7.2f ", double(row.bytes) * 1e-6, double(row.bytes) * 1e-9 / row.seconds);
    else
      std::printf("%9s %7s ", "", "");
    const std::optional<double> share = ceilings ? limitShare(row, *ceilings) : std::nullopt;
    if (share)
      std::printf("%5.0f%% ", 100 * *share);
    else
      std::printf("%6s ", "");
    std::printf(" %s%s%s%s%s\n", row.kernel.c_str(), row.what.empty() ? "" : " ", row.what.c_str(),
                each && !row.label.empty() ? " " : "", each ? row.label.c_str() : "");
  }
}

Json StepProfile::json(bool each, const std::optional<Ceilings> &ceilings) const {
  Json list = Json::array();
  for (const Row &row : rows(each)) {
    Json json = {{"kernel", row.kernel}, {"what", row.what}, {"steps", row.steps}, {"seconds", row.seconds},
                 {"bytes", row.bytes}, {"macs", row.macs}};
    if (!row.label.empty())
      json["node"] = row.label;
    if (threads > 1)
      json["waiting"] = row.waiting / (row.seconds * threads);
    if (std::optional<double> share = ceilings ? limitShare(row, *ceilings) : std::nullopt)
      json["limit_share"] = *share;
    list.push_back(std::move(json));
  }
  return list;
}

Status StepProfile::writeTrace(const std::string &path, const std::vector<StepEvent> &events) const {
  FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return usageError("--trace: '", path, "' cannot be written (", std::strerror(errno), ")");
  uint64_t start = UINT64_MAX;
  for (const StepEvent &event : events)
    start = std::min(start, event.clock.begin);
  std::fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", file);
  const char *separator = "\n";
  for (const StepEvent &event : events) {
    const Row &row = steps[rowOf[event.step]];
    const double took = double(event.clock.end - event.clock.begin) * 1e-3;
    Json json = {{"name", row.what.empty() ? row.kernel : row.kernel + " " + row.what}, {"cat", kindOf(row.kernel)},
                 {"ph", "X"}, {"pid", 1}, {"tid", 1}, {"ts", double(event.clock.begin - start) * 1e-3}, {"dur", took},
                 {"args", {{"node", row.label}, {"step", event.step}, {"bytes", row.bytes},
                           {"busy_us", double(event.clock.busy) * 1e-3}}}};
    std::fprintf(file, "%s%s", separator, json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    separator = ",\n";
  }
  std::fputs("\n]}\n", file);
  const bool failed = std::ferror(file);
  if (std::fclose(file) != 0 || failed)
    return usageError("--trace: '", path, "' cannot be written (", std::strerror(errno), ")");
  return {};
}

} // namespace otf::exec
