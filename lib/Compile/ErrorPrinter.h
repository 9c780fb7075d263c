// SPDX-License-Identifier: Apache-2.0
//
// MLIR diagnostics as the tools' one form of an error: "error: <file>: <node or tensor>: <what>".
#ifndef OTF_LIB_COMPILE_ERRORPRINTER_H
#define OTF_LIB_COMPILE_ERRORPRINTER_H

#include "lib/Compile/Progress.h"

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace otf {

/// Prints every error of a context as long as it lives, each as one line.
class ErrorPrinter {
public:
  ErrorPrinter(mlir::MLIRContext &context, Progress &progress);

  /// Errors that follow are about this file and are prefixed by it; the importer's own are whole.
  void setFile(std::string name) { file = std::move(name); }
  /// An error that is no diagnostic.
  void print(const std::string &message);
  unsigned count() const { return errors; }

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);

  Progress &progress;
  std::string file;
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_ERRORPRINTER_H
