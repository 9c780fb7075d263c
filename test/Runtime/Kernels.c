/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the test plan (TestPlan.h). They are what a compiler would print: no allocation, a
 * range of rows, pointers and sizes in the order that the plan's steps give. */
#include "include/otf/KernelABI.h"

/* t[i][c] = 2 x[i][c].  buffers: x, t.  dims: width */
void test_twice(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                void *scratch) {
  const float *x = buffers[0];
  float *t = buffers[1];
  (void)scratch;
  for (int64_t i = begin * dims[0]; i < end * dims[0]; ++i)
    t[i] = 2 * x[i];
}

/* cache[r][past + i][c] = (r + 1) t[i][c].  buffers: t, cache.  dims: width, past, capacity */
void test_append(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                 void *scratch) {
  const float *t = buffers[0];
  float *cache = buffers[1];
  (void)scratch;
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < dims[0]; ++c)
        cache[(r * dims[2] + dims[1] + i) * dims[0] + c] = (float)(r + 1) * t[i * dims[0] + c];
}

/* y[i][c] = w[c] + sum of cache[r][0 .. past + i][c].  buffers: cache, w, y.  dims as above */
void test_sum(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
              void *scratch) {
  const float *cache = buffers[0], *w = buffers[1];
  float *y = buffers[2], *sum = scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < dims[0]; ++c)
      sum[c] = w[c];
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t t = 0; t <= dims[1] + i; ++t)
        for (int64_t c = 0; c < dims[0]; ++c)
          sum[c] += cache[(r * dims[2] + t) * dims[0] + c];
    for (int64_t c = 0; c < dims[0]; ++c)
      y[i * dims[0] + c] = sum[c];
  }
}

/* cache[past + i] = ids[i].  buffers: ids, cache.  dims: past */
void test_remember(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                   void *scratch) {
  const int64_t *ids = buffers[0];
  float *cache = buffers[1];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i)
    cache[dims[0] + i] = (float)ids[i];
}

/* The likeliest token is (sum of all tokens so far + position + sum of the mask) % 16.
 * buffers: cache, mask, positions, logits.  dims: past, length */
void test_logits(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                 void *scratch) {
  const float *cache = buffers[0];
  const int64_t *mask = buffers[1], *positions = buffers[2];
  float *logits = buffers[3];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i) {
    int64_t sum = positions[i];
    for (int64_t t = 0; t < dims[0] + dims[1]; ++t)
      sum += mask[t];
    for (int64_t t = 0; t <= dims[0] + i; ++t)
      sum += (int64_t)cache[t];
    for (int64_t v = 0; v < 16; ++v)
      logits[i * 16 + v] = v == sum % 16 ? 1.0f : 0.0f;
  }
}
