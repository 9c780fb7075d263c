// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of the reference: added tokens in the raw text, normalizer,
// added tokens in the normalized text, pre-tokenizer, BPE, post-processor.
#include "runtime/Text/Tokenizer.h"

#include "runtime/Text/AddedTokens.h"
#include "runtime/Text/BpeModel.h"
#include "runtime/Text/ByteLevel.h"
#include "runtime/Text/JsonField.h"
#include "runtime/Text/JsonReader.h"
#include "runtime/Text/Normalizer.h"
#include "runtime/Text/PostProcessor.h"
#include "runtime/Text/PreTokenizer.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <unordered_map>

namespace otf::text {

struct Tokenizer::Impl {
  explicit Impl(BpeModel model) : model(std::move(model)) {}

  MaybeError readAddedTokens(const Json *list);
  MaybeError encodePlain(std::string_view text,
                         std::vector<int32_t> &ids) const;

  BpeModel model;
  AddedTokenMatcher rawMatcher;
  AddedTokenMatcher normalizedMatcher;
  std::unordered_map<int32_t, AddedToken> addedById;
  std::unordered_map<std::string, int32_t> addedByContent;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  PostProcessor postProcessor;
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

namespace {

/// A tokenizer.json in three: the lists that are nearly all of it, as text, and the rest.
struct Cut {
  std::string rest; // with null in place of both
  std::string_view vocab, merges;
};

/// What is not JSON stays in `rest` or in a list, and is found where that is read.
Cut cutLists(std::string_view text) {
  constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF"; // the JSON library passes it, too
  if (text.starts_with(byteOrderMark))
    text.remove_prefix(byteOrderMark.size());
  Cut cut;
  JsonReader reader(text);
  size_t done = 0;
  reader.members([&](std::string_view key) {
    if (key != "model")
      return reader.skip();
    return reader.members([&](std::string_view field) {
      std::string_view *list = field == "vocab" ? &cut.vocab : field == "merges" ? &cut.merges : nullptr;
      const size_t begin = reader.position();
      if (!reader.skip())
        return false;
      if (list) {
        *list = text.substr(begin, reader.position() - begin);
        cut.rest.append(text, done, begin - done).append("null");
        done = reader.position();
      }
      return true;
    });
  });
  cut.rest.append(text, done);
  return cut;
}

} // namespace

Expected<Tokenizer> Tokenizer::fromJson(std::string_view text) {
  const Cut cut = cutLists(text);
  Json json = Json::parse(cut.rest, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return Error{"tokenizer.json: not a JSON object; the file is damaged or is "
                 "another kind of file"};
  const Json *modelJson = findField(json, "model");
  if (!modelJson)
    return Error{"tokenizer.json: no 'model'; the file is damaged or is "
                 "another kind of file"};
  const Json *decoder = findField(json, "decoder");
  if (!decoder || typeName(*decoder) != "ByteLevel")
    return Error{"tokenizer.json: decoder: type '" +
                 (decoder ? typeName(*decoder) : "(none)") +
                 "' is not supported; use a byte-level BPE tokenizer"};

  Expected<BpeModel> model = BpeModel::fromJson(*modelJson, cut.vocab, cut.merges);
  if (!model)
    return model.error();
  auto impl = std::make_unique<Impl>(std::move(*model));
  auto normalizer = Normalizer::fromJson(findField(json, "normalizer"));
  if (!normalizer)
    return normalizer.error();
  impl->normalizer = std::move(*normalizer);
  auto preTokenizer = PreTokenizer::fromJson(findField(json, "pre_tokenizer"));
  if (!preTokenizer)
    return preTokenizer.error();
  impl->preTokenizer = std::move(*preTokenizer);
  auto postProcessor =
      PostProcessor::fromJson(findField(json, "post_processor"));
  if (!postProcessor)
    return postProcessor.error();
  impl->postProcessor = std::move(*postProcessor);
  if (MaybeError error = impl->readAddedTokens(findField(json, "added_tokens")))
    return *error;
  return Tokenizer(std::move(impl));
}

MaybeError Tokenizer::Impl::readAddedTokens(const Json *list) {
  if (!list)
    return std::nullopt;
  Error damaged{"tokenizer.json: added_tokens: not a list of tokens with id and "
                "content; the file is damaged"};
  if (!list->is_array())
    return damaged;
  for (const Json &item : *list) {
    const std::string *content = findString(item, "content");
    const Json *idField = findField(item, "id");
    std::optional<int32_t> id = idField ? asTokenId(*idField) : std::nullopt;
    if (!content || !id)
      return damaged;
    if (content->empty() || addedByContent.contains(*content))
      continue;
    bool normalized = boolField(item, "normalized", true);
    // The vocabulary wins when both name the token, as in the reference.
    AddedToken token{model.idOf(*content).value_or(*id),
                     normalized ? normalizer.apply(*content) : *content,
                     boolField(item, "special", false),
                     boolField(item, "single_word", false),
                     boolField(item, "lstrip", false),
                     boolField(item, "rstrip", false)};
    if (token.pattern.empty())
      continue;
    if (MaybeError error = (normalized ? normalizedMatcher : rawMatcher).add(token))
      return error;
    addedByContent.emplace(*content, token.id);
    addedById.insert_or_assign(token.id, std::move(token));
  }
  return std::nullopt;
}

MaybeError Tokenizer::Impl::encodePlain(std::string_view text,
                                        std::vector<int32_t> &ids) const {
  std::string normalized = normalizer.apply(std::string(text));
  std::vector<TextPart> parts;
  normalizedMatcher.split(normalized, parts);
  for (const TextPart &part : parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    Expected<std::vector<std::string>> words = preTokenizer.apply(part.text);
    if (!words)
      return words.error();
    for (const std::string &word : *words)
      model.tokenize(word, ids);
  }
  return std::nullopt;
}

Expected<std::vector<int32_t>> Tokenizer::encode(std::string_view bytes,
                                                 bool addSpecial) const {
  std::string text = repairUtf8(bytes);
  std::vector<TextPart> parts;
  impl->rawMatcher.split(text, parts);

  std::vector<int32_t> ids;
  if (addSpecial)
    ids = impl->postProcessor.prefix;
  for (const TextPart &part : parts) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else if (MaybeError error = impl->encodePlain(part.text, ids))
      return *error;
  }
  if (addSpecial)
    ids.insert(ids.end(), impl->postProcessor.suffix.begin(),
               impl->postProcessor.suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecial) const {
  std::string bytes;
  for (int32_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      bytes += idToBytes(id);
  return repairUtf8(bytes);
}

std::string Tokenizer::idToBytes(int32_t id) const {
  auto added = impl->addedById.find(id);
  if (added != impl->addedById.end())
    return fromByteLevel(added->second.pattern);
  std::optional<std::string_view> token = impl->model.tokenOf(id);
  return token ? fromByteLevel(*token) : std::string();
}

bool Tokenizer::isSpecial(int32_t id) const {
  auto added = impl->addedById.find(id);
  return added != impl->addedById.end() && added->second.special;
}

std::optional<int32_t> Tokenizer::specialId(std::string_view content) const {
  auto it = impl->addedByContent.find(std::string(content));
  if (it == impl->addedByContent.end() || !isSpecial(it->second))
    return std::nullopt;
  return it->second;
}

std::optional<int32_t> Tokenizer::tokenId(std::string_view token) const {
  auto it = impl->addedByContent.find(std::string(token));
  return it != impl->addedByContent.end() ? std::optional(it->second)
                                          : impl->model.idOf(token);
}

size_t Tokenizer::vocabularySize() const {
  size_t size = impl->model.idLimit();
  for (const auto &[id, token] : impl->addedById)
    size = std::max(size, static_cast<size_t>(id) + 1);
  return size;
}

} // namespace otf::text
