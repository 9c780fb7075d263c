// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Samples.h"

#include "runtime/LanguageModel.h"

#include <algorithm>
#include <numeric>

namespace otf {

using runtime::badInput;
using runtime::cat;
using runtime::ElementType;
using runtime::Result;
using runtime::Status;

// Tokens for each channel of the widest linear, from which on Σ x xᵀ is as good as it has to be.
static constexpr int64_t kTokensAChannel = 10;
// Of the windows that are there for their beginnings.
static constexpr int64_t kBeginning = 16;
// A model with a cache gets a window in pieces, so that its logits take at most so much.
static constexpr int64_t kMostLogits = 64 << 20, kShortestPiece = 64;

namespace {

/// A size that is a number.
std::optional<int64_t> constant(const runtime::PlanFile &plan, runtime::SizeId id) {
  const runtime::Polynomial &size = plan.sizes[id];
  if (size.size() != 1 || !size[0].symbols.empty())
    return std::nullopt;
  return size[0].coefficient;
}

class TextSamples : public Samples {
public:
  Status create(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source, const SampleOptions &options);

  size_t count() const override { return windows.size(); }
  Status run(runtime::Session &session, size_t index) override;
  std::string words() const override { return cat(tokens(), " tokens of ", name); }
  std::string warning(int64_t widest) const override {
    if (tokens() >= kTokensAChannel * widest)
      return {};
    return cat(name, ": ", tokens(), " tokens are few for linears of ", widest, " channels: statistics of products want ", kTokensAChannel,
               " a channel, ", kTokensAChannel * widest, " (give a longer text or more --calibrate-tokens)");
  }

private:
  int64_t tokens() const {
    int64_t sum = 0;
    for (const Window &each : windows)
      sum += each.length;
    return sum;
  }
  void addWindows(int64_t tokens, int64_t length);
  enum class Role : uint8_t { ids, mask, positions, zeros, keep };
  Status findRoles(const runtime::PlanFile &plan, const Sidecar *sidecar);
  Status feed(runtime::Session &session, std::span<const int32_t> ids, size_t begin, size_t end);

