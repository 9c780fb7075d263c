// SPDX-License-Identifier: Apache-2.0
//
// Operators, subscripts and slices with Python's semantics. Strings are
// sequences of code points.
#include "runtime/Text/Jinja/Operations.h"

#include "runtime/Text/Utf8.h"

#include <algorithm>

namespace otf::text::jinja {
namespace {

Error unsupported(std::string_view op, const Value &left, const Value &right) {
  return {"'" + std::string(op) + "' is not possible with " +
          std::string(left.kind()) + " and " + std::string(right.kind()) +
          "; convert one of them or check that it is defined"};
}

Expected<Value> concatenate(std::string left, std::string_view right) {
  if (left.size() + right.size() > Value::maxSize)
    return Error{"a string grows beyond every sensible size; check the loops"};
  return Value(std::move(left.append(right)));
}

Expected<Value> arithmetic(std::string_view op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(left, right, &result);
  else if (op == "-")
    overflow = __builtin_sub_overflow(left, right, &result);
  else if (op == "*")
    overflow = __builtin_mul_overflow(left, right, &result);
  else if (right == 0)
    return Error{"division by zero; check the divisor"};
  else if (right == -1) // INT64_MIN / -1 does not fit.
    overflow = op == "//" && __builtin_sub_overflow(int64_t(0), left, &result);
  else {
    // Python rounds towards minus infinity.
    int64_t remainder = left % right;
    bool adjust = remainder != 0 && (remainder < 0) != (right < 0);
    result = op == "//" ? left / right - adjust
                        : remainder + (adjust ? right : 0);
  }
  if (overflow)
    return Error{"an integer does not fit into 64 bits; use smaller numbers"};
  return Value(result);
}

Expected<Value> compare(std::string_view op, const Value &left,
                        const Value &right) {
  int order = 0;
  if (left.asInt() && right.asInt())
    order = (*left.asInt() > *right.asInt()) - (*left.asInt() < *right.asInt());
  else if (left.asString() && right.asString())
    // Byte order is code point order in UTF-8.
    order = left.asString()->compare(*right.asString());
  else
    return unsupported(op, left, right);
  return Value(op == "<"    ? order < 0
               : op == "<=" ? order <= 0
               : op == ">"  ? order > 0
                            : order >= 0);
}

/// Start of each code point, and the end.
std::vector<size_t> codePointOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  size_t at = 0;
  while (at < text.size()) {
    offsets.push_back(at);
    at += decodeUtf8(text.substr(at)).length;
  }
  offsets.push_back(at);
  return offsets;
}

} // namespace

Expected<Value> applyBinary(std::string_view op, const Value &left,
                            const Value &right) {
  if (op == "==")
    return Value(left == right);
  if (op == "!=")
    return Value(!(left == right));
  if (op == "in") {
    Expected<bool> found = contains(right, left);
    if (!found)
      return found.error();
    return Value(*found);
  }
  if (op == "~") {
    Expected<std::string> leftText = left.print(), rightText = right.print();
    if (!leftText)
      return leftText.error();
    if (!rightText)
      return rightText.error();
    return concatenate(std::move(*leftText), *rightText);
  }
  if (op[0] == '<' || op[0] == '>')
    return compare(op, left, right);
  if (left.asInt() && right.asInt())
    return arithmetic(op, *left.asInt(), *right.asInt());
  if (op == "+" && left.asString() && right.asString())
    return concatenate(*left.asString(), *right.asString());
  if (op == "+" && left.asList() && right.asList()) {
    List items = *left.asList();
    items.insert(items.end(), right.asList()->begin(), right.asList()->end());
    return Value::list(std::move(items));
  }
  return unsupported(op, left, right);
}

Expected<Value> negate(const Value &value) {
  if (!value.asInt())
    return Error{"'-' is not possible with " + std::string(value.kind()) +
                 "; use an integer"};
  return arithmetic("-", 0, *value.asInt());
}

