// SPDX-License-Identifier: Apache-2.0
//
// The table of ONNX's element types.

#include "dialects/ONNX/ElementType.h"

#include "llvm/ADT/STLExtras.h"

namespace otf::onnx {

namespace {
struct Entry {
  const char *name;
  unsigned bits;
};
constexpr Entry kTypes[] = {
    {"undefined", 0},       {"float", 32},          {"uint8", 8},       {"int8", 8},           {"uint16", 16},
    {"int16", 16},          {"int32", 32},          {"int64", 64},      {"string", 0},         {"bool", 8},
    {"float16", 16},        {"double", 64},         {"uint32", 32},     {"uint64", 64},        {"complex64", 64},
    {"complex128", 128},    {"bfloat16", 16},       {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8},  {"uint4", 4},           {"int4", 4},        {"float4e2m1", 4},     {"float8e8m0", 8},
    {"uint2", 2},           {"int2", 2},
};
constexpr int64_t kCount = sizeof(kTypes) / sizeof(kTypes[0]);
static_assert(kCount == ElementType::Int2 + 1);
} // namespace

unsigned elementBits(int64_t type) { return type >= 0 && type < kCount ? kTypes[type].bits : 0; }

std::string elementTypeName(int64_t type) {
  return type >= 0 && type < kCount ? kTypes[type].name : "unknown";
}

std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) // a zero counts as one here, so that the product of any of the sizes fits too
    if (dim < 0 || __builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count))
      return std::nullopt;
  return llvm::is_contained(dims, 0) ? 0 : count;
}

std::optional<uint64_t> tensorBytes(int64_t type, llvm::ArrayRef<int64_t> dims) {
  unsigned bits = elementBits(type);
  std::optional<uint64_t> count = elementCount(dims);
  if (!bits || !count || *count > INT64_MAX / bits)
    return std::nullopt;
  return *count * bits / 8 + (*count * bits % 8 != 0);
}

} // namespace otf::onnx
