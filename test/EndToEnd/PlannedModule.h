// SPDX-License-Identifier: Apache-2.0
//
// A planned module from text, over files that a test makes up, and the errors it caused.
#ifndef OTF_TEST_ENDTOEND_PLANNEDMODULE_H
#define OTF_TEST_ENDTOEND_PLANNEDMODULE_H

#include "dialects/Plan/Plan.h"
#include "lib/Import/FileSet.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <cstring>

#include <gtest/gtest.h>

struct PlannedModule {
  explicit PlannedModule(const std::string &text)
      : context(mlir::MLIRContext::Threading::DISABLED),
        handler(&context,
                [this](mlir::Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; }),
        files(llvm::cantFail(otf::FileSet::in("."))) {
    context.loadDialect<otf::OTFDialect, otf::plan::PlanDialect, mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(bool(module)) << errors;
  }

  /// The file of the next number.
  void file(const std::vector<float> &values) {
    std::vector<std::byte> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    files.addPacked("test", std::move(bytes));
  }

  mlir::MLIRContext context;
  std::string errors;
  mlir::ScopedDiagnosticHandler handler;
  otf::FileSet files;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

#endif // OTF_TEST_ENDTOEND_PLANNEDMODULE_H
