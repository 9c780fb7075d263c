// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/PlanTypes.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace otf {

namespace model = plan::model;

std::optional<model::ElementType> elementType(Type type) {
  using enum model::ElementType;
  if (type.isF32())
    return f32;
  if (type.isF16())
    return f16;
  if (type.isBF16())
    return bf16;
  if (type.isF64())
    return f64;
  if (isa<Float8E4M3FNType>(type))
    return f8e4m3fn;
  if (isa<Float8E4M3FNUZType>(type))
    return f8e4m3fnuz;
  if (isa<Float8E5M2Type>(type))
    return f8e5m2;
  if (isa<Float8E5M2FNUZType>(type))
    return f8e5m2fnuz;
  if (isa<Float8E8M0FNUType>(type))
    return f8e8m0;
  if (isa<Float4E2M1FNType>(type))
    return f4e2m1;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return boolean;
  case 2:
    return isUnsigned ? u2 : i2;
  case 4:
    return isUnsigned ? u4 : i4;
  case 8:
    return isUnsigned ? u8 : i8;
  case 16:
    return isUnsigned ? u16 : i16;
  case 32:
    return isUnsigned ? u32 : i32;
  case 64:
    return isUnsigned ? u64 : i64;
  }
  return std::nullopt;
}

int64_t elementBytes(model::ElementType type) {
  using enum model::ElementType;
  switch (type) {
  case f32:
  case i32:
  case u32:
    return 4;
  case f16:
  case bf16:
  case i16:
  case u16:
    return 2;
  case f64:
  case i64:
  case u64:
    return 8;
  default:
    return 1;
  }
}

} // namespace otf
