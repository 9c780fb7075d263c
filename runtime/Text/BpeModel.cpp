// SPDX-License-Identifier: Apache-2.0
//
// Merging takes O(n log n): symbols form a doubly linked list in an array, and
// a heap holds candidate merges. A candidate whose symbols have changed since
// is recognized when popped and dropped, so nothing is removed from the heap.
#include "runtime/Text/BpeModel.h"

#include "runtime/Text/Utf8.h"

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

Expected<BpeModel> BpeModel::fromJson(const Json &json) {
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
  if (MaybeError error = model.readVocab(json))
    return *error;
  if (MaybeError error = model.readMerges(json))
    return *error;
  if (const std::string *unknown = findString(json, "unk_token"))
    model.unknownId = model.idOf(*unknown);
  return model;
}

MaybeError BpeModel::readVocab(const Json &json) {
  const Json *vocab = findField(json, "vocab");
  if (!vocab || !vocab->is_object())
    return refuse("'vocab' is not an object; the file is damaged");
  ids.reserve(vocab->size());
  for (auto it = vocab->begin(); it != vocab->end(); ++it) {
    std::optional<int32_t> id = asTokenId(it.value());
    if (!id)
      return refuse("token '" + it.key() +
                    "' has no usable id; the file is damaged");
    auto node = ids.emplace(it.key(), *id).first;
    if (tokens.size() <= static_cast<size_t>(*id))
      tokens.resize(*id + 1, nullptr);
    tokens[*id] = &node->first;
  }
  return std::nullopt;
}

MaybeError BpeModel::readMerges(const Json &json) {
  const Json *list = findField(json, "merges");
  if (!list || !list->is_array())
    return refuse("'merges' is not a list; the file is damaged");
  merges.reserve(list->size());
  uint32_t rank = 0;
  for (const Json &item : *list) {
    std::string_view left, right;
    if (const auto *text = item.get_ptr<const std::string *>()) {
      size_t space = text->find(' ');
      if (space != text->npos) {
        left = std::string_view(*text).substr(0, space);
        right = std::string_view(*text).substr(space + 1);
      }
    } else if (item.is_array() && item.size() == 2 && item[0].is_string() &&
               item[1].is_string()) {
      left = *item[0].get_ptr<const std::string *>();
      right = *item[1].get_ptr<const std::string *>();
    }
    std::optional<int32_t> leftId = idOf(left), rightId = idOf(right);
    std::optional<int32_t> result =
        idOf(std::string(left).append(right));
    if (!leftId || !rightId || !result)
      return refuse("merge " + std::to_string(rank) +
                    " is not a pair of tokens whose joined text is a token; "
                    "the file is damaged");
    merges[pairKey(*leftId, *rightId)] = {rank++, *result};
  }
  return std::nullopt;
}

std::optional<int32_t> BpeModel::idOf(std::string_view token) const {
  auto it = ids.find(token);
  return it == ids.end() ? std::nullopt : std::optional(it->second);
}

const std::string *BpeModel::tokenOf(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < tokens.size() ? tokens[id]
                                                            : nullptr;
}

const BpeModel::Merge *BpeModel::findMerge(int32_t left, int32_t right) const {
  auto it = merges.find(pairKey(left, right));
  return it == merges.end() ? nullptr : &it->second;
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
