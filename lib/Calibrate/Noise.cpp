// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Noise.h"

#include "include/otf/PlanFormat.h"
#include "lib/Encoding/Layout.h"

#include <cmath>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace otf {

using runtime::badInput;
using runtime::Result;

Result<std::unique_ptr<WritablePlan>> WritablePlan::open(const std::string &path) {
  std::unique_ptr<WritablePlan> result(new WritablePlan);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  unlink(path.c_str());
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0)
    return badInput(path, ": cannot be opened again (is its folder writable?)");
  result->bytes = size_t(status.st_size);
  result->mapping = mmap(nullptr, result->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (result->mapping == MAP_FAILED) {
    result->mapping = nullptr;
    return badInput(path, ": cannot be mapped");
  }
  auto read =
      runtime::PlanFile::read({static_cast<const std::byte *>(result->mapping), result->bytes});
  if (!read.ok())
    return badInput(path, ": ", read.status().message());
  result->file = std::move(read.value());
  return result;
}

WritablePlan::~WritablePlan() {
  file.reset();
  if (mapping)
    munmap(mapping, bytes);
}

const runtime::WeightInfo *WritablePlan::find(std::string_view name) const {
  for (const runtime::WeightInfo &weight : file->weights)
    if (weight.name == name &&
        weight.size == (weight.rows + 7) / 8 * 8 * weight.columns * sizeof(float))
      return &weight;
  return nullptr;
}

float *WritablePlan::floats(const runtime::WeightInfo &weight) const {
  auto *begin =
      const_cast<std::byte *>(file->weightBytes().data()); // of a mapping that may be written to
  return reinterpret_cast<float *>(begin + weight.offset);
}

Result<std::unique_ptr<ScratchFloats>> ScratchFloats::create(const std::string &path,
                                                             size_t count) {
  std::unique_ptr<ScratchFloats> result(new ScratchFloats);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0)
    unlink(path.c_str());
  result->bytes = std::max<size_t>(count, 1) * sizeof(float);
  bool grown = descriptor >= 0 && ftruncate(descriptor, off_t(result->bytes)) == 0;
  if (grown)
    result->mapping =
        mmap(nullptr, result->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (descriptor >= 0)
    close(descriptor);
  if (grown && result->mapping != MAP_FAILED)
    return result;
  result->mapping = nullptr;
  return badInput(path, ": cannot be written (is there room for ", result->bytes >> 20,
                  " MiB, and is the folder writable?)");
}

ScratchFloats::~ScratchFloats() {
  if (mapping)
    munmap(mapping, bytes);
}

namespace {

/// x := x R, the way back from a rotated row.
class Unrotate {
public:
  explicit Unrotate(const Rotation &rotation)
      : signs(rotation), plain{rotation.block, rotation.factor, 0},
        factor(rotationFactor(rotation)) {
    int64_t m = rotation.factor;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < i; ++j)
        std::swap(factor[size_t(i * m + j)], factor[size_t(j * m + i)]);
  }
  void operator()(double *x, int64_t columns) const {
    rotateExact(plain, factor.data(), columns, x);
    for (int64_t k = 0; k < columns; ++k)
      if (rotationSigns(signs.seed, uint64_t(k / 32)) >> (k % 32) & 1)
        x[k] = -x[k];
  }

private:
  Rotation signs, plain;
  std::vector<double> factor;
};

} // namespace

void makeErrors(const runtime::WeightInfo &weight, const float *floats, const Rounding &rounding,
                uint64_t seed, unsigned threads, float *errors) {
  const auto rows = int64_t(weight.rows), columns = int64_t(weight.columns);
  std::optional<Unrotate> unrotate;
  if (rounding.rotation)
    unrotate.emplace(*rounding.rotation);
  // A tile of eight rows reads each row of U once.
  auto work = [&](unsigned thread) {
    std::vector<float> z(size_t(8 * columns));
    std::vector<double> row(static_cast<size_t>(columns));
    for (int64_t tile = thread; tile * 8 < rows; tile += threads) {
      const float *from = floats + tile * 8 * columns;
      float *to = errors + tile * 8 * columns;
      for (int64_t r = 0; r < 8; ++r) {
        double square = 0;
        for (int64_t k = 0; k < columns; ++k)
          square += double(from[k * 8 + r]) * double(from[k * 8 + r]);
        auto size = float(std::sqrt(square / double(columns)));
        for (int64_t k = 0; k < columns; ++k)
          z[size_t(r * columns + k)] =
              rotationNumber(seed, uint64_t((tile * 8 + r) * columns + k)) >> 63 ? size : -size;
      }
      if (rounding.feedback)
        for (int64_t i = 0; i < columns; ++i) {
          const float *u = rounding.feedback->upper(i);
          for (int64_t r = 0; r < 8; ++r) {
            float *e = &z[size_t(r * columns)], error = e[i];
            for (int64_t j = i + 1; j < columns; ++j)
              e[j] -= error * u[j];
          }
        }
      for (int64_t r = 0; r < 8; ++r) {
        for (int64_t k = 0; k < columns; ++k)
          row[size_t(rounding.order ? rounding.order[k] : k)] = double(z[size_t(r * columns + k)]);
        if (unrotate)
          (*unrotate)(row.data(), columns);
        for (int64_t k = 0; k < columns; ++k)
          to[k * 8 + r] = float(row[size_t(k)]);
      }
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread)
    others.emplace_back(work, thread);
  work(0);
  for (std::thread &other : others)
    other.join();
}

} // namespace otf
