// SPDX-License-Identifier: Apache-2.0
#ifndef OTF_RUNTIME_CPU_CORES_H
#define OTF_RUNTIME_CPU_CORES_H

namespace otf::runtime {

/// Cores this process may use; at least 1.
unsigned availableCores();

} // namespace otf::runtime

#endif // OTF_RUNTIME_CPU_CORES_H
