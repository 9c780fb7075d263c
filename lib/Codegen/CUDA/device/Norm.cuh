// SPDX-License-Identifier: Apache-2.0
//
// Normalisation of a row: what a block needs to know of it (shift and scale), and the kernel that
// writes normalised rows. Record.cuh uses the first part, so that a contraction's activations are
// normalised and quantised in one kernel.

namespace otf {

enum class Normal { none, rms, layer };

/// y = (x - shift) * scale, then times gamma plus beta where these are given.
struct Moments {
  float shift, scale;
};

/// Moments of a row of K values x(k), by the whole block, of which the first kThreads threads read. `shared`: kWarps floats.
/// rms: 1 / sqrt(mean(x^2) + eps). layer: mean, then 1 / sqrt(mean((x - mean)^2) + eps); two
/// passes, because the one-pass variance loses all digits of a row with a large mean.
template <Normal Kind, class X>
OTF_DEVICE Moments moments(X x, int64_t k, float eps, float *shared) {
  Moments result = {0.0f, 1.0f};
  if (Kind == Normal::none)
    return result;
  const int64_t first = threadIdx.x < kThreads ? int64_t(threadIdx.x) : k;
  if (Kind == Normal::layer) {
    float sum = 0;
#pragma unroll 8
    for (int64_t i = first; i < k; i += kThreads)
      sum += x(i);
    result.shift = blockSum(sum, shared) / float(k);
  }
  float squares = 0;
#pragma unroll 8
  for (int64_t i = first; i < k; i += kThreads) {
    float d = x(i) - result.shift;
    squares = fmaf(d, d, squares);
  }
  result.scale = 1.0f / sqrtf(blockSum(squares, shared) / float(k) + eps);
  return result;
}

/// One value of a normalised row. beta: f32 [K] or null.
OTF_DEVICE float normalised(Moments m, float x, int64_t k, float gamma, const float *beta) {
  const float y = (x - m.shift) * m.scale * gamma;
  return beta ? y + beta[k] : y;
}
/// gamma likewise.
OTF_DEVICE float normalised(Moments m, float x, int64_t k, const float *gamma, const float *beta) {
  return normalised(m, x, k, gamma ? gamma[k] : 1.0f, beta);
}

/// f(m, k, y) for every value of `rows` normalised rows of K values x(m, k). A block owns a row.
template <Normal Kind, class X, class F>
OTF_DEVICE void norm(X x, int64_t rows, int64_t k, float eps, const float *gamma, const float *beta,
                     F f) {
  __shared__ float shared[kWarps];
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x) {
    auto row = [&](int64_t i) { return float(x(m, i)); };
    Moments stats = moments<Kind>(row, k, eps, shared);
    for (int64_t i = threadIdx.x; i < k; i += kThreads)
      f(m, i, normalised(stats, row(i), i, gamma, beta));
  }
}

} // namespace otf
