// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of the device library against a float64 or exact reference, over ragged shapes, on a
// real GPU. Skips without one. The entries (Entries.cu) are compiled by NVRTC, or taken from
// $OTF_TEST_CUBIN_DIR/sm_XX.cubin, which otf-cuda-compile-test writes when that is set: so this
// program also runs on a machine that has a driver and nothing else.
#include "Encoding/Codec.h"
#include "Encoding/Half.h"
#include "Encoding/Rotation.h"
#include "lib/Codegen/CUDA/DeviceLibrary.h"
#include "runtime/CUDA/Driver.h"
#include "runtime/CUDA/Nvrtc.h"
#include "test/Codegen/Canonical.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

extern const char otfTestEntries[];

namespace {

using namespace otf;
using namespace otf::runtime;
using namespace otf::runtime::cuda;

// ---- the machine -------------------------------------------------------------------------------

struct Machine {
  std::unique_ptr<Gpu> gpu;
  Module module = nullptr;
  std::string why; // it cannot be used
  std::vector<char> cubin;
};

std::vector<char> readFile(const std::string &path) {
  std::vector<char> bytes;
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
      bytes.insert(bytes.end(), buffer, buffer + n);
    std::fclose(file);
  }
  return bytes;
}

Machine makeMachine() {
  Machine m;
  Result<std::unique_ptr<Gpu>> gpu = Gpu::open(0);
  if (!gpu.ok()) {
    m.why = gpu.status().message();
    return m;
  }
  m.gpu = std::move(gpu.value());
  new Gpu::Current(*m.gpu); // current for the rest of the process
  if (const char *directory = std::getenv("OTF_TEST_CUBIN_DIR"))
    m.cubin = readFile(cat(directory, "/", m.gpu->architecture(), ".cubin"));
  if (m.cubin.empty()) {
    Result<std::unique_ptr<Nvrtc>> nvrtc = Nvrtc::open();
    if (!nvrtc.ok()) {
      m.why = nvrtc.status().message();
      return m;
    }
    Result<CudaBinary> binary = nvrtc.value()->compile(
        std::string(otfCudaDeviceLibrary) + otfTestEntries, m.gpu->architecture());
    if (!binary.ok()) {
      ADD_FAILURE() << binary.status().message();
      m.why = "the entries do not compile";
      return m;
    }
    m.cubin = std::move(binary.value().cubin);
  }
  Result<Module> module = m.gpu->load(m.cubin);
  if (!module.ok()) {
    ADD_FAILURE() << module.status().message();
    m.why = "the entries do not load";
    return m;
  }
  m.module = module.value();
  return m;
}

Machine &machine() {
  static Machine m = makeMachine();
  return m;
}

#define NEEDS_GPU()                                                                                \
  if (!machine().why.empty())                                                                      \
  GTEST_SKIP() << "needs a GPU: " << machine().why

void check(int code, const char *what) {
  if (code)
    FAIL() << machine().gpu->driver().error(code, what).message();
}

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

void launch(const std::string &name, std::vector<Pointer> buffers, const std::vector<int64_t> &dims,
            unsigned grid) {
  const Driver &d = machine().gpu->driver();
  Function function;
  check(d.moduleGetFunction(&function, machine().module, name.c_str()), name.c_str());
  Buffer table(dims);
  buffers.push_back(table.pointer);
  void *parameter = buffers.data();
  check(d.launchKernel(function, grid, 1, 1, 256, 1, 1, 0, nullptr, &parameter, nullptr),
        name.c_str());
  check(d.streamSynchronize(nullptr), name.c_str());
}

// ---- data --------------------------------------------------------------------------------------

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

std::vector<float> normals(size_t count, uint64_t seed, float scale = 1) {
  Random random(seed);
  std::vector<float> values(count);
  for (float &v : values)
    v = random.normal() * scale;
  return values;
}

struct Encoded {
  WeightLayout layout;
  std::vector<uint8_t> blob;
  std::vector<uint32_t> index; // background, then outliers; identity without outliers
  std::vector<double> weights; // decoded, [rows][columns]
};

