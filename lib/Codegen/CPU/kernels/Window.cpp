// SPDX-License-Identifier: Apache-2.0
//
// Taps of a window, copied to where a row of windows is built.
#include "Encoding/Layout.h"
#include "Kernels.h"

void otf_tap_f32(const float *__restrict x, int64_t inside, int64_t count, float *__restrict out) {
  if (inside)
    for (int64_t i = 0; i < count; ++i)
      out[i] = x[i];
  else
    for (int64_t i = 0; i < count; ++i)
      out[i] = 0;
}

void otf_tap_i8(const void *record, int64_t inside, int64_t channels, int64_t tap, int64_t taps, void *out) {
  otf::RecordLayout from = otf::recordLayout(channels, 0), to = otf::recordLayout(channels * taps, 0);
  const uint8_t *__restrict x = static_cast<const uint8_t *>(record);
  uint8_t *__restrict row = static_cast<uint8_t *>(out);
  int64_t groups = from.chunks;
  uint8_t *codes = row + tap * channels;
  uint8_t *scales = row + to.scaleOffset + 4 * tap * groups, *sums = row + to.sumOffset + 4 * tap * groups;
  if (inside) {
    for (int64_t i = 0; i < channels; ++i)
      codes[i] = x[i];
    for (int64_t i = 0; i < 4 * groups; ++i)
      scales[i] = x[from.scaleOffset + i];
    for (int64_t i = 0; i < 4 * groups; ++i)
      sums[i] = x[from.sumOffset + i];
  } else {
    for (int64_t i = 0; i < channels; ++i)
      codes[i] = 0;
    for (int64_t i = 0; i < 4 * groups; ++i)
      scales[i] = sums[i] = 0;
  }
}
