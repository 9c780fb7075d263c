// SPDX-License-Identifier: Apache-2.0
//
// The "model" of tokenizer.json: byte pair encoding of one word. A word starts
// as single characters; the adjacent pair with the lowest merge rank (leftmost
// on a tie) is joined until no pair has a merge.
#ifndef OTF_RUNTIME_TEXT_BPEMODEL_H
#define OTF_RUNTIME_TEXT_BPEMODEL_H

#include "runtime/Text/Expected.h"
#include "runtime/Text/JsonField.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace otf::text {

class BpeModel {
public:
  static Expected<BpeModel> fromJson(const Json &json);

  /// Appends the ids of `word` (valid UTF-8).
  void tokenize(std::string_view word, std::vector<int32_t> &ids) const;

  std::optional<int32_t> idOf(std::string_view token) const;
  /// Null when no token has this id.
  const std::string *tokenOf(int32_t id) const;
  /// One more than the largest id.
  size_t idLimit() const { return tokens.size(); }

private:
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct Merge {
    uint32_t rank;
    int32_t result;
  };

  MaybeError readVocab(const Json &json);
  MaybeError readMerges(const Json &json);
  const Merge *findMerge(int32_t left, int32_t right) const;
  std::vector<int32_t> splitCharacters(std::string_view word) const;

  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids;
  /// By id; points at the keys of `ids`, whose nodes never move.
  std::vector<const std::string *> tokens;
  std::unordered_map<uint64_t, Merge> merges;
  std::optional<int32_t> unknownId;
  bool fuseUnknown = false;
  bool ignoreMerges = false;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_BPEMODEL_H
