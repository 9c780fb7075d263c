// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/Driver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace otf::runtime::cuda {
namespace {

constexpr int kAttributeMultiprocessors = 16, kAttributeMajor = 75, kAttributeMinor = 76;

Result<Driver> load() {
  const char *named = std::getenv("OTF_CUDA_DRIVER"); // for tests
  void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return deviceError("device 'cuda': no NVIDIA driver on this machine (libcuda.so.1 cannot be "
                       "loaded; install the driver or use --device cpu)");
  Driver d;
  const char *missing = nullptr;
  // The suffix is part of the interface: _v2 entries take 64-bit sizes.
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function)
      missing = name;
  };
  find(d.getErrorName, "cuGetErrorName");
  find(d.getErrorString, "cuGetErrorString");
  find(d.init, "cuInit");
  find(d.driverGetVersion, "cuDriverGetVersion");
  find(d.deviceGetCount, "cuDeviceGetCount");
  find(d.deviceGet, "cuDeviceGet");
  find(d.deviceGetName, "cuDeviceGetName");
  find(d.deviceGetAttribute, "cuDeviceGetAttribute");
  find(d.primaryRetain, "cuDevicePrimaryCtxRetain");
  find(d.primaryRelease, "cuDevicePrimaryCtxRelease_v2");
  find(d.ctxPush, "cuCtxPushCurrent_v2");
  find(d.ctxPop, "cuCtxPopCurrent_v2");
  find(d.memGetInfo, "cuMemGetInfo_v2");
  find(d.memAlloc, "cuMemAlloc_v2");
  find(d.memFree, "cuMemFree_v2");
  find(d.memHostAlloc, "cuMemHostAlloc");
  find(d.memFreeHost, "cuMemFreeHost");
  find(d.copyToDevice, "cuMemcpyHtoDAsync_v2");
  find(d.copyToHost, "cuMemcpyDtoHAsync_v2");
  find(d.copy2D, "cuMemcpy2DAsync_v2");
  find(d.streamCreate, "cuStreamCreate");
  find(d.streamDestroy, "cuStreamDestroy_v2");
  find(d.streamSynchronize, "cuStreamSynchronize");
  find(d.streamBeginCapture, "cuStreamBeginCapture_v2");
  find(d.streamEndCapture, "cuStreamEndCapture");
  find(d.graphInstantiate, "cuGraphInstantiateWithFlags");
  find(d.graphLaunch, "cuGraphLaunch");
  find(d.graphDestroy, "cuGraphDestroy");
  find(d.graphExecDestroy, "cuGraphExecDestroy");
  find(d.eventCreate, "cuEventCreate");
  find(d.eventDestroy, "cuEventDestroy_v2");
  find(d.eventRecord, "cuEventRecord");
  find(d.eventRecordWithFlags, "cuEventRecordWithFlags");
  find(d.eventElapsedTime, "cuEventElapsedTime");
  find(d.moduleLoadData, "cuModuleLoadData");
  find(d.moduleUnload, "cuModuleUnload");
  find(d.moduleGetFunction, "cuModuleGetFunction");
  find(d.moduleGetGlobal, "cuModuleGetGlobal_v2");
  find(d.funcSetAttribute, "cuFuncSetAttribute");
  find(d.launchKernel, "cuLaunchKernel");
  find(d.launchKernelEx, "cuLaunchKernelEx");
  if (missing)
    return deviceError("device 'cuda': the NVIDIA driver is too old: it has no ", missing,
                       " (driver 525 or newer is needed)");
  if (int code = d.init(0)) {
    if (code == kNoDevice)
      return deviceError("device 'cuda': no GPU on this machine (use --device cpu)");
    return d.error(code, "cuInit");
  }
  return d;
}

} // namespace

Result<const Driver *> Driver::get() {
  static const Result<Driver> driver = load(); // never unloaded: the driver keeps threads
  if (!driver.ok())
    return driver.status();
  return &driver.value();
}

Status Driver::error(int code, const char *what) const {
  const char *name = nullptr, *text = nullptr;
  getErrorName(code, &name);
  getErrorString(code, &text);
  return deviceError("device 'cuda': ", what, ": ", name ? name : "error", " (", code,
                     "): ", text ? text : "no description");
}

Result<std::unique_ptr<Gpu>> Gpu::open(int ordinal) {
  Result<const Driver *> driver = Driver::get();
  if (!driver.ok())
    return driver.status();
  const Driver &d = *driver.value();
  int count = 0;
  OTF_TRY(d.check(d.deviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count)
    return deviceError("device 'cuda:", ordinal, "': there ", count == 1 ? "is 1 GPU" : "are ",
                       count == 1 ? "" : cat(count, " GPUs"), " (counted from 0)");
  std::unique_ptr<Gpu> gpu(new Gpu);
  char name[256] = {};
  OTF_TRY(d.check(d.deviceGet(&gpu->device, ordinal), "cuDeviceGet"));
  OTF_TRY(d.check(d.deviceGetName(name, sizeof name - 1, gpu->device), "cuDeviceGetName"));
  gpu->name_ = name;
  auto attribute = [&](int &value, int which) {
    return d.check(d.deviceGetAttribute(&value, which, gpu->device), "cuDeviceGetAttribute");
  };
  OTF_TRY(attribute(gpu->major_, kAttributeMajor));
  OTF_TRY(attribute(gpu->minor_, kAttributeMinor));
  OTF_TRY(attribute(gpu->multiprocessors_, kAttributeMultiprocessors));
  OTF_TRY(d.check(d.primaryRetain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain"));
  gpu->driver_ = &d; // from here on the destructor gives the context back
  return gpu;
}

Gpu::~Gpu() {
  if (driver_)
    driver_->primaryRelease(device);
}

Result<Pointer> Gpu::allocate(uint64_t bytes) const {
  Pointer memory = 0;
  const int code = driver_->memAlloc(&memory, bytes ? bytes : 1);
  if (code == kOutOfMemory) {
    size_t free = 0, total = 0;
    driver_->memGetInfo(&free, &total);
    return deviceError("device 'cuda': out of memory: ", bytes, " bytes needed, ", free, " of ",
                       total, " free on ", name_,
                       " (use a smaller context or batch, or fewer bits)");
  }
  OTF_TRY(driver_->check(code, "cuMemAlloc"));
  return memory;
}

Result<void *> Gpu::allocateHost(uint64_t bytes) const {
  void *memory = nullptr;
  OTF_TRY(driver_->check(driver_->memHostAlloc(&memory, bytes ? bytes : 1, 0), "cuMemHostAlloc"));
  return memory;
}

Result<Module> Gpu::load(std::span<const char> cubin) const {
  Module module = nullptr;
  OTF_TRY(driver_->check(driver_->moduleLoadData(&module, cubin.data()), "cuModuleLoadData"));
  return module;
}

} // namespace otf::runtime::cuda
