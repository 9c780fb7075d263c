// SPDX-License-Identifier: Apache-2.0
//
// The canonical arithmetic (docs/Architecture.md) as slow scalar code: what every back end must give
// to the bit. Written from the definition, not from a kernel; exp, log, tanh and erf are the kernels'
// own source, compiled here without vectors.
#ifndef OTF_TEST_CODEGEN_CANONICAL_H
#define OTF_TEST_CODEGEN_CANONICAL_H

#include "Encoding/Codec.h"
#include "Encoding/Half.h"
#include "lib/Codegen/CPU/kernels/Math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace otf::test::canonical {

/// Neighbours at distance n/2, n/4 … 1 meet.
inline float tree(std::vector<float> part) {
  for (size_t n = part.size() / 2; n != 0; n /= 2)
    for (size_t i = 0; i < n; ++i)
      part[i] = part[i] + part[i + n];
  return part[0];
}

/// Σ (x − mean)², or Σ x: 256 partial sums, a tree over each 32, then those eight in order.
inline float rowSum(const float *x, int64_t k, float mean, bool square) {
  std::vector<float> part(256, 0.0f);
  for (int64_t i = 0; i < k; ++i) {
    float d = x[i] - mean, &p = part[size_t(i % 256)];
    p = square ? std::fmaf(d, d, p) : p + x[i];
  }
  float sum = 0;
  for (size_t w = 0; w < 256; w += 32)
    sum = sum + tree({part.begin() + long(w), part.begin() + long(w) + 32});
  return sum;
}

inline std::vector<float> norm(const float *x, int64_t k, bool layer, float eps, const float *gamma,
                               const float *beta) {
  float mean = layer ? rowSum(x, k, 0, false) / float(k) : 0;
  float mean2 = rowSum(x, k, mean, true) / float(k);
  float inverse = 1.0f / std::sqrt(mean2 + eps);
  std::vector<float> y;
  for (int64_t i = 0; i < k; ++i) {
    float v = (x[i] - mean) * inverse;
    if (gamma)
      v = v * gamma[i];
    if (beta)
      v = v + beta[i];
    y.push_back(v);
  }
  return y;
}

/// One result of a contraction with integer or table weights: row `lane` of `tile` and one record.
inline float linear(const Encoding &encoding, const WeightLayout &l, const uint8_t *tile, int lane,
                    const uint8_t *record) {
  RecordLayout r = recordLayout(l.background, l.outliers);
  auto half = [&](const uint8_t *at) {
    uint16_t bits;
    std::memcpy(&bits, at + 2 * lane, 2);
    return halfToFloat(bits);
  };
  auto code = [&](const uint8_t *chunk, int column) -> int {
    if (isPlanes(encoding.kind)) {
      const PlanesCode &planes = planesCode(encoding.kind);
      uint32_t words[4];
      for (int p = 0; p < planes.planes; ++p)
        std::memcpy(words + p, chunk + 32 * p + 4 * lane, 4);
      return planesSum(planes, words, 1, column) - planes.offset;
    }
    switch (encoding.kind) {
    case EncodingKind::Int8:
      return int8_t(Int8Codec::get(chunk, lane, column));
    case EncodingKind::Int4:
      return int(Int4Codec::get(chunk, lane, column)) - 8;
    case EncodingKind::TernarySign:
      return TernarySignCodec::ternaryOf(TernarySignCodec::get(chunk, lane, column));
    default:
      return int8_t(encoding.table >> 8 * Codebook2Codec::get(chunk, lane, column));
    }
  };
  int64_t bytes = chunkBytes(encoding.kind), parameters = groupParameterBytes(encoding.kind);
  int64_t perGroup = l.group / kChunkColumns;
  float acc = 0;
  for (int64_t c = 0; c < l.chunks; ++c) {
    int64_t g = c / perGroup, end = std::min((g + 1) * perGroup, l.chunks);
    const uint8_t *chunk = tile + c * bytes + g * parameters;
    const uint8_t *scales = tile + end * bytes + g * parameters;
    int dot = 0, sum = 0, signs = 0;
    for (int i = 0; i < 32; ++i) {
      int q = int8_t(record[c * 32 + i]);
      dot += q * code(chunk, i);
      sum += q;
      if (hasSigns(encoding.kind))
        signs += q * TernarySignCodec::signOf(TernarySignCodec::get(chunk, lane, i));
    }
    float xScale;
    std::memcpy(&xScale, record + r.scaleOffset + 4 * c, 4);
    float term = float(dot) * xScale;
    term = term * half(scales);
    if (hasZeros(encoding.kind)) {
      float offset = xScale * float(hasSigns(encoding.kind) ? signs : sum);
      term = std::fmaf(offset, half(scales + 16), term);
    }
    acc = acc + term;
  }
  for (int64_t o = 0; o < l.outliers; ++o) {
    float x;
    std::memcpy(&x, record + r.outlierOffset + 4 * o, 4);
    float term = half(tile + l.panelOffset + 16 * o) * x;
    acc = acc + term;
  }
  return acc;
}

