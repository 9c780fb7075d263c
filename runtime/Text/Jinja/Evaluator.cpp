// SPDX-License-Identifier: Apache-2.0
//
// A plain tree walk. As in Jinja, each round of a for loop has a scope of its
// own: what it sets is gone after it, which is why namespace() exists.
#include "runtime/Text/Jinja/Evaluator.h"

#include "runtime/Text/Jinja/Operations.h"

#include <optional>

namespace otf::text::jinja {
namespace {

/// Tree nodes visited. A long chat takes some ten thousand.
constexpr int maxSteps = 5'000'000;
/// Values copied by operations on whole lists and strings count as well, one
/// step per this many bytes or items.
constexpr size_t itemsPerStep = 64;

enum class Flow { Normal, Break, Continue };

class Evaluator {
public:
  explicit Evaluator(Dict globals) { scopes.push_back(std::move(globals)); }

  ~Evaluator() {
    // A namespace may hold itself; without this it would never be freed.
    for (const auto &fields : namespaces)
      fields->fields.clear();
  }

  Expected<std::string> run(const Block &block) {
    Expected<Flow> flow = runBlock(block);
    if (!flow)
      return flow.error();
    return std::move(out);
  }

private:
  Error at(int line, const Error &error) const {
    // Errors of operations have no place yet.
    if (error.message.starts_with("chat template"))
      return error;
    return {"chat template: line " + std::to_string(line) + ": " +
            error.message};
  }

  bool spend(size_t steps = 1) {
    stepsLeft -= static_cast<int64_t>(steps);
    return stepsLeft >= 0;
  }

  static Error outOfSteps() {
    return {"the template takes too long; check its loops"};
  }

  //===-- Statements ------------------------------------------------------===//

  Expected<Flow> runBlock(const Block &block) {
    for (const Statement &statement : block) {
      Expected<Flow> flow = runStatement(statement);
      if (!flow)
        return at(statement.line, flow.error());
      if (*flow != Flow::Normal)
        return flow;
    }
    return Flow::Normal;
  }

  Expected<Flow> runStatement(const Statement &statement) {
    if (!spend())
      return outOfSteps();
    switch (statement.kind) {
    case StatementKind::Text:
      return emit(statement.text);
    case StatementKind::Print: {
      Expected<Value> value = evaluate(*statement.expr);
      if (!value)
        return value.error();
      Expected<std::string> text = value->print();
      if (!text)
        return text.error();
      return emit(*text);
    }
    case StatementKind::If:
      return runIf(statement);
    case StatementKind::For:
      return runFor(statement);
    case StatementKind::Set:
      return runSet(statement);
    case StatementKind::Break:
      return Flow::Break;
    case StatementKind::Continue:
      return Flow::Continue;
    }
    return Flow::Normal;
  }

  Expected<Flow> emit(std::string_view text) {
    if (out.size() + text.size() > Value::maxSize)
      return Error{"the output grows beyond every sensible size; check the "
                   "loops of the template"};
    out += text;
    return Flow::Normal;
  }

  Expected<Flow> runIf(const Statement &statement) {
    for (const Branch &branch : statement.branches) {
      if (branch.condition) {
        Expected<Value> condition = evaluate(*branch.condition);
        if (!condition)
          return condition.error();
        if (!condition->isTrue())
          continue;
      }
      return runBlock(branch.body);
    }
    return Flow::Normal;
  }

  Expected<Flow> runFor(const Statement &statement) {
    Expected<List> items = loopItems(statement);
    if (!items)
      return items.error();
    if (items->empty() && statement.branches.size() > 1)
      return runBlock(statement.branches[1].body);
    for (size_t i = 0; i < items->size(); ++i) {
      scopes.emplace_back();
      Expected<Flow> flow = runRound(statement, *items, i);
      scopes.pop_back();
      if (!flow)
        return flow;
      if (*flow == Flow::Break)
        break;
    }
    return Flow::Normal;
  }

  /// The items a loop runs over, after its filter.
  Expected<List> loopItems(const Statement &statement) {
    Expected<Value> sequence = evaluate(*statement.expr);
    if (!sequence)
      return sequence.error();
    Expected<List> items = iterate(*sequence);
    if (!items || !statement.condition)
      return items;
    List kept;
    for (Value &item : *items) {
      scopes.emplace_back();
      MaybeError error = assign(statement.targets, item);
      Expected<Value> keep =
          error ? Expected<Value>(*error) : evaluate(*statement.condition);
      scopes.pop_back();
      if (!keep)
        return keep.error();
      if (keep->isTrue())
        kept.push_back(std::move(item));
    }
    return kept;
  }

