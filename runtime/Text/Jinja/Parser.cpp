// SPDX-License-Identifier: Apache-2.0
//
// The statement half of the parser.
#include "runtime/Text/Jinja/Parser.h"

#include "runtime/Text/Jinja/ExprParser.h"

#include <algorithm>
#include <initializer_list>

namespace otf::text::jinja {
namespace {

class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : expr(std::move(tokens)) {}

  Expected<Block> run() {
    Block block = parseBlock({});
    if (expr.failed())
      return expr.error();
    return block;
  }

private:
  /// Blocks inside blocks; see ExprParser::maxDepth.
  static constexpr int maxNesting = 100;

  /// Statements up to a tag that starts with one of `ends`, which is left, or
  /// up to the end of the template if there are none.
  Block parseBlock(std::initializer_list<std::string_view> ends) {
    Block block;
    if (++nesting > maxNesting)
      expr.fail("blocks are nested too deep; simplify the template");
    while (!expr.failed()) {
      const Token &token = expr.peek();
      if (token.kind == TokenKind::End) {
        if (ends.size() > 0)
          expr.fail("a block is not closed; add {% " +
                    std::string(*(ends.end() - 1)) + " %}");
        break;
      }
      if (token.kind == TokenKind::Text) {
        Statement &text = add(block, StatementKind::Text);
        text.text = expr.take().text;
      } else if (token.kind == TokenKind::PrintBegin) {
        expr.take();
        Statement &print = add(block, StatementKind::Print);
        print.expr = expr.parseTuple();
        close(TokenKind::PrintEnd, "}}");
      } else {
        auto isEnd = [&](auto name) { return expr.isName(name, 1); };
        if (std::any_of(ends.begin(), ends.end(), isEnd))
          break;
        expr.take();
        parseStatement(block);
      }
    }
    --nesting;
    return block;
  }

  void parseStatement(Block &block) {
    if (expr.takeName("if"))
      return parseIf(add(block, StatementKind::If));
    if (expr.takeName("for"))
      return parseFor(add(block, StatementKind::For));
    if (expr.takeName("set"))
      return parseSet(add(block, StatementKind::Set));
    if (expr.isName("break") || expr.isName("continue")) {
      if (loops == 0)
        expr.fail("break and continue are for loops only; remove it");
      add(block, expr.take().text == "break" ? StatementKind::Break
                                             : StatementKind::Continue);
      return close(TokenKind::BlockEnd, "%}");
    }
    // Marks what the assistant said, for training; it prints its body.
    if (expr.takeName("generation")) {
      close(TokenKind::BlockEnd, "%}");
      for (Statement &inner : parseBlock({"endgeneration"}))
        block.push_back(std::move(inner));
      return closeTag();
    }
    expr.fail("'" + expr.peek().text +
              "' is not supported in templates; supported are if, for, set, "
              "break and continue");
  }

  void parseIf(Statement &statement) {
    bool isElse = false;
    do {
      Branch branch;
      if (!isElse)
        branch.condition = expr.parseTuple();
      close(TokenKind::BlockEnd, "%}");
      branch.body = isElse ? parseBlock({"endif"})
                           : parseBlock({"elif", "else", "endif"});
      statement.branches.push_back(std::move(branch));
      if (expr.failed())
        return;
      expr.take();
      isElse = expr.isName("else");
    } while (expr.takeName("elif") || expr.takeName("else"));
    expr.take();
    close(TokenKind::BlockEnd, "%}");
  }

  void parseFor(Statement &statement) {
    parseTargets(statement);
    if (!expr.failed() && !expr.takeName("in"))
      expr.fail("expected 'in' after the loop variable; add it");
    if (!expr.failed())
      statement.expr = expr.parseWithoutConditional();
    if (!expr.failed() && expr.takeName("if"))
      statement.condition = expr.parseExpression();
    if (!expr.failed() && expr.isName("recursive"))
      expr.fail("recursive loops are not supported; use a plain loop");
    close(TokenKind::BlockEnd, "%}");
    ++loops;
    statement.branches.push_back({nullptr, parseBlock({"else", "endfor"})});
    --loops;
    if (!expr.failed() && expr.isName("else", 1)) {
      closeTag();
      statement.branches.push_back({nullptr, parseBlock({"endfor"})});
    }
    closeTag();
  }

  void parseSet(Statement &statement) {
    parseTargets(statement);
    if (!expr.failed() && statement.targets.size() == 1 &&
        expr.takeOperator("."))
      statement.text = takeTarget();
    if (!expr.failed() && !expr.takeOperator("="))
      expr.fail("expected '=' in set; the block form {% set x %}...{% endset "
                "%} is not supported");
    if (!expr.failed())
      statement.expr = expr.parseTuple();
    close(TokenKind::BlockEnd, "%}");
  }

  void parseTargets(Statement &statement) {
    bool inParentheses = expr.takeOperator("(");
    do
      statement.targets.push_back(takeTarget());
    while (!expr.failed() && expr.takeOperator(","));
    if (!expr.failed() && inParentheses && !expr.takeOperator(")"))
      expr.fail("a parenthesis is not closed; add ')'");
  }

  std::string takeTarget() {
    if (expr.peek().kind != TokenKind::Name)
      expr.fail("expected the name of a variable; add it");
    return expr.take().text;
  }

  /// Takes `{% name %}` of a tag that parseBlock has stopped at.
  void closeTag() {
    if (expr.failed())
      return;
    expr.take();
    expr.take();
    close(TokenKind::BlockEnd, "%}");
  }

  void close(TokenKind kind, std::string_view text) {
    if (expr.failed())
      return;
    if (expr.peek().kind != kind)
      expr.fail("expected '" + std::string(text) + "'" +
                (expr.peek().text.empty()
                     ? ""
                     : " but found '" + expr.peek().text + "'") +
                "; this part of the tag is not understood");
    expr.take();
  }

  Statement &add(Block &block, StatementKind kind) {
    Statement &statement = block.emplace_back();
    statement.kind = kind;
    statement.line = expr.peek().line;
    return statement;
  }

  ExprParser expr;
  int nesting = 0;
  int loops = 0;
};

} // namespace

Expected<Block> parse(std::vector<Token> tokens) {
  return Parser(std::move(tokens)).run();
}

} // namespace otf::text::jinja
