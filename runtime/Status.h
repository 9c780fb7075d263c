// SPDX-License-Identifier: Apache-2.0
//
// How the runtime reports failure: a code that the C API and the exit status of the tools share,
// and one sentence for a person. No exception is thrown anywhere in the runtime. A message reads
// "<thing>: <what> (<why, and what to try>)"; whoever knows the file's name puts it in front.
#ifndef OTF_RUNTIME_STATUS_H
#define OTF_RUNTIME_STATUS_H

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace otf::runtime {

/// Values are those of `otf_status` in include/otf/otf.h and of the tools' exit status.
enum class Code { ok = 0, badInput = 1, usage = 2, device = 3 };

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  Code code_ = Code::ok;
  std::string message_;
};

/// A value, or the reason why there is none. Check ok() before value().
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status &status() const { return status_; }
  T &value() { return *value_; }
  const T &value() const { return *value_; }

private:
  std::optional<T> value_;
  Status status_;
};

namespace detail {
inline void append(std::string &to, std::string_view text) { to += text; }
inline void append(std::string &to, char c) { to += c; }
template <std::integral T> void append(std::string &to, T value) { to += std::to_string(value); }
} // namespace detail

/// Text of all arguments (strings and integers), one after another.
template <typename... Args> std::string cat(const Args &...args) {
  std::string text;
  (detail::append(text, args), ...);
  return text;
}

/// The file, model or argument is wrong.
template <typename... Args> Status badInput(const Args &...args) {
  return Status(Code::badInput, cat(args...));
}
/// The caller used the interface wrongly.
template <typename... Args> Status usageError(const Args &...args) {
  return Status(Code::usage, cat(args...));
}
/// A device, an instruction set, a driver or memory is missing.
template <typename... Args> Status deviceError(const Args &...args) {
  return Status(Code::device, cat(args...));
}

} // namespace otf::runtime

/// Leaves the function with the status of `expression` when that is a failure.
#define OTF_TRY(expression)                                                                        \
  do {                                                                                             \
    if (::otf::runtime::Status otfStatus = (expression); !otfStatus.ok())                          \
      return otfStatus;                                                                            \
  } while (false)

#endif // OTF_RUNTIME_STATUS_H
