// SPDX-License-Identifier: Apache-2.0
//
// A Jinja value, with Python's rules for printing, truth and equality. There
// are no floating-point numbers: chat templates do not use them.
#ifndef OTF_RUNTIME_TEXT_JINJA_VALUE_H
#define OTF_RUNTIME_TEXT_JINJA_VALUE_H

#include "runtime/Text/Expected.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace otf::text::jinja {

class Value;
using List = std::vector<Value>;
/// In insertion order; chat messages have a handful of keys.
using Dict = std::vector<std::pair<std::string, Value>>;

class Value {
public:
  struct Undefined {};
  struct None {};
  /// The only thing a template can change after its creation.
  struct Namespace {
    Dict fields;
  };

  /// Lists and dicts that contain each other may be at most this deep, which
  /// bounds every recursion over a value.
  static constexpr int maxDepth = 64;
  /// Longest string or list; a template that doubles one in a loop stops here.
  static constexpr size_t maxSize = size_t(1) << 24;

  Value() : data(Undefined{}) {}
  Value(bool value) : data(value) {}
  Value(int64_t value) : data(value) {}
  Value(std::string value) : data(std::move(value)) {}
  Value(std::string_view value) : data(std::string(value)) {}
  // Without this a literal would become a bool.
  Value(const char *value) : data(std::string(value)) {}
  static Value none();
  /// Fails when the result would be too deep or too long.
  static Expected<Value> list(List items);
  static Expected<Value> dict(Dict fields);
  static Value nameSpace(std::shared_ptr<Namespace> fields);

  bool isUndefined() const { return std::holds_alternative<Undefined>(data); }
  bool isNone() const { return std::holds_alternative<None>(data); }
  const bool *asBool() const { return std::get_if<bool>(&data); }
  const int64_t *asInt() const { return std::get_if<int64_t>(&data); }
  const std::string *asString() const { return std::get_if<std::string>(&data); }
  const List *asList() const;
  /// Fields of a dict (not of a namespace).
  const Dict *asDict() const;
  Namespace *asNamespace() const;

  /// The field of a dict or namespace; null when there is none.
  const Value *field(std::string_view name) const;

  bool isTrue() const;
  /// As {{ value }} prints it.
  Expected<std::string> print() const;
  /// As the tojson filter of chat templates prints it.
  Expected<std::string> toJson() const;
  /// "string", "list"... for error messages.
  std::string_view kind() const;

  friend bool operator==(const Value &left, const Value &right);

private:
  template <typename T> struct Shared {
    std::shared_ptr<const T> items;
    int depth;
  };

  MaybeError write(std::string &out, bool json) const;

  std::variant<Undefined, None, bool, int64_t, std::string, Shared<List>,
               Shared<Dict>, std::shared_ptr<Namespace>>
      data;
};

const Value *findField(const Dict &dict, std::string_view name);

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_VALUE_H