Encoded encode(Encoding encoding, int64_t rows, int64_t columns, int64_t outliers) {
  Encoded e;
  EXPECT_EQ(makeLayout(encoding, rows, columns, outliers, e.layout), EncodeStatus::Ok);
  std::vector<float> w = normals(size_t(rows * columns), uint64_t(rows * 1000 + columns), 0.05f);
  // Outlier columns are spread over the row, the first among them.
  std::vector<bool> chosen(size_t(columns), false);
  for (int64_t j = 0; j < outliers; ++j)
    chosen[size_t(j * columns / outliers)] = true;
  for (int64_t pass = 0; pass < 2; ++pass)
    for (int64_t c = 0; c < columns; ++c)
      if (chosen[size_t(c)] == (pass == 1))
        e.index.push_back(uint32_t(c));
  e.blob.resize(size_t(e.layout.blobBytes));
  if (outliers)
    std::memcpy(e.blob.data(), e.index.data(), e.index.size() * 4);
  e.weights.resize(size_t(rows * columns));
  std::vector<double> tile(size_t(8 * columns));
  for (int64_t t = 0; t < e.layout.tiles; ++t) {
    int64_t real = std::min<int64_t>(8, rows - 8 * t);
    uint8_t *at = e.blob.data() + e.layout.tileOffset(t);
    const uint32_t *index = outliers ? e.index.data() : nullptr;
    EXPECT_EQ(encodeTile(encoding, e.layout, index, w.data() + 8 * t * columns, columns, real, at),
              EncodeStatus::Ok);
    decodeTile(encoding, e.layout, index, at, tile.data());
    std::copy_n(tile.data(), real * columns, e.weights.data() + 8 * t * columns);
  }
  return e;
}

struct Record {
  RecordLayout layout;
  std::vector<uint8_t> bytes; // [rows][layout.bytes]
  std::vector<double> x;      // what they stand for, [rows][columns] in the matrix's order
};

Record makeRecords(const std::vector<float> &x, int64_t rows, int64_t columns, int64_t outliers,
                   const std::vector<uint32_t> &index) {
  Record r;
  r.layout = recordLayout(columns - outliers, outliers);
  r.bytes.assign(size_t(rows * r.layout.bytes), 0);
  r.x.assign(size_t(rows * columns), 0);
  for (int64_t m = 0; m < rows; ++m) {
    uint8_t *to = r.bytes.data() + m * r.layout.bytes;
    const float *from = x.data() + m * columns;
    for (int64_t c = 0; c < r.layout.chunks; ++c) {
      int64_t end = std::min(columns - outliers, (c + 1) * 32);
      float top = 0;
      for (int64_t i = c * 32; i < end; ++i)
        top = std::max(top, std::fabs(from[index[size_t(i)]]));
      float scale = top / 127.0f;
      int32_t sum = 0;
      for (int64_t i = c * 32; i < end; ++i) {
        int q = scale > 0 ? int(std::nearbyint(from[index[size_t(i)]] / scale)) : 0;
        q = std::max(-127, std::min(127, q));
        to[i] = uint8_t(q);
        sum += q;
        r.x[size_t(m * columns + index[size_t(i)])] = double(scale) * q;
      }
      std::memcpy(to + r.layout.scaleOffset + 4 * c, &scale, 4);
      std::memcpy(to + r.layout.sumOffset + 4 * c, &sum, 4);
    }
    for (int64_t j = 0; j < outliers; ++j) {
      uint32_t column = index[size_t(columns - outliers + j)];
      std::memcpy(to + r.layout.outlierOffset + 4 * j, from + column, 4);
      r.x[size_t(m * columns + column)] = from[column];
    }
  }
  return r;
}

/// |got - want| <= relative * size: `size` is the sum of the magnitudes that were added.
void expectNear(const std::vector<float> &got, const std::vector<double> &want,
                const std::vector<double> &size, double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(double(got[i]) - want[i]) <= relative * size[i] + 1e-30)) {
      FAIL() << "element " << i << " is " << got[i] << ", expected " << want[i] << " within "
             << relative * size[i];
    }
}

/// Equal to the bit, or both NaN. Zeros may differ in sign.
void expectSame(const std::vector<float> &got, const std::vector<float> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))))
      FAIL() << "element " << i << " is " << got[i] << ", canonical is " << want[i];
}

// ---- contractions ------------------------------------------------------------------------------

