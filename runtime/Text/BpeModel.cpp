// SPDX-License-Identifier: Apache-2.0
//
// Merging takes O(n log n): symbols form a doubly linked list in an array, and
// a heap holds candidate merges. A candidate whose symbols have changed since
// is recognized when popped and dropped, so nothing is removed from the heap.
#include "runtime/Text/BpeModel.h"

#include "runtime/Text/JsonReader.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>

namespace otf::text {
namespace {

Error refuse(const std::string &what) {
  return {"tokenizer.json: model: " + what};
}

uint64_t pairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

struct Symbol {
  int32_t id;
  int32_t previous;
  int32_t next;
  bool alive;
};

struct Candidate {
  uint32_t rank;
  int32_t position;
  int32_t result;
  // std::priority_queue pops the largest; we want the lowest rank, leftmost.
  bool operator<(const Candidate &other) const {
    return std::tie(other.rank, other.position) < std::tie(rank, position);
  }
};

} // namespace

Expected<BpeModel> BpeModel::fromJson(const Json &json, std::string_view vocab, std::string_view merges) {
  std::string type = typeName(json);
  // Old files leave the type out.
  if (type != "BPE" && findField(json, "type"))
    return refuse("type '" + type +
                  "' is not supported; use a model with a byte-level BPE "
                  "tokenizer");
  if (boolField(json, "byte_fallback", false))
    return refuse("byte_fallback is not supported; use a model with a "
                  "byte-level BPE tokenizer");
  const Json *dropout = findField(json, "dropout");
  if (dropout && *dropout != 0)
    return refuse("dropout makes tokenization random; set it to null");
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json *affix = findField(json, key);
    if (affix && *affix != "")
      return refuse(std::string(key) + " is not supported; use a model with a "
                                       "byte-level BPE tokenizer");
  }

  BpeModel model;
  model.fuseUnknown = boolField(json, "fuse_unk", false);
  model.ignoreMerges = boolField(json, "ignore_merges", false);
  if (MaybeError error = model.readVocab(vocab))
    return *error;
  if (MaybeError error = model.readMerges(merges))
    return *error;
  if (const std::string *unknown = findString(json, "unk_token"))
    model.unknownId = model.idOf(*unknown);
  return model;
}

/// A power of two that leaves half of the places free, so that each search ends.
static size_t tableSize(size_t entries) { return std::bit_ceil(std::max<size_t>(2 * entries, 2)); }

MaybeError BpeModel::readVocab(std::string_view text) {
  JsonReader reader(text);
  MaybeError error;
  const bool complete = reader.members([&](std::string_view name) {
    Token token{spellings.size(), name.size(), none};
    spellings += name;
    std::optional<uint64_t> id = reader.natural();
    if (!id || *id > maxTokenId) {
      error = refuse("token '" + std::string(spelling(token)) + "' has no usable id; the file is damaged");
      return false;
    }
    token.id = int32_t(*id);
    tokens.push_back(token);
    return true;
  });
  if (error)
    return error;
  if (!complete || !reader.isAtEnd())
    return refuse("'vocab' is not an object of tokens and ids; the file is damaged");
  indexTokens();
  return std::nullopt;
}

void BpeModel::indexTokens() {
  places.assign(tableSize(tokens.size()), {0, none});
  for (int32_t i = 0; i < int32_t(tokens.size()); ++i) {
    const std::string_view name = spelling(tokens[i]);
    const auto hash = uint32_t(std::hash<std::string_view>()(name));
    size_t at = hash & (places.size() - 1);
    while (places[at].token != none && (places[at].hash != hash || spelling(tokens[places[at].token]) != name))
      at = (at + 1) & (places.size() - 1);
    places[at] = {hash, i}; // of one name twice the last counts, as JSON has it
    if (byId.size() <= size_t(tokens[i].id))
      byId.resize(size_t(tokens[i].id) + 1, none);
    byId[tokens[i].id] = i;
  }
}

