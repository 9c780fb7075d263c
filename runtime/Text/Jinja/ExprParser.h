// SPDX-License-Identifier: Apache-2.0
//
// The expression half of the parser. Internal to Jinja/.
#ifndef OTF_RUNTIME_TEXT_JINJA_EXPRPARSER_H
#define OTF_RUNTIME_TEXT_JINJA_EXPRPARSER_H

#include "runtime/Text/Jinja/Ast.h"
#include "runtime/Text/Jinja/Lexer.h"


#include <string_view>

namespace otf::text::jinja {

/// Recursive descent; one function per precedence. After the first problem
/// every function returns null, and the problem is kept for the caller.
class ExprParser {
public:
  explicit ExprParser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  ExprPtr parseExpression();
  /// Without `a if b else c`: in `for x in y if z` the if is a filter.
  ExprPtr parseWithoutConditional() { return parseOr(); }
  /// `a` or `a, b`: the latter is a list, as Jinja's tuples act like one.
  ExprPtr parseTuple();

  const Token &peek(size_t ahead = 0) const;
  Token take();
  bool isOperator(std::string_view op, size_t ahead = 0) const;
  bool isName(std::string_view name, size_t ahead = 0) const;
  bool takeOperator(std::string_view op);
  bool takeName(std::string_view name);

  bool failed() const { return !problem.empty(); }
  Error error() const;
  /// Keeps the first problem. Returns null, for the caller to pass on.
  ExprPtr fail(const std::string &what);

private:
  /// Parser recursion and tree height: templates of common models stay below
  /// 30, and a thread's stack holds some thousand levels.
  static constexpr int maxDepth = 200;

  ExprPtr parseOr();
  ExprPtr parseAnd();
  ExprPtr parseNot();
  ExprPtr parseComparison();
  /// Left-associative binary operators, by level: + -, then ~, then * // %.
  ExprPtr parseBinary(size_t level);
  ExprPtr parseUnary(bool withFilters);
  ExprPtr parsePrimary();
  ExprPtr parsePostfix(ExprPtr object);
  ExprPtr parseSubscript(ExprPtr object);
  ExprPtr parseFiltersAndTests(ExprPtr input);
  ExprPtr parseTest(ExprPtr input);
  /// Items up to the closing operator, which is taken.
  bool parseItems(std::string_view close, Expr &out);
  bool parseArguments(Expr &out);

  ExprPtr make(ExprKind kind, std::string text = {});
  /// Adds a child; null and too high trees make the result null.
  ExprPtr with(ExprPtr parent, ExprPtr child);
  bool addChild(Expr &parent, ExprPtr child);

  std::vector<Token> tokens;
  size_t next = 0;
  int depth = 0;
  std::string problem;
};

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_EXPRPARSER_H
