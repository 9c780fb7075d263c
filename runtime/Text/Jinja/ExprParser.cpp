// SPDX-License-Identifier: Apache-2.0
//
// Follows the grammar of Jinja's own parser.py, whose one surprise is that
// filters and tests bind tighter than every binary operator.
#include "runtime/Text/Jinja/ExprParser.h"

#include <algorithm>

namespace otf::text::jinja {

const Token &ExprParser::peek(size_t ahead) const {
  // The last token is End.
  return tokens[std::min(next + ahead, tokens.size() - 1)];
}

Token ExprParser::take() {
  Token token = peek();
  if (token.kind != TokenKind::End)
    ++next;
  return token;
}

bool ExprParser::isOperator(std::string_view op, size_t ahead) const {
  return peek(ahead).kind == TokenKind::Operator && peek(ahead).text == op;
}

bool ExprParser::isName(std::string_view name, size_t ahead) const {
  return peek(ahead).kind == TokenKind::Name && peek(ahead).text == name;
}

bool ExprParser::takeOperator(std::string_view op) {
  bool found = isOperator(op);
  next += found;
  return found;
}

bool ExprParser::takeName(std::string_view name) {
  bool found = isName(name);
  next += found;
  return found;
}

Error ExprParser::error() const { return {"chat template: " + problem}; }

ExprPtr ExprParser::fail(const std::string &what) {
  if (problem.empty())
    problem = "line " + std::to_string(peek().line) + ": " + what;
  return nullptr;
}

ExprPtr ExprParser::make(ExprKind kind, std::string text) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = peek().line;
  expr->text = std::move(text);
  return expr;
}

bool ExprParser::addChild(Expr &parent, ExprPtr child) {
  if (!child)
    return false;
  parent.depth = std::max(parent.depth, child->depth + 1);
  parent.children.push_back(std::move(child));
  if (parent.depth > maxDepth)
    fail("the expression is nested too deep; split it with {% set %}");
  return !failed();
}

ExprPtr ExprParser::with(ExprPtr parent, ExprPtr child) {
  return parent && addChild(*parent, std::move(child)) ? std::move(parent)
                                                       : nullptr;
}

ExprPtr ExprParser::parseTuple() {
  ExprPtr first = parseExpression();
  if (!first || !isOperator(","))
    return first;
  ExprPtr list = with(make(ExprKind::List), std::move(first));
  while (list && takeOperator(","))
    list = with(std::move(list), parseExpression());
  return list;
}

ExprPtr ExprParser::parseExpression() {
  if (depth == maxDepth)
    return fail("the expression is nested too deep; split it with {% set %}");
  ++depth;
  ExprPtr value = parseOr();
  while (value && takeName("if")) {
    ExprPtr choice = make(ExprKind::Conditional);
    choice = with(std::move(choice), parseOr());
    choice = with(std::move(choice), std::move(value));
    // A missing else is an undefined value.
    if (choice)
      choice = with(std::move(choice), takeName("else")
                                           ? parseExpression()
                                           : make(ExprKind::Literal));
    value = std::move(choice);
  }
  --depth;
  return value;
}

ExprPtr ExprParser::parseOr() {
  ExprPtr left = parseAnd();
  while (left && takeName("or"))
    left = with(with(make(ExprKind::Or), std::move(left)), parseAnd());
  return left;
}

ExprPtr ExprParser::parseAnd() {
  ExprPtr left = parseNot();
  while (left && takeName("and"))
    left = with(with(make(ExprKind::And), std::move(left)), parseNot());
  return left;
}

ExprPtr ExprParser::parseNot() {
  size_t count = 0;
  while (takeName("not"))
    ++count;
  ExprPtr value = parseComparison();
  for (; value && count > 0; --count)
    value = with(make(ExprKind::Not), std::move(value));
  return value;
}

