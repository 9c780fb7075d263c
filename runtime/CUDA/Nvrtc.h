// SPDX-License-Identifier: Apache-2.0
//
// CUDA C++ to machine code, by NVIDIA's runtime compiler. The library is found at run time: the
// same program works where there is none, and says so when one is needed. The compiler links this
// file too, to put machine code for known architectures in a plan, and tests to read what the
// assembler says of registers and spills.
#ifndef OTF_RUNTIME_CUDA_NVRTC_H
#define OTF_RUNTIME_CUDA_NVRTC_H

#include "runtime/Status.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace otf::runtime {

/// What the assembler reports of one entry.
struct KernelUsage {
  std::string name;
  unsigned registers = 0;
  unsigned spillStores = 0, spillLoads = 0; // bytes
  unsigned stack = 0;                       // bytes of local memory
  unsigned shared = 0;                      // static, bytes
};

struct CudaBinary {
  std::vector<char> cubin;
  std::string log;
  std::vector<KernelUsage> kernels;
};

class Nvrtc {
public:
  /// Looks for the library in: $OTF_NVRTC (a file), `directory` if not empty, the loader's path,
  /// /usr/local/cuda/lib64 and /usr/local/cuda/lib. Versions 13 and 12 are known to work.
  static Result<std::unique_ptr<Nvrtc>> open(std::string_view directory = {});
  ~Nvrtc();
  Nvrtc(const Nvrtc &) = delete;
  Nvrtc &operator=(const Nvrtc &) = delete;

  int major() const { return major_; }
  int minor() const { return minor_; }
  /// Architectures it can make, ascending: 75, 80, 86, ...
  std::span<const int> architectures() const { return architectures_; }

  /// `architecture`: "sm_90". The options that every OTF kernel is compiled with come first. May be
  /// called from several threads. A failure carries the log.
  Result<CudaBinary> compile(const std::string &source, std::string_view architecture,
                             std::span<const std::string> options = {}) const;
  /// The options that compile() always passes, for the keys of caches.
  static std::span<const char *const> fixedOptions();

private:
  Nvrtc() = default;
  struct Functions;
  std::unique_ptr<Functions> functions;
  void *library = nullptr;
  int major_ = 0, minor_ = 0;
  std::vector<int> architectures_;
};

/// Reads `--ptxas-options=-v` output.
std::vector<KernelUsage> parseUsage(std::string_view log);

} // namespace otf::runtime

#endif // OTF_RUNTIME_CUDA_NVRTC_H
