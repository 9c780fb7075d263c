// SPDX-License-Identifier: Apache-2.0
//
// The JIT is used where the system lets us have executable pages; when it is
// missing or its stack runs out, PCRE2's interpreter gives the same answer.
#include "runtime/Text/Regex.h"

#include "runtime/Text/RegexDialect.h"
#include "runtime/Text/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace otf::text {
namespace {

struct FreeMatchData {
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
};

struct FreeCompileContext {
  void operator()(pcre2_compile_context *context) const {
    pcre2_compile_context_free(context);
  }
};

std::string describe(int code) {
  PCRE2_UCHAR buffer[128] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char *>(buffer);
}

} // namespace

void Regex::Free::operator()(pcre2_real_code_8 *code) const {
  pcre2_code_free(code);
}

Expected<Regex> Regex::compile(std::string_view pattern) {
  Expected<std::string> translated = translateToPcre2(pattern);
  if (!translated)
    return translated.error();
  return compileTranslated(*translated);
}

Expected<Regex> Regex::literal(std::string_view text) {
  std::string pattern;
  for (char c : text) {
    // A backslash before any ASCII character that is no letter or digit makes
    // it literal.
    bool isWord = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z') || static_cast<signed char>(c) <= 0;
    if (!isWord)
      pattern += '\\';
    pattern += c;
  }
  return compileTranslated(pattern);
}

Expected<Regex> Regex::compileTranslated(std::string_view pattern) {
  std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int errorCode = 0;
  PCRE2_SIZE errorOffset = 0;
  Regex regex;
  // MULTILINE: ^ and $ match at line ends in Ruby.
  regex.code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
      &errorCode, &errorOffset, context.get()));
  if (!regex.code)
    return Error{"regular expression: '" + std::string(pattern) +
                 "' does not compile (" + describe(errorCode) +
                 "); check the pattern in tokenizer.json"};
  pcre2_jit_compile(regex.code.get(), PCRE2_JIT_COMPLETE);
  return regex;
}

Expected<std::vector<Span>> Regex::findAll(std::string_view text) const {
  std::vector<Span> matches;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());

  size_t from = 0;
  while (from <= text.size()) {
    auto match = [&](uint32_t options) {
      return pcre2_match(code.get(), subject, text.size(), from,
                         options | PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    };
    int rc = match(0);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = match(PCRE2_NO_JIT);
    if (rc == PCRE2_ERROR_NOMATCH)
      break;
    if (rc < 0)
      return Error{"regular expression: matching gave up at byte " +
                   std::to_string(from) + " (" + describe(rc) +
                   "); split the text or simplify the pattern"};

    PCRE2_SIZE *range = pcre2_get_ovector_pointer(data.get());
    Span span{range[0], range[1]};
    // \K could move the start past the end or back into the last match.
    if (span.begin > span.end || span.begin < from)
      return Error{"regular expression: \\K is not supported; rewrite the "
                   "pattern without it"};
    // An empty match right after the last match is none; go on behind the next
    // character instead.
    if (span.begin == span.end && !matches.empty() &&
        matches.back().end == span.end) {
      from += from < text.size() ? decodeUtf8(text.substr(from)).length : 1;
      continue;
    }
    matches.push_back(span);
    from = span.end;
  }
  return matches;
}

} // namespace otf::text
