// SPDX-License-Identifier: Apache-2.0
//
// Names come from locations: the importer gives each node and initializer its own. Notes that say
// where else are for compiler developers and are left out.

#include "lib/Compile/ErrorPrinter.h"

#include "lib/Compile/PlanAssembly.h"

#include <cstdio>

using namespace mlir;

namespace otf {

ErrorPrinter::ErrorPrinter(MLIRContext &context, Progress &progress)
    : progress(progress),
      handler(&context, [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {}

void ErrorPrinter::print(const std::string &message) {
  progress.clear();
  ++errors;
  std::string line = message;
  for (char &c : line) // one line, whatever names hold
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  std::fprintf(stderr, "error: %s\n", line.c_str());
}

LogicalResult ErrorPrinter::handle(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
    return success();
  std::string message;
  if (!file.empty()) {
    message = file + ": ";
    std::string node = labelOf(diagnostic.getLocation());
    if (!node.empty() && node != file) // a module is called as its file is
      message += node + ": ";
  }
  print(message + diagnostic.str());
  return success();
}

} // namespace otf
