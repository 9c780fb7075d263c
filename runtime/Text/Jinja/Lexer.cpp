// SPDX-License-Identifier: Apache-2.0
//
// Two modes: text up to the next tag, and the inside of a tag. The sign after
// an opening tag acts on the text before it, the sign before a closing tag on
// the text after it, so text is trimmed when the next tag is known.
#include "runtime/Text/Jinja/Lexer.h"

#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <charconv>

namespace otf::text::jinja {
namespace {

bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isBlank(char c) { return c == ' ' || c == '\t'; }
bool isSpace(char c) {
  return isBlank(c) || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : rest(source) {}

  Expected<std::vector<Token>> run() {
    if (rest.ends_with('\n'))
      rest.remove_suffix(rest.ends_with("\r\n") ? 2 : 1);
    bool good = true;
    while (good && !rest.empty()) {
      lexText();
      good = rest.empty() || lexTag();
    }
    if (!good)
      return Error{"chat template: line " + std::to_string(line) + ": " +
                   problem};
    push(TokenKind::End, "");
    return std::move(tokens);
  }

private:
  enum class Trim { None, Newline, All };

  /// Text up to the next tag or the end.
  void lexText() {
    size_t end = findTag();
    std::string_view text = rest.substr(0, end);
    std::string_view tag = rest.substr(end);
    char sign = tag.size() > 2 ? tag[2] : '\0';
    bool isPrint = tag.starts_with("{{");
    int lineOfText = line;
    advance(end);

    if (trimNext == Trim::All)
      while (!text.empty() && isSpace(text.front()))
        text.remove_prefix(1);
    bool atLineStart = atSourceStart;
    atSourceStart = false;
    if (trimNext == Trim::Newline) {
      size_t newline = text.starts_with("\r\n") ? 2 : text.starts_with('\n');
      text.remove_prefix(newline);
      atLineStart |= newline > 0;
    }
    if (!tag.empty() && sign == '-')
      while (!text.empty() && isSpace(text.back()))
        text.remove_suffix(1);
    else if (!tag.empty() && sign != '+' && !isPrint)
      stripBlanksBefore(text, atLineStart);
    if (!text.empty()) {
      push(TokenKind::Text, std::string(text));
      tokens.back().line = lineOfText;
    }
  }

  /// lstrip_blocks: a tag that is first on its line loses the blanks before.
  static void stripBlanksBefore(std::string_view &text, bool atLineStart) {
    size_t keep = text.size();
    while (keep > 0 && isBlank(text[keep - 1]))
      --keep;
    if (keep == 0 ? atLineStart : text[keep - 1] == '\n')
      text = text.substr(0, keep);
  }

  size_t findTag() const {
    for (size_t at = rest.find('{'); at != rest.npos; at = rest.find('{', at + 1))
      if (at + 1 < rest.size() && (rest[at + 1] == '{' || rest[at + 1] == '%' ||
                                   rest[at + 1] == '#'))
        return at;
    return rest.size();
  }

  bool lexTag() {
    char kind = rest[1];
    advance(2);
    if (kind == '#')
      return skipComment();
    push(kind == '{' ? TokenKind::PrintBegin : TokenKind::BlockBegin, "");
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '+'))
      advance(1);

    std::string_view close = kind == '{' ? "}}" : "%}";
    int depth = 0;
    while (true) {
      while (!rest.empty() && isSpace(rest.front()))
        advance(1);
      if (rest.empty())
        return fail("the tag is not closed; add '" + std::string(close) + "'");
      if (depth <= 0 && closes(close, kind))
        return true;
      char c = rest.front();
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
      if (!lexItem())
        return false;
    }
  }

  bool closes(std::string_view close, char kind) {
    char sign = rest.front() == '-' || rest.front() == '+' ? rest.front() : '\0';
    if (!rest.substr(sign ? 1 : 0).starts_with(close))
      return false;
    advance(close.size() + (sign ? 1 : 0));
    trimNext = sign == '-'                  ? Trim::All
               : kind == '{' || sign == '+' ? Trim::None
                                            : Trim::Newline;
    push(kind == '{' ? TokenKind::PrintEnd : TokenKind::BlockEnd, "");
    return true;
  }

