// SPDX-License-Identifier: Apache-2.0
//
// Supported: Sequence, Prepend, and Replace with a string pattern.
#include "runtime/Text/Normalizer.h"

namespace otf::text {
namespace {

constexpr int maxNesting = 16;

Error refuse(const std::string &what) {
  return {"tokenizer.json: normalizer: " + what +
          " is not supported; supported are Sequence, Prepend and Replace with "
          "a string pattern"};
}

} // namespace

Expected<Normalizer> Normalizer::fromJson(const Json *json) {
  Normalizer normalizer;
  if (json)
    if (MaybeError error = normalizer.add(*json, 0))
      return *error;
  return normalizer;
}

MaybeError Normalizer::add(const Json &json, int depth) {
  std::string type = typeName(json);
  if (type == "Sequence") {
    const Json *list = findField(json, "normalizers");
    if (!list || !list->is_array() || depth == maxNesting)
      return refuse("a Sequence without a list, or nested too deep,");
    for (const Json &item : *list)
      if (MaybeError error = add(item, depth + 1))
        return error;
    return std::nullopt;
  }
  if (type == "Prepend") {
    const std::string *prepend = findString(json, "prepend");
    if (!prepend)
      return refuse("Prepend without text");
    steps.push_back({"", *prepend});
    return std::nullopt;
  }
  if (type == "Replace") {
    const Json *pattern = findField(json, "pattern");
    const std::string *from = pattern ? findString(*pattern, "String") : nullptr;
    const std::string *to = findString(json, "content");
    if (!from || from->empty() || !to)
      return refuse("Replace with a regular expression or without text");
    steps.push_back({*from, *to});
    return std::nullopt;
  }
  return refuse("type '" + type + "'");
}

std::string Normalizer::apply(std::string text) const {
  for (const Step &step : steps) {
    if (step.from.empty()) {
      if (!text.empty())
        text.insert(0, step.to);
      continue;
    }
    for (size_t at = text.find(step.from); at != text.npos;
         at = text.find(step.from, at + step.to.size()))
      text.replace(at, step.from.size(), step.to);
  }
  return text;
}

} // namespace otf::text
