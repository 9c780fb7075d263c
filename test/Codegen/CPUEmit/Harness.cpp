// SPDX-License-Identifier: Apache-2.0
//
// The MLIR side of the tests, and the loader.

#include "test/Codegen/CPUEmit/Harness.h"
#include "dialects/Plan/Plan.h"
#include "lib/Codegen/CPU/CompileObject.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <dlfcn.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace otf::test {

/// Parses `text` and applies `compiler`; diagnostics end up in `diagnostics`.
template <typename Compiler>
static std::string withModule(const std::string &text, std::string &diagnostics,
                              Compiler compiler) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<OTFDialect, plan::PlanDialect, tensor::TensorDialect, arith::ArithDialect,
                      math::MathDialect, scf::SCFDialect, index::IndexDialect>();
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "\n"; });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return {};
  FailureOr<std::string> result = compiler(*module);
  return succeeded(result) ? *result : std::string();
}

Compilation compile(const std::string &text, const std::string &level) {
  Compilation result;
  result.object = withModule(text, result.diagnostics,
                             [&](ModuleOp module) { return cpu::compileObject(module, level); });
  return result;
}

std::string llvmText(const std::string &text, const std::string &level, bool optimised) {
  std::string diagnostics;
  return withModule(text, diagnostics, [&](ModuleOp module) {
    return cpu::emitLlvmText(module, level,
                             optimised ? cpu::LlvmStage::Optimised : cpu::LlvmStage::Generated);
  });
}

bool supported(const std::string &level) {
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (level == "avx2")
    return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

/// The library stays loaded: tests are few, and the process ends soon.
static void *load(const std::string &object) {
  int file = memfd_create("otf-kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, object.data(), object.size()) != ssize_t(object.size()))
    return nullptr;
  void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
  return library; // the descriptor stays open, so that the next object has another path
}

otf_kernel LevelTest::kernel(const std::string &text, const char *name) {
  static std::map<std::pair<std::string, std::string>, void *> libraries;
  auto [entry, isNew] = libraries.try_emplace({text, GetParam()}, nullptr);
  if (isNew) {
    Compilation compilation = compile(text, GetParam());
    if (compilation.object.empty()) {
      ADD_FAILURE() << compilation.diagnostics;
      return nullptr;
    }
    if (supported(GetParam()))
      entry->second = load(compilation.object);
  }
  if (!supported(GetParam())) {
    [] { GTEST_SKIP() << "this CPU lacks " << GetParam() << "; compiled, not run"; }();
    return nullptr;
  }
  if (!entry->second)
    return nullptr;
  void *symbol = dlsym(entry->second, name);
  if (!symbol)
    ADD_FAILURE() << "the object has no " << name;
  return reinterpret_cast<otf_kernel>(symbol);
}

std::vector<float> LevelTest::floats(size_t count, float low, float high) {
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

void runRange(otf_kernel kernel, const std::vector<const void *> &buffers,
              const std::vector<int64_t> &dims, int64_t begin, int64_t end, otf_kernel_shared shared) {
  static std::vector<char> memory(OTF_KERNEL_SCRATCH + 128);
  auto scratch = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
  *reinterpret_cast<otf_kernel_shared *>(scratch + OTF_KERNEL_SCRATCH) = shared;
  std::vector<void *> pointers;
  for (const void *buffer : buffers)
    pointers.push_back(const_cast<void *>(buffer));
  kernel(pointers.data(), dims.data(), begin, end, reinterpret_cast<void *>(scratch));
}

} // namespace otf::test
