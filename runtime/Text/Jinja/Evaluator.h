// SPDX-License-Identifier: Apache-2.0
//
// Runs a syntax tree. Work and output are bounded, so that a template from an
// unknown source can neither hang nor fill the memory.
#ifndef OTF_RUNTIME_TEXT_JINJA_EVALUATOR_H
#define OTF_RUNTIME_TEXT_JINJA_EVALUATOR_H

#include "runtime/Text/Jinja/Ast.h"

namespace otf::text::jinja {

/// `globals` are the variables the template sees.
Expected<std::string> evaluate(const Block &block, Dict globals);

} // namespace otf::text::jinja

#endif // OTF_RUNTIME_TEXT_JINJA_EVALUATOR_H
