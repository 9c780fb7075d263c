// SPDX-License-Identifier: Apache-2.0
//
// otf-exec info and verify: what a plan holds. Bits per weight are real: all bytes of a weight, with
// scales, indices and outliers, by the number of its elements.
#include "tools/otf-exec/Common.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <set>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

struct Tally {
  uint64_t tensors = 0, bytes = 0, elements = 0;
  void add(const WeightInfo &w) {
    ++tensors, bytes += w.size, elements += w.rows * std::max<uint64_t>(w.columns, 1);
  }
  double bits() const { return elements ? 8.0 * double(bytes) / double(elements) : 0; }
  Json json() const {
    return {{"tensors", tensors}, {"bytes", bytes}, {"elements", elements}, {"bits", bits()}};
  }
};

struct Weights {
  std::map<std::string, Tally> byEncoding;
  Tally layers, vocabulary, total;

  explicit Weights(const PlanFile &plan) {
    std::set<uint64_t> seen; // a tied head is the embedding's bytes under a second name
    for (const WeightInfo &w : plan.weights) {
      if (!seen.insert(w.offset).second)
        continue;
      byEncoding[std::string(w.encoding)].add(w);
      (w.vocabulary ? vocabulary : layers).add(w);
      total.add(w);
    }
  }
};

std::string typeText(const PlanFile &plan, ElementType type, const std::vector<SizeId> &shape) {
  Binding names(plan.symbols);
  std::string text;
  for (SizeId id : shape)
    text += cat(text.empty() ? "" : ", ", names.text(plan.sizes[id]));
  return cat(elementName(type), "[", text, "]");
}

/// Rows of int8 have a scale behind them, which is no element.
std::string typeText(const PlanFile &plan, const StateInfo &state) {
  std::string text = typeText(plan, state.type, state.shape);
  if (state.width != 0)
    text.replace(text.rfind(' ') + 1, std::string::npos, cat(state.width, " and a scale]"));
  return text;
}

/// Of all states, for a batch of one. A size that is too large is 0.
int64_t stateBytesOfPosition(const PlanFile &plan) {
  int64_t sum = 0;
  for (const StateInfo &state : plan.states) {
    int64_t bytes = int64_t(elementSize(state.type));
    for (size_t axis = 0; axis < state.shape.size(); ++axis)
      if (const Polynomial &size = plan.sizes[state.shape[axis]];
          axis != state.axis && size.size() == 1 && size[0].symbols.empty() && __builtin_mul_overflow(bytes, size[0].coefficient, &bytes))
        return 0;
    if (__builtin_add_overflow(sum, bytes, &sum))
      return 0;
  }
  return sum;
}

Json tensorsJson(const PlanFile &plan, const std::vector<TensorInfo> &tensors) {
  Json list = Json::array();
  for (const TensorInfo &t : tensors)
    list.push_back({{"name", t.name}, {"type", typeText(plan, t.type, t.shape)}});
  return list;
}

/// Who runs a program's steps. On a GPU the host has those kernels that have no CUDA form, each with the reason,
/// and it always reads the data that control steps decide by.
Json stepsJson(const ProgramInfo &program) {
  uint64_t device = 0, host = 0, control = 0;
  std::map<std::string, std::pair<uint64_t, std::string>> kernels;
  for (const StepInfo &step : program.steps) {
    (step.kind != StepKind::launch ? control : step.host.empty() ? device : host) += 1;
    if (!step.host.empty()) {
      auto &[steps, reason] = kernels[step.kernel];
      ++steps, reason = step.host;
    }
  }
  Json list = Json::array();
  for (auto &[kernel, entry] : kernels)
    list.push_back({{"kernel", kernel}, {"steps", entry.first}, {"reason", entry.second}});
  return {{"device", device}, {"host", host}, {"control", control}, {"host_kernels", list}};
}

