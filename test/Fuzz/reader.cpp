// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a model file: the scan of the wire, the message, and the module of `onnx` operations that it becomes.
// Whatever the file says, the answer is a module that verifies or an error.

#include "Input.h"

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Import/Importer.h"
#include "lib/Import/WeightSource.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <vector>

using namespace otf;

/// Each blob of the module is bytes that are there.
static void touch(mlir::ModuleOp module, const FileSet &files) {
  WeightSource source(files);
  for (auto initializer : module.getOps<otf::onnx::InitializerOp>()) {
    otf::onnx::FileBlobAttr blob = initializer.blob();
    if (!blob)
      continue;
    llvm::Expected<const std::byte *> data = source.data(Blob::of(blob));
    if (!data)
      std::abort(); // the importer said that it is
    volatile std::byte last = blob.getLength() ? (*data)[blob.getLength() - 1] : std::byte(0);
    (void)last;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<std::unique_ptr<ModelFile>> file = ModelFile::open(fuzz::fileWith(data, size));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &) {
    ++errors;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(**file, context);
  if (!module && errors == 0)
    std::abort(); // refused without a word
  if (!module)
    return 0;
  if (mlir::failed(mlir::verify(*module)))
    std::abort();
  touch(*module, (*file)->files());
  return 0;
}
