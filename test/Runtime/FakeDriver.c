/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of an NVIDIA driver as the runtime uses, over the host's memory and with the kernels below, so that what
 * surrounds kernels on a GPU is tested where there is none. An address of "device memory" is no address of the
 * host: whoever confuses them ends with a fault. Work is done at once, or recorded while a stream is captured. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Pointer;
enum { kBadValue = 1, kNotFound = 500 };
static const Pointer kBias = 1ull << 62;
static void *host(Pointer p) { return (void *)(uintptr_t)(p - kBias); }

/* One kernel: t[i][c] = 2 x[i][c], a block a row. Parameters: x, t, then the sizes, of which 0 is the width. */
typedef void (*Kernel)(const Pointer *parameters, unsigned blocks);
static void twice(const Pointer *parameters, unsigned blocks) {
  const float *x = host(parameters[0]);
  float *t = host(parameters[1]);
  const int64_t *dims = host(parameters[2]);
  for (int64_t i = 0; i < (int64_t)blocks * dims[0]; ++i)
    t[i] = 2 * x[i];
}

/* A copy to the device, or a launch with at most 8 parameters. */
struct Work {
  Pointer to, parameters[8];
  const void *from;
  size_t bytes;
  Kernel kernel;
  unsigned blocks;
};
static struct Work recorded[64];
static int recording, count;
static void perform(const struct Work *work) {
  if (work->kernel)
    work->kernel(work->parameters, work->blocks);
  else
    memcpy(host(work->to), work->from, work->bytes);
}
static int submit(const struct Work *work) {
  if (!recording) {
    perform(work);
    return 0;
  }
  if (count == 64)
    return kBadValue;
  recorded[count++] = *work;
  return 0;
}

int cuGetErrorName(int code, const char **name) { return *name = "fake", code ? 0 : kBadValue; }
int cuGetErrorString(int code, const char **text) { return *text = "fake", code ? 0 : kBadValue; }
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *number) { return *number = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  return strncpy(name, "fake", (size_t)size), 0;
}
int cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  return *value = which == 75 ? 9 : which == 76 ? 0 : 1, 0; /* sm_90, one multiprocessor */
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  return *context = &recording, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxPushCurrent_v2(void *context) { return context ? 0 : kBadValue; }
int cuCtxPopCurrent_v2(void **context) { return *context = &recording, 0; }
int cuMemGetInfo_v2(size_t *unused, size_t *total) { return *unused = *total = 1 << 30, 0; }
int cuMemAlloc_v2(Pointer *memory, size_t bytes) {
  void *here = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (here)
    memset(here, 0xa5, bytes); /* nobody may rely on zeros */
  return *memory = (Pointer)(uintptr_t)here + kBias, here ? 0 : 2;
}
int cuMemFree_v2(Pointer memory) { return free(host(memory)), 0; }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  return *memory = malloc(bytes), 0;
}
int cuMemFreeHost(void *memory) { return free(memory), 0; }
int cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  struct Work work = {.to = to, .from = from, .bytes = bytes};
  return submit(&work);
}
int cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t bytes, void *stream) {
  (void)stream;
  return memcpy(to, host(from), bytes), 0;
}
int cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  return *stream = &count, 0;
}
int cuStreamDestroy_v2(void *stream) { return stream ? 0 : kBadValue; }
int cuStreamSynchronize(void *stream) { return stream && !recording ? 0 : kBadValue; }
int cuStreamBeginCapture_v2(void *stream, int mode) {
  (void)stream, (void)mode;
  return count = 0, recording = 1, 0;
}
struct Graph {
  int count;
  struct Work work[64];
};
int cuStreamEndCapture(void *stream, void **graph) {
  (void)stream;
  struct Graph *made = malloc(sizeof *made);
  made->count = count;
  memcpy(made->work, recorded, sizeof recorded);
  return recording = 0, *graph = made, 0;
}
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  (void)flags;
  return *exec = malloc(sizeof(struct Graph)), memcpy(*exec, graph, sizeof(struct Graph)), 0;
}
int cuGraphLaunch(void *exec, void *stream) {
  (void)stream;
  const struct Graph *graph = exec;
  for (int i = 0; i < graph->count; ++i)
    perform(&graph->work[i]);
  return 0;
}
int cuGraphDestroy(void *graph) { return free(graph), 0; }
int cuGraphExecDestroy(void *exec) { return free(exec), 0; }
int cuModuleLoadData(void **module, const void *image) { return *module = (void *)image, 0; }
int cuModuleUnload(void *module) { return module ? 0 : kBadValue; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  return strcmp(name, "test_twice") ? kNotFound : (memcpy(function, &(Kernel){twice}, sizeof(Kernel)), 0);
}
int cuModuleGetGlobal_v2(Pointer *place, size_t *bytes, void *module, const char *name) {
  return (void)place, (void)bytes, (void)module, (void)name, kNotFound;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned blockX,
                   unsigned blockY, unsigned blockZ, unsigned shared, void *stream,
                   void **parameters, void **extra) {
  (void)y, (void)z, (void)blockX, (void)blockY, (void)blockZ, (void)shared, (void)stream, (void)extra;
  struct Work work = {.blocks = x};
  memcpy(&work.kernel, &function, sizeof work.kernel);
  memcpy(work.parameters, parameters[0], 3 * sizeof(Pointer)); /* what twice() takes */
  return submit(&work);
}
int cuLaunchKernelEx(const void *config, void *function, void **parameters, void **extra) {
  const unsigned *shape = config; /* CUlaunchConfig: grid, block, shared, stream, … */
  return cuLaunchKernel(function, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6], NULL, parameters, extra);
}
/* Not used by the tests; an error if they come to be. */
int cuMemcpy2DAsync_v2(const void *copy, void *stream) { return (void)copy, (void)stream, kBadValue; }
int cuFuncSetAttribute(void *function, int which, int value) {
  return (void)function, (void)which, (void)value, kBadValue;
}
int cuEventCreate(void **event, unsigned flags) { return (void)event, (void)flags, kBadValue; }
int cuEventDestroy_v2(void *event) { return (void)event, kBadValue; }
int cuEventRecord(void *event, void *stream) { return (void)event, (void)stream, kBadValue; }
int cuEventRecordWithFlags(void *event, void *stream, unsigned flags) {
  return (void)event, (void)stream, (void)flags, kBadValue;
}
int cuEventElapsedTime(float *ms, void *a, void *b) { return (void)ms, (void)a, (void)b, kBadValue; }
