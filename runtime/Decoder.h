// SPDX-License-Identifier: Apache-2.0
//
// Runs a decoder-only language model token by token: makes the inputs such models have out of
// token ids, feeds long prompts in chunks, and keeps what the session's cache already holds. A
// model without states is run on the whole text each time. For measuring, a text is also run at
// once and gives the logits of all its positions.
#ifndef OTF_RUNTIME_DECODER_H
#define OTF_RUNTIME_DECODER_H

#include "runtime/Session.h"

namespace otf::runtime {

class Decoder {
public:
  /// Fails when the model has inputs that do not follow from token ids, or no logits. The session
  /// outlives the decoder.
  static Result<std::unique_ptr<Decoder>> create(Session &session);

  /// Makes `ids` the whole text so far. What the cache shares with it is not computed again.
  Status start(std::span<const int32_t> ids);
  /// Appends one token.
  Status append(int32_t id);
  /// From here on logits() are empty after start() and append(), and best() is what is asked for.
  void wantOnlyBest(bool only = true) { onlyBest = only; }
  /// The most likely token, the first of equal ones; where the logits are, if the device can. Fails where none is possible.
  Result<int32_t> best();
  /// Appends several in one run, whose logits are all kept. Needs a plan with a cache and with logits of all positions;
  /// they are bit for bit those of single tokens, except where weights are floats (docs/Architecture.md, Canonical arithmetic).
  Status append(std::span<const int32_t> ids);
  /// Forgets the last `count` tokens; the logits stay.
  Status forget(size_t count);
  /// Makes `ids` the whole text, in one run without a past, and gives the logits for what follows
  /// each of them: ids.size() rows of equal length, valid until the next call.
  Result<std::span<const float>> readAll(std::span<const int32_t> ids);

  /// For each token of the vocabulary how likely it is next. `index`: after which of the tokens that were appended
  /// together; there are rows() of them.
  std::span<const float> logits(size_t index = 0) const {
    return std::span(row).subspan(index * row.size() / rowCount, row.size() / rowCount);
  }
  size_t rows() const { return rowCount; }
  const std::vector<int32_t> &history() const { return tokens; }
  /// Token ids are below it.
  int64_t vocabularySize() const { return vocabulary; }
  /// How many more tokens fit.
  size_t room() const;
  bool hasRoom() const { return room() > 0; }
  /// Whether there is no cache: each token is a run over the whole text.
  bool isStateless() const { return session.plan.states.empty(); }

private:
  enum class Role : uint8_t { ids, mask, positions, keep };
  explicit Decoder(Session &session) : session(session) {}
  Status check(int32_t id, size_t position) const;
  Status checkLength(size_t length) const;
  Status feed();
  /// `keep`: for how many of the last tokens logits are wanted, where the model can tell. 0: for none, which every model can.
  Status feedChunk(size_t begin, size_t end, int64_t keep = 1);
  Status give(size_t input, std::span<const int64_t> shape, std::span<const int64_t> values);
  /// Of the last `rows` tokens.
  Status readLogits(size_t rows = 1);

  Session &session;
  bool onlyBest = false;
  size_t logitsOutput = 0, chunk = 0;
  int64_t vocabulary = INT64_MAX, positions = INT64_MAX; // where the plan does not tell
  std::vector<Role> roles;      // of the plan's inputs
  std::vector<int32_t> tokens;  // the text; the states hold the first `held` of them
  size_t held = 0, rowCount = 1;
  std::vector<float> row, converted;
  std::vector<int64_t> numbers; // kept to reuse their memory
  std::vector<int32_t> narrow;
  std::vector<std::byte> raw;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_DECODER_H
