// SPDX-License-Identifier: Apache-2.0
//
// The syntax tree of a template.
#ifndef OTF_RUNTIME_TEXT_JINJA_AST_H
#define OTF_RUNTIME_TEXT_JINJA_AST_H

#include "runtime/Text/Jinja/Value.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace otf::text::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind {
  Literal,     // value
  Name,        // text
  List,        // children
  Dict,        // children: key, value, key, value...
  Not,         // child
  Negate,      // child
  Binary,      // text is the operator; left, right
  And,         // left, right
  Or,          // left, right
  Conditional, // condition, then, else
  Attribute,   // object; text is the name
  Subscript,   // object, index
  Slice,       // object, start, stop, step (literal none where left out)
  Call,        // callee, positional arguments; named arguments
  Filter,      // input, positional arguments; text is the name; named
  Test         // input, positional arguments; text is the name
};

struct Expr {
  ExprKind kind;
  int line;
  std::string text;
  Value value;
  std::vector<ExprPtr> children;
  std::vector<std::pair<std::string, ExprPtr>> named;
  /// Height of this tree; the parser bounds it, so recursion is safe.
  int depth = 1;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind { Text, Print, If, For, Set, Break, Continue };

/// A body with the condition that selects it; without one it is the else.
struct Branch {
  ExprPtr condition;
  Block body;
};

struct Statement {
  StatementKind kind;
  int line;
  /// Text, or for Set the attribute of the namespace, if any.
  std::string text;
  /// Set: one name, or more to unpack into. For: the loop variables.
  std::vector<std::string> targets;
  /// Print: what. Set: the value. For: what to iterate over.
  ExprPtr expr;
  /// For: the filter after `if`, or null.
  ExprPtr condition;
  /// If: all branches. For: the body and, if there is one, the else.
  std::vector<Branch> branches;
};

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_AST_H
