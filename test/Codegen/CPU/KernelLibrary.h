// SPDX-License-Identifier: Apache-2.0
//
// The kernels of one instruction set, loaded if the CPU has it, and buffers that fault when a kernel
// reads or writes past their end.
#ifndef OTF_TEST_CODEGEN_CPU_KERNELLIBRARY_H
#define OTF_TEST_CODEGEN_CPU_KERNELLIBRARY_H

#include "Encoding/Layout.h"
#include "Kernels.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace otf::test {

#define OTF_KERNEL_NAMES(X)                                                                       \
  X(tile_planes3x1) X(tiles_planes3x1) X(row_planes3x1) X(float_planes3x1)                 \
  X(tile_planes3x2) X(tiles_planes3x2) X(row_planes3x2) X(float_planes3x2)                 \
  X(tile_planes3x3) X(tiles_planes3x3) X(row_planes3x3) X(float_planes3x3)                 \
  X(tile_planes3x4) X(tiles_planes3x4) X(row_planes3x4) X(float_planes3x4)                 \
  X(tile_planes4x1) X(tiles_planes4x1) X(row_planes4x1) X(float_planes4x1)                 \
  X(tile_planes4x2) X(tiles_planes4x2) X(row_planes4x2) X(float_planes4x2)                 \
  X(tile_planes4x3) X(tiles_planes4x3) X(row_planes4x3) X(float_planes4x3)                 \
  X(tiles_f32) X(tiles_f16) X(tile_int8) X(tile_grid8) X(tile_int4) X(tile_codebook2) X(tile_ternary_sign) X(tiles_ternary_sign)        \
  X(tiles_int8) X(tiles_int4) X(tiles_codebook2) X(tiles_grid8) X(tiles_grid8z) X(tiles_grid4z) X(tiles_grid2z)  \
  X(record_f32) X(record_i8) X(record_rotated) X(rotate)                                          \
  X(row_f32) X(row_f16) X(row_int8) X(row_int4) X(row_codebook2) X(row_ternary_sign)              \
  X(norm) X(rope) X(append_f32) X(append_f16) X(append_i8) X(attention_f32) X(attention_f16) X(attention_i8)     \
  X(attention_parts) X(attention_part_f32) X(attention_part_f16) X(attention_part_i8)             \
  X(exp) X(log) X(tanh) X(erf) X(sin) X(cos)

struct Kernels {
#define OTF_MEMBER(name) decltype(&otf_##name) name;
  OTF_KERNEL_NAMES(OTF_MEMBER)
#undef OTF_MEMBER
};

/// The kernels of one of the planes encodings.
struct PlanesKernels {
  decltype(&otf_tile_planes3x2) tile;
  decltype(&otf_tiles_planes3x2) tiles;
  decltype(&otf_row_planes3x2) row;
  decltype(&otf_float_planes3x2) floats;
};
inline PlanesKernels planesKernels(const Kernels &of, EncodingKind kind) {
  switch (kind) {
#define OTF_PLANES(w, k)                                                                          \
  case EncodingKind::Planes##w##x##k:                                                             \
    return {of.tile_planes##w##x##k, of.tiles_planes##w##x##k, of.row_planes##w##x##k,            \
            of.float_planes##w##x##k};
    OTF_PLANES(3, 1) OTF_PLANES(3, 2) OTF_PLANES(3, 3) OTF_PLANES(3, 4)
    OTF_PLANES(4, 1) OTF_PLANES(4, 2) OTF_PLANES(4, 3)
#undef OTF_PLANES
  default:
    ADD_FAILURE() << "no planes encoding: " << int(kind);
    return {};
  }
}
inline constexpr EncodingKind kPlanes[] = {EncodingKind::Planes3x1, EncodingKind::Planes3x2, EncodingKind::Planes3x3,
                                           EncodingKind::Planes3x4, EncodingKind::Planes4x1, EncodingKind::Planes4x2,
                                           EncodingKind::Planes4x3};

/// Tests are instantiated for every level and skipped where the CPU lacks it.
class KernelTest : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override;
  const Kernels *kernels = nullptr;
};

#define OTF_INSTANTIATE(suite)                                                                    \
  INSTANTIATE_TEST_SUITE_P(Levels, suite, testing::Values("avx2", "avx512vnni"),                  \
                           [](const auto &info) { return info.param; })

/// Memory that ends at an unmapped page. Starts at a multiple of 16 if its size is one.
class GuardedBytes {
public:
  explicit GuardedBytes(size_t size);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes &) = delete;
  GuardedBytes &operator=(const GuardedBytes &) = delete;
  uint8_t *data() const { return begin; }

private:
  uint8_t *base, *begin;
  size_t mapped;
};

template <typename T> class Guarded {
public:
  explicit Guarded(size_t count) : bytes(count * sizeof(T)), count(count) {}
  T *data() const { return reinterpret_cast<T *>(bytes.data()); }
  T &operator[](size_t i) const { return data()[i]; }
  size_t size() const { return count; }
  T *begin() const { return data(); }
  T *end() const { return data() + count; }

private:
  GuardedBytes bytes;
  size_t count;
};

/// Normals with a channel in forty a hundred times larger, as in down projections.
inline void fillActivations(std::span<float> x, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * (i % 40 == 7 ? 100.0f : 1.0f);
}

} // namespace otf::test

#endif // OTF_TEST_CODEGEN_CPU_KERNELLIBRARY_H