MaybeError BpeModel::readMerges(std::string_view text) {
  struct Pair {
    int32_t left, right, result;
  };
  std::vector<Pair> pairs;
  JsonReader reader(text);
  MaybeError error;
  std::string joined;
  const bool complete = reader.items([&] {
    std::optional<int32_t> left, right;
    joined.clear();
    if (std::optional<std::string_view> both = reader.string()) {
      if (size_t space = both->find(' '); space != both->npos) {
        left = idOf(both->substr(0, space)), right = idOf(both->substr(space + 1));
        joined.append(*both, 0, space).append(*both, space + 1);
      }
    } else {
      int parts = 0;
      const bool read = reader.items([&] {
        std::optional<std::string_view> part = reader.string();
        if (!part || parts == 2)
          return false;
        (parts++ ? right : left) = idOf(*part);
        joined += *part;
        return true;
      });
      if (!read || parts != 2)
        left.reset();
    }
    // Nearly always the token after the last merge's.
    const int32_t likely = pairs.empty() ? none : pairs.back().result + 1;
    std::optional<int32_t> result = tokenOf(likely) == joined ? std::optional(likely) : idOf(joined);
    if (!left || !right || !result) {
      error = refuse("merge " + std::to_string(pairs.size()) +
                     " is not a pair of tokens whose joined text is a token; the file is damaged");
      return false;
    }
    pairs.push_back({*left, *right, *result});
    return true;
  });
  if (error)
    return error;
  if (!complete || !reader.isAtEnd())
    return refuse("'merges' is not a list; the file is damaged");
  merges.assign(tableSize(pairs.size()), {0, 0, none});
  for (size_t rank = 0; rank < pairs.size(); ++rank) {
    const uint64_t pair = pairKey(pairs[rank].left, pairs[rank].right);
    merges[placeOf(pair)] = {pair, uint32_t(rank), pairs[rank].result};
  }
  return std::nullopt;
}

std::optional<int32_t> BpeModel::idOf(std::string_view token) const {
  const auto hash = uint32_t(std::hash<std::string_view>()(token));
  for (size_t at = hash & (places.size() - 1); places[at].token != none; at = (at + 1) & (places.size() - 1))
    if (places[at].hash == hash && spelling(tokens[places[at].token]) == token)
      return tokens[places[at].token].id;
  return std::nullopt;
}

std::optional<std::string_view> BpeModel::tokenOf(int32_t id) const {
  const bool known = id >= 0 && size_t(id) < byId.size() && byId[id] != none;
  return known ? std::optional(spelling(tokens[byId[id]])) : std::nullopt;
}

size_t BpeModel::placeOf(uint64_t pair) const {
  // Fibonacci hashing: the upper bits of the product depend on all of the pair.
  size_t at = size_t(pair * 0x9E3779B97F4A7C15u >> 32) & (merges.size() - 1);
  while (merges[at].result != none && merges[at].pair != pair)
    at = (at + 1) & (merges.size() - 1);
  return at;
}

const BpeModel::Merge *BpeModel::findMerge(int32_t left, int32_t right) const {
  const Merge &merge = merges[placeOf(pairKey(left, right))];
  return merge.result == none ? nullptr : &merge;
}

std::vector<int32_t>
BpeModel::splitCharacters(std::string_view word) const {
  std::vector<int32_t> characters;
  bool afterUnknown = false;
  while (!word.empty()) {
    size_t length = decodeUtf8(word).length;
    std::optional<int32_t> id = idOf(word.substr(0, length));
    word.remove_prefix(length);
    if (id)
      characters.push_back(*id);
    else if (unknownId && !(fuseUnknown && afterUnknown))
      characters.push_back(*unknownId);
    // Without an unknown token the reference drops the character, too.
    afterUnknown = !id;
  }
  return characters;
}

void BpeModel::tokenize(std::string_view word,
                        std::vector<int32_t> &out) const {
  if (ignoreMerges)
    if (std::optional<int32_t> id = idOf(word))
      return out.push_back(*id);

  std::vector<Symbol> symbols;
  for (int32_t id : splitCharacters(word)) {
    auto index = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, index - 1, index + 1, true});
  }
  if (symbols.empty())
    return;
  symbols.back().next = -1;

  std::priority_queue<Candidate> heap;
  auto offer = [&](int32_t position) {
    if (position < 0 || symbols[position].next < 0)
      return;
    const Symbol &left = symbols[position];
    if (const Merge *merge = findMerge(left.id, symbols[left.next].id))
      heap.push({merge->rank, position, merge->result});
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    offer(static_cast<int32_t>(i));

  while (!heap.empty()) {
    Candidate top = heap.top();
    heap.pop();
    Symbol &left = symbols[top.position];
    if (!left.alive || left.next < 0)
      continue;
    Symbol &right = symbols[left.next];
    const Merge *merge = findMerge(left.id, right.id);
    if (!merge || merge->result != top.result)
      continue;

    left.id = top.result;
    right.alive = false;
    left.next = right.next;
    if (left.next >= 0)
      symbols[left.next].previous = top.position;
    offer(left.previous);
    offer(top.position);
  }
  for (int32_t i = 0; i >= 0; i = symbols[i].next)
    out.push_back(symbols[i].id);
}

} // namespace otf::text