struct WeightCase {
  const char *name; // <encoding>_<N>_<K>_<outliers>, of an entry
  EncodingKind kind;
  int64_t group, rows, columns, outliers;
};
const WeightCase kWeights[] = {
    {"f32_24_40_0", EncodingKind::F32, 0, 24, 40, 0},
    {"f32_13_33_0", EncodingKind::F32, 0, 13, 33, 0},
    {"f32_1_1_0", EncodingKind::F32, 0, 1, 1, 0},
    {"f16_131_200_0", EncodingKind::F16, 0, 131, 200, 0},
    {"int8_64_256_0", EncodingKind::Int8, 32, 64, 256, 0},
    {"int8_9_31_1", EncodingKind::Int8, 32, 9, 31, 1},
    {"int8_200_330_3", EncodingKind::Int8, 64, 200, 330, 3},
    {"int4_576_576_0", EncodingKind::Int4, 32, 576, 576, 0},
    {"int4_129_97_0", EncodingKind::Int4, 64, 129, 97, 0},
    {"int4_40_1056_6", EncodingKind::Int4, 128, 40, 1056, 6},
    {"codebook2_64_128_0", EncodingKind::Codebook2, 32, 64, 128, 0},
    {"codebook2_77_300_11", EncodingKind::Codebook2, 64, 77, 300, 11},
    {"planes3x1_40_100_0", EncodingKind::Planes3x1, 0, 40, 100, 0},
    {"planes3x2_64_576_0", EncodingKind::Planes3x2, 0, 64, 576, 0},
    {"planes3x2_77_300_11", EncodingKind::Planes3x2, 64, 77, 300, 11},
    {"planes3x3_129_330_3", EncodingKind::Planes3x3, 0, 129, 330, 3},
    {"planes3x4_40_1056_6", EncodingKind::Planes3x4, 128, 40, 1056, 6},
    {"planes4x1_9_40_1", EncodingKind::Planes4x1, 0, 9, 40, 1},
    {"planes4x2_131_512_0", EncodingKind::Planes4x2, 256, 131, 512, 0},
    {"planes4x3_20_97_0", EncodingKind::Planes4x3, 64, 20, 97, 0},
    {"ternary_64_128_0", EncodingKind::TernarySign, 64, 64, 128, 0},
    {"ternary_77_300_11", EncodingKind::TernarySign, 32, 77, 300, 11},
    {"ternary_200_576_0", EncodingKind::TernarySign, 64, 200, 576, 0},
};

class Linear : public testing::TestWithParam<WeightCase> {};

TEST_P(Linear, EqualsTheReferenceForAnyNumberOfRows) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  Encoding encoding{c.kind, c.group, kCodebook2Table};
  Encoded w = encode(encoding, c.rows, c.columns, c.outliers);
  Buffer blob(w.blob);
  for (int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 130}) {
    SCOPED_TRACE(rows);
    std::vector<float> x = normals(size_t(rows * c.columns), uint64_t(rows));
    if (c.columns > 8)
      x[8] = 300; // one large value, as down projections see them
    std::vector<double> exact(x.begin(), x.end());
    std::unique_ptr<Buffer> records;
    if (isPlain(c.kind)) {
      records = std::make_unique<Buffer>(x);
    } else {
      Record r = makeRecords(x, rows, c.columns, c.outliers, w.index);
      exact = r.x;
      records = std::make_unique<Buffer>(r.bytes);
    }
    std::vector<double> want(size_t(rows * c.rows)), size(want.size());
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < c.rows; ++n)
        for (int64_t k = 0; k < c.columns; ++k) {
          double term = exact[size_t(m * c.columns + k)] * w.weights[size_t(n * c.columns + k)];
          want[size_t(m * c.rows + n)] += term;
          size[size_t(m * c.rows + n)] += std::fabs(term);
        }
    std::vector<float> first;
    for (unsigned grid : {1u, 3u, 500u}) {
      Buffer y(want.size() * 4);
      launch(cat("linear_", c.name), {blob.pointer, records->pointer, y.pointer}, {rows}, grid);
      std::vector<float> got = y.get<float>();
      // Some dozen float additions and a product with two rounded scales.
      expectNear(got, want, size, 4e-6);
      if (!isPlain(c.kind) && first.empty()) {
        std::vector<uint8_t> bytes = records->get<uint8_t>();
        int64_t record = recordLayout(c.columns - c.outliers, c.outliers).bytes;
        std::vector<float> exactly;
        for (int64_t m = 0; m < rows; ++m)
          for (int64_t n = 0; n < c.rows; ++n)
            exactly.push_back(test::canonical::linear(
                encoding, w.layout, w.blob.data() + w.layout.tileOffset(n / 8), int(n % 8),
                bytes.data() + m * record));
        expectSame(got, exactly);
      }
      if (first.empty())
        first = got;
      EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * 4), 0)
          << "results depend on the grid";
    }
  }
}
TEST_P(Linear, OneRowHasTheSameBits) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  if (isPlain(c.kind))
    GTEST_SKIP() << "has no record";
  Encoded w = encode({c.kind, c.group, kCodebook2Table}, c.rows, c.columns, c.outliers);
  Buffer blob(w.blob);
  std::vector<float> x = normals(size_t(c.columns), 7);
  if (c.columns > 8)
    x[8] = 300;
  Buffer row(x), records(makeRecords(x, 1, c.columns, c.outliers, w.index).bytes), many(size_t(c.rows) * 4);
  launch(cat("linear_", c.name), {blob.pointer, records.pointer, many.pointer}, {1}, 3);
  const std::vector<float> want = many.get<float>();
  for (unsigned grid : {1u, 3u, 500u}) {
    Buffer y(size_t(c.rows) * 4);
    launch(cat("one_", c.name), {blob.pointer, row.pointer, y.pointer}, {1}, grid);
    expectSame(y.get<float>(), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Weight, Linear, testing::ValuesIn(kWeights),
                         [](const auto &info) { return std::string(info.param.name); });

class Embedding : public testing::TestWithParam<WeightCase> {};

TEST_P(Embedding, DecodesRows) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  Encoded w = encode({c.kind, c.group, kCodebook2Table}, c.rows, c.columns, c.outliers);
  std::vector<int64_t> ids = {0, c.rows - 1, -1, 7, -c.rows, c.rows, -c.rows - 1, 5};
  Buffer blob(w.blob), idBuffer(ids), y(ids.size() * size_t(c.columns) * 4);
  launch(cat("embedding_", c.name), {blob.pointer, idBuffer.pointer, y.pointer},
         {int64_t(ids.size())}, 3);
  std::vector<double> want, size;
  for (int64_t id : ids)
    for (int64_t k = 0; k < c.columns; ++k) {
      int64_t row = id < 0 ? id + c.rows : id;
      bool inside = row >= 0 && row < c.rows;
      want.push_back(inside ? w.weights[size_t(row * c.columns + k)] : 0);
      size.push_back(std::fabs(want.back()) + 0.1);
    }
  expectNear(y.get<float>(), want, size, 2e-7);
}
INSTANTIATE_TEST_SUITE_P(Weight, Embedding,
                         testing::Values(kWeights[1], kWeights[3], kWeights[6], kWeights[8],
                                         kWeights[11], kWeights[12], kWeights[13], kWeights[14],
                                         kWeights[15], kWeights[16], kWeights[17], kWeights[18],
                                         kWeights[19]),
                         [](const auto &info) { return std::string(info.param.name); });