  bool skipComment() {
    size_t end = rest.find("#}");
    if (end == rest.npos)
      return fail("the comment is not closed; add '#}'");
    bool minus = end > 0 && rest[end - 1] == '-';
    advance(end + 2);
    trimNext = minus ? Trim::All : Trim::Newline;
    return true;
  }

  bool lexItem() {
    char c = rest.front();
    if (c == '\'' || c == '"')
      return lexString();
    if (isNameStart(c) || isDigit(c)) {
      auto isPart = [](char d) { return isNameStart(d) || isDigit(d); };
      size_t end = 1;
      while (end < rest.size() && isPart(rest[end]))
        ++end;
      std::string word(rest.substr(0, end));
      if (isDigit(c))
        return lexInteger(word);
      push(TokenKind::Name, word);
      advance(end);
      return true;
    }
    for (std::string_view op : {"==", "!=", "<=", ">=", "//", "**"})
      if (rest.starts_with(op))
        return lexOperator(op);
    if (std::string_view("+-*/%~|.,:()[]{}=<>").find(c) == std::string::npos)
      return fail(std::string("unexpected character '") + c +
                  "'; remove it or put it in quotes");
    return lexOperator(rest.substr(0, 1));
  }

  bool lexOperator(std::string_view op) {
    push(TokenKind::Operator, std::string(op));
    advance(op.size());
    return true;
  }

  bool lexInteger(const std::string &word) {
    int64_t value = 0;
    auto [end, code] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size())
      return fail("'" + word + "' is not a supported number; use an integer");
    push(TokenKind::Integer, word);
    tokens.back().integer = value;
    advance(word.size());
    if (rest.size() > 1 && rest[0] == '.' && isDigit(rest[1]))
      return fail("floating-point numbers are not supported; use an integer");
    return true;
  }

  bool lexString() {
    char quote = rest.front();
    std::string text;
    size_t at = 1;
    for (; at < rest.size() && rest[at] != quote; ++at) {
      if (rest[at] != '\\') {
        text += rest[at];
        continue;
      }
      if (++at == rest.size())
        break;
      if (!unescape(at, text))
        return false;
    }
    if (at >= rest.size())
      return fail("the string is not closed; add the missing quote");
    push(TokenKind::String, std::move(text));
    advance(at + 1);
    return true;
  }

  /// `at` is on the character after the backslash, and then on the last
  /// character of the escape.
  bool unescape(size_t &at, std::string &text) {
    constexpr std::string_view from = "ntr\\'\"abfv0\n";
    constexpr std::string_view to("\n\t\r\\'\"\a\b\f\v\0", 11);
    char c = rest[at];
    size_t found = from.find(c);
    if (found != from.npos) {
      // A backslash before a line break joins the lines.
      if (found < to.size())
        text += to[found];
      return true;
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!digits) {
      // Python keeps the backslash of an escape it does not know.
      text.append(1, '\\').append(1, c);
      return true;
    }
    std::string_view hex = rest.substr(at + 1, digits);
    uint32_t codePoint = 0;
    auto [end, code] =
        std::from_chars(hex.data(), hex.data() + hex.size(), codePoint, 16);
    if (code != std::errc() || hex.size() != digits ||
        end != hex.data() + digits || codePoint > 0x10FFFF ||
        (codePoint >= 0xD800 && codePoint < 0xE000))
      return fail("a \\x or \\u escape is not a character; write two, four or "
                  "eight hexadecimal digits");
    appendUtf8(codePoint, text);
    at += digits;
    return true;
  }

  void push(TokenKind kind, std::string text) {
    tokens.push_back({kind, std::move(text), 0, line});
  }

  void advance(size_t count) {
    count = std::min(count, rest.size());
    line += static_cast<int>(
        std::count(rest.begin(), rest.begin() + count, '\n'));
    rest.remove_prefix(count);
  }

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  std::string_view rest;
  std::vector<Token> tokens;
  std::string problem;
  int line = 1;
  Trim trimNext = Trim::None;
  bool atSourceStart = true;
};

} // namespace

Expected<std::vector<Token>> lex(std::string_view source) {
  return Lexer(source).run();
}

} // namespace otf::text::jinja
