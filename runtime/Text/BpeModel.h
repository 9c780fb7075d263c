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
#include <string>
#include <string_view>
#include <vector>

namespace otf::text {

class BpeModel {
  static constexpr int32_t none = -1;

public:
  /// `vocab` and `merges` are the text of these members, empty where there are none; `json` has the others.
  static Expected<BpeModel> fromJson(const Json &json, std::string_view vocab, std::string_view merges);

  /// Appends the ids of `word` (valid UTF-8).
  void tokenize(std::string_view word, std::vector<int32_t> &ids) const;

  std::optional<int32_t> idOf(std::string_view token) const;
  /// Nothing when no token has this id.
  std::optional<std::string_view> tokenOf(int32_t id) const;
  /// One more than the largest id.
  size_t idLimit() const { return byId.size(); }

private:
  struct Token {
    size_t begin, size; // in `spellings`
    int32_t id;
  };
  struct Merge {
    uint64_t pair; // both ids
    uint32_t rank;
    int32_t result; // none: a free place
  };

  MaybeError readVocab(std::string_view text);
  void indexTokens();
  MaybeError readMerges(std::string_view text);
  /// Where the merge of a pair is, or the place that it would take.
  size_t placeOf(uint64_t pair) const;
  const Merge *findMerge(int32_t left, int32_t right) const;
  std::vector<int32_t> splitCharacters(std::string_view word) const;
  std::string_view spelling(const Token &token) const { return std::string_view(spellings).substr(token.begin, token.size); }

  // Two tables with open addressing, both half empty at least, and no allocation for an entry: reading them is what a
  // plan's opening would take longest for.
  std::string spellings;
  std::vector<Token> tokens;
  struct Place {
    uint32_t hash;
    int32_t token; // none: free
  };
  std::vector<Place> places;
  std::vector<int32_t> byId; // tokens, or none
  std::vector<Merge> merges;
  std::optional<int32_t> unknownId;
  bool fuseUnknown = false;
  bool ignoreMerges = false;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_BPEMODEL_H
