// SPDX-License-Identifier: Apache-2.0
//
// `x | something`. Filters that are a string method under another name call
// that method.
#include "runtime/Text/Jinja/Operations.h"

#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <charconv>

namespace otf::text::jinja {
namespace {

using Filter = Expected<Value> (*)(const Value &, const Arguments &);

Expected<Value> textFilter(std::string_view method, const Value &input,
                           const Arguments &arguments) {
  // Filters print other values first; methods would refuse them.
  Expected<std::string> text = input.print();
  if (!text)
    return text.error();
  return callMethod(method, Value(std::move(*text)), arguments);
}

Expected<Value> length(const Value &input, const Arguments &) {
  if (const std::string *text = input.asString())
    return Value(static_cast<int64_t>(countCodePoints(*text)));
  Expected<List> items = iterate(input);
  if (!items)
    return items.error();
  return Value(static_cast<int64_t>(items->size()));
}

Expected<Value> toJson(const Value &input, const Arguments &arguments) {
  const Value *indent = arguments.get(1, "indent");
  if (indent && !indent->isNone())
    return Error{"tojson with indent is not supported; leave it out"};
  Expected<std::string> text = input.toJson();
  if (!text)
    return text.error();
  return Value(std::move(*text));
}

Expected<Value> toText(const Value &input, const Arguments &) {
  Expected<std::string> text = input.print();
  if (!text)
    return text.error();
  return Value(std::move(*text));
}

Expected<Value> toInt(const Value &input, const Arguments &) {
  if (const std::string *text = input.asString()) {
    int64_t value = 0;
    auto end = text->data() + text->size();
    auto [at, code] = std::from_chars(text->data(), end, value);
    // What is no number counts as 0.
    return Value(code == std::errc() && at == end ? value : int64_t(0));
  }
  if (const bool *flag = input.asBool())
    return Value(int64_t(*flag));
  return input.asInt() ? input : Value(int64_t(0));
}

Expected<Value> toList(const Value &input, const Arguments &) {
  Expected<List> items = iterate(input);
  if (!items)
    return items.error();
  return Value::list(std::move(*items));
}

Expected<Value> reverse(const Value &input, const Arguments &) {
  return slice(input, Value::none(), Value::none(), Value(int64_t(-1)));
}

Expected<Value> first(const Value &input, const Arguments &) {
  return subscript(input, Value(int64_t(0)));
}

Expected<Value> last(const Value &input, const Arguments &) {
  return subscript(input, Value(int64_t(-1)));
}

Expected<Value> items(const Value &input, const Arguments &arguments) {
  return input.isUndefined() ? Value::list({})
                             : callMethod("items", input, arguments);
}

Expected<Value> otherwise(const Value &input, const Arguments &arguments) {
  const Value *value = arguments.get(0, "default_value");
  const Value *alsoFalse = arguments.get(1, "boolean");
  bool replace = input.isUndefined() ||
                 (alsoFalse && alsoFalse->isTrue() && !input.isTrue());
  return replace ? (value ? *value : Value("")) : input;
}

Expected<Value> join(const Value &input, const Arguments &arguments) {
  const Value *separator = arguments.get(0, "d");
  if (arguments.get(1, "attribute"))
    return Error{"join with an attribute is not supported; use map before"};
  Expected<List> list = iterate(input);
  if (!list)
    return list.error();
  for (Value &item : *list) {
    Expected<Value> text = toText(item, {});
    if (!text)
      return text;
    item = std::move(*text);
  }
  Expected<Value> texts = Value::list(std::move(*list));
  if (!texts)
    return texts;
  return callMethod("join", separator ? *separator : Value(""), {{*texts}, {}});
}

Value attributeOf(const Value &item, const std::string &name) {
  const Value *field = item.field(name);
  return field ? *field : Value();
}

/// The arguments behind the first `count`.
Arguments dropArguments(const Arguments &arguments, size_t count) {
  count = std::min(count, arguments.positional.size());
  return {List(arguments.positional.begin() + static_cast<ptrdiff_t>(count),
               arguments.positional.end()),
          arguments.named};
}

Expected<Value> map(const Value &input, const Arguments &arguments) {
  const Value *attribute = findField(arguments.named, "attribute");
  const Value *filter = arguments.get(0, "");
  const Value *name = attribute ? attribute : filter;
  if (!name || !name->asString())
    return Error{"map needs a filter or attribute='name'; add it"};
  // map('map', 'map', ...) would recurse as deep as its arguments say.
  if (!attribute && *name->asString() == "map")
    return Error{"map of map is not supported; use a loop"};
  Expected<List> list = iterate(input);
  if (!list)
    return list.error();
  for (Value &item : *list) {
    Expected<Value> mapped =
        attribute ? attributeOf(item, *attribute->asString())
                  : applyFilter(*filter->asString(), item,
                                dropArguments(arguments, 1));
    if (!mapped)
      return mapped;
    item = std::move(*mapped);
  }
  return Value::list(std::move(*list));
}

/// select, reject, selectattr, rejectattr.
Expected<Value> choose(const Value &input, const Arguments &arguments,
                       bool keep, bool byAttribute) {
  const Value *attribute = byAttribute ? arguments.get(0, "") : nullptr;
  const Value *test = arguments.get(byAttribute ? 1 : 0, "");
  if ((byAttribute && !(attribute && attribute->asString())) ||
      (test && !test->asString()))
    return Error{"select and reject need names in quotes; add them"};
  Expected<List> list = iterate(input);
  if (!list)
    return list.error();
  List kept;
  for (const Value &item : *list) {
    Value subject =
        byAttribute ? attributeOf(item, *attribute->asString()) : item;
    Expected<bool> chosen =
        test ? applyTest(*test->asString(), subject,
                         dropArguments(arguments, byAttribute ? 2 : 1))
             : Expected<bool>(subject.isTrue());
    if (!chosen)
      return chosen.error();
    if (*chosen == keep)
      kept.push_back(item);
  }
  return Value::list(std::move(kept));
}

struct NamedFilter {
  std::string_view name;
  Filter apply;
};

constexpr NamedFilter filters[] = {
    {"count", length},
    {"d", otherwise},
    {"default", otherwise},
    {"first", first},
    {"int", toInt},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", toList},
    {"map", map},
    {"reject", [](const Value &input, const Arguments &arguments) {
       return choose(input, arguments, false, false);
     }},
    {"rejectattr", [](const Value &input, const Arguments &arguments) {
       return choose(input, arguments, false, true);
     }},
    {"reverse", reverse},
    // Output is plain text, so nothing is ever escaped.
    {"safe", toText},
    {"select", [](const Value &input, const Arguments &arguments) {
       return choose(input, arguments, true, false);
     }},
    {"selectattr", [](const Value &input, const Arguments &arguments) {
       return choose(input, arguments, true, true);
     }},
    {"string", toText},
    {"tojson", toJson},
};

} // namespace

Expected<Value> applyFilter(std::string_view name, const Value &input,
                            const Arguments &arguments) {
  if (name == "trim")
    return textFilter("strip", input, arguments);
  for (std::string_view method :
       {"upper", "lower", "capitalize", "title", "replace"})
    if (name == method)
      return textFilter(name, input, arguments);
  for (const NamedFilter &filter : filters)
    if (name == filter.name)
      return filter.apply(input, arguments);
  return Error{"the filter '" + std::string(name) +
               "' is not supported; rewrite the template without it"};
}

} // namespace otf::text::jinja
