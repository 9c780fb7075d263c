// SPDX-License-Identifier: Apache-2.0
//
// `x is something`.
#include "runtime/Text/Jinja/Operations.h"

namespace otf::text::jinja {

Expected<bool> applyTest(std::string_view name, const Value &input,
                         const Arguments &arguments) {
  const int64_t *integer = input.asInt();
  if (name == "defined")
    return !input.isUndefined();
  if (name == "undefined")
    return input.isUndefined();
  if (name == "none")
    return input.isNone();
  if (name == "string")
    return input.asString() != nullptr;
  if (name == "integer")
    return integer != nullptr;
  if (name == "boolean")
    return input.asBool() != nullptr;
  if (name == "number")
    return integer || input.asBool();
  if (name == "mapping")
    return input.asDict() != nullptr;
  // Jinja's undefined value can be iterated over: it has no items.
  if (name == "iterable")
    return input.asString() || input.asList() || input.asDict() ||
           input.isUndefined();
  if (name == "sequence")
    return input.asString() || input.asList() || input.asDict();
  if (name == "true" || name == "false")
    return input.asBool() && *input.asBool() == (name == "true");
  if (integer && (name == "odd" || name == "even"))
    return (*integer % 2 != 0) == (name == "odd");

  const Value *other = arguments.get(0, "");
  if (other && (name == "equalto" || name == "eq"))
    return input == *other;
  if (other && name == "ne")
    return !(input == *other);
  if (other && name == "in")
    return contains(*other, input);
  if (other && name == "divisibleby" && integer && other->asInt() &&
      *other->asInt() > 0)
    return *integer % *other->asInt() == 0;
  return Error{"the test 'is " + std::string(name) + "' of a value that is " +
               std::string(input.kind()) +
               " is not supported; rewrite the template without it"};
}

} // namespace otf::text::jinja
