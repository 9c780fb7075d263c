// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/Cores.h"

#include <algorithm>
#include <sched.h>
#include <unistd.h>

namespace otf::runtime {

unsigned availableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return unsigned(std::max(1, CPU_COUNT(&set)));
  return unsigned(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); // more than 1024 cores
}

} // namespace otf::runtime
