// SPDX-License-Identifier: Apache-2.0

#include "bench/kernels/Compile.h"
#include "dialects/OTF/OTF.h"
#include "dialects/Plan/Plan.h"
#include "lib/Codegen/CPU/CompileObject.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"

#include <cstdio>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace otf::bench {

otf_kernel compiled(const std::string &text, const std::string &name, const std::string &level) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<OTFDialect, plan::PlanDialect, arith::ArithDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return nullptr;
  FailureOr<std::string> object = cpu::compileObject(*module, level);
  if (failed(object))
    return nullptr;
  // The descriptor stays open, so that the next object has another path.
  int file = memfd_create("otf-kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, object->data(), object->size()) != ssize_t(object->size())) {
    std::perror("error: cannot keep an object in memory");
    return nullptr;
  }
  void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, name.c_str()) : nullptr;
  if (!symbol)
    std::fprintf(stderr, "error: %s\n", dlerror());
  return reinterpret_cast<otf_kernel>(symbol);
}

} // namespace otf::bench
