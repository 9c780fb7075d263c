// SPDX-License-Identifier: Apache-2.0
//
// Cuts a template into tokens. White space control is done here, with the
// settings that chat templates are written for (trim_blocks, lstrip_blocks, no
// trailing newline), so that the parser sees only text, names and punctuation.
#ifndef OTF_RUNTIME_TEXT_JINJA_LEXER_H
#define OTF_RUNTIME_TEXT_JINJA_LEXER_H

#include "runtime/Text/Expected.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace otf::text::jinja {

enum class TokenKind {
  Text,
  PrintBegin,
  PrintEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Operator,
  End
};

struct Token {
  TokenKind kind;
  /// The text, the name, the unescaped string, or the operator.
  std::string text;
  int64_t integer;
  int line;
};

Expected<std::vector<Token>> lex(std::string_view source);

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_LEXER_H