ExprPtr ExprParser::parseComparison() {
  auto comparison = [&]() -> std::string {
    for (const char *op : {"==", "!=", "<", "<=", ">", ">="})
      if (takeOperator(op))
        return op;
    if (takeName("in"))
      return "in";
    if (isName("not") && isName("in", 1)) {
      next += 2;
      return "not in";
    }
    return "";
  };
  ExprPtr left = parseBinary(0);
  std::string op = left ? comparison() : "";
  if (op.empty())
    return left;
  ExprPtr result = make(ExprKind::Binary, op == "not in" ? "in" : op);
  result = with(with(std::move(result), std::move(left)), parseBinary(0));
  if (result && op == "not in")
    result = with(make(ExprKind::Not), std::move(result));
  if (result && !comparison().empty())
    return fail("chained comparisons are not supported; join two with 'and'");
  return result;
}

ExprPtr ExprParser::parseBinary(size_t level) {
  static constexpr std::string_view levels[3][3] = {
      {"+", "-", ""}, {"~", "", ""}, {"*", "//", "%"}};
  if (level == std::size(levels))
    return parseUnary(/*withFilters=*/true);
  ExprPtr left = parseBinary(level + 1);
  while (left) {
    auto op = std::find_if(std::begin(levels[level]), std::end(levels[level]),
                           [&](auto text) { return takeOperator(text); });
    if (op == std::end(levels[level]))
      return left;
    ExprPtr result = make(ExprKind::Binary, std::string(*op));
    result = with(std::move(result), std::move(left));
    left = with(std::move(result), parseBinary(level + 1));
  }
  return left;
}

ExprPtr ExprParser::parseUnary(bool withFilters) {
  ExprPtr value;
  if (takeOperator("-")) {
    if (isOperator("-"))
      return fail("a double minus is not supported; use parentheses");
    value = with(make(ExprKind::Negate), parseUnary(/*withFilters=*/false));
  } else {
    value = parsePostfix(parsePrimary());
  }
  return withFilters ? parseFiltersAndTests(std::move(value))
                     : std::move(value);
}

ExprPtr ExprParser::parsePrimary() {
  Token token = take();
  ExprPtr literal = make(ExprKind::Literal);
  if (token.kind == TokenKind::Name) {
    std::string lower = token.text;
    if (lower == "True" || lower == "False" || lower == "None")
      lower[0] = static_cast<char>(lower[0] - 'A' + 'a');
    if (lower == "true" || lower == "false")
      literal->value = lower == "true";
    else if (lower == "none")
      literal->value = Value::none();
    else
      return make(ExprKind::Name, token.text);
    return literal;
  }
  if (token.kind == TokenKind::Integer) {
    literal->value = token.integer;
    return literal;
  }
  if (token.kind == TokenKind::String) {
    // Adjacent strings are one, as in Python.
    while (peek().kind == TokenKind::String)
      token.text += take().text;
    literal->value = token.text;
    return literal;
  }
  bool isOp = token.kind == TokenKind::Operator;
  if (isOp && token.text == "(") {
    ExprPtr inner = isOperator(")") ? make(ExprKind::List) : parseTuple();
    if (inner && !takeOperator(")"))
      return fail("a parenthesis is not closed; add ')'");
    return inner;
  }
  if (isOp && (token.text == "[" || token.text == "{")) {
    bool isList = token.text == "[";
    ExprPtr items = make(isList ? ExprKind::List : ExprKind::Dict);
    return parseItems(isList ? "]" : "}", *items) ? std::move(items) : nullptr;
  }
  return fail("expected a value" +
              (token.text.empty() ? "" : " but found '" + token.text + "'") +
              "; check the expression");
}

bool ExprParser::parseItems(std::string_view close, Expr &out) {
  while (!takeOperator(close)) {
    if (!out.children.empty() && !takeOperator(",")) {
      fail("expected ',' or '" + std::string(close) + "'; check the brackets");
      return false;
    }
    if (takeOperator(close))
      return true;
    if (!addChild(out, parseExpression()))
      return false;
    if (out.kind != ExprKind::Dict)
      continue;
    if (!takeOperator(":"))
      fail("expected ':' after a key; check the braces");
    if (failed() || !addChild(out, parseExpression()))
      return false;
  }
  return true;
}

