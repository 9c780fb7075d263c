// SPDX-License-Identifier: Apache-2.0
//
// otf-exec eval --inputs: a plan beside a reference plan on arrays, for models that are no language
// models. The folder holds <input>.npy for each input, or folders that do: one for each sample.
#include "tools/otf-exec/Common.h"

#include "lib/Compile/Progress.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <limits>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

/// Names in a folder that end so, in order; folders where `suffix` is empty.
std::vector<std::string> list(const std::string &folder, std::string_view suffix) {
  std::vector<std::string> names;
  DIR *directory = opendir(folder.c_str());
  if (!directory)
    return names;
  while (const dirent *entry = readdir(directory)) {
    std::string name = entry->d_name;
    if (name[0] == '.' || !name.ends_with(suffix))
      continue;
    if (suffix.empty()) {
      DIR *inner = opendir((folder + "/" + name).c_str());
      if (!inner)
        continue;
      closedir(inner);
    }
    names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

/// Elements as f64; nothing of a type whose elements have no value here.
std::optional<std::vector<double>> numbers(const TensorView &view) {
  std::vector<double> result(size_t(*byteCount(ElementType::i8, view.shape)));
  auto copy = [&]<typename T>(T) {
    for (size_t i = 0; i < result.size(); ++i) {
      T value;
      std::memcpy(&value, static_cast<const std::byte *>(view.data) + i * sizeof(T), sizeof(T));
      result[i] = double(value);
    }
    return true;
  };
  bool known = false;
  switch (view.type) {
  case ElementType::f32:
    known = copy(float());
    break;
  case ElementType::f64:
    known = copy(double());
    break;
  case ElementType::f16:
    known = copy(_Float16());
    break;
  case ElementType::i8:
    known = copy(int8_t());
    break;
  case ElementType::u8:
  case ElementType::boolean:
    known = copy(uint8_t());
    break;
  case ElementType::i16:
    known = copy(int16_t());
    break;
  case ElementType::u16:
    known = copy(uint16_t());
    break;
  case ElementType::i32:
    known = copy(int32_t());
    break;
  case ElementType::u32:
    known = copy(uint32_t());
    break;
  case ElementType::i64:
    known = copy(int64_t());
    break;
  case ElementType::u64:
    known = copy(uint64_t());
    break;
  default:
    break;
  }
  return known ? std::optional(std::move(result)) : std::nullopt;
}

/// One output over all samples.
struct Output {
  std::string name;
  double errorSum = 0, errorMost = 0, cosineSum = 0, cosineLeast = 1;
  uint64_t rows = 0, sameBest = 0; // along the last axis of two or more elements
};

void compare(const std::vector<double> &a, const std::vector<double> &b, size_t width, Output &to) {
  double difference = 0, aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double error = difference == 0 ? 0 : std::sqrt(difference / aa);
  double cosine = difference == 0 ? 1 : ab / std::sqrt(aa * bb);
  error = std::isnan(error) ? infinity : error;
  cosine = std::isnan(cosine) ? 0 : cosine;
  to.errorSum += error, to.cosineSum += cosine;
  to.errorMost = std::max(to.errorMost, error);
  to.cosineLeast = std::min(to.cosineLeast, cosine);
  for (size_t at = 0; width > 1 && at < a.size(); at += width) {
    auto best = [&](const std::vector<double> &x) {
      return std::max_element(x.begin() + long(at), x.begin() + long(at + width)) - x.begin();
    };
    ++to.rows;
    to.sameBest += best(a) == best(b);
  }
}

Failure measure(Opened &reference, Opened &plan, const EvalOptions &o,
                const std::vector<std::string> &samples, std::vector<Output> &outputs) {
  Progress progress;
  size_t done = 0;
  for (const std::string &sample : samples) {
    progress.show(cat("sample ", done + 1, " of ", samples.size()), done, samples.size());
    ++done;
    for (auto [side, path] : {std::pair(&reference, &o.reference), {&plan, &o.plan}}) {
      std::vector<std::string> inputs;
      for (const TensorInfo &input : side->plan->inputs)
        inputs.push_back(cat(input.name, "=", sample, "/", input.name, ".npy"));
      if (Failure failure = giveInputs(*side->session, *path, inputs); !failure.status.ok())
        return failure;
      if (Status status = side->session->truncateStates(0); !status.ok())
        return {*path, status};
      if (Status status = side->session->run(); !status.ok())
        return {*path, status};
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      Result<TensorView> a = reference.session->output(i);
      if (!a.ok())
        return {o.reference, a.status()};
      std::optional<std::vector<double>> x = numbers(a.value());
      std::vector<int64_t> shape(a.value().shape.begin(), a.value().shape.end());
      Result<TensorView> b = plan.session->output(*plan.session->findOutput(outputs[i].name));
      if (!b.ok())
        return {o.plan, b.status()};
      std::optional<std::vector<double>> y = numbers(b.value());
      if (!x || !y)
        return {o.plan, badInput("output '", outputs[i].name, "': its elements are ",
                                 elementName(b.value().type), ", which cannot be compared")};
      if (!std::equal(shape.begin(), shape.end(), b.value().shape.begin(), b.value().shape.end()))
        return {o.plan, badInput("output '", outputs[i].name,
                                 "': has another shape than the reference's on ", sample)};
      compare(*x, *y, shape.size() > 1 ? size_t(shape.back()) : 0, outputs[i]);
    }
  }
  return {};
}

} // namespace

int evalArrays(const EvalOptions &o) {
  Opened opened[2];
  for (auto [index, path] : {std::pair(0, &o.reference), {1, &o.plan}}) {
    PlanOptions options = o;
    options.plan = *path;
    Result<Opened> one = open(options);
    if (!one.ok())
      return fail(*path, one.status());
    opened[index] = std::move(one.value());
  }
  Opened &reference = opened[0], &plan = opened[1];
  std::vector<std::string> samples;
  if (!list(o.inputs, ".npy").empty())
    samples.push_back(o.inputs);
  else
    for (const std::string &name : list(o.inputs, ""))
      samples.push_back(o.inputs + "/" + name);
  if (samples.empty())
    return fail(
        o.inputs,
        badInput("holds no .npy file and no folder of them (expected <input>.npy for each input, "
                 "or a folder of those for each sample)"));
  std::vector<Output> outputs;
  for (const TensorInfo &output : reference.plan->outputs) {
    std::optional<size_t> found = plan.session->findOutput(output.name);
    if (!found || *found >= plan.plan->outputs.size())
      return fail(o.plan,
                  badInput("has no output '", output.name, "' (both must be plans of one model)"));
    outputs.push_back({std::string(output.name)});
  }
  if (Failure failure = measure(reference, plan, o, samples, outputs); !failure.status.ok())
    return fail(failure.file, failure.status);

  const double count = double(samples.size());
  std::string missed;
  for (const Output &output : outputs)
    if (o.leastCosine && output.cosineLeast < *o.leastCosine && missed.empty()) {
      char text[128];
      std::snprintf(text, sizeof text, "a sample has %.6g, and --min-cosine wants %.6g",
                    output.cosineLeast, *o.leastCosine);
      missed = cat("cosine of output '", output.name, "': ", text);
    }
  if (o.json) {
    auto orNull = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    Json json;
    json["plan"] = o.plan;
    json["reference"] = o.reference;
    json["device"] = plan.device->description();
    json["samples"] = samples.size();
    json["outputs"] = Json::array();
    for (const Output &output : outputs)
      json["outputs"].push_back(
          {{"name", output.name},
           {"relative_error",
            {{"mean", orNull(output.errorSum / count)}, {"most", orNull(output.errorMost)}}},
           {"cosine", {{"mean", output.cosineSum / count}, {"least", output.cosineLeast}}},
           {"top1", output.rows ? Json(double(output.sameBest) / double(output.rows)) : Json()}});
    json["gate_kept"] = missed.empty();
    std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s against %s on %s: %zu samples\n%12s %12s %12s %12s %10s  output\n",
                printable(o.plan).c_str(), printable(o.reference).c_str(),
                plan.device->description().c_str(), samples.size(), "error", "most", "cosine",
                "least", "same best");
    for (const Output &output : outputs) {
      std::printf("%12.4g %12.4g %12.6f %12.6f ", output.errorSum / count, output.errorMost,
                  output.cosineSum / count, output.cosineLeast);
      if (output.rows)
        std::printf("%10.4f", double(output.sameBest) / double(output.rows));
      else
        std::printf("%10s", "");
      std::printf("  %s\n", printable(output.name).c_str());
    }
  }
  if (int status = finishOutput())
    return status;
  if (missed.empty())
    return 0;
  std::fprintf(stderr, "error: %s: gate missed: %s\n", printable(o.plan).c_str(),
               printable(missed).c_str());
  return kGateMissed;
}

} // namespace otf::exec
