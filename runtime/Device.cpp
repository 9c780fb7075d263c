// SPDX-License-Identifier: Apache-2.0
//
// Device names to devices.

#include "runtime/Device.h"

namespace otf::runtime {

Result<std::unique_ptr<Device>> makeDevice(const PlanFile &plan, std::string_view name) {
  size_t colon = name.find(':');
  std::string_view kind = name.substr(0, colon);
  std::string_view argument = colon == name.npos ? "" : name.substr(colon + 1);
  if (kind == "cpu")
    return makeCpuDevice(plan, argument);
  if (kind == "cuda")
    return makeCudaDevice(plan, argument);
  return usageError("device '", name, "': unknown (cpu and cuda are known)");
}

} // namespace otf::runtime
