// SPDX-License-Identifier: Apache-2.0
#include "test/Codegen/CUDA/OnGpu.h"

#include "lib/Codegen/CUDA/DeviceLibrary.h"
#include "runtime/CUDA/Nvrtc.h"

#include <cstdio>
#include <cstdlib>

extern const char otfTestEntries[];

namespace otf::test {

static std::vector<char> readFile(const std::string &path) {
  std::vector<char> bytes;
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
      bytes.insert(bytes.end(), buffer, buffer + n);
    std::fclose(file);
  }
  return bytes;
}

static Machine makeMachine() {
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

void check(int code, const char *what) {
  if (code)
    FAIL() << machine().gpu->driver().error(code, what).message();
}

void launch(const std::string &name, std::vector<Pointer> buffers, const std::vector<int64_t> &dims,
            unsigned grid, unsigned block, unsigned shared) {
  const Driver &d = machine().gpu->driver();
  Function function;
  check(d.moduleGetFunction(&function, machine().module, name.c_str()), name.c_str());
  Buffer table(dims);
  buffers.push_back(table.pointer);
  void *parameter = buffers.data();
  if (shared > 48 * 1024)
    check(d.funcSetAttribute(function, 8, int(shared)), name.c_str()); // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  check(d.launchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, &parameter, nullptr),
        name.c_str());
  check(d.streamSynchronize(nullptr), name.c_str());
}

std::vector<float> normals(size_t count, uint64_t seed, float scale) {
  Random random(seed);
  std::vector<float> values(count);
  for (float &v : values)
    v = random.normal() * scale;
  return values;
}

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

void expectNear(const std::vector<float> &got, const std::vector<double> &want,
                const std::vector<double> &size, double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(double(got[i]) - want[i]) <= relative * size[i] + 1e-30)) {
      FAIL() << "element " << i << " is " << got[i] << ", expected " << want[i] << " within "
             << relative * size[i];
    }
}

void expectSame(const std::vector<float> &got, const std::vector<float> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))))
      FAIL() << "element " << i << " is " << got[i] << ", canonical is " << want[i];
}

} // namespace otf::test
