// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, found at run time: the entry points that the runtime uses, under their own
// names, and one place where its errors become sentences. No header of CUDA is needed to build.
#ifndef OTF_RUNTIME_CUDA_DRIVER_H
#define OTF_RUNTIME_CUDA_DRIVER_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace otf::runtime::cuda {

using Context = struct CudaContext *;
using Stream = struct CudaStream *;
using Module = struct CudaModule *;
using Function = struct CudaFunction *;
using Graph = struct CudaGraph *;
using GraphExec = struct CudaGraphExec *;
using Event = struct CudaEvent *;
using Pointer = unsigned long long;
using Ordinal = int;

enum : int { kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNoBinaryForGpu = 209 };

/// CUDA_MEMCPY2D of cuda.h.
struct Copy2D {
  size_t srcX, srcY;
  unsigned srcType;
  const void *srcHost;
  Pointer srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstX, dstY;
  unsigned dstType;
  void *dstHost;
  Pointer dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t widthInBytes, height;
};
enum : unsigned { kMemoryHost = 1, kMemoryDevice = 2 };
constexpr unsigned kNonBlockingStream = 1;

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  unsigned id;
  char pad[4];
  union {
    char bytes[64];
    int flag;
  };
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned count;
};
constexpr unsigned kProgrammaticSerialization = 6; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

struct Driver {
  int (*getErrorName)(int, const char **);
  int (*getErrorString)(int, const char **);
  int (*init)(unsigned);
  int (*driverGetVersion)(int *);
  int (*deviceGetCount)(int *);
  int (*deviceGet)(Ordinal *, int);
  int (*deviceGetName)(char *, int, Ordinal);
  int (*deviceGetAttribute)(int *, int, Ordinal);
  int (*primaryRetain)(Context *, Ordinal);
  int (*primaryRelease)(Ordinal);
  int (*ctxPush)(Context);
  int (*ctxPop)(Context *);
  int (*memGetInfo)(size_t *, size_t *);
  int (*memAlloc)(Pointer *, size_t);
  int (*memFree)(Pointer);
  int (*memHostAlloc)(void **, size_t, unsigned);
  int (*memFreeHost)(void *);
  int (*copyToDevice)(Pointer, const void *, size_t, Stream);
  int (*copyToHost)(void *, Pointer, size_t, Stream);
  int (*copy2D)(const Copy2D *, Stream);
  int (*streamCreate)(Stream *, unsigned);
  int (*streamDestroy)(Stream);
  int (*streamSynchronize)(Stream);
  int (*streamBeginCapture)(Stream, int);
  int (*streamEndCapture)(Stream, Graph *);
  int (*graphInstantiate)(GraphExec *, Graph, unsigned long long);
  int (*graphLaunch)(GraphExec, Stream);
  int (*graphDestroy)(Graph);
  int (*graphExecDestroy)(GraphExec);
  int (*eventCreate)(Event *, unsigned);
  int (*eventDestroy)(Event);
  int (*eventRecord)(Event, Stream);
  int (*eventRecordWithFlags)(Event, Stream, unsigned);
  int (*eventElapsedTime)(float *, Event, Event);
  int (*moduleLoadData)(Module *, const void *);
  int (*moduleUnload)(Module);
  int (*moduleGetFunction)(Function *, Module, const char *);
  int (*moduleGetGlobal)(Pointer *, size_t *, Module, const char *);
  int (*funcSetAttribute)(Function, int, int);
  int (*launchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, Stream, void **, void **);
  int (*launchKernelEx)(const LaunchConfig *, Function, void **, void **);

  /// Loads libcuda and initialises it, once a process. Code::device where there is no driver or no
  /// GPU.
  static Result<const Driver *> get();

  /// "device 'cuda': <what>: <name>: <text>".
  Status error(int code, const char *what) const;
  Status check(int code, const char *what) const {
    return code == kSuccess ? Status() : error(code, what);
  }
};

/// A GPU that is in use: its primary context, held until destruction.
class Gpu {
public:
  static Result<std::unique_ptr<Gpu>> open(int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const Driver &driver() const { return *driver_; }
  const std::string &name() const { return name_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  int multiprocessors() const { return multiprocessors_; }
  /// "sm_90".
  std::string architecture() const { return cat("sm_", major_, minor_); }

  /// Device memory; a failure says how much was needed and how much is free.
  Result<Pointer> allocate(uint64_t bytes) const;
  /// Pinned host memory, for copies that do not wait.
  Result<void *> allocateHost(uint64_t bytes) const;
  Result<Module> load(std::span<const char> cubin) const;

  /// Makes the context current in this thread while it lives. The driver's calls need one.
  class Current {
  public:
    explicit Current(const Gpu &gpu) : driver(gpu.driver()) { driver.ctxPush(gpu.context); }
    ~Current() {
      Context popped;
      driver.ctxPop(&popped);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    const Driver &driver;
  };

private:
  Gpu() = default;
  const Driver *driver_ = nullptr;
  Context context = nullptr;
  Ordinal device = 0;
  std::string name_;
  int major_ = 0, minor_ = 0, multiprocessors_ = 0;
};

} // namespace otf::runtime::cuda

#endif // OTF_RUNTIME_CUDA_DRIVER_H
