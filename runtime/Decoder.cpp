// SPDX-License-Identifier: Apache-2.0
#include "runtime/Decoder.h"

#include "runtime/Text/Sampler.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace otf::runtime {

// A chunk of a prompt is long enough to read weights once for many tokens, and short enough to
// bound scratch memory. Most models give logits for each row of it, with large vocabularies more
// than everything else takes; a CPU gains little from longer chunks and is kept below 32 MiB.
static constexpr int64_t kLongestChunk = 512, kShortestChunk = 64, kMostLogits = 32 << 20;

// So all but the last chunk run for the cache alone. On a CPU the last token is a chunk of its own where others are enough: a
// run of one row costs what three or four of many do, and the head 4 % (7 billion weights) to 25 % (SmolLM2) of them all.
static constexpr size_t kEnoughOthers = 127;

// Positions that room is taken for ahead of time.
static constexpr int64_t kMostReserved = 1 << 17;

/// The extent of the logits' last axis, or nothing when it is not a constant.
static std::optional<int64_t> logitsWidth(const Session &session, const TensorInfo &logits) {
  const Polynomial &width = session.plan.sizes[logits.shape.back()];
  if (width.size() != 1 || !width[0].symbols.empty())
    return std::nullopt;
  return width[0].coefficient;
}

static size_t chunkLength(const Session &session, const TensorInfo &logits) {
  std::optional<int64_t> width = logitsWidth(session, logits);
  if (!session.hostVisible() || !width)
    return kLongestChunk;
  int64_t rows =
      kMostLogits / int64_t(elementSize(logits.type)) / std::max<int64_t>(*width, 1);
  return size_t(std::clamp(rows, kShortestChunk, kLongestChunk));
}

Result<std::unique_ptr<Decoder>> Decoder::create(Session &session) {
  std::unique_ptr<Decoder> decoder(new Decoder(session));
  bool hasIds = false;
  for (const TensorInfo &input : session.plan.inputs) {
    Role role;
    if (input.name == "input_ids")
      role = Role::ids, hasIds = true;
    else if (input.name == "attention_mask")
      role = Role::mask;
    else if (input.name == "position_ids")
      role = Role::positions;
    else if (input.name == "num_logits_to_keep" || input.name == "logits_to_keep")
      role = Role::keep;
    else
      return badInput("input '", input.name, "': does not follow from token ids (use otf-exec run)");
    size_t most = role == Role::keep ? 1 : 2;
    if ((input.type != ElementType::i64 && input.type != ElementType::i32) ||
        input.shape.size() > most || (most == 2 && input.shape.empty()))
      return badInput("input '", input.name, "': expected integers of 32 or 64 bits with 1 or 2 axes");
    decoder->roles.push_back(role);
  }
  if (!hasIds)
    return badInput("input 'input_ids': the model has none, so it is no language model (use otf-exec "
                    "run)");
  std::optional<size_t> logits = session.findOutput("logits");
  decoder->logitsOutput = logits.value_or(0);
  if (session.plan.outputs.empty() || decoder->logitsOutput >= session.plan.outputs.size())
    return badInput("output 'logits': the model has none");
  const TensorInfo &output = session.plan.outputs[decoder->logitsOutput];
  if (output.shape.empty() || (output.type != ElementType::f32 && output.type != ElementType::f16 &&
                               output.type != ElementType::bf16))
    return badInput("output '", output.name, "': expected floats with a vocabulary axis, found ",
                    elementName(output.type));
  decoder->chunk = chunkLength(session, output);
  // The embedding may have more rows than there are logits; where the plan does not tell, the
  // logits do.
  for (const TensorInfo &input : session.plan.inputs)
    if (input.name == "input_ids")
      decoder->vocabulary =
          input.limit ? input.limit : logitsWidth(session, output).value_or(INT64_MAX);
  // A model with a table of positions has no more of them.
  for (size_t i = 0; i < decoder->roles.size(); ++i)
    if (decoder->roles[i] == Role::positions && session.plan.inputs[i].limit)
      decoder->positions = session.plan.inputs[i].limit;
  // What grows by a token a step gets its room now, so that a step allocates nothing.
  const auto most = size_t(std::min(session.stateCapacity(), kMostReserved));
  decoder->tokens.reserve(most);
  decoder->numbers.reserve(most);
  decoder->narrow.reserve(most);
  for (size_t i = 0; i < decoder->roles.size(); ++i)
    if (decoder->roles[i] == Role::mask)
      session.reserveInput(i, most * elementSize(session.plan.inputs[i].type));
  return decoder;
}

