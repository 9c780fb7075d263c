// SPDX-License-Identifier: Apache-2.0
//
// Tokens to syntax tree, with Jinja's precedences. Statements outside the
// subset (macro, include, raw...) are refused by name.
#ifndef OTF_RUNTIME_TEXT_JINJA_PARSER_H
#define OTF_RUNTIME_TEXT_JINJA_PARSER_H

#include "runtime/Text/Jinja/Ast.h"
#include "runtime/Text/Jinja/Lexer.h"

namespace otf::text::jinja {

Expected<Block> parse(std::vector<Token> tokens);

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_PARSER_H
