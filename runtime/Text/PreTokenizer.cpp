// SPDX-License-Identifier: Apache-2.0
//
// Digits, Punctuation and the regular expression inside ByteLevel are all the
// same thing, a Split, so there are only three kinds of step.
#include "runtime/Text/PreTokenizer.h"

#include "runtime/Text/ByteLevel.h"

#include <algorithm>
#include <optional>

namespace otf::text {
namespace {

constexpr int maxNesting = 16;

constexpr std::string_view gpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error refuse(const std::string &what) {
  return {"tokenizer.json: pre_tokenizer: " + what +
          " is not supported; supported are Sequence, Split, Digits, "
          "Punctuation and ByteLevel"};
}

std::optional<SplitBehavior> parseBehavior(const std::string &name) {
  if (name == "Isolated")
    return SplitBehavior::Isolated;
  if (name == "Removed")
    return SplitBehavior::Removed;
  if (name == "Contiguous")
    return SplitBehavior::Contiguous;
  if (name == "MergedWithPrevious")
    return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext")
    return SplitBehavior::MergedWithNext;
  return std::nullopt;
}

struct Part {
  Span span;
  bool isMatch;
};

/// Matches and the gaps between them, covering the whole text.
std::vector<Part> withGaps(const std::vector<Span> &matches, size_t size,
                           bool invert) {
  std::vector<Part> parts;
  size_t done = 0;
  for (Span match : matches) {
    if (done != match.begin)
      parts.push_back({{done, match.begin}, invert});
    parts.push_back({match, !invert});
    done = match.end;
  }
  if (done != size)
    parts.push_back({{done, size}, invert});
  return parts;
}

/// Joins neighbours as the behavior asks. `joins(part, previousIsMatch)` says
/// whether a part becomes one with the last kept one.
template <typename Joins>
std::vector<Part> joinParts(const std::vector<Part> &parts, Joins joins) {
  std::vector<Part> out;
  bool previousIsMatch = false;
  for (const Part &part : parts) {
    if (joins(part, previousIsMatch) && !out.empty()) {
      Span &last = out.back().span;
      last = {std::min(last.begin, part.span.begin),
              std::max(last.end, part.span.end)};
    } else {
      out.push_back(part);
    }
    previousIsMatch = part.isMatch;
  }
  return out;
}

std::vector<Part> arrange(std::vector<Part> parts, SplitBehavior behavior) {
  auto lonelyMatch = [](const Part &part, bool previousIsMatch) {
    return part.isMatch && !previousIsMatch;
  };
  switch (behavior) {
  case SplitBehavior::Isolated:
    return parts;
  case SplitBehavior::Removed:
    std::erase_if(parts, [](const Part &part) { return part.isMatch; });
    return parts;
  case SplitBehavior::Contiguous:
    return joinParts(parts, [](const Part &part, bool previousIsMatch) {
      return part.isMatch == previousIsMatch;
    });
  case SplitBehavior::MergedWithPrevious:
    return joinParts(parts, lonelyMatch);
  case SplitBehavior::MergedWithNext:
    std::reverse(parts.begin(), parts.end());
    parts = joinParts(parts, lonelyMatch);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  return parts;
}

} // namespace

Expected<PreTokenizer> PreTokenizer::fromJson(const Json *json) {
  PreTokenizer result;
  if (json)
    if (MaybeError error = result.add(*json, 0))
      return *error;
  auto isByteLevel = [](const Step &step) {
    return step.kind == StepKind::ByteLevel;
  };
  if (std::none_of(result.steps.begin(), result.steps.end(), isByteLevel))
    return refuse("a tokenizer without ByteLevel");
  return result;
}

MaybeError PreTokenizer::addSplit(Expected<Regex> regex, SplitBehavior behavior,
                                  bool invert) {
  if (!regex)
    return Error{"tokenizer.json: pre_tokenizer: " + regex.error().message};
  steps.push_back({StepKind::Split, std::move(*regex), behavior, invert});
  return std::nullopt;
}

MaybeError PreTokenizer::add(const Json &json, int depth) {
  std::string type = typeName(json);
  const std::string *behaviorName = findString(json, "behavior");
  std::optional<SplitBehavior> behavior =
      parseBehavior(behaviorName ? *behaviorName : "Isolated");
  if (!behavior)
    return refuse("behavior '" + *behaviorName + "'");

  if (type == "Sequence") {
    const Json *list = findField(json, "pretokenizers");
    if (!list || !list->is_array() || depth == maxNesting)
      return refuse("a Sequence without a list, or nested too deep,");
    for (const Json &item : *list)
      if (MaybeError error = add(item, depth + 1))
        return error;
    return std::nullopt;
  }
  if (type == "Split") {
    const Json *pattern = findField(json, "pattern");
    const std::string *regex = pattern ? findString(*pattern, "Regex") : nullptr;
    const std::string *text = pattern ? findString(*pattern, "String") : nullptr;
    if (!regex && !text)
      return refuse("Split without a Regex or String pattern");
    return addSplit(regex ? Regex::compile(*regex) : Regex::literal(*text),
                    *behavior, boolField(json, "invert", false));
  }
  if (type == "Digits") {
    bool individual = boolField(json, "individual_digits", false);
    return addSplit(Regex::compile(R"(\p{N})"),
                    individual ? SplitBehavior::Isolated
                               : SplitBehavior::Contiguous,
                    false);
  }
  if (type == "Punctuation")
    return addSplit(Regex::compile(R"([\p{P}!-/:-@\[-`{-~])"), *behavior,
                    false);
  if (type == "ByteLevel") {
    if (boolField(json, "add_prefix_space", true))
      steps.push_back({StepKind::PrefixSpace, {}});
    if (boolField(json, "use_regex", true))
      if (MaybeError error = addSplit(Regex::compile(gpt2Pattern),
                                      SplitBehavior::Isolated, false))
        return error;
    steps.push_back({StepKind::ByteLevel, {}});
    return std::nullopt;
  }
  return refuse("type '" + type + "'");
}

Expected<std::vector<std::string>>
PreTokenizer::apply(std::string_view text) const {
  std::vector<std::string> words;
  if (!text.empty())
    words.emplace_back(text);
  for (const Step &step : steps) {
    if (step.kind == StepKind::PrefixSpace) {
      for (std::string &word : words)
        if (!word.starts_with(' '))
          word.insert(0, 1, ' ');
      continue;
    }
    if (step.kind == StepKind::ByteLevel) {
      for (std::string &word : words)
        word = toByteLevel(word);
      continue;
    }
    std::vector<std::string> next;
    for (const std::string &word : words) {
      Expected<std::vector<Span>> matches = step.regex.findAll(word);
      if (!matches)
        return matches.error();
      for (const Part &part : arrange(
               withGaps(*matches, word.size(), step.invert), step.behavior))
        if (part.span.begin != part.span.end)
          next.push_back(
              word.substr(part.span.begin, part.span.end - part.span.begin));
    }
    words = std::move(next);
  }
  return words;
}

} // namespace otf::text