size_t Decoder::room() const {
  const int64_t most = session.plan.states.empty() ? positions : std::min(positions, session.stateCapacity());
  return size_t(std::max<int64_t>(0, most - int64_t(tokens.size())));
}

Status Decoder::checkLength(size_t length) const {
  if (int64_t(length) > positions)
    return badInput("prompt: ", length, " tokens are more than the ", positions, " positions that the model knows "
                    "(give a shorter prompt)");
  if (!session.plan.states.empty() && int64_t(length) > session.stateCapacity())
    return badInput("prompt: ", length, " tokens do not fit in a context of ", session.stateCapacity(),
                    " (give --context or a shorter prompt)");
  return {};
}

Status Decoder::check(int32_t id, size_t position) const {
  if (id < 0 || id >= vocabulary)
    return badInput("token id ", id, " at position ", position, ": the model knows 0 to ",
                    vocabulary - 1, " (is this its tokenizer?)");
  return {};
}

Status Decoder::start(std::span<const int32_t> ids) {
  if (ids.empty())
    return badInput("prompt: it has no tokens (give at least one)");
  for (size_t i = 0; i < ids.size(); ++i)
    OTF_TRY(check(ids[i], i));
  // Somebody else has used the session.
  if (session.stateLength() != int64_t(held))
    held = 0;
  size_t most = std::min({held, tokens.size(), ids.size() - 1}); // the last one gives the logits
  size_t same = size_t(std::mismatch(tokens.begin(), tokens.begin() + long(most), ids.begin()).first -
                       tokens.begin());
  held = session.plan.states.empty() ? 0 : same;
  tokens.assign(ids.begin(), ids.end());
  if (!session.plan.states.empty())
    OTF_TRY(session.truncateStates(int64_t(held)));
  return feed();
}

Status Decoder::append(int32_t id) {
  OTF_TRY(check(id, tokens.size()));
  tokens.push_back(id);
  return feed();
}

Status Decoder::append(std::span<const int32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i)
    OTF_TRY(check(ids[i], tokens.size() + i));
  if (session.plan.states.empty() || ids.empty() || held != tokens.size())
    return usageError("several tokens at once: the model has no cache to take them back from");
  OTF_TRY(checkLength(tokens.size() + ids.size()));
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  OTF_TRY(feedChunk(held, tokens.size(), int64_t(ids.size())));
  held = tokens.size();
  return readLogits(ids.size());
}

Status Decoder::forget(size_t count) {
  if (count > held || held != tokens.size())
    return usageError("text: there are no ", count, " tokens to forget");
  tokens.resize(tokens.size() - count);
  held = tokens.size();
  return session.truncateStates(int64_t(held));
}

Status Decoder::feed() {
  OTF_TRY(checkLength(tokens.size()));
  if (session.plan.states.empty()) {
    OTF_TRY(feedChunk(0, tokens.size()));
    return readLogits();
  }
  while (held < tokens.size()) {
    const size_t left = tokens.size() - held;
    const bool alone = session.hostVisible() && left > kEnoughOthers;
    const size_t silent = std::min(size_t(kLongestChunk), alone ? left - 1 : left > chunk ? left - chunk : 0);
    const size_t end = held + (silent > 0 ? silent : left);
    OTF_TRY(feedChunk(held, end, silent > 0 ? 0 : 1));
    held = end;
  }
  return readLogits();
}

Status Decoder::feedChunk(size_t begin, size_t end, int64_t keep) {
  for (size_t i = 0; i < roles.size(); ++i) {
    int64_t shape[2] = {1, int64_t(end - begin)};
    numbers.resize(end - begin);
    switch (roles[i]) {
    case Role::ids:
      std::copy(tokens.begin() + long(begin), tokens.begin() + long(end), numbers.begin());
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
      numbers.assign(1, std::max<int64_t>(keep, 1));
      break;
    }
    size_t rank = session.plan.inputs[i].shape.size();
    OTF_TRY(give(i, std::span(shape).last(rank), numbers));
  }
  return keep > 0 ? session.run() : session.runForStates();
}

