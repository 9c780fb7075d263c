// SPDX-License-Identifier: Apache-2.0
//
// A shared object that exists only as bytes in a plan. It is copied to an anonymous file in
// memory, which the dynamic linker loads by its name under /proc.
#ifndef OTF_RUNTIME_CPU_SHAREDOBJECT_H
#define OTF_RUNTIME_CPU_SHAREDOBJECT_H

#include "runtime/PlanFile.h"

namespace otf::runtime {

class SharedObject {
public:
  SharedObject() = default;
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  Status load(Bytes bytes);
  /// Address of a function, or null.
  void *find(const char *name) const;

private:
  void *handle = nullptr;
  int file = -1;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_CPU_SHAREDOBJECT_H
