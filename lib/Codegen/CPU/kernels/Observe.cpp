// SPDX-License-Identifier: Apache-2.0
//
// Statistics of rows, for otf.observe. One work item is a block of 48 x 48 products: both panels of x are packed into scratch a
// chunk of rows at a time, so that edges are zeros and the inner loop streams; 6 x 16 products (12 x 16 with 32 registers) stay in
// registers over a chunk, and a chunk's sums are added to the block's. So an f32 sum is never longer than a chunk, and the result
// does not depend on threads. Blocks on the diagonal also add up the moments and the histogram of their channels.
#include "../../../../include/otf/KernelABI.h"
#include "Kernels.h"
#include "Simd.h"

namespace {

constexpr int64_t kSide = OTF_OBSERVE_BLOCK, kRows = 128, kBins = 4096;
constexpr int64_t kWide = 16;
#ifdef __AVX512F__
constexpr int64_t kTall = 12;
#else
constexpr int64_t kTall = 6;
#endif
static_assert(kSide % kWide == 0 && kSide % kTall == 0);

typedef float Lanes __attribute__((vector_size(32)));

void pack(const float *x, int64_t k, int64_t rows, int64_t columns, float (*panel)[kSide]) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      panel[r][c] = x[r * k + c];
    for (int64_t c = columns; c < kSide; ++c)
      panel[r][c] = 0;
  }
}

/// sums[i][j] += Σ_r left[r][i] right[r][j] for a register tile.
void multiply(const float (*left)[kSide], const float (*right)[kSide], int64_t rows, float (*sums)[kSide]) {
  Lanes tile[kTall][2] = {};
  for (int64_t r = 0; r < rows; ++r) {
    Lanes b0 = _mm256_load_ps(right[r]), b1 = _mm256_load_ps(right[r] + 8);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kTall; ++i) {
      Lanes a = _mm256_broadcast_ss(left[r] + i);
      tile[i][0] = _mm256_fmadd_ps(a, b0, tile[i][0]);
      tile[i][1] = _mm256_fmadd_ps(a, b1, tile[i][1]);
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < kTall; ++i)
    for (int64_t h = 0; h < 2; ++h)
      _mm256_store_ps(sums[i] + 8 * h, _mm256_add_ps(_mm256_load_ps(sums[i] + 8 * h), tile[i][h]));
}

/// Of a block's channels, over all rows; a loop over channels for each row is vectors.
struct Moments {
  double sum[kSide], absolute[kSide], square[kSide];
  float least[kSide], largest[kSide];

  void add(const float (*panel)[kSide], int64_t rows) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < kSide; ++c) {
        float x = panel[r][c];
        sum[c] += double(x);
        absolute[c] += double(__builtin_fabsf(x));
        square[c] += double(x) * double(x);
        least[c] = x < least[c] ? x : least[c];
        largest[c] = x > largest[c] ? x : largest[c];
      }
  }
};

void tally(const float (*panel)[kSide], int64_t rows, int64_t columns, uint32_t *bins) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      uint32_t bits;
      __builtin_memcpy(&bits, &panel[r][c], 4);
      ++bins[bits == 0x80000000u ? 0 : bits >> 20];
    }
}

struct Scratch {
  float left[kRows][kSide], right[kRows][kSide];
  float sums[kSide][kSide];
  Moments moments;
  uint32_t bins[kBins];
};
static_assert(sizeof(Scratch) <= OTF_KERNEL_SCRATCH);

} // namespace

void otf_observe(const float *x, int64_t rows, int64_t k, int64_t item, int64_t diagonal, int64_t *count, double *moments,
                 int64_t *histogram, float *products, void *scratch) {
  auto &s = *static_cast<Scratch *>(scratch);
  int64_t high = 0; // block row and column of the item
  for (; !diagonal && (high + 1) * (high + 2) / 2 <= item; ++high)
    ;
  int64_t low = diagonal ? item : item - high * (high + 1) / 2;
  if (diagonal)
    high = item;
  int64_t i0 = high * kSide, j0 = low * kSide;
  int64_t ni = k - i0 < kSide ? k - i0 : kSide, nj = k - j0 < kSide ? k - j0 : kSide;
  if (item == 0)
    *count += rows;
  if (high == low) {
    for (int64_t bin = 0; bin < kBins; ++bin)
      s.bins[bin] = 0;
    for (int64_t c = 0; c < kSide; ++c) {
      s.moments.sum[c] = s.moments.absolute[c] = s.moments.square[c] = 0;
      s.moments.least[c] = s.moments.largest[c] = 0;
    }
  }
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j)
      s.sums[i][j] = 0;

  for (int64_t r = 0; r < rows; r += kRows) {
    int64_t n = rows - r < kRows ? rows - r : kRows;
    pack(x + r * k + j0, k, n, nj, s.right);
    auto left = s.right;
    if (high == low) {
      s.moments.add(s.right, n);
      tally(s.right, n, nj, s.bins);
    } else {
      pack(x + r * k + i0, k, n, ni, s.left);
      left = s.left;
    }
    for (int64_t i = 0; !diagonal && i < ni; i += kTall)
      for (int64_t j = 0; j < nj; j += kWide)
        multiply(reinterpret_cast<const float(*)[kSide]>(&left[0][i]), reinterpret_cast<const float(*)[kSide]>(&s.right[0][j]), n,
                 reinterpret_cast<float(*)[kSide]>(&s.sums[i][j]));
  }
  if (high == low) {
    // Counts are integers, so threads may add theirs in any order.
    for (int64_t bin = 0; bin < kBins; ++bin)
      if (s.bins[bin])
        __atomic_fetch_add(histogram + bin, int64_t(s.bins[bin]), __ATOMIC_RELAXED);
    for (int64_t c = 0; c < nj; ++c) {
      double *m = moments + j0 + c, least = double(s.moments.least[c]), largest = double(s.moments.largest[c]);
      m[0] += s.moments.sum[c];
      m[k] += s.moments.absolute[c];
      m[2 * k] += s.moments.square[c];
      m[3 * k] = least < m[3 * k] ? least : m[3 * k];
      m[4 * k] = largest > m[4 * k] ? largest : m[4 * k];
    }
  }
  for (int64_t i = 0; !diagonal && i < ni; ++i) {
    float *row = products + (i0 + i) * (i0 + i + 1) / 2 + j0;
    int64_t n = high == low ? i + 1 : nj;
    for (int64_t j = 0; j < n; ++j)
      row[j] += s.sums[i][j];
  }
}
