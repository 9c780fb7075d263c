// SPDX-License-Identifier: Apache-2.0
//
// Reading JSON of unknown shape. nlohmann's accessors abort on a wrong type
// when exceptions are off, so every access here checks the type first.
// Internal to this library.
#ifndef OTF_RUNTIME_TEXT_JSONFIELD_H
#define OTF_RUNTIME_TEXT_JSONFIELD_H

#ifndef JSON_NOEXCEPTION
#define JSON_NOEXCEPTION 1
#endif
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace otf::text {

using Json = nlohmann::json;

/// The member `key`, or null when it is absent or JSON null, or when `object`
/// is not an object.
inline const Json *findField(const Json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

inline const std::string *findString(const Json &object, const char *key) {
  const Json *field = findField(object, key);
  return field ? field->get_ptr<const std::string *>() : nullptr;
}

inline bool boolField(const Json &object, const char *key, bool otherwise) {
  const Json *field = findField(object, key);
  const bool *value = field ? field->get_ptr<const bool *>() : nullptr;
  return value ? *value : otherwise;
}

/// The "type" member, or a stand-in that reads well in an error message.
inline std::string typeName(const Json &object) {
  const std::string *type = findString(object, "type");
  return type ? *type : "(none)";
}

/// A token id. The upper bound keeps a corrupt file from asking for a table of
/// gigabytes; the largest public vocabularies have about 260 000 entries.
inline constexpr uint64_t maxTokenId = (1u << 22) - 1;
inline std::optional<int32_t> asTokenId(const Json &value) {
  const uint64_t *id = value.get_ptr<const uint64_t *>();
  if (!id || *id > maxTokenId)
    return std::nullopt;
  return static_cast<int32_t>(*id);
}

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_JSONFIELD_H