// ---- rows --------------------------------------------------------------------------------------

std::vector<double> normalised(const std::vector<float> &x, int64_t rows, int64_t k, bool layer,
                               const std::vector<float> &gamma, const std::vector<float> &beta) {
  std::vector<double> y(x.size());
  for (int64_t m = 0; m < rows; ++m) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < k && layer; ++i)
      mean += x[size_t(m * k + i)] / double(k);
    for (int64_t i = 0; i < k; ++i)
      squares += std::pow(x[size_t(m * k + i)] - mean, 2) / double(k);
    for (int64_t i = 0; i < k; ++i)
      y[size_t(m * k + i)] = (x[size_t(m * k + i)] - mean) / std::sqrt(squares + 1e-5) *
                                 (gamma.empty() ? 1 : gamma[size_t(i)]) +
                             (beta.empty() ? 0 : beta[size_t(i)]);
  }
  return y;
}

void testNorm(const std::string &name, int64_t k, bool layer) {
  for (bool affine : {false, true}) {
    const int64_t rows = 5;
    std::vector<float> x = normals(size_t(rows * k), 3, 2);
    for (int64_t i = 0; i < k; ++i) {
      x[size_t(k + i)] = 0;         // an all-zero row
      x[size_t(2 * k + i)] += 1000; // a large mean
    }
    std::vector<float> gamma = normals(affine ? size_t(k) : 0, 4), beta = normals(gamma.size(), 5);
    Buffer xb(x), g(gamma), b(beta), y(x.size() * 4);
    launch(name, {xb.pointer, affine ? g.pointer : 0, affine ? b.pointer : 0, y.pointer}, {rows},
           2);
    std::vector<double> want = normalised(x, rows, k, layer, gamma, beta);
    std::vector<double> size(want.size(), 3);
    for (int64_t i = 0; i < k; ++i) // x - mean loses what 1000 costs: 2^-14
      size[size_t(2 * k + i)] = layer ? 300 : 3;
    expectNear(y.get<float>(), want, size, 2e-6);
    std::vector<float> exactly;
    for (int64_t m = 0; m < rows; ++m)
      for (float value : test::canonical::norm(x.data() + m * k, k, layer, 1e-5f,
                                               affine ? gamma.data() : nullptr,
                                               affine ? beta.data() : nullptr))
        exactly.push_back(value);
    expectSame(y.get<float>(), exactly);
  }
}
TEST(Norm, Rms) {
  NEEDS_GPU();
  testNorm("norm_rms_576", 576, false);
}
TEST(Norm, LayerWithALargeMean) {
  NEEDS_GPU();
  testNorm("norm_layer_33", 33, true);
}

struct RecordCase {
  int64_t columns, outliers;
};
class Records : public testing::TestWithParam<RecordCase> {};