Json describe(const PlanFile &plan) {
  Json json;
  json["producer"] = plan.producer;
  json["model"] = plan.model;
  json["file_bytes"] = plan.fileSize();
  json["inputs"] = tensorsJson(plan, plan.inputs);
  json["outputs"] = tensorsJson(plan, plan.outputs);
  json["states"] = Json::array();
  for (const StateInfo &s : plan.states)
    json["states"].push_back({{"name", s.name}, {"input", s.input}, {"output", s.output},
                              {"type", typeText(plan, s)}, {"axis", s.axis}});
  json["state_bytes_per_position"] = stateBytesOfPosition(plan);
  Weights weights(plan);
  for (auto &[encoding, tally] : weights.byEncoding)
    json["weights"]["encodings"][encoding] = tally.json();
  json["weights"]["layers"] = weights.layers.json();
  json["weights"]["vocabulary"] = weights.vocabulary.json();
  json["weights"]["total"] = weights.total.json();
  json["programs"] = Json::array();
  for (const ProgramInfo &p : plan.programs)
    json["programs"].push_back({{"target", p.target}, {"steps", p.steps.size()}, {"slots", p.slots.size()},
                                {"placement", stepsJson(p)}});
  json["code"] = Json::array();
  for (auto *list : {&plan.objects, &plan.cubins})
    for (const CodeInfo &c : *list)
      json["code"].push_back({{"level", c.level}, {"bytes", c.bytes.size()}});
  json["placement"] = Json::array();
  for (const ProgramInfo &p : plan.programs) {
    auto device = makeDevice(plan, p.target);
    json["placement"].push_back({{"target", p.target},
                                 {"here", device.ok() ? device.value()->description()
                                                      : device.status().message()}});
  }
  auto generation = Json::parse(plan.generation, nullptr, false);
  json["generation"] = generation.is_discarded() ? Json() : generation;
  return json;
}

void line(const char *what, const Tally &t) {
  std::printf("  %-28s %5llu tensors %12llu bytes  %6.3f bits/weight\n", what,
              (unsigned long long)t.tensors, (unsigned long long)t.bytes, t.bits());
}

void list(const char *title, const Json &items, const char *first, const char *second) {
  if (!items.empty())
    std::printf("%s\n", title);
  for (const Json &item : items) {
    const Json &value = item[second];
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::printf("  %-28s %s\n", printable(item[first].get<std::string>()).c_str(),
                printable(text).c_str());
  }
}

/// "cuda: 12 steps on the GPU, 1 on the host", and a line for each kernel of the host.
void printPlacement(const Json &programs) {
  for (const Json &program : programs) {
    const Json &placed = program["placement"];
    const std::string target = program["target"].get<std::string>();
    if (target != "cuda")
      continue;
    std::printf("placement of %s\n", printable(target).c_str());
    for (auto [key, what] : {std::pair("device", "on the GPU"), std::pair("host", "on the host, with CPU kernels"),
                             std::pair("control", "of control: the host reads a size or a condition")})
      if (uint64_t steps = placed[key].get<uint64_t>())
        std::printf("  %5llu %s %s\n", (unsigned long long)steps, steps == 1 ? "step " : "steps", what);
    for (const Json &kernel : placed["host_kernels"])
      std::printf("  %5llu x %-20s %s\n", (unsigned long long)kernel["steps"].get<uint64_t>(),
                  printable(kernel["kernel"].get<std::string>()).c_str(),
                  printable(kernel["reason"].get<std::string>()).c_str());
  }
}

} // namespace

int info(const PlanOptions &options) {
  auto plan = PlanFile::open(options.plan);
  if (!plan.ok())
    return fail(options.plan, plan.status());
  Json json = describe(*plan.value());
  if (options.json) {
    std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return finishOutput();
  }
  std::printf("%s: %s, %zu bytes, by %s\n", printable(options.plan).c_str(),
              printable(plan.value()->model).c_str(), plan.value()->fileSize(),
              printable(plan.value()->producer).c_str());
  list("inputs", json["inputs"], "name", "type");
  list("outputs", json["outputs"], "name", "type");
  // A model has one or two states a layer, all alike: the first says it.
  if (!json["states"].empty())
    std::printf("states (%zu), %lld bytes a position\n  %-28s %s\n", json["states"].size(),
                (long long)stateBytesOfPosition(*plan.value()),
                printable(json["states"][0]["name"].get<std::string>()).c_str(),
                printable(json["states"][0]["type"].get<std::string>()).c_str());
  Weights weights(*plan.value());
  std::puts("weights");
  for (auto &[encoding, tally] : weights.byEncoding)
    line(printable(encoding).c_str(), tally);
  line("= without vocabulary tables", weights.layers);
  line("= vocabulary tables", weights.vocabulary);
  line("= in total", weights.total);
  list("programs (steps)", json["programs"], "target", "steps");
  printPlacement(json["programs"]);
  list("code (bytes)", json["code"], "level", "bytes");
  list("devices here", json["placement"], "target", "here");
  return finishOutput();
}

int verify(const PlanOptions &options) {
  auto plan = PlanFile::open(options.plan);
  if (!plan.ok())
    return fail(options.plan, plan.status());
  if (options.json)
    std::printf("{\"ok\": true, \"bytes\": %zu}\n", plan.value()->fileSize());
  else
    std::printf("%s: good, %zu bytes\n", printable(options.plan).c_str(), plan.value()->fileSize());
  return finishOutput();
}

} // namespace otf::exec
