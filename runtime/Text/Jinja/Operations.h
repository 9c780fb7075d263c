// SPDX-License-Identifier: Apache-2.0
//
// What a template can do with values: operators, filters, tests and methods.
// Each group has a file of its own. All refuse what they do not know by name;
// the evaluator adds the line.
#ifndef OTF_RUNTIME_TEXT_JINJA_OPERATIONS_H
#define OTF_RUNTIME_TEXT_JINJA_OPERATIONS_H

#include "runtime/Text/Jinja/Value.h"

#include <string_view>

namespace otf::text::jinja {

struct Arguments {
  List positional;
  Dict named;

  /// The argument at a position or with a name; null when it is not given.
  const Value *get(size_t position, std::string_view name) const {
    if (position < positional.size())
      return &positional[position];
    return findField(named, name);
  }
};

Expected<Value> applyBinary(std::string_view op, const Value &left,
                            const Value &right);
Expected<Value> negate(const Value &value);
Expected<bool> contains(const Value &container, const Value &item);
Expected<Value> subscript(const Value &object, const Value &index);
Expected<Value> slice(const Value &object, const Value &start,
                      const Value &stop, const Value &step);
/// What a for loop runs over: list items, keys, characters.
Expected<List> iterate(const Value &value);

Expected<Value> applyFilter(std::string_view name, const Value &input,
                            const Arguments &arguments);
Expected<bool> applyTest(std::string_view name, const Value &input,
                         const Arguments &arguments);
Expected<Value> callMethod(std::string_view name, const Value &object,
                           const Arguments &arguments);

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_OPERATIONS_H