TEST_P(Records, AreTheBytesOfTheReference) {
  NEEDS_GPU();
  auto [k, outliers] = GetParam();
  const int64_t rows = 6;
  std::vector<float> x = normals(size_t(rows * k), 9);
  for (int64_t i = 0; i < k; ++i) {
    x[size_t(k + i)] = 0;           // nothing
    x[size_t(2 * k + i)] = 0.25f;   // all equal
    x[size_t(3 * k + i)] *= 1e-42f; // scales that are subnormal
    x[size_t(4 * k + i)] *= 1e30f;
  }
  x[size_t(5 * k + k / 2)] = 1e6f; // one huge outlier
  std::vector<uint32_t> index = encode({EncodingKind::Int8, 32, 0}, 1, k, outliers).index;
  Record want = makeRecords(x, rows, k, outliers, index);
  Buffer xb(x), indexBuffer(index), records(want.bytes.size());
  launch(cat("record_none_", k, "_", outliers),
         {xb.pointer, 0, 0, indexBuffer.pointer, records.pointer}, {rows}, 4);
  std::vector<uint8_t> got = records.get<uint8_t>();
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], want.bytes[i])
        << "row " << i / size_t(want.layout.bytes) << ", byte " << i % size_t(want.layout.bytes);
}
INSTANTIATE_TEST_SUITE_P(Row, Records,
                         testing::Values(RecordCase{256, 0}, RecordCase{31, 1}, RecordCase{330, 3},
                                         RecordCase{576, 0}, RecordCase{97, 0}, RecordCase{1056, 6},
                                         RecordCase{128, 0}, RecordCase{300, 11}));

enum class Normal { none, rms, layer };
struct RotatedCase {
  const char *name;
  Rotation rotation;
  int64_t columns;
  Normal kind;
};
class Rotated : public testing::TestWithParam<RotatedCase> {};

/// To the bit: rows of the definition, and the bytes of records of canonical norms that are rotated.
TEST_P(Rotated, HasTheBitsOfTheDefinition) {
  NEEDS_GPU();
  const RotatedCase &c = GetParam();
  const int64_t rows = 5, k = c.columns;
  std::vector<float> x = normals(size_t(rows * k), 31), gamma = normals(size_t(k), 32), factor = rotationFactor32(c.rotation);
  x[size_t(k + k / 2)] = 1e5f; // one huge outlier
  std::vector<float> plain = x, normed;
  std::vector<uint32_t> index;
  for (int64_t i = 0; i < k; ++i)
    index.push_back(uint32_t(i));
  for (int64_t m = 0; m < rows; ++m) {
    rotateCanonical(c.rotation, factor.data(), k, plain.data() + m * k);
    std::vector<float> row(x.begin() + m * k, x.begin() + (m + 1) * k);
    if (c.kind != Normal::none)
      row = test::canonical::norm(row.data(), k, c.kind == Normal::layer, 1e-5f, gamma.data(), nullptr);
    rotateCanonical(c.rotation, factor.data(), k, row.data());
    normed.insert(normed.end(), row.begin(), row.end());
  }
  Record want = makeRecords(normed, rows, k, 0, index);
  Buffer xb(x), g(gamma), f(factor), y(x.size() * 4), records(want.bytes.size());
  for (unsigned grid : {1u, 7u}) {
    launch(cat("rotate_rotated_", c.name), {xb.pointer, 0, 0, f.pointer, y.pointer}, {rows}, grid);
    expectSame(y.get<float>(), plain);
    auto gain = c.kind == Normal::none ? decltype(g.pointer)() : g.pointer; // what is no norm has none
    launch(cat("record_rotated_", c.name), {xb.pointer, gain, 0, f.pointer, records.pointer}, {rows}, grid);
    std::vector<uint8_t> got = records.get<uint8_t>();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], want.bytes[i]) << "row " << i / size_t(want.layout.bytes) << ", byte " << i % size_t(want.layout.bytes);
  }
}
INSTANTIATE_TEST_SUITE_P(Row, Rotated,
                         testing::Values(RotatedCase{"none_36", {4, 3, 0}, 36, Normal::none},
                                         RotatedCase{"none_576", {64, 9, 0}, 576, Normal::none},
                                         RotatedCase{"rms_576", {64, 1, 3}, 576, Normal::rms},
                                         RotatedCase{"rms_1536", {512, 3, 7}, 1536, Normal::rms},
                                         RotatedCase{"layer_2048", {1024, 1, 0}, 2048, Normal::layer},
                                         RotatedCase{"none_11008", {256, 43, 2}, 11008, Normal::none},
                                         RotatedCase{"none_34560", {64, 9, 4}, 34560, Normal::none}),
                         [](const auto &info) { return std::string(info.param.name); });