Expected<bool> contains(const Value &container, const Value &item) {
  if (const std::string *text = container.asString()) {
    if (!item.asString())
      return unsupported("in", item, container);
    return text->find(*item.asString()) != text->npos;
  }
  if (const List *items = container.asList())
    return std::find(items->begin(), items->end(), item) != items->end();
  if (container.asDict() || container.asNamespace())
    return item.asString() && container.field(*item.asString());
  if (container.isUndefined())
    return false;
  return unsupported("in", item, container);
}

Expected<Value> subscript(const Value &object, const Value &index) {
  if (object.asDict() || object.asNamespace()) {
    const Value *field =
        index.asString() ? object.field(*index.asString()) : nullptr;
    return field ? *field : Value();
  }
  const List *items = object.asList();
  const std::string *text = object.asString();
  const int64_t *position = index.asInt();
  if (position && (items || text)) {
    std::vector<size_t> offsets;
    if (text)
      offsets = codePointOffsets(*text);
    auto size =
        static_cast<int64_t>(items ? items->size() : offsets.size() - 1);
    if (*position < -size || *position >= size)
      return Value();
    int64_t at = *position < 0 ? *position + size : *position;
    if (items)
      return (*items)[at];
    return Value(text->substr(offsets[at], offsets[at + 1] - offsets[at]));
  }
  if (object.isUndefined() || object.isNone())
    return Error{"cannot take a part of a value that is " +
                 std::string(object.kind()) + "; test it with 'is defined'"};
  // Jinja answers a wrong kind of key with an undefined value.
  return Value();
}

Expected<Value> slice(const Value &object, const Value &start,
                      const Value &stop, const Value &step) {
  for (const Value *bound : {&start, &stop, &step})
    if (!bound->isNone() && !bound->asInt())
      return Error{"a slice bound is a " + std::string(bound->kind()) +
                   "; use an integer"};
  const List *items = object.asList();
  const std::string *text = object.asString();
  if (!items && !text)
    return Error{"cannot slice a value that is " + std::string(object.kind()) +
                 "; use a list or a string"};

  std::vector<size_t> offsets;
  if (text)
    offsets = codePointOffsets(*text);
  auto size =
      static_cast<int64_t>(items ? items->size() : offsets.size() - 1);
  int64_t by = step.asInt() ? *step.asInt() : 1;
  if (by == 0)
    return Error{"a slice has step 0; use another step"};
  // One beyond the whole length is as good as any larger step.
  by = std::clamp(by, -size - 1, size + 1);
  auto bound = [&](const Value &value, int64_t otherwise) {
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
    if (!value.asInt())
      return otherwise;
    int64_t at = *value.asInt() < 0 ? *value.asInt() + size : *value.asInt();
    return std::clamp(at, low, high);
  };
  int64_t from = bound(start, by > 0 ? 0 : size - 1);
  int64_t to = bound(stop, by > 0 ? size : -1);

  List picked;
  std::string pickedText;
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
    if (items)
      picked.push_back((*items)[i]);
    else
      pickedText.append(*text, offsets[i], offsets[i + 1] - offsets[i]);
  }
  if (items)
    return Value::list(std::move(picked));
  return Value(std::move(pickedText));
}

Expected<List> iterate(const Value &value) {
  List items;
  if (const List *list = value.asList())
    return *list;
  if (const Dict *dict = value.asDict()) {
    for (const auto &[key, field] : *dict)
      items.emplace_back(key);
    return items;
  }
  if (const std::string *text = value.asString()) {
    std::vector<size_t> offsets = codePointOffsets(*text);
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      items.emplace_back(text->substr(offsets[i], offsets[i + 1] - offsets[i]));
    return items;
  }
  if (value.isUndefined())
    return items;
  return Error{"cannot iterate over a value that is " +
               std::string(value.kind()) + "; use a list"};
}

} // namespace otf::text::jinja
