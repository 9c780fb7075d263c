// SPDX-License-Identifier: Apache-2.0
//
// Methods of Python strings and dicts that chat templates call.
#include "runtime/Text/Jinja/Operations.h"

#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <optional>

namespace otf::text::jinja {
namespace {

/// The text of an argument; null when it is missing or no string.
const std::string *textArgument(const Arguments &arguments, size_t position,
                                std::string_view name) {
  const Value *value = arguments.get(position, name);
  return value ? value->asString() : nullptr;
}

std::string strip(std::string_view text, const std::string *characters,
                  bool left, bool right) {
  auto isStripped = [&](std::string_view at) {
    Utf8Step step = decodeUtf8(at);
    return characters
               ? characters->find(at.substr(0, step.length)) != std::string::npos
               : isPythonSpace(step.codePoint);
  };
  while (left && !text.empty() && isStripped(text))
    text.remove_prefix(decodeUtf8(text).length);
  while (right && !text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (text[last] & 0xC0) == 0x80)
      --last;
    if (!isStripped(text.substr(last)))
      break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

/// split(): at `separator`, or at runs of white space when there is none.
List split(std::string_view text, const std::string *separator,
           int64_t maxSplits) {
  List parts;
  auto mayCut = [&] {
    return maxSplits < 0 || static_cast<int64_t>(parts.size()) < maxSplits;
  };
  if (separator) {
    for (size_t at = 0; mayCut() && (at = text.find(*separator)) != text.npos;) {
      parts.emplace_back(text.substr(0, at));
      text.remove_prefix(at + separator->size());
    }
    parts.emplace_back(text);
    return parts;
  }
  std::string rest = strip(text, nullptr, true, false);
  while (!rest.empty()) {
    size_t end = 0;
    while (end < rest.size() && mayCut()) {
      Utf8Step step = decodeUtf8(std::string_view(rest).substr(end));
      if (isPythonSpace(step.codePoint))
        break;
      end += step.length;
    }
    end = mayCut() ? end : rest.size();
    parts.emplace_back(rest.substr(0, end));
    rest = strip(std::string_view(rest).substr(end), nullptr, true, false);
  }
  return parts;
}

std::string replaceAll(std::string_view text, std::string_view from,
                       std::string_view to) {
  std::string out;
  for (size_t at; (at = text.find(from)) != text.npos;) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

/// upper, lower, capitalize and title, which need tables beyond ASCII.
Expected<Value> changeCase(std::string_view name, std::string text) {
  bool afterLetter = false;
  for (char &c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      return Error{std::string(name) + "() is supported for ASCII text only; "
                                       "leave the text as it is"};
    bool isUpper = c >= 'A' && c <= 'Z', isLower = c >= 'a' && c <= 'z';
    bool wantUpper = name == "upper" ||
                     (name == "capitalize" && &c == text.data()) ||
                     (name == "title" && !afterLetter);
    afterLetter = isUpper || isLower;
    if (isLower && wantUpper)
      c = static_cast<char>(c - 'a' + 'A');
    if (isUpper && !wantUpper)
      c = static_cast<char>(c - 'A' + 'a');
  }
  return Value(std::move(text));
}

Expected<Value> join(std::string_view separator, const Value &list) {
  Expected<List> items = iterate(list);
  if (!items)
    return items.error();
  std::string out;
  for (size_t i = 0; i < items->size(); ++i) {
    const std::string *item = (*items)[i].asString();
    if (!item)
      return Error{"join() needs strings only; convert the items"};
    out.append(i ? separator : "").append(*item);
    if (out.size() > Value::maxSize)
      return Error{"a string grows beyond every sensible size; check the loops"};
  }
  return Value(std::move(out));
}

Error wrongArguments(std::string_view name) {
  return {"the arguments of " + std::string(name) +
          "() are not supported; use plain strings"};
}

Expected<Value> callString(std::string_view name, const std::string &text,
                           const Arguments &arguments) {
  bool hasArguments =
      !arguments.positional.empty() || !arguments.named.empty();
  const std::string *first = textArgument(arguments, 0, "");
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    if (hasArguments && !first)
      return wrongArguments(name);
    return Value(strip(text, first, name != "rstrip", name != "lstrip"));
  }
  if (name == "upper" || name == "lower" || name == "capitalize" ||
      name == "title")
    return changeCase(name, text);
  if (name == "split") {
    const Value *separator = arguments.get(0, "sep");
    const Value *count = arguments.get(1, "maxsplit");
    bool isText = separator && separator->asString();
    if ((separator && !separator->isNone() && !isText) ||
        (isText && separator->asString()->empty()) ||
        (count && !count->asInt()))
      return wrongArguments(name);
    return Value::list(split(text, isText ? separator->asString() : nullptr,
                             count ? *count->asInt() : -1));
  }
  if (name == "join")
    return arguments.positional.size() == 1
               ? join(text, arguments.positional[0])
               : wrongArguments(name);

  bool isPrefix = name == "startswith" || name == "removeprefix";
  bool isSuffix = name == "endswith" || name == "removesuffix";
  if (isPrefix || isSuffix) {
    if (!first || arguments.positional.size() != 1)
      return wrongArguments(name);
    bool found = isPrefix ? text.starts_with(*first) : text.ends_with(*first);
    if (name == "startswith" || name == "endswith")
      return Value(found);
    size_t keep = text.size() - (found ? first->size() : 0);
    return Value(text.substr(found && isPrefix ? first->size() : 0, keep));
  }
  if (name == "replace") {
    const std::string *to = textArgument(arguments, 1, "");
    if (!first || first->empty() || !to || arguments.positional.size() != 2)
      return wrongArguments(name);
    if (text.size() / first->size() * to->size() > Value::maxSize)
      return Error{"a string grows beyond every sensible size; check the loops"};
    return Value(replaceAll(text, *first, *to));
  }
  return Error{"the string method " + std::string(name) +
               "() is not supported; rewrite the template without it"};
}

Expected<Value> callDict(std::string_view name, const Dict &dict,
                         const Arguments &arguments) {
  if (name == "get") {
    const std::string *key = textArgument(arguments, 0, "");
    const Value *field = key ? findField(dict, *key) : nullptr;
    const Value *otherwise = arguments.get(1, "default");
    return field ? *field : otherwise ? *otherwise : Value::none();
  }
  List items;
  for (const auto &[key, value] : dict) {
    if (name == "keys") {
      items.emplace_back(key);
    } else if (name == "values") {
      items.push_back(value);
    } else if (name == "items") {
      Expected<Value> pair = Value::list({Value(key), value});
      if (!pair)
        return pair;
      items.push_back(std::move(*pair));
    }
  }
  if (name == "keys" || name == "values" || name == "items")
    return Value::list(std::move(items));
  return Error{"the dict method " + std::string(name) +
               "() is not supported; rewrite the template without it"};
}

} // namespace

Expected<Value> callMethod(std::string_view name, const Value &object,
                           const Arguments &arguments) {
  if (const std::string *text = object.asString())
    return callString(name, *text, arguments);
  if (const Dict *dict = object.asDict())
    return callDict(name, *dict, arguments);
  return Error{"cannot call " + std::string(name) + "() of a value that is " +
               std::string(object.kind()) +
               "; check that it is defined and a string"};
}

} // namespace otf::text::jinja