  Expected<Flow> runRound(const Statement &statement, const List &items,
                          size_t i) {
    auto index = static_cast<int64_t>(i);
    auto count = static_cast<int64_t>(items.size());
    Expected<Value> loop = Value::dict(
        {{"index0", index},
         {"index", index + 1},
         {"revindex0", count - index - 1},
         {"revindex", count - index},
         {"first", i == 0},
         {"last", index + 1 == count},
         {"length", count},
         {"previtem", i > 0 ? items[i - 1] : Value()},
         {"nextitem", i + 1 < items.size() ? items[i + 1] : Value()}});
    if (!loop)
      return loop.error();
    set("loop", std::move(*loop));
    if (MaybeError error = assign(statement.targets, items[i]))
      return *error;
    return runBlock(statement.branches[0].body);
  }

  Expected<Flow> runSet(const Statement &statement) {
    Expected<Value> value = evaluate(*statement.expr);
    if (!value)
      return value.error();
    if (statement.text.empty()) {
      if (MaybeError error = assign(statement.targets, std::move(*value)))
        return *error;
      return Flow::Normal;
    }
    Value holder = lookUp(statement.targets[0]);
    Value::Namespace *fields = holder.asNamespace();
    if (!fields)
      return Error{"'" + statement.targets[0] +
                   "' is no namespace, so its fields cannot be set; create it "
                   "with namespace()"};
    setField(fields->fields, statement.text, std::move(*value));
    return Flow::Normal;
  }

  MaybeError assign(const std::vector<std::string> &targets, Value value) {
    if (targets.size() == 1) {
      set(targets[0], std::move(value));
      return std::nullopt;
    }
    const List *items = value.asList();
    if (!items || items->size() != targets.size())
      return Error{"cannot unpack a value that is " +
                   std::string(value.kind()) + " into " +
                   std::to_string(targets.size()) +
                   " variables; check the number of variables"};
    for (size_t i = 0; i < targets.size(); ++i)
      set(targets[i], (*items)[i]);
    return std::nullopt;
  }

  void set(std::string_view name, Value value) {
    setField(scopes.back(), name, std::move(value));
  }

  static void setField(Dict &fields, std::string_view name, Value value) {
    for (auto &[key, field] : fields)
      if (key == name) {
        field = std::move(value);
        return;
      }
    fields.emplace_back(name, std::move(value));
  }

  Value lookUp(std::string_view name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (const Value *value = findField(*scope, name))
        return *value;
    return Value();
  }

  //===-- Expressions -----------------------------------------------------===//

  Expected<Value> evaluate(const Expr &expr) {
    if (!spend())
      return at(expr.line, outOfSteps());
    Expected<Value> value = evaluateKind(expr);
    if (!value)
      return at(expr.line, value.error());
    size_t size = value->asString() ? value->asString()->size()
                  : value->asList() ? value->asList()->size()
                                    : 0;
    if (!spend(size / itemsPerStep))
      return at(expr.line, outOfSteps());
    return value;
  }

  Expected<Value> evaluateKind(const Expr &expr) {
    switch (expr.kind) {
    case ExprKind::Literal:
      return expr.value;
    case ExprKind::Name:
      return lookUp(expr.text);
    case ExprKind::And:
    case ExprKind::Or:
    case ExprKind::Conditional:
      return evaluateLazy(expr);
    case ExprKind::Call:
      return evaluateCall(expr);
    default:
      break;
    }
    Expected<Arguments> evaluated = evaluateAll(expr, 0);
    if (!evaluated)
      return evaluated.error();
    List &operands = evaluated->positional;
    switch (expr.kind) {
    case ExprKind::List:
      return Value::list(std::move(operands));
    case ExprKind::Dict:
      return makeDict(operands);
    case ExprKind::Not:
      return Value(!operands[0].isTrue());
    case ExprKind::Negate:
      return negate(operands[0]);
    case ExprKind::Binary:
      return applyBinary(expr.text, operands[0], operands[1]);
    case ExprKind::Attribute:
      return attribute(*expr.children[0], operands[0], expr.text);
    case ExprKind::Subscript:
      return subscript(operands[0], operands[1]);
    case ExprKind::Slice:
      return slice(operands[0], operands[1], operands[2], operands[3]);
    default:
      return filterOrTest(expr, std::move(*evaluated));
    }
  }

  Expected<Value> filterOrTest(const Expr &expr, Arguments arguments) {
    Value input = std::move(arguments.positional.front());
    arguments.positional.erase(arguments.positional.begin());
    if (expr.kind == ExprKind::Filter)
      return applyFilter(expr.text, input, arguments);
    Expected<bool> result = applyTest(expr.text, input, arguments);
    if (!result)
      return result.error();
    return Value(*result);
  }

