// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions of tokenizer.json, run by PCRE2. The reference tokenizer
// runs them with Oniguruma (Ruby syntax), so the few constructs that mean
// something else there are translated or refused.
#ifndef OTF_RUNTIME_TEXT_REGEX_H
#define OTF_RUNTIME_TEXT_REGEX_H

#include "runtime/Text/Expected.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace otf::text {

/// Byte range [begin, end) of a text.
struct Span {
  size_t begin;
  size_t end;
};

class Regex {
public:
  /// Compiles a pattern in Oniguruma's Ruby syntax.
  static Expected<Regex> compile(std::string_view pattern);
  /// Compiles a pattern that matches exactly `text`.
  static Expected<Regex> literal(std::string_view text);

  /// All matches from left to right, none overlapping. `text` must be valid
  /// UTF-8. Fails when the pattern needs more backtracking than PCRE2 allows.
  Expected<std::vector<Span>> findAll(std::string_view text) const;

private:
  struct Free {
    void operator()(pcre2_real_code_8 *code) const;
  };

  static Expected<Regex> compileTranslated(std::string_view pattern);

  std::unique_ptr<pcre2_real_code_8, Free> code;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_REGEX_H