/// One row of attention. k(j, i), v(j, i): floats; mask(j, s): the score as masked, −inf if unseen. keyScale(j), valueScale(j): of rows
/// of codes. `sink`: one more score, whose value is 0, or null.
template <class K, class V, class Mask, class KeyScale, class ValueScale>
std::vector<float> attention(const float *q, int64_t d, int64_t dv, int64_t keys, K k, V v, KeyScale keyScale, ValueScale valueScale,
                             float scale, float softcap, Mask mask, const float *sink) {
  constexpr float hidden = -__builtin_inff();
  std::vector<float> out(size_t(dv), 0.0f);
  float top = hidden, total = 0;
  for (int64_t first = 0; first < keys; first += 32) {
    std::vector<float> weight(32, hidden);
    float mine = hidden;
    for (int64_t j = first; j < std::min(keys, first + 32); ++j) {
      float part[8] = {};
      for (int64_t i = 0; i < d; ++i)
        part[i % 8] = std::fmaf(q[i], k(j, i), part[i % 8]);
      float low = (part[0] + part[1]) + (part[2] + part[3]);
      float high = (part[4] + part[5]) + (part[6] + part[7]);
      float s = (low + high) * keyScale(j) * scale;
      if (softcap != 0)
        s = softcap * cpu::tanh(s / softcap);
      weight[size_t(j - first)] = s = mask(j, s);
      mine = std::max(mine, s);
    }
    if (mine == hidden)
      continue;
    for (float &w : weight)
      w = cpu::exp(w - mine);
    float both = std::max(top, mine), old = cpu::exp(top - both), fresh = cpu::exp(mine - both);
    float blockTotal = tree(weight) * fresh;
    total = std::fmaf(total, old, blockTotal);
    for (int64_t j = first; j < std::min(keys, first + 32); ++j)
      weight[size_t(j - first)] *= valueScale(j);
    for (int64_t i = 0; i < dv; ++i) {
      float sum = 0;
      for (int64_t j = first; j < std::min(keys, first + 32); ++j)
        sum = std::fmaf(weight[size_t(j - first)], v(j, i), sum);
      sum = sum * fresh;
      out[size_t(i)] = std::fmaf(out[size_t(i)], old, sum);
    }
    top = both;
  }
  float factor = 1;
  if (sink && total != 0) {
    float both = std::max(top, *sink);
    factor = cpu::exp(top - both);
    total = std::fmaf(total, factor, cpu::exp(*sink - both));
  }
  for (float &o : out)
    o = o * (total == 0 ? 0 : factor / total);
  return out;
}

/// The same of rows of floats, without a sink.
template <class K, class V, class Mask>
std::vector<float> attention(const float *q, int64_t d, int64_t dv, int64_t keys, K k, V v,
                             float scale, float softcap, Mask mask) {
  auto one = [](int64_t) { return 1.0f; };
  return attention(q, d, dv, keys, k, v, one, one, scale, softcap, mask, nullptr);
}

} // namespace otf::test::canonical

#endif // OTF_TEST_CODEGEN_CANONICAL_H