void testNormalisedRecord(const std::string &name, int64_t k, int64_t outliers, bool layer) {
  const int64_t rows = 3;
  std::vector<float> x = normals(size_t(rows * k), 21), gamma = normals(size_t(k), 22);
  std::vector<float> beta = normals(size_t(k), 23);
  std::vector<uint32_t> index = encode({EncodingKind::Int8, 32, 0}, 1, k, outliers).index;
  RecordLayout layout = recordLayout(k - outliers, outliers);
  Buffer xb(x), g(gamma), b(beta), indexBuffer(index), records(size_t(rows * layout.bytes));
  launch(name, {xb.pointer, g.pointer, b.pointer, indexBuffer.pointer, records.pointer}, {rows}, 7);
  std::vector<uint8_t> got = records.get<uint8_t>();
  std::vector<double> want = normalised(x, rows, k, layer, gamma, beta);
  for (int64_t m = 0; m < rows; ++m) {
    const uint8_t *r = got.data() + m * layout.bytes;
    for (int64_t i = 0; i < k - outliers; ++i) {
      float scale;
      std::memcpy(&scale, r + layout.scaleOffset + i / 32 * 4, 4);
      double value = double(scale) * int8_t(r[i]);
      ASSERT_NEAR(value, want[size_t(m * k + index[size_t(i)])], 0.501 * double(scale) + 1e-5);
    }
    for (int64_t j = 0; j < outliers; ++j) {
      float value;
      std::memcpy(&value, r + layout.outlierOffset + 4 * j, 4);
      ASSERT_NEAR(value, want[size_t(m * k + index[size_t(k - outliers + j)])], 1e-5);
    }
  }
}
TEST(Records, OfRmsRows) {
  NEEDS_GPU();
  testNormalisedRecord("record_rms_576_0", 576, 0, false);
}
TEST(Records, OfLayerNormalisedRowsWithOutliers) {
  NEEDS_GPU();
  testNormalisedRecord("record_layer_300_11", 300, 11, true);
}

TEST(Functions, AreCanonical) {
  NEEDS_GPU();
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 10007) {
    uint32_t word = uint32_t(bits);
    float value;
    std::memcpy(&value, &word, 4);
    if (std::fabs(value) <= otf::cpu::kTurnsLimit)
      x.push_back(value);
  }
  Buffer xb(x), y(x.size() * 4 * 6);
  launch("map_functions", {xb.pointer, y.pointer}, {int64_t(x.size())}, 100);
  std::vector<float> want;
  for (auto f : {+[](float v) { return otf::cpu::exp(v); }, +[](float v) { return otf::cpu::log(v); },
                 +[](float v) { return otf::cpu::tanh(v); }, +[](float v) { return otf::cpu::erf(v); },
                 +[](float v) { return otf::cpu::sinTurned(v, 0); },
                 +[](float v) { return otf::cpu::sinTurned(v, 1); }})
    for (float v : x)
      want.push_back(f(v));
  expectSame(y.get<float>(), want);
}

// ---- heads -------------------------------------------------------------------------------------

void testRope(const std::string &name, int d, int rotary, bool pairs) {
  const int64_t outer = 6, length = 5;
  std::vector<float> x = normals(size_t(outer * length * d), 31);
  std::vector<float> c = normals(size_t(length * rotary), 32), s = normals(c.size(), 33);
  Buffer xb(x), cb(c), sb(s), y(x.size() * 4);
  launch(name, {xb.pointer, cb.pointer, sb.pointer, y.pointer}, {outer, length}, 2);
  std::vector<double> want(x.size()), size(x.size());
  for (int64_t r = 0; r < outer * length; ++r)
    for (int i = 0; i < d; ++i) {
      const float *row = x.data() + r * d;
      size_t at = size_t(r * d + i), table = size_t(r % length * rotary + i);
      want[at] = row[i];
      if (i < rotary) {
        int half = rotary / 2;
        int other = pairs ? i ^ 1 : i < half ? i + half : i - half;
        double sign = (pairs ? i % 2 == 0 : i < half) ? -1 : 1;
        want[at] = double(row[i]) * c[table] + sign * row[other] * s[table];
      }
      size[at] = 8;
    }
  expectNear(y.get<float>(), want, size, 1e-6);
}
TEST(Rope, Halves) {
  NEEDS_GPU();
  testRope("rope_64_64", 64, 64, false);
}
TEST(Rope, PartOfAHead) {
  NEEDS_GPU();
  testRope("rope_20_8", 20, 8, false);
}
TEST(Rope, Pairs) {
  NEEDS_GPU();
  testRope("rope_64_64_pairs", 64, 64, true);
}

enum class MaskKind { none, add, keep, causal };

struct AttentionCase {
  const char *name;
  int width, group;
  bool half;
  double softcap;
  MaskKind mask;
};

