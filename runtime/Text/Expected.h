// SPDX-License-Identifier: Apache-2.0
//
// The result of something that can fail on bad input. The runtime is built
// without exceptions, so a failure is a value: one sentence that says where,
// why, and what to do about it.
#ifndef OTF_RUNTIME_TEXT_EXPECTED_H
#define OTF_RUNTIME_TEXT_EXPECTED_H

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace otf::text {

struct Error {
  std::string message;
};

/// Nothing, or the reason why an operation with no result failed.
using MaybeError = std::optional<Error>;

/// A T or an Error. Dereferencing a failed Expected is a bug in the caller.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return *std::get_if<0>(&storage); }
  const T &operator*() const { return *std::get_if<0>(&storage); }
  T *operator->() { return std::get_if<0>(&storage); }
  const T *operator->() const { return std::get_if<0>(&storage); }

  const Error &error() const { return *std::get_if<1>(&storage); }

private:
  std::variant<T, Error> storage;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_EXPECTED_H
