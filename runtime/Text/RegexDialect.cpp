// SPDX-License-Identifier: Apache-2.0
//
// One pass over the pattern. Only what differs is touched:
//  - \s \S \w \W: Oniguruma follows Unicode properties, PCRE2 its own list;
//  - \p{Han}: PCRE2 means script extensions, Oniguruma the script;
//  - {n,m}+ is greedy-of-greedy in Ruby and possessive in PCRE2: refused;
//  - nested classes and && inside a class do not exist in PCRE2: refused;
//  - \h is a hexadecimal digit in Ruby, a blank in PCRE2: refused.
#include "runtime/Text/RegexDialect.h"

#include <algorithm>

namespace otf::text {
namespace {

/// The complement of spaceClass, needed for \S inside a class.
constexpr std::string_view notSpaceClass =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f})"
    R"(\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e})"
    R"(\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

class Translator {
public:
  explicit Translator(std::string_view pattern) : rest(pattern) {}

  Expected<std::string> run() {
    while (!rest.empty() && problem.empty())
      step();
    if (!problem.empty())
      return Error{"regular expression: " + problem +
                   " is not supported; rewrite the pattern without it"};
    return std::move(out);
  }

private:
  void step() {
    char c = rest.front();
    if (c == '\\')
      return escape();
    if (inClass)
      return classChar(c);
    if (c == '[')
      return openClass();
    if (c == '}' && rest.size() > 1 && rest[1] == '+')
      problem = "'+' after an interval {n,m}";
    copy(1);
  }

  void openClass() {
    inClass = true;
    copy(1);
    if (!rest.empty() && rest.front() == '^')
      copy(1);
    // A ']' right after the opening is a literal in both dialects.
    if (!rest.empty() && rest.front() == ']')
      copy(1);
  }

  void classChar(char c) {
    if (c == '[') {
      size_t end = rest.starts_with("[:") ? rest.find(":]") : rest.npos;
      if (end == rest.npos)
        problem = "a character class inside a character class";
      return copy(end == rest.npos ? 1 : end + 2);
    }
    if (rest.starts_with("&&"))
      problem = "the class intersection '&&'";
    if (c == ']')
      inClass = false;
    copy(1);
  }

  void escape() {
    char c = rest.size() > 1 ? rest[1] : '\0';
    switch (c) {
    case 's':
      return replaceEscape(spaceClass, "[");
    case 'S':
      return inClass ? replaceEscape(notSpaceClass, "")
                     : replaceEscape(spaceClass, "[^");
    case 'w':
      return replaceEscape(wordClass, "[");
    case 'W':
      if (inClass)
        problem = "\\W inside a character class";
      return replaceEscape(wordClass, "[^");
    case 'h':
    case 'H':
      problem = "\\h";
      return copy(2);
    case 'p':
    case 'P':
      return property();
    default:
      return braced();
    }
  }

  /// \x{...} and its like: the braces are not an interval.
  void braced() {
    size_t end = rest.size() > 2 && rest[2] == '{' ? rest.find('}') : rest.npos;
    copy(end == rest.npos ? 2 : end + 1);
  }

  void property() {
    size_t end = rest.size() > 2 && rest[2] == '{' ? rest.find('}') : rest.npos;
    if (end == rest.npos)
      return copy(2);
    std::string_view name = rest.substr(3, end - 3);
    std::string_view caret = name.starts_with('^') ? "^" : "";
    name.remove_prefix(caret.size());
    // General categories have one or two letters; longer names are scripts.
    bool isScript = name.size() > 2 && name != "Any" && name != "Alphabetic";
    out += rest.substr(0, 3);
    out += caret;
    out += isScript ? "sc:" : "";
    out += name;
    out += '}';
    rest.remove_prefix(end + 1);
  }

  void replaceEscape(std::string_view classText, std::string_view open) {
    out += inClass ? "" : open;
    out += classText;
    out += inClass ? "" : "]";
    rest.remove_prefix(2);
  }

  void copy(size_t count) {
    count = std::min(count, rest.size());
    out += rest.substr(0, count);
    rest.remove_prefix(count);
  }

  std::string_view rest;
  std::string out;
  std::string problem;
  bool inClass = false;
};

} // namespace

Expected<std::string> translateToPcre2(std::string_view pattern) {
  return Translator(pattern).run();
}

} // namespace otf::text
