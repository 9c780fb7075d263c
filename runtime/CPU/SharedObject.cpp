// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/SharedObject.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace otf::runtime {

SharedObject::~SharedObject() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

Status SharedObject::load(Bytes bytes) {
  file = memfd_create("otf-kernels", MFD_CLOEXEC);
  if (file < 0)
    return deviceError("kernels: no file in memory (", std::strerror(errno), ")");
  for (Bytes left = bytes; !left.empty();) {
    ssize_t n = write(file, left.data(), left.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return deviceError("kernels: cannot be copied (", std::strerror(errno), ")");
    left = left.subspan(size_t(n));
  }
  // The linker takes two objects with one name for the same, so the number in the name must not
  // be used again while this one is loaded: the file stays open.
  handle = dlopen(cat("/proc/self/fd/", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return badInput("kernels: cannot be loaded (", dlerror(), ")");
  return {};
}

void *SharedObject::find(const char *name) const { return dlsym(handle, name); }

} // namespace otf::runtime
