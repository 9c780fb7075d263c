// SPDX-License-Identifier: Apache-2.0
//
// Errors that say which operation they are about.
#ifndef OTF_LIB_REFERENCE_FAILURE_H
#define OTF_LIB_REFERENCE_FAILURE_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace otf::reference {

inline llvm::Error failure(mlir::Operation *op, const llvm::Twine &what) {
  std::string text;
  llvm::raw_string_ostream(text) << op->getLoc() << ": '" << op->getName() << "' " << what;
  return llvm::createStringError(text);
}

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_FAILURE_H
