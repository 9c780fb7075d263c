// SPDX-License-Identifier: Apache-2.0
//
// What tests of kernels on a real GPU share: the GPU with the test's entries (Entries.cu) loaded, memory on it, launches, numbers.
// The entries are compiled by NVRTC, or taken from $OTF_TEST_CUBIN_DIR/sm_XX.cubin, which otf-cuda-compile-test writes when that is
// set: so this program also runs on a machine that has a driver and nothing else. Each test skips without a GPU.
#ifndef OTF_TEST_CODEGEN_CUDA_ONGPU_H
#define OTF_TEST_CODEGEN_CUDA_ONGPU_H

#include "Encoding/Codec.h"
#include "Encoding/Half.h"
#include "Encoding/Rotation.h"
#include "runtime/CUDA/Driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace otf::test {

using namespace otf::runtime;
using namespace otf::runtime::cuda;

struct Machine {
  std::unique_ptr<Gpu> gpu;
  Module module = nullptr;
  std::string why; // it cannot be used
  std::vector<char> cubin;
};

/// Opened when a test first asks. `why` is not empty without a GPU.
Machine &machine();

#define NEEDS_GPU()                                                                                \
  if (!machine().why.empty())                                                                      \
  GTEST_SKIP() << "needs a GPU: " << machine().why

/// Fails the test where `code` is no success.
void check(int code, const char *what);

/// Device memory with a fence of known bytes behind it.
class Buffer {
public:
  static constexpr size_t kFence = 256;
  explicit Buffer(size_t bytes) : size(bytes) {
    Result<Pointer> memory = machine().gpu->allocate(bytes + kFence);
    pointer = memory.ok() ? memory.value() : 0;
    std::vector<char> poison(bytes + kFence, char(0xcd));
    put(poison.data(), poison.size());
  }
  template <typename T>
  explicit Buffer(const std::vector<T> &from) : Buffer(from.size() * sizeof(T)) {
    put(from.data(), size);
  }
  ~Buffer() { machine().gpu->driver().memFree(pointer); }
  Buffer(const Buffer &) = delete;

  template <typename T> std::vector<T> get() const {
    std::vector<char> bytes(size + kFence);
    check(machine().gpu->driver().copyToHost(bytes.data(), pointer, bytes.size(), nullptr), "copy");
    check(machine().gpu->driver().streamSynchronize(nullptr), "synchronize");
    for (size_t i = size; i < bytes.size(); ++i)
      if (bytes[i] != char(0xcd)) {
        ADD_FAILURE() << "a kernel wrote " << i - size << " bytes past the end of a buffer";
        break;
      }
    std::vector<T> result(size / sizeof(T));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
    return result;
  }
  Pointer pointer = 0;

private:
  void put(const void *from, size_t bytes) {
    check(machine().gpu->driver().copyToDevice(pointer, from, bytes, nullptr), "copy");
    check(machine().gpu->driver().streamSynchronize(nullptr), "synchronize");
  }
  size_t size;
};

/// Waits for it. The sizes go to the device as a table behind the pointers (KernelABI.h).
void launch(const std::string &name, std::vector<Pointer> buffers, const std::vector<int64_t> &dims,
            unsigned grid, unsigned block = 256, unsigned shared = 0);

struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = uint32_t((state >> 18 ^ state) >> 27), r = uint32_t(state >> 59);
    return x >> r | x << (-r & 31);
  }
  float uniform() { return float(next() >> 8) / float(1 << 24); }
  float normal() { // of twelve: close enough, and the same everywhere
    float sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return sum;
  }
};

std::vector<float> normals(size_t count, uint64_t seed, float scale = 1);

struct Encoded {
  WeightLayout layout;
  std::vector<uint8_t> blob;
  std::vector<uint32_t> index; // background, then outliers; identity without outliers
  std::vector<double> weights; // decoded, [rows][columns]
};

/// Normal weights of the shape, encoded, and what they decode to.
Encoded encode(Encoding encoding, int64_t rows, int64_t columns, int64_t outliers);

struct Record {
  RecordLayout layout;
  std::vector<uint8_t> bytes; // [rows][layout.bytes]
  std::vector<double> x;      // what they stand for, [rows][columns] in the matrix's order
};

Record makeRecords(const std::vector<float> &x, int64_t rows, int64_t columns, int64_t outliers,
                   const std::vector<uint32_t> &index);

/// |got - want| <= relative * size: `size` is the sum of the magnitudes that were added.
void expectNear(const std::vector<float> &got, const std::vector<double> &want,
                const std::vector<double> &size, double relative);

/// Equal to the bit, or both NaN. Zeros may differ in sign.
void expectSame(const std::vector<float> &got, const std::vector<float> &want);

} // namespace otf::test

#endif // OTF_TEST_CODEGEN_CUDA_ONGPU_H
