// SPDX-License-Identifier: Apache-2.0
//
// otf-exec compare: where two plans of one model part. Both run on the same input, and what their
// steps write is compared wherever both have it: a value is known by the node that gives it, its
// type and its shape. What one plan has fused away, or holds as codes, the other has alone.
//
// The stream is what the model adds to, layer after layer. It is found without names: a step that
// reads two or more values, one of which has the shape of its own result, continues that one; the
// stream is the longest such chain.
#include "tools/otf-exec/Common.h"

#include "lib/Compile/Progress.h"
#include "runtime/Decoder.h"
#include "runtime/Divergence.h"
#include "runtime/Text/DefaultText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

namespace otf::exec {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

/// A value that both plans may have.
struct Key {
  std::string name;
  std::vector<int64_t> shape;
  auto operator<=>(const Key &) const = default;
};

/// One plan, ready to run on the input again and again.
struct Side {
  std::string path;
  Opened opened;
  std::unique_ptr<Decoder> decoder; // of a text
  std::span<const float> logits;    // of the last run on a text

  Session &session() { return *opened.session; }
  Failure run(std::span<const int32_t> ids) {
    if (!decoder)
      return {path, session().run()};
    Result<std::span<const float>> read = decoder->readAll(ids);
    if (read.ok())
      logits = read.value();
    return {path, read.status()};
  }
};

bool isComparable(const StepValue &value) {
  return value.info.type == ElementType::f32 && !value.info.name.empty();
}
Key keyOf(const StepValue &value) {
  return {std::string(value.info.name), {value.shape.begin(), value.shape.end()}};
}

/// Keeps all values of the first plan. A node that gives a value more than once, as a loop does, is
/// known by its last.
class Recorder : public StepObserver {
public:
  struct Value {
    size_t step, order;
    std::vector<float> data;
  };
  Status see(const StepValue &value) override {
    if (!isComparable(value))
      return {};
    Value &kept = values[keyOf(value)];
    kept.step = value.step;
    kept.order = next++;
    const auto *data = static_cast<const float *>(value.data);
    kept.data.assign(data, data + *byteCount(ElementType::i8, value.shape));
    return {};
  }
  std::map<Key, Value> values;

private:
  size_t next = 0;
};

/// ‖a − b‖/‖a‖; infinite where b is not finite, or a is all zeros and b is not.
double relativeError(std::span<const float> a, const float *b) {
  double difference = 0, square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = double(a[i]) - double(b[i]);
    difference += d * d;
    square += double(a[i]) * double(a[i]);
  }
  if (difference == 0)
    return 0;
  const double error = std::sqrt(difference / square);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// Measures the second plan's values.
class Comparer : public StepObserver {
public:
  explicit Comparer(const Recorder &reference) : reference(reference) {}
  Status see(const StepValue &value) override {
    if (!isComparable(value))
      return {};
    const Key key = keyOf(value);
    auto found = reference.values.find(key);
    if (found == reference.values.end())
      alone[key] = true;
    else
      errors[key] = relativeError(found->second.data, static_cast<const float *>(value.data));
    return {};
  }
  std::map<Key, double> errors;
  std::map<Key, bool> alone;

private:
  const Recorder &reference;
};

/// Gives the second plan the first one's value at one place: what is left of its error comes from
/// what follows.
class Grafter : public StepObserver {
public:
  Grafter(const Recorder &reference, const Key &at) : reference(reference), at(at) {}
  Status see(const StepValue &value) override {
    if (isComparable(value) && keyOf(value) == at) {
      const std::vector<float> &data = reference.values.at(at).data;
      std::memcpy(value.data, data.data(), data.size() * sizeof(float));
    }
    return {};
  }

private:
  const Recorder &reference;
  const Key &at;
};

/// The stream as (step, result) in the order of the run.
std::vector<size_t> streamOf(const ProgramInfo &program) {
  struct Node {
    const TensorInfo *info;
    size_t step;
    size_t length = 1, before = SIZE_MAX;
  };
  std::vector<Node> nodes;
  std::map<std::pair<Space, uint32_t>, size_t> holds; // a buffer's value now
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const StepInfo &step = program.steps[s];
    if (step.kind != StepKind::launch)
      continue;
    std::vector<size_t> read;
    const uint32_t inputs = step.bufferCount - step.written;
    for (uint32_t i = 0; i < inputs; ++i) {
      const BufferInfo &buffer = program.buffers[step.firstBuffer + i];
      if (auto found = holds.find({buffer.space, buffer.index}); found != holds.end())
        read.push_back(found->second);
    }
    for (uint32_t i = 0; i < step.resultCount; ++i) {
      const BufferInfo &buffer = program.buffers[step.firstBuffer + inputs + i];
      Node node{&program.results[step.firstResult + i], s};
      for (size_t from : read)
        if (read.size() > 1 && node.info->type == ElementType::f32 &&
            nodes[from].info->type == ElementType::f32 &&
            nodes[from].info->shape == node.info->shape && nodes[from].length + 1 > node.length) {
          node.length = nodes[from].length + 1;
          node.before = from;
        }
      holds[{buffer.space, buffer.index}] = nodes.size();
      nodes.push_back(node);
    }
  }
  size_t last = SIZE_MAX;
  for (size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].length > 1 && (last == SIZE_MAX || nodes[n].length > nodes[last].length))
      last = n;
  std::vector<size_t> steps;
  for (; last != SIZE_MAX; last = nodes[last].before)
    steps.push_back(nodes[last].step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

/// A value that both have, in the order of the first plan's run.
struct Row {
  Key key;
  size_t step;
  double error;
  bool inStream = false;
  double jump = 0;                                                        // of the stream
  double divergence = std::numeric_limits<double>::quiet_NaN(), cost = 0; // --by-layer
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Mean KL of all positions' predictions.
double meanDivergence(std::span<const float> p, std::span<const float> q, size_t rows) {
  const size_t width = p.size() / rows;
  double sum = 0;
  for (size_t r = 0; r < rows; ++r) {
    auto prediction =
        comparePredictions(p.subspan(r * width, width), q.subspan(r * width, width), 0);
    sum += prediction ? prediction->divergence : std::numeric_limits<double>::infinity();
  }
  return sum / double(rows);
}

Failure openSide(Side &side, const CompareOptions &o, const std::string &path, int64_t tokens) {
  PlanOptions options = o;
  side.path = options.plan = path;
  if (options.context == 0 && tokens != 0)
    options.context = tokens;
  Result<Opened> opened = open(options);
  if (!opened.ok())
    return {path, opened.status()};
  side.opened = std::move(opened.value());
  if (!o.inputs.empty())
    return giveInputs(side.session(), path, o.inputs);
  Result<std::unique_ptr<Decoder>> decoder = Decoder::create(side.session());
  if (!decoder.ok())
    return {path, o.text.empty() ? Status(decoder.status().code(), cat(decoder.status().message(), "; --input gives other models what they read"))
                                 : decoder.status()};
  side.decoder = std::move(decoder.value());
  return {};
}

/// The first tokens of the text, by whichever plan has a tokenizer.
Failure readIds(const CompareOptions &o, Side &a, Side &b, std::vector<int32_t> &ids) {
  Result<std::string> text = o.text.empty() ? Result<std::string>(std::string(text::defaultText())) : readText(o.text);
  if (!text.ok())
    return {o.text, text.status()};
  Result<LanguageModel> model = openLanguageModel(*a.opened.plan, o.tokenizer);
  std::string from = a.path;
  if (model.ok() && !model.value().tokenizer) {
    model = openLanguageModel(*b.opened.plan, o.tokenizer);
    from = b.path;
  }
  if (!model.ok())
    return {from, model.status()};
  Result<std::vector<int32_t>> encoded = model.value().encode(text.value());
  if (!encoded.ok())
    return {from, encoded.status()};
  ids = std::move(encoded.value());
  if (ids.empty())
    return {o.text, badInput("holds no token")};
  ids.resize(std::min(ids.size(), size_t(o.tokens)));
  return {};
}

/// KL that is left when the second plan gets the first one's stream at each of its places.
Failure measureLayers(const Recorder &recorder, Side &a, Side &b, std::span<const int32_t> ids,
                      std::vector<Row> &rows, double total) {
  Progress progress;
  double before = total;
  size_t done = 0, places = size_t(std::count_if(rows.begin(), rows.end(),
                                                 [](const Row &r) { return r.inStream; }));
  for (Row &row : rows) {
    if (!row.inStream)
      continue;
    progress.show(cat("layer ", done + 1, " of ", places), done, places);
    ++done;
    Grafter grafter(recorder, row.key);
    if (Status status = b.session().observe(&grafter); !status.ok())
      return {b.path, status};
    Failure failure = b.run(ids);
    if (Status status = b.session().observe(nullptr); !status.ok())
      return {b.path, status};
    if (!failure.status.ok())
      return failure;
    row.divergence = meanDivergence(a.logits, b.logits, ids.size());
    row.cost = before - row.divergence;
    before = row.divergence;
  }
  return {};
}

void printRows(const std::vector<Row> &rows, const CompareOptions &o, bool byLayer, double total) {
  std::vector<const Row *> stream;
  for (const Row &row : rows)
    if (row.inStream)
      stream.push_back(&row);
  if (!stream.empty()) {
    std::printf("the stream, %zu values: relative error, its jump%s\n", stream.size(),
                byLayer ? ", KL of what follows, KL of the step to here" : "");
    // The largest first, but shown in the order of the run.
    std::vector<const Row *> shown = stream;
    auto weight = [&](const Row *row) { return byLayer ? row->cost : row->jump; };
    std::sort(shown.begin(), shown.end(), [&](auto *x, auto *y) {
      return weight(x) != weight(y) ? weight(x) > weight(y) : x < y;
    });
    if (!o.all && shown.size() > 12)
      shown.resize(12);
    std::sort(shown.begin(), shown.end()); // rows lie in the order of the run
    for (const Row *row : shown) {
      std::printf("%10s %10s", number(row->error).c_str(), number(row->jump).c_str());
      if (byLayer)
        std::printf(" %10s %10s", number(row->divergence).c_str(), number(row->cost).c_str());
      std::printf("  %s\n", printable(row->key.name).c_str());
    }
    if (shown.size() < stream.size())
      std::printf("%10s %s of %zu (--all shows all)\n", "",
                  byLayer ? "the costliest" : "the largest jumps", stream.size());
    if (byLayer)
      std::printf("%43s  after the stream\n", number(stream.back()->divergence).c_str());
  }
  if (!std::isnan(total))
    std::printf("KL %s\n", number(total).c_str());
  if (!o.all)
    return;
  std::printf("every value that both have: step of the first plan, relative error\n");
  for (const Row &row : rows)
    std::printf("%6zu %10s  %s\n", row.step, number(row.error).c_str(),
                printable(row.key.name).c_str());
}

} // namespace

int compare(const CompareOptions &o) {
  if (o.byLayer && !o.inputs.empty())
    return fail("command line", usageError("--by-layer: measures predictions of a language model, so it needs --text and no --input"));
  if (Status status = checkInputs(o.inputs); !status.ok())
    return fail("command line", status);
  Side a, b;
  for (auto [side, path] : {std::pair(&a, &o.plan), {&b, &o.other}})
    if (Failure failure = openSide(*side, o, *path, o.inputs.empty() ? o.tokens : 0);
        !failure.status.ok())
      return fail(failure.file, failure.status);
  std::vector<int32_t> ids;
  if (o.inputs.empty())
    if (Failure failure = readIds(o, a, b, ids); !failure.status.ok())
      return fail(failure.file, failure.status);

  Recorder recorder;
  Comparer comparer(recorder);
  for (auto [side, observer] :
       {std::pair<Side *, StepObserver *>(&a, &recorder), {&b, &comparer}}) {
    if (Status status = side->session().observe(observer); !status.ok())
      return fail(side->path, status);
    if (Failure failure = side->run(ids); !failure.status.ok())
      return fail(failure.file, failure.status);
    if (Status status = side->session().observe(nullptr); !status.ok())
      return fail(side->path, status);
  }
  if (comparer.errors.empty())
    return fail(o.other, badInput("has no value in common with ", o.plan,
                                  " (both must be plans of one model)"));

  std::vector<std::pair<size_t, Row>> ordered;
  const std::vector<size_t> stream = streamOf(a.opened.device->program());
  for (const auto &[key, error] : comparer.errors) {
    const Recorder::Value &value = recorder.values.at(key);
    Row row{key, value.step, error};
    row.inStream = std::binary_search(stream.begin(), stream.end(), value.step);
    ordered.push_back({value.order, row});
  }
  std::sort(ordered.begin(), ordered.end(), [](auto &x, auto &y) { return x.first < y.first; });
  std::vector<Row> rows;
  double last = 0;
  const Row *firstBad = nullptr;
  for (auto &[order, row] : ordered) {
    if (row.inStream)
      row.jump = row.error - std::exchange(last, row.error);
    rows.push_back(row);
  }
  for (const Row &row : rows)
    if (!firstBad && row.error > o.threshold)
      firstBad = &row;

  double total = std::numeric_limits<double>::quiet_NaN();
  if (o.inputs.empty()) {
    if (a.logits.size() != b.logits.size())
      return fail(o.other,
                  badInput("output 'logits': has ", b.logits.size(), " numbers, and that of ",
                           o.plan, " ", a.logits.size(), " (both must be plans of one model)"));
    total = meanDivergence(a.logits, b.logits, ids.size());
  }
  if (o.byLayer)
    if (Failure failure = measureLayers(recorder, a, b, ids, rows, total); !failure.status.ok())
      return fail(failure.file, failure.status);

  const size_t onlyA = recorder.values.size() - comparer.errors.size(),
               onlyB = comparer.alone.size();
  if (o.json) {
    auto orNull = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    Json out;
    out["first"] = o.plan;
    out["second"] = o.other;
    out["device"] = a.opened.device->description();
    if (o.inputs.empty())
      out["tokens"] = ids.size();
    out["matched"] = rows.size();
    out["only_in_first"] = onlyA;
    out["only_in_second"] = onlyB;
    out["threshold"] = o.threshold;
    out["first_above"] = firstBad ? Json(firstBad->key.name) : Json();
    out["kl"] = orNull(total);
    out["values"] = Json::array();
    for (const Row &row : rows) {
      Json &value = out["values"].emplace_back();
      value["name"] = row.key.name;
      value["step"] = row.step;
      value["shape"] = row.key.shape;
      value["relative_error"] = orNull(row.error); // null: not finite
      value["stream"] = row.inStream;
      if (row.inStream)
        value["jump"] = orNull(row.jump);
      if (row.inStream && o.byLayer) {
        value["kl_after"] = orNull(row.divergence);
        value["kl_cost"] = orNull(row.cost);
      }
    }
    std::puts(out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return finishOutput();
  }
  std::printf(
      "%s and %s on %s: %zu values in both, %zu only in the first, %zu only in the second\n",
      printable(o.plan).c_str(), printable(o.other).c_str(), a.opened.device->description().c_str(),
      rows.size(), onlyA, onlyB);
  if (firstBad)
    std::printf("first above %s: step %zu, %s: %s\n", number(o.threshold).c_str(), firstBad->step,
                printable(firstBad->key.name).c_str(), number(firstBad->error).c_str());
  else
    std::printf("none is above %s\n", number(o.threshold).c_str());
  printRows(rows, o, o.byLayer, total);
  return finishOutput();
}

} // namespace otf::exec