Status Decoder::give(size_t input, std::span<const int64_t> shape, std::span<const int64_t> values) {
  const TensorInfo &info = session.plan.inputs[input];
  if (info.type == ElementType::i64)
    return session.setInput(info.name, {info.type, shape, values.data()});
  narrow.assign(values.begin(), values.end());
  return session.setInput(info.name, {info.type, shape, narrow.data()});
}

/// Floats of any width to f32.
static void widen(ElementType type, const std::byte *from, size_t count, float *to) {
  if (type == ElementType::f32) {
    std::memcpy(to, from, 4 * count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (type == ElementType::f16) {
      _Float16 half;
      std::memcpy(&half, from + 2 * i, 2);
      to[i] = float(half);
    } else {
      uint16_t high;
      std::memcpy(&high, from + 2 * i, 2);
      uint32_t bits = uint32_t(high) << 16;
      std::memcpy(&to[i], &bits, 4);
    }
  }
}

Result<std::span<const float>> Decoder::readAll(std::span<const int32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i)
    OTF_TRY(check(ids[i], i));
  held = 0;
  tokens.assign(ids.begin(), ids.end());
  if (!session.plan.states.empty())
    OTF_TRY(session.truncateStates(0));
  OTF_TRY(feedChunk(0, tokens.size(), int64_t(tokens.size())));
  held = session.plan.states.empty() ? 0 : tokens.size();
  Result<TensorView> output = session.output(logitsOutput);
  if (!output.ok())
    return output.status();
  const TensorView &logits = output.value();
  const int64_t width = logits.shape.back(), elements = *byteCount(ElementType::i8, logits.shape);
  if (width <= 0 || elements != width * int64_t(ids.size()))
    return badInput("output 'logits': has ", width > 0 ? elements / width : 0, " rows for ", ids.size(),
                    " tokens, so it does not tell what the model expects at each (export the model "
                    "with the logits of all positions)");
  if (logits.type == ElementType::f32)
    return std::span(static_cast<const float *>(logits.data), size_t(elements));
  converted.resize(size_t(elements));
  widen(logits.type, static_cast<const std::byte *>(logits.data), converted.size(), converted.data());
  return std::span<const float>(converted);
}

Result<int32_t> Decoder::best() {
  if (row.empty()) {
    int64_t at = -1;
    std::span<const int64_t> shape = session.outputShape(logitsOutput);
    OTF_TRY(session.largest(logitsOutput, shape.empty() ? 0 : uint64_t(shape.back()), at));
    if (at >= 0)
      return int32_t(at);
  } else if (std::optional<int32_t> at = text::largest(logits(rowCount - 1))) {
    return *at;
  }
  return badInput("output 'logits': no token is possible (every value is not a number)");
}

Status Decoder::readLogits(size_t rows) {
  rowCount = 1;
  if (rows == 1 && onlyBest && session.findsLargest(logitsOutput)) {
    row.clear();
    return {};
  }
  std::span<const int64_t> shape = session.outputShape(logitsOutput);
  ElementType type = session.plan.outputs[logitsOutput].type;
  std::optional<int64_t> bytes = byteCount(type, shape), rowBytes = byteCount(type, shape.last(1));
  if (!bytes || !rowBytes || *rowBytes == 0 || *bytes < *rowBytes)
    return badInput("output 'logits': it is empty");
  if (*bytes / *rowBytes < int64_t(rows))
    return badInput("output 'logits': has ", *bytes / *rowBytes, " rows for ", rows, " tokens, so guesses cannot be "
                    "checked (leave out --draft, or export the model with the logits of all positions)");
  const size_t wanted = rows * size_t(*rowBytes);
  row.resize(rows * size_t(shape.back()));
  rowCount = rows;
  std::byte *to = reinterpret_cast<std::byte *>(row.data());
  if (type != ElementType::f32) {
    raw.resize(wanted);
    to = raw.data();
  }
  OTF_TRY(session.readOutput(logitsOutput, uint64_t(*bytes) - wanted, wanted, to));
  if (type != ElementType::f32)
    widen(type, raw.data(), row.size(), row.data());
  return {};
}

} // namespace otf::runtime
