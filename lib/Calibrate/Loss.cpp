// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Loss.h"

#include "runtime/Divergence.h"

#include <algorithm>
#include <cmath>

namespace otf {

using runtime::badInput;
using runtime::ElementType;
using runtime::Result;
using runtime::Status;

// The first of a window's predictions know nothing of the text.
static constexpr size_t kUnscored = 8; // an eighth

Result<std::unique_ptr<Loss>> Loss::create(runtime::Session &session, bool isText,
                                           unsigned threads) {
  std::unique_ptr<Loss> loss(new Loss(session));
  auto team = runtime::Team::create(threads);
  if (!team.ok())
    return team.status();
  loss->team = std::move(team.value());
  if (isText)
    for (size_t i = 0; i < session.plan.outputs.size(); ++i)
      if (session.plan.outputs[i].name == "logits" &&
          session.plan.outputs[i].type == ElementType::f32)
        loss->logits = i;
  return loss;
}

Status Loss::read(std::vector<std::vector<float>> &outputs) {
  for (size_t i = 0; i < session.plan.outputs.size(); ++i) {
    if (logits.value_or(i) != i || session.plan.outputs[i].type != ElementType::f32)
      continue;
    Result<runtime::TensorView> view = session.output(i);
    if (!view.ok())
      return view.status();
    size_t elements = 1;
    for (int64_t extent : view.value().shape)
      elements *= size_t(extent);
    auto *data = static_cast<const float *>(view.value().data);
    outputs.emplace_back(data, data + elements);
  }
  return outputs.empty()
             ? badInput("the model has no output of floats, so nothing tells what errors cost")
             : Status();
}

Status Loss::remember() { return read(samples.emplace_back()); }

Status Loss::add(size_t index) {
  std::vector<std::vector<float>> outputs;
  OTF_TRY(read(outputs));
  const std::vector<std::vector<float>> &before = samples[index];
  for (size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o].size() != before[o].size())
      return badInput("the outputs of one sample differ in size from run to run, so nothing tells "
                      "what errors cost");
  if (logits) {
    std::span<const float> reference = before[0], now = outputs[0];
    const size_t width = size_t(session.outputShape(*logits).back());
    const size_t total = now.size() / std::max<size_t>(width, 1), first = total / kUnscored;
    std::vector<double> divergences(total - first);
    team->run(int64_t(divergences.size()), [&](int64_t i) {
      const size_t at = (first + size_t(i)) * width;
      auto compared = runtime::comparePredictions(reference.subspan(at, width), now.subspan(at, width), 0);
      divergences[size_t(i)] = compared ? compared->divergence : HUGE_VAL;
    });
    for (double divergence : divergences)
      sum += divergence;
    count += double(divergences.size());
    return {};
  }
  double error = 0, square = 0;
  for (size_t o = 0; o < outputs.size(); ++o)
    for (size_t i = 0; i < outputs[o].size(); ++i) {
      double difference = double(outputs[o][i]) - double(before[o][i]);
      error += difference * difference;
      square += double(before[o][i]) * double(before[o][i]);
    }
  sum += error == 0 ? 0 : square == 0 ? HUGE_VAL : error / square;
  ++count;
  return {};
}

double Loss::take() {
  double mean = count == 0 ? 0 : sum / count;
  sum = count = 0;
  return std::isfinite(mean) ? mean : HUGE_VAL;
}

} // namespace otf
