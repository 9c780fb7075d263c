// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Loss.h"

#include "runtime/Divergence.h"

#include <atomic>
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
  auto pool = runtime::ThreadPool::create(threads);
  if (!pool.ok())
    return pool.status();
  loss->pool = std::move(pool.value());
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

namespace {

struct Rows {
  std::span<const float> reference, now;
  size_t width, first;
  std::vector<double> divergences;
  std::atomic<size_t> next{0};

  static void work(void *self, unsigned) {
    auto &rows = *static_cast<Rows *>(self);
    for (size_t i; (i = rows.next++) < rows.divergences.size();) {
      size_t at = (rows.first + i) * rows.width;
      auto compared = runtime::comparePredictions(rows.reference.subspan(at, rows.width),
                                                  rows.now.subspan(at, rows.width), 0);
      rows.divergences[i] = compared ? compared->divergence : HUGE_VAL;
    }
  }
};

} // namespace

Status Loss::add(size_t index) {
  std::vector<std::vector<float>> outputs;
  OTF_TRY(read(outputs));
  const std::vector<std::vector<float>> &before = samples[index];
  for (size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o].size() != before[o].size())
      return badInput("the outputs of one sample differ in size from run to run, so nothing tells "
                      "what errors cost");
  if (logits) {
    Rows rows;
    rows.reference = before[0], rows.now = outputs[0];
    rows.width = size_t(session.outputShape(*logits).back());
    size_t total = rows.now.size() / std::max<size_t>(rows.width, 1);
    rows.first = total / kUnscored;
    rows.divergences.resize(total - rows.first);
    pool->run(Rows::work, &rows);
    for (double divergence : rows.divergences)
      sum += divergence;
    count += double(rows.divergences.size());
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