  struct Input {
    const runtime::TensorInfo *info;
    Role role;
  };
  std::string name;
  std::vector<Input> inputs;
  std::vector<int32_t> ids, prefix;
  struct Window {
    size_t start;
    int64_t length; // with the prefix
  };
  std::vector<Window> windows;
  int64_t window = 0, piece = 0;
  bool isFixed = false; // every window has the model's length
  std::vector<int64_t> numbers;
  std::vector<int32_t> narrow;
};

Status TextSamples::findRoles(const runtime::PlanFile &plan, const Sidecar *sidecar) {
  bool hasIds = false;
  for (const runtime::TensorInfo &input : plan.inputs) {
    if (sidecar && sidecar->owns(input.name))
      continue;
    Role role;
    if (input.name == "input_ids")
      role = Role::ids, hasIds = true;
    else if (input.name == "attention_mask")
      role = Role::mask;
    else if (input.name == "position_ids")
      role = Role::positions;
    else if (input.name == "token_type_ids")
      role = Role::zeros;
    else if (input.name == "num_logits_to_keep" || input.name == "logits_to_keep")
      role = Role::keep;
    else
      return badInput("input '", input.name, "': does not follow from a text (give --calibrate a folder of .npy files)");
    size_t rank = input.shape.size();
    bool isInteger = input.type == ElementType::i64 || input.type == ElementType::i32;
    std::optional<int64_t> batch = rank == 2 ? constant(plan, input.shape[0]) : std::optional<int64_t>(1);
    if (!isInteger || rank > (role == Role::keep ? 1 : 2) || (role != Role::keep && rank == 0) || batch.value_or(1) != 1)
      return badInput("input '", input.name, "': expected integers with a batch of 1 (give --calibrate a folder of .npy files)");
    if (role == Role::ids) // of a fixed length
      if (std::optional<int64_t> length = constant(plan, input.shape.back()))
        window = *length, isFixed = true;
    inputs.push_back({&input, role});
  }
  return hasIds ? Status() : badInput("input 'input_ids': the model has none, and a text is token ids (give --calibrate a folder of .npy files)");
}

/// `tokens` / `length` windows, at least one, evenly spread.
void TextSamples::addWindows(int64_t tokens, int64_t length) {
  int64_t fresh = length - int64_t(prefix.size()), total = int64_t(ids.size());
  int64_t count = std::clamp<int64_t>(tokens / length, 1, std::max<int64_t>(total / fresh, 1));
  for (int64_t i = 0; i < count; ++i)
    windows.push_back({size_t(count == 1 ? 0 : i * (total - fresh) / (count - 1)), length});
}

Status TextSamples::create(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source, const SampleOptions &options) {
  name = source.textName;
  window = std::min(options.window, options.tokens + options.beginnings);
  OTF_TRY(findRoles(plan, sidecar));
  Result<runtime::LanguageModel> made = runtime::LanguageModel::create(plan, "");
  if (!made.ok())
    return made.status();
  runtime::LanguageModel &model = made.value();
  if (!model.tokenizer)
    return badInput("tokenizer: there is none beside the model, so a text is no tokens (put tokenizer.json there, or give --calibrate a folder of .npy files)");
  if (model.context)
    window = std::min(window, model.context);
  // What begins every text of this model begins every window.
  auto begin = model.tokenizer->encode("", /*addSpecial=*/true);
  if (begin && !begin->empty())
    prefix.assign(1, begin->front());
  auto encoded = model.tokenizer->encode(source.text, /*addSpecial=*/false);
  if (!encoded)
    return badInput(name, ": ", encoded.error().message);
  ids = std::move(*encoded);
  int64_t fresh = window - int64_t(prefix.size()), total = int64_t(ids.size());
  if (fresh < 1 || total < fresh)
    return badInput(name, ": the text is too short: ", total, " tokens, and one window takes ", fresh, " (give a longer text)");
  bool hasBeginnings = kBeginning < window && window <= options.tokens && options.beginnings >= kBeginning && !isFixed;
  addWindows(hasBeginnings ? options.tokens : options.tokens + options.beginnings, window);
  if (hasBeginnings)
    addWindows(options.beginnings, kBeginning);
  piece = window;
  if (!plan.states.empty())
    for (const runtime::TensorInfo &output : plan.outputs)
      if (std::optional<int64_t> width = output.shape.empty() ? std::nullopt : constant(plan, output.shape.back()); width && *width > 0)
        piece = std::min(piece, std::max(kShortestPiece, kMostLogits / 4 / *width));
  return {};
}

Status TextSamples::feed(runtime::Session &session, std::span<const int32_t> all, size_t begin, size_t end) {
  for (const Input &input : inputs) {
    int64_t shape[2] = {1, int64_t(end - begin)};
    numbers.assign(end - begin, 0);
    switch (input.role) {
    case Role::ids:
      std::copy(all.begin() + long(begin), all.begin() + long(end), numbers.begin());
      break;
    case Role::positions:
      std::iota(numbers.begin(), numbers.end(), int64_t(begin));
      break;
    case Role::mask:
      shape[1] = int64_t(end);
      numbers.assign(end, 1);
      break;
    case Role::keep:
      shape[1] = 1;
      numbers.assign(1, 1);
      break;
    case Role::zeros:
      break;
    }
    std::span<const int64_t> axes = std::span(shape).last(input.info->shape.size());
    const void *data = numbers.data();
    if (input.info->type == ElementType::i32) {
      narrow.assign(numbers.begin(), numbers.end());
      data = narrow.data();
    }
    Status given = session.setInput(input.info->name, {input.info->type, axes, data});
    if (!given.ok() && input.role == Role::ids)
      return badInput(given.message(), "; is the tokenizer this model's?");
    OTF_TRY(given);
  }
  return session.run();
}

Status TextSamples::run(runtime::Session &session, size_t index) {
  std::vector<int32_t> all = prefix;
  auto first = ids.begin() + long(windows[index].start);
  all.insert(all.end(), first, first + (windows[index].length - long(prefix.size())));
  OTF_TRY(session.truncateStates(0));
  for (size_t begin = 0; begin < all.size(); begin += size_t(piece))
    OTF_TRY(feed(session, all, begin, std::min(all.size(), begin + size_t(piece))));
  return {};
}

} // namespace

Result<std::unique_ptr<Samples>> makeTextSamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                                 const SampleOptions &options) {
  auto samples = std::make_unique<TextSamples>();
  if (Status status = samples->create(plan, sidecar, source, options); !status.ok())
    return status;
  return std::unique_ptr<Samples>(std::move(samples));
}

} // namespace otf
