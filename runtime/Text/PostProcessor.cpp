// SPDX-License-Identifier: Apache-2.0
//
// ByteLevel as a post-processor only trims offsets, which we do not produce.
#include "runtime/Text/PostProcessor.h"

namespace otf::text {
namespace {

constexpr int maxNesting = 16;

Error refuse(const std::string &what) {
  return {"tokenizer.json: post_processor: " + what +
          " is not supported; supported are Sequence, ByteLevel and "
          "TemplateProcessing around one sequence"};
}

} // namespace

Expected<PostProcessor> PostProcessor::fromJson(const Json *json) {
  PostProcessor result;
  if (json)
    if (MaybeError error = result.add(*json, 0))
      return *error;
  return result;
}

MaybeError PostProcessor::add(const Json &json, int depth) {
  std::string type = typeName(json);
  if (type == "ByteLevel")
    return std::nullopt;
  if (type == "TemplateProcessing")
    return addTemplate(json);
  if (type == "Sequence") {
    const Json *list = findField(json, "processors");
    if (!list || !list->is_array() || depth == maxNesting)
      return refuse("a Sequence without a list, or nested too deep,");
    for (const Json &item : *list)
      if (MaybeError error = add(item, depth + 1))
        return error;
    return std::nullopt;
  }
  return refuse("type '" + type + "'");
}

MaybeError PostProcessor::addTemplate(const Json &json) {
  const Json *pieces = findField(json, "single");
  const Json *specials = findField(json, "special_tokens");
  if (!pieces || !pieces->is_array())
    return refuse("TemplateProcessing without a list 'single'");

  std::vector<int32_t> before, after;
  bool seenSequence = false;
  for (const Json &piece : *pieces) {
    if (const Json *sequence = findField(piece, "Sequence")) {
      const std::string *name = findString(*sequence, "id");
      if (seenSequence || !name || *name != "A")
        return refuse("a template with other sequences than one A");
      seenSequence = true;
      continue;
    }
    const Json *token = findField(piece, "SpecialToken");
    const std::string *name = token ? findString(*token, "id") : nullptr;
    const Json *special =
        name && specials ? findField(*specials, name->c_str()) : nullptr;
    const Json *ids = special ? findField(*special, "ids") : nullptr;
    if (!ids || !ids->is_array())
      return refuse("a template piece without token ids");
    for (const Json &id : *ids) {
      std::optional<int32_t> value = asTokenId(id);
      if (!value)
        return refuse("a special token whose id is no small number");
      (seenSequence ? after : before).push_back(*value);
    }
  }
  if (!seenSequence)
    return refuse("a template without the sequence A");
  prefix.insert(prefix.begin(), before.begin(), before.end());
  suffix.insert(suffix.end(), after.begin(), after.end());
  return std::nullopt;
}

} // namespace otf::text