/// Runs an attention entry (or the pair for long caches) and its reference.
void testAttention(const AttentionCase &c, int64_t batch, int64_t kv, int64_t length, int64_t keys,
                   int64_t parts = 0) {
  SCOPED_TRACE(cat(c.name, ": batch ", batch, ", heads ", kv, ", queries ", length, ", keys ", keys,
                   ", parts ", parts));
  const int64_t capacity = keys + 3, heads = kv * c.group, d = c.width;
  std::vector<float> q = normals(size_t(batch * heads * length * d), 41);
  std::vector<float> k = normals(size_t(batch * kv * capacity * d), 42), v = normals(k.size(), 43);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t row = 0; row < k.size() / size_t(d); ++row)
    if (int64_t(row) % capacity >= keys) // what is not filled is not read
      std::fill_n(k.begin() + int64_t(row) * d, d, nan),
          std::fill_n(v.begin() + int64_t(row) * d, d, nan);
  std::vector<uint16_t> kHalf, vHalf;
  if (c.half) {
    for (auto [from, to] : {std::pair(&k, &kHalf), std::pair(&v, &vHalf)})
      for (float &f : *from) {
        to->push_back(floatToHalf(f));
        f = halfToFloat(to->back());
      }
  }
  const float minusInfinity = -std::numeric_limits<float>::infinity();
  Random random(44);
  std::vector<float> add(size_t(length * keys));
  for (float &f : add)
    f = random.next() % 4 == 0 ? minusInfinity : random.normal();
  for (int64_t j = 0; j < keys; ++j)
    add[size_t((length - 1) * keys + j)] = minusInfinity; // the last query sees nothing
  std::vector<uint8_t> keep;
  for (int64_t j = 0; j < keys; ++j)
    keep.push_back(j % 3 != 1);

  std::unique_ptr<Buffer> kb, vb;
  kb = c.half ? std::make_unique<Buffer>(kHalf) : std::make_unique<Buffer>(k);
  vb = c.half ? std::make_unique<Buffer>(vHalf) : std::make_unique<Buffer>(v);
  Buffer qb(q), addBuffer(add), keepBuffer(keep), y(q.size() * 4);
  std::vector<int64_t> dims = {batch, kv, length, keys, capacity, parts};
  if (parts == 0) {
    launch(c.name,
           {qb.pointer, kb->pointer, vb->pointer,
            c.mask == MaskKind::keep ? keepBuffer.pointer : addBuffer.pointer, y.pointer},
           dims, 5);
  } else {
    Buffer work(size_t(batch * heads * length * parts * (d + 2)) * 4);
    launch("attention_parts_64_3", {qb.pointer, kb->pointer, vb->pointer, work.pointer}, dims, 7);
    launch("attention_combine_64_3", {work.pointer, y.pointer}, dims, 3);
    work.get<float>(); // checks the fence
  }

  std::vector<double> want(q.size()), size(q.size(), 1);
  std::vector<double> s(static_cast<size_t>(keys));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = ((b * heads + h) * length + i) * d, cache = (b * kv + h / c.group) * capacity;
        double top = -INFINITY, total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t e = 0; e < d; ++e)
            dot += double(q[size_t(at + e)]) * k[size_t((cache + j) * d + e)];
          dot *= 0.125;
          if (c.softcap > 0)
            dot = c.softcap * std::tanh(dot / c.softcap);
          if (c.mask == MaskKind::add)
            dot += add[size_t(i * keys + j)];
          if ((c.mask == MaskKind::keep && !keep[size_t(j)]) ||
              (c.mask == MaskKind::causal && j > keys - length + i))
            dot = -INFINITY;
          s[size_t(j)] = dot;
          top = std::max(top, dot);
        }
        for (int64_t j = 0; j < keys && top > -INFINITY; ++j) {
          double p = std::exp(s[size_t(j)] - top);
          total += p;
          for (int64_t e = 0; e < d; ++e)
            want[size_t(at + e)] += p * v[size_t((cache + j) * d + e)];
        }
        for (int64_t e = 0; e < d && total > 0; ++e)
          want[size_t(at + e)] /= total;
      }
  // Scores up to some 10 have an error of 1e-6 each, which the exponential makes relative.
  expectNear(y.get<float>(), want, size, 2e-5);

  std::vector<float> exactly;
  for (int64_t row = 0; row < batch * heads * length; ++row) {
    int64_t i = row % length, h = row / length % heads, b = row / length / heads;
    const float *kr = k.data() + (b * kv + h / c.group) * capacity * d;
    const float *vr = v.data() + (b * kv + h / c.group) * capacity * d;
    for (float value : test::canonical::attention(
             q.data() + row * d, d, d, keys, [&](int64_t j, int64_t e) { return kr[j * d + e]; },
             [&](int64_t j, int64_t e) { return vr[j * d + e]; }, 0.125f, float(c.softcap),
             [&](int64_t j, float s) {
               if (c.mask == MaskKind::add)
                 return s + add[size_t(i * keys + j)];
               bool hidden = (c.mask == MaskKind::keep && !keep[size_t(j)]) ||
                             (c.mask == MaskKind::causal && j > keys - length + i);
               return hidden ? minusInfinity : s;
             }))
      exactly.push_back(value);
  }
  expectSame(y.get<float>(), exactly);
}

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, EqualsTheReference) {
  NEEDS_GPU();
  const AttentionCase &c = GetParam();
  for (auto [length, keys] : {std::pair<int64_t, int64_t>{1, 1},
                              {1, 31},
                              {1, 33},
                              {1, 300},
                              {2, 64},
                              {5, 70},
                              {33, 33},
                              {40, 129}})
    testAttention(c, 2, 2, length, keys);
  testAttention(c, 1, 1, 1, 1500);
}
INSTANTIATE_TEST_SUITE_P(
    Entry, Attention,
    testing::Values(AttentionCase{"attention_none_64_3", 64, 3, false, 0, MaskKind::none},
                    AttentionCase{"attention_add_64_3", 64, 3, false, 0, MaskKind::add},
                    AttentionCase{"attention_keep_64_3", 64, 3, false, 0, MaskKind::keep},
                    AttentionCase{"attention_causal_64_3", 64, 3, false, 0, MaskKind::causal},
                    AttentionCase{"attention_cap_20_1", 20, 1, false, 5, MaskKind::add},
                    AttentionCase{"attention_odd_33_2", 33, 2, false, 0, MaskKind::none},
                    AttentionCase{"attention_half_128_4", 128, 4, true, 0, MaskKind::add},
                    AttentionCase{"attention_wide_256_8", 256, 8, true, 0, MaskKind::causal}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Attention, KeysDividedOverBlocks) {
  NEEDS_GPU();
  AttentionCase c{"parts", 64, 3, false, 0, MaskKind::causal};
  testAttention(c, 2, 2, 1, 1000, 32);
  testAttention(c, 1, 3, 3, 65, 4);
  testAttention(c, 1, 1, 1, 2, 8); // more room than blocks
}

// ---- the rest ----------------------------------------------------------------------------------

TEST(Append, WritesBehindWhatIsThere) {
  NEEDS_GPU();
  const int64_t outer = 6, added = 3, inner = 20, past = 4, capacity = 9;
  std::vector<float> x = normals(size_t(outer * added * inner), 51);
  std::vector<float> cache = normals(size_t(outer * capacity * inner), 52), want = cache;
  for (int64_t o = 0; o < outer; ++o)
    std::copy_n(x.begin() + o * added * inner, added * inner,
                want.begin() + (o * capacity + past) * inner);
  std::vector<uint16_t> half, wantHalf;
  for (float f : cache)
    half.push_back(floatToHalf(f));
  for (float f : want)
    wantHalf.push_back(floatToHalf(f));
  Buffer xb(x), single(cache), narrow(half);
  launch("append_f32", {single.pointer, xb.pointer}, {outer, added, inner, past, capacity}, 2);
  launch("append_f16", {narrow.pointer, xb.pointer}, {outer, added, inner, past, capacity}, 2);
  EXPECT_EQ(single.get<float>(), want);
  EXPECT_EQ(narrow.get<uint16_t>(), wantHalf);
}

TEST(Append, StopsAtTheCapacity) {
  NEEDS_GPU();
  std::vector<float> x(8, 1.0f), cache(4, 0.0f);
  Buffer xb(x), cb(cache);
  launch("append_f32", {cb.pointer, xb.pointer}, {1, 8, 1, 2, 4}, 1);
  EXPECT_EQ(cb.get<float>(), (std::vector<float>{0, 0, 1, 1}));
}

TEST(Map, Silu) {
  NEEDS_GPU();
  const int64_t count = 100003;
  std::vector<float> x = normals(count, 61, 4), z = normals(count, 62);
  Buffer xb(x), zb(z), y(count * 4);
  launch("map_silu", {xb.pointer, zb.pointer, y.pointer}, {count}, 17);
  std::vector<double> want, size;
  for (int64_t i = 0; i < count; ++i) {
    want.push_back(x[size_t(i)] / (1 + std::exp(-double(x[size_t(i)]))) * z[size_t(i)]);
    size.push_back(std::fabs(want.back()));
  }
  expectNear(y.get<float>(), want, size, 1e-6);
}

TEST(Half, EveryPatternSurvives) {
  NEEDS_GPU();
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = uint16_t(i);
  Buffer from(bits), to(bits.size() * 2);
  launch("map_half", {from.pointer, to.pointer}, {65536}, 8);
  std::vector<uint16_t> got = to.get<uint16_t>();
  for (size_t i = 0; i < bits.size(); ++i) {
    bool isNaN = (i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0;
    if (!isNaN)
      ASSERT_EQ(got[i], bits[i]);
    else
      ASSERT_TRUE((got[i] & 0x7c00) == 0x7c00 && (got[i] & 0x3ff) != 0) << i;
  }
}

} // namespace
