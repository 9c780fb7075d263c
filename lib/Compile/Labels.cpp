// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/Labels.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {

static void collectNames(Location location, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location))
    names.insert(name.getName().getValue());
  else if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      collectNames(part, names);
  else if (auto call = dyn_cast<CallSiteLoc>(location))
    collectNames(call.getCallee(), names);
}

std::string labelOf(Location location) {
  llvm::SetVector<StringRef> names;
  collectNames(location, names);
  if (names.empty())
    return {};
  std::string label = names.front().str();
  if (names.size() > 1)
    label += " (+" + std::to_string(names.size() - 1) + ")";
  return label;
}

std::string nodeOf(Location location) {
  llvm::SetVector<StringRef> names;
  collectNames(location, names);
  return names.empty() ? std::string() : names.front().str();
}

std::string valueOf(Location location) {
  llvm::SetVector<StringRef> names;
  collectNames(location, names);
  return names.empty() ? std::string() : names.back().str();
}

} // namespace otf