  /// What does not evaluate all of its operands.
  Expected<Value> evaluateLazy(const Expr &expr) {
    Expected<Value> first = evaluate(*expr.children[0]);
    if (!first)
      return first;
    if (expr.kind == ExprKind::Conditional)
      return evaluate(*expr.children[first->isTrue() ? 1 : 2]);
    if (first->isTrue() == (expr.kind == ExprKind::Or))
      return first;
    return evaluate(*expr.children[1]);
  }

  Expected<Arguments> evaluateAll(const Expr &expr, size_t from) {
    Arguments arguments;
    for (size_t i = from; i < expr.children.size(); ++i) {
      Expected<Value> value = evaluate(*expr.children[i]);
      if (!value)
        return value.error();
      arguments.positional.push_back(std::move(*value));
    }
    for (const auto &[name, child] : expr.named) {
      Expected<Value> value = evaluate(*child);
      if (!value)
        return value.error();
      setField(arguments.named, name, std::move(*value));
    }
    return arguments;
  }

  static Expected<Value> makeDict(const List &operands) {
    Dict fields;
    for (size_t i = 0; i + 1 < operands.size(); i += 2) {
      if (!operands[i].asString())
        return Error{"a dict key is a " + std::string(operands[i].kind()) +
                     "; use a string"};
      setField(fields, *operands[i].asString(), operands[i + 1]);
    }
    return Value::dict(std::move(fields));
  }

  static Expected<Value> attribute(const Expr &object, const Value &value,
                                   const std::string &name) {
    if (value.isUndefined())
      return Error{"cannot take '" + name + "' of " +
                   (object.text.empty() ? "a value" : "'" + object.text + "'") +
                   ", which is undefined; test it with 'is defined'"};
    const Value *field = value.field(name);
    return field ? *field : Value();
  }

  Expected<Value> evaluateCall(const Expr &expr) {
    const Expr &callee = *expr.children[0];
    Expected<Arguments> arguments = evaluateAll(expr, 1);
    if (!arguments)
      return arguments.error();
    if (callee.kind == ExprKind::Attribute) {
      Expected<Value> object = evaluate(*callee.children[0]);
      if (!object)
        return object;
      return callMethod(callee.text, *object, *arguments);
    }
    if (callee.kind != ExprKind::Name)
      return Error{"only functions and methods can be called; check the "
                   "parentheses"};
    return callFunction(callee.text, std::move(*arguments));
  }

  Expected<Value> callFunction(const std::string &name, Arguments arguments) {
    if (name == "raise_exception") {
      const std::string *text = arguments.positional.empty()
                                    ? nullptr
                                    : arguments.positional[0].asString();
      return Error{"chat template: refused the conversation: " +
                   (text ? *text : "no reason given")};
    }
    if (name == "namespace" && arguments.positional.empty()) {
      namespaces.push_back(std::make_shared<Value::Namespace>(
          std::move(arguments.named)));
      return Value::nameSpace(namespaces.back());
    }
    if (name == "dict" && arguments.positional.empty())
      return Value::dict(std::move(arguments.named));
    if (name == "range")
      return range(arguments.positional);
    return Error{"the function " + name + "() is not supported; rewrite the "
                                          "template without it"};
  }

  Expected<Value> range(const List &bounds) {
    int64_t values[3] = {0, 0, 1};
    for (size_t i = 0; i < bounds.size() && i < 3; ++i) {
      if (!bounds[i].asInt())
        return Error{"range() needs integers; convert its arguments"};
      values[i] = *bounds[i].asInt();
    }
    if (bounds.size() == 1)
      std::swap(values[0], values[1]);
    auto [from, to, by] = values;
    if (bounds.empty() || bounds.size() > 3 || by == 0)
      return Error{"range() needs one to three integers and a step that is "
                   "not 0; check its arguments"};
    List items;
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
      if (!spend())
        return outOfSteps();
      items.push_back(i);
      if (__builtin_add_overflow(i, by, &i))
        break;
    }
    return Value::list(std::move(items));
  }

  std::vector<Dict> scopes;
  std::vector<std::shared_ptr<Value::Namespace>> namespaces;
  std::string out;
  int64_t stepsLeft = maxSteps;
};

} // namespace

Expected<std::string> evaluate(const Block &block, Dict globals) {
  return Evaluator(std::move(globals)).run(block);
}

} // namespace otf::text::jinja
