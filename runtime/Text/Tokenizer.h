// SPDX-License-Identifier: Apache-2.0
//
// A byte-level BPE tokenizer read from a Hugging Face tokenizer.json. Its ids
// equal those of the `tokenizers` package for everything it accepts; what it
// does not support it refuses by name when it is loaded. "truncation" and
// "padding" are ignored: how long a prompt may be is for the runtime to say.
#ifndef OTF_RUNTIME_TEXT_TOKENIZER_H
#define OTF_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/Text/Expected.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace otf::text {

/// Immutable after loading: any number of threads may use one.
class Tokenizer {
public:
  /// `json` is the content of tokenizer.json; it is not kept.
  static Expected<Tokenizer> fromJson(std::string_view json);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// Bytes that are not UTF-8 count as U+FFFD. `addSpecial` adds what the
  /// post-processor asks for (bos, eos); special tokens written out in the text
  /// are recognized either way. Fails only when a regular expression exceeds
  /// its backtracking limit.
  Expected<std::vector<int32_t>> encode(std::string_view text,
                                        bool addSpecial) const;

  /// Always valid UTF-8. Ids that no token has are skipped.
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const;

  /// The bytes one token stands for; they may end inside a character. Empty
  /// for ids that no token has.
  std::string idToBytes(int32_t id) const;

  bool isSpecial(int32_t id) const;
  /// The id of a special token such as "<|im_end|>".
  std::optional<int32_t> specialId(std::string_view content) const;
  /// The id of any token, spelled as in tokenizer.json.
  std::optional<int32_t> tokenId(std::string_view token) const;
  /// One more than the largest id.
  size_t vocabularySize() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_TOKENIZER_H
