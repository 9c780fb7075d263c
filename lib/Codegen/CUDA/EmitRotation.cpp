// SPDX-License-Identifier: Apache-2.0
//
// Rotations: their sizes are template arguments, their factor a constant of the kernel.

#include "lib/Codegen/CUDA/KernelFrame.h"
#include "lib/Encoding/Rotation.h"

#include <bit>

using namespace mlir;

namespace otf::cuda {

std::pair<std::string, std::string> rotationOf(KernelFrame &k, Operation *op,
                                               RotationAttr attribute, int64_t columns) {
  Rotation rotation{attribute.getBlock(), attribute.getFactor(), attribute.getSeed()};
  auto kernel = op->getParentOfType<plan::KernelOp>();
  std::string name = (k.part ? k.part->prefix : kernel.getSymName().str()) + "_factor";
  // As bits: the text of a float may be rounded.
  k.globals += "static __device__ const unsigned " + name + "[] = {";
  for (float entry : rotationFactor32(rotation))
    k.globals += std::to_string(std::bit_cast<uint32_t>(entry)) + "u, ";
  k.globals += "};\n";
  return {"otf::Rotation<" + std::to_string(columns) + ", " + std::to_string(rotation.block) +
              ", " + std::to_string(rotation.factor) + ", " + std::to_string(rotation.seed) +
              "ull>",
          "reinterpret_cast<const float *>(" + name + ")"};
}

bool emitRotate(KernelFrame &k, RotateOp op) {
  auto rows = rowsOf(k, op, op.getInput());
  int64_t width = cast<RankedTensorType>(op.getInput().getType()).getShape().back();
  if (!rows)
    return false;
  auto [rotation, factor] = rotationOf(k, op, op.getRotation(), width);
  k.line("otf::rotate<" + rotation + ">(" + rows->first + ", " + factor + ",");
  k.line("    [=](long long m, long long c, float v) { " + k.result.pointer + "[m * " +
         rows->second + " + c] = v; });");
  k.grid = elementCount(ArrayRef(k.result.shape).drop_back());
  return true;
}

} // namespace otf::cuda