ExprPtr ExprParser::parsePostfix(ExprPtr object) {
  while (object) {
    if (takeOperator(".")) {
      Token name = take();
      if (name.kind != TokenKind::Name)
        return fail("expected a name after '.'; use [] for other keys");
      object = with(make(ExprKind::Attribute, name.text), std::move(object));
    } else if (takeOperator("[")) {
      object = parseSubscript(std::move(object));
    } else if (isOperator("(")) {
      object = with(make(ExprKind::Call), std::move(object));
      if (object && !parseArguments(*object))
        return nullptr;
    } else {
      break;
    }
  }
  return object;
}

ExprPtr ExprParser::parseSubscript(ExprPtr object) {
  auto noneLiteral = [&] {
    ExprPtr literal = make(ExprKind::Literal);
    literal->value = Value::none();
    return literal;
  };
  ExprPtr first = isOperator(":") ? noneLiteral() : parseExpression();
  if (!first)
    return nullptr;
  bool isSlice = isOperator(":");
  ExprPtr result = make(isSlice ? ExprKind::Slice : ExprKind::Subscript);
  result = with(with(std::move(result), std::move(object)), std::move(first));
  for (int i = 0; isSlice && result && i < 2; ++i) {
    bool given =
        takeOperator(":") && !isOperator(":") && !isOperator("]");
    result = with(std::move(result), given ? parseExpression() : noneLiteral());
  }
  if (result && !takeOperator("]"))
    return fail("a subscript is not closed; add ']'");
  return result;
}

bool ExprParser::parseArguments(Expr &out) {
  takeOperator("(");
  for (bool first = true; !takeOperator(")"); first = false) {
    if (!first && !takeOperator(",")) {
      fail("expected ',' or ')' in the arguments; check the call");
      return false;
    }
    if (takeOperator(")"))
      return true;
    if (peek().kind == TokenKind::Name && isOperator("=", 1)) {
      std::string name = take().text;
      take();
      ExprPtr value = parseExpression();
      if (!value)
        return false;
      out.depth = std::max(out.depth, value->depth + 1);
      out.named.emplace_back(std::move(name), std::move(value));
    } else if (!addChild(out, parseExpression())) {
      return false;
    }
  }
  return true;
}

ExprPtr ExprParser::parseFiltersAndTests(ExprPtr input) {
  while (input) {
    if (takeOperator("|")) {
      Token name = take();
      if (name.kind != TokenKind::Name)
        return fail("expected the name of a filter after '|'; add it");
      input = with(make(ExprKind::Filter, name.text), std::move(input));
      if (input && isOperator("(") && !parseArguments(*input))
        return nullptr;
    } else if (takeName("is")) {
      input = parseTest(std::move(input));
    } else {
      break;
    }
  }
  return input;
}

ExprPtr ExprParser::parseTest(ExprPtr input) {
  bool negated = takeName("not");
  Token name = take();
  if (name.kind != TokenKind::Name)
    return fail("expected the name of a test after 'is'; add it");
  ExprPtr test = with(make(ExprKind::Test, name.text), std::move(input));
  // One argument may stand without parentheses: `x is divisibleby 3`.
  bool ends = isName("else") || isName("or") || isName("and") || isName("if");
  TokenKind kind = peek().kind;
  if (test && isOperator("(")) {
    if (!parseArguments(*test))
      return nullptr;
  } else if (test && !ends &&
             (kind == TokenKind::Name || kind == TokenKind::String ||
              kind == TokenKind::Integer || isOperator("[") ||
              isOperator("{"))) {
    if (!isName("is"))
      test = with(std::move(test), parsePostfix(parsePrimary()));
  }
  return negated ? with(make(ExprKind::Not), std::move(test)) : std::move(test);
}

} // namespace otf::text::jinja
