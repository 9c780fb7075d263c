// SPDX-License-Identifier: Apache-2.0
//
// MLIR diagnostics as the tools' one form of an error: "error: <file>: <node or tensor>: <what>", in one line.
#ifndef OTF_LIB_COMPILE_ERRORPRINTER_H
#define OTF_LIB_COMPILE_ERRORPRINTER_H

#include "lib/Compile/Progress.h"

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace otf {

/// Gathers the errors of a context as long as it lives, and prints them as one line: what is wrong with several tensors
/// is said once. Warnings are printed as they come.
class ErrorPrinter {
public:
  ErrorPrinter(mlir::MLIRContext &context, Progress &progress);
  ~ErrorPrinter() { flush(); }

  /// Errors that follow are about this file and are prefixed by it where they are not yet.
  void setFile(std::string name) { file = std::move(name); }
  /// Warnings are dropped: who compiles for itself before it compiles for the caller would say them twice.
  void dropWarnings() { dropped = true; }
  /// An error that is no diagnostic.
  void print(const std::string &message) { messages.push_back(message); }
  unsigned count() const { return messages.size(); }
  /// Prints what was gathered.
  void flush();

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);
  void line(const char *kind, std::string text);

  Progress &progress;
  std::string file;
  std::vector<std::string> messages;
  bool dropped = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_ERRORPRINTER_H
