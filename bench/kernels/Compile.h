// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a plan given as text, compiled in this process as otf-compile does it, and loaded. No MLIR here.
#ifndef OTF_BENCH_KERNELS_COMPILE_H
#define OTF_BENCH_KERNELS_COMPILE_H

#include "otf/KernelABI.h"

#include <string>

namespace otf::bench {

/// Kernel `name` of the planned module `text`, for an instruction set level; it stays loaded. Null after saying why on stderr.
otf_kernel compiled(const std::string &text, const std::string &name, const std::string &level);

} // namespace otf::bench

#endif // OTF_BENCH_KERNELS_COMPILE_H
