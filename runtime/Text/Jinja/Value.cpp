// SPDX-License-Identifier: Apache-2.0
//
// Namespaces count as leaves: they are compared and printed by identity only,
// so that a namespace that contains itself cannot send us in circles.
#include "runtime/Text/Jinja/Value.h"

#include <algorithm>
#include <cstdio>

namespace otf::text::jinja {
namespace {

constexpr std::string_view tooLarge =
    "chat template: a value grows beyond every sensible size; check the loops "
    "of the template";

void writeEscaped(std::string_view text, bool json, std::string &out) {
  // Python's repr() prefers single quotes unless only those occur inside.
  bool hasSingle = text.find('\'') != text.npos;
  bool hasDouble = text.find('"') != text.npos;
  char quote = json || (hasSingle && !hasDouble) ? '"' : '\'';
  out += quote;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    char buffer[8];
    if (c == quote || c == '\\')
      out.append(1, '\\').append(1, c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (json && c == '\b')
      out += "\\b";
    else if (json && c == '\f')
      out += "\\f";
    else if (byte < 0x20 || (!json && byte == 0x7F)) {
      std::snprintf(buffer, sizeof(buffer), json ? "\\u%04x" : "\\x%02x", byte);
      out += buffer;
    } else
      out += c;
  }
  out += quote;
}

} // namespace

Value Value::none() {
  Value value;
  value.data = None{};
  return value;
}

Expected<Value> Value::list(List items) {
  int depth = 0;
  for (const Value &item : items) {
    if (auto *list = std::get_if<Shared<List>>(&item.data))
      depth = std::max(depth, list->depth);
    if (auto *dict = std::get_if<Shared<Dict>>(&item.data))
      depth = std::max(depth, dict->depth);
  }
  if (depth >= maxDepth || items.size() > maxSize)
    return Error{std::string(tooLarge)};
  Value value;
  value.data = Shared<List>{std::make_shared<List>(std::move(items)), depth + 1};
  return value;
}

Expected<Value> Value::dict(Dict fields) {
  // The same depth rule; a list of the values measures it.
  List values;
  for (const auto &[name, value] : fields)
    values.push_back(value);
  Expected<Value> measured = list(std::move(values));
  if (!measured)
    return measured.error();
  int depth = std::get_if<Shared<List>>(&measured->data)->depth;
  Value value;
  value.data = Shared<Dict>{std::make_shared<Dict>(std::move(fields)), depth};
  return value;
}

Value Value::nameSpace(std::shared_ptr<Namespace> fields) {
  Value value;
  value.data = std::move(fields);
  return value;
}

const List *Value::asList() const {
  auto *shared = std::get_if<Shared<List>>(&data);
  return shared ? shared->items.get() : nullptr;
}

const Dict *Value::asDict() const {
  auto *shared = std::get_if<Shared<Dict>>(&data);
  return shared ? shared->items.get() : nullptr;
}

Value::Namespace *Value::asNamespace() const {
  auto *shared = std::get_if<std::shared_ptr<Namespace>>(&data);
  return shared ? shared->get() : nullptr;
}

const Value *Value::field(std::string_view name) const {
  if (const Dict *dict = asDict())
    return findField(*dict, name);
  if (const Namespace *fields = asNamespace())
    return findField(fields->fields, name);
  return nullptr;
}

const Value *findField(const Dict &dict, std::string_view name) {
  for (const auto &[key, value] : dict)
    if (key == name)
      return &value;
  return nullptr;
}

bool Value::isTrue() const {
  if (isUndefined() || isNone())
    return false;
  if (const bool *value = asBool())
    return *value;
  if (const int64_t *value = asInt())
    return *value != 0;
  if (const std::string *value = asString())
    return !value->empty();
  if (const List *value = asList())
    return !value->empty();
  if (const Dict *value = asDict())
    return !value->empty();
  return true;
}

std::string_view Value::kind() const {
  constexpr std::string_view names[] = {"undefined", "none", "bool",
                                        "integer",   "string", "list",
                                        "dict",      "namespace"};
  return names[data.index()];
}

Expected<std::string> Value::print() const {
  if (const std::string *value = asString())
    return *value;
  std::string out;
  if (isUndefined())
    return out;
  if (MaybeError error = write(out, /*json=*/false))
    return *error;
  return out;
}

Expected<std::string> Value::toJson() const {
  std::string out;
  if (MaybeError error = write(out, /*json=*/true))
    return *error;
  return out;
}

MaybeError Value::write(std::string &out, bool json) const {
  // Shared parts print once per use, so a small value can print very long.
  if (out.size() > maxSize)
    return Error{std::string(tooLarge)};
  if (isNone()) {
    out += json ? "null" : "None";
  } else if (const bool *value = asBool()) {
    out += json ? (*value ? "true" : "false") : (*value ? "True" : "False");
  } else if (const int64_t *value = asInt()) {
    out += std::to_string(*value);
  } else if (const std::string *value = asString()) {
    writeEscaped(*value, json, out);
  } else if (const List *items = asList()) {
    out += '[';
    for (size_t i = 0; i < items->size(); ++i) {
      out += i ? ", " : "";
      if (MaybeError error = (*items)[i].write(out, json))
        return error;
    }
    out += ']';
  } else if (const Dict *fields = asDict()) {
    out += '{';
    for (size_t i = 0; i < fields->size(); ++i) {
      out += i ? ", " : "";
      writeEscaped((*fields)[i].first, json, out);
      out += ": ";
      if (MaybeError error = (*fields)[i].second.write(out, json))
        return error;
    }
    out += '}';
  } else {
    return Error{"chat template: cannot print " + std::string(kind()) +
                 "; print one of its parts"};
  }
  return std::nullopt;
}

bool operator==(const Value &left, const Value &right) {
  // True equals 1 in Python, too, but no template relies on it.
  if (left.data.index() != right.data.index())
    return false;
  if (const bool *value = left.asBool())
    return *value == *right.asBool();
  if (const int64_t *value = left.asInt())
    return *value == *right.asInt();
  if (const std::string *value = left.asString())
    return *value == *right.asString();
  if (const List *items = left.asList())
    return items == right.asList() || *items == *right.asList();
  if (const Dict *fields = left.asDict()) {
    const Dict &others = *right.asDict();
    return fields->size() == others.size() &&
           std::all_of(fields->begin(), fields->end(), [&](const auto &field) {
             const Value *other = findField(others, field.first);
             return other && *other == field.second;
           });
  }
  return left.asNamespace() == right.asNamespace();
}

} // namespace otf::text::jinja
