// SPDX-License-Identifier: Apache-2.0
//
// Attention of the queries that share one key-value head, by online softmax: keys come in blocks of
// 32, each query keeps its largest score and its sum of weights, and its output row holds the
// weighted sum of values so far. Rows of int8 are added as codes: a key's scale multiplies its score, a value's its weight. Up to four queries (heads of a group, or positions) go together, so
// a key or a value is loaded and converted once for all of them; of many, 16 or more (AttentionLanes.h).
//
// The arithmetic is canonical (docs/Architecture.md): blocks begin at multiples of 32, a block is
// worked out by itself (weights relative to its own largest score), and blocks join in order. So
// results do not depend on how queries are grouped, and a GPU may take the blocks in parallel. A key
// that a query does not see has weight 0, and a block in which it sees none changes nothing.
#include "AttentionLanes.h"
#include "Kernels.h"

namespace otf::cpu {
namespace {

/// Fewer than eight values, the rest 0.
template <typename T> inline __m256 loadSome(const T *at, int64_t count) {
  float values[8] = {};
  for (int64_t i = 0; i < count; ++i)
    values[i] = load1(at[i]);
  return _mm256_loadu_ps(values);
}

template <typename T> struct Attention : AttentionTask<T> {
  using Task = AttentionTask<T>;
  using typename Task::Query;
  using Task::k;
  using Task::kStride;
  using Task::v;
  using Task::vStride;
  using Task::heads;
  using Task::keys;
  using Task::d;
  using Task::dv;
  using Task::scale;
  using Task::softcap;
  using Task::maskAdd;
  using Task::maskKeep;
  using Task::sink;

  /// score[i][j] = q_i · k_(first + j), j < count. Eight products of query and key at a time.
  template <int Q>
  void scores(const Query (&query)[Q], int64_t first, int64_t count,
              float (&score)[Q][kBlock]) const {
    constexpr int N = 8 / Q;
    for (int64_t j = 0; j < count; j += N) {
      const T *key[N];
      for (int n = 0; n < N; ++n)
        // Past the last key, take it again: the products go unused.
        key[n] = k + (first + (j + n < count ? j + n : count - 1)) * kStride;
      __m256 sum[8] = {};
      auto step = [&](auto load) {
        __m256 x[Q];
        for (int i = 0; i < Q; ++i)
          x[i] = load(query[i].q);
        for (int n = 0; n < N; ++n) {
          __m256 y = load(key[n]);
          for (int i = 0; i < Q; ++i)
            sum[i * N + n] = _mm256_fmadd_ps(x[i], y, sum[i * N + n]);
        }
      };
      int64_t at = 0;
      for (; at + 8 <= d; at += 8)
        step([&](auto *row) { return load8(row + at); });
      if (at < d)
        step([&](auto *row) { return loadSome(row + at, d - at); });
      float sums[8];
      _mm256_storeu_ps(sums, horizontalSums(sum));
      if constexpr (kScaled<T>)
        for (int n = 0; n < N; ++n) {
          float keyScale = scaleBehind(key[n], d);
          for (int i = 0; i < Q; ++i)
            sums[i * N + n] *= keyScale;
        }
      for (int i = 0; i < Q; ++i)
        for (int n = 0; n < N; ++n)
          if (j + n < kBlock)
            score[i][j + n] = sums[i * N + n];
    }
  }

  /// What to multiply the sums so far, and those of the block, with.
  struct Factors {
    float old, fresh;
  };

  /// Turns the scores of one query into weights relative to the block.
  Factors weigh(Query &query, int64_t first, int64_t count, float (&score)[kBlock]) const {
    constexpr float hidden = -__builtin_inff();
    for (int64_t j = 0; j < count; ++j)
      score[j] *= scale;
    if (softcap != 0)
      for (int64_t j = 0; j < count; ++j)
        score[j] = softcap * tanh(score[j] / softcap);
    if (maskAdd)
      for (int64_t j = 0; j < count; ++j)
        score[j] += maskAdd[query.mask + first + j];
    if (maskKeep)
      for (int64_t j = 0; j < count; ++j)
        score[j] = maskKeep[query.mask + first + j] ? score[j] : hidden;
    for (int64_t j = 0; j < query.begin - first && j < count; ++j)
      score[j] = hidden;
    int64_t seen = query.end - first;
    for (int64_t j = seen < 0 ? 0 : seen < count ? seen : count; j < kBlock; ++j)
      score[j] = hidden;

    __m256 high = _mm256_set1_ps(hidden);
    for (int64_t j = 0; j < kBlock; j += 8)
      high = _mm256_max_ps(high, _mm256_loadu_ps(score + j));
    float lanes[8];
    _mm256_storeu_ps(lanes, high);
    float largest = lanes[0];
    for (int lane = 1; lane < 8; ++lane)
      largest = lanes[lane] > largest ? lanes[lane] : largest;
    if (largest == hidden) {
      // −inf − −inf would be NaN.
      for (float &weight : score)
        weight = 0;
      return {1, 0};
    }
    for (float &weight : score)
      weight = exp(weight - largest);
    // Distances 16, 8, 4, 2, 1.
    __m256 even = _mm256_add_ps(_mm256_loadu_ps(score), _mm256_loadu_ps(score + 16));
    __m256 odd = _mm256_add_ps(_mm256_loadu_ps(score + 8), _mm256_loadu_ps(score + 24));
    float sum = horizontalSum(_mm256_add_ps(even, odd));
    float both = query.largest > largest ? query.largest : largest;
    Factors factors{exp(query.largest - both), exp(largest - both)};
    query.total = __builtin_fmaf(query.total, factors.old, sum * factors.fresh);
    query.largest = both;
    return factors;
  }

  /// out_i = out_i · old_i + (Σ_j weight[i][j] v_(first + j)) · fresh_i, for W vectors from `at`.
  template <int Q, int W>
  void values(const Query (&query)[Q], int64_t at, int64_t first, int64_t count,
              const float (&weight)[Q][kBlock], const Factors (&factors)[Q]) const {
    __m256 sum[Q][W];
    for (int i = 0; i < Q; ++i)
      for (int w = 0; w < W; ++w)
        sum[i][w] = _mm256_setzero_ps();
    for (int64_t j = 0; j < count; ++j) {
      const T *value = v + (first + j) * vStride + at;
      for (int w = 0; w < W; ++w) {
        __m256 y = load8(value + 8 * w);
        for (int i = 0; i < Q; ++i)
          sum[i][w] = _mm256_fmadd_ps(_mm256_set1_ps(weight[i][j]), y, sum[i][w]);
      }
    }
    for (int i = 0; i < Q; ++i)
      for (int w = 0; w < W; ++w) {
        float *out = query[i].out + at + 8 * w;
        __m256 block = _mm256_mul_ps(sum[i][w], _mm256_set1_ps(factors[i].fresh));
        _mm256_storeu_ps(
            out, _mm256_fmadd_ps(_mm256_loadu_ps(out), _mm256_set1_ps(factors[i].old), block));
      }
  }

  template <int Q> void run(int64_t number) const {
    Query query[Q];
    int64_t begin = keys, end = 0;
    for (int i = 0; i < Q; ++i) {
      query[i] = Task::query(number + i);
      begin = query[i].begin < begin ? query[i].begin : begin;
      end = query[i].end > end ? query[i].end : end;
      for (int64_t c = 0; c < dv; ++c)
        query[i].out[c] = 0;
    }
    for (int64_t first = begin / kBlock * kBlock; first < end; first += kBlock) {
      int64_t count = end - first < kBlock ? end - first : kBlock;
      float score[Q][kBlock];
      Factors factors[Q];
      scores<Q>(query, first, count, score);
      for (int i = 0; i < Q; ++i)
        factors[i] = weigh(query[i], first, count, score[i]);
      if constexpr (kScaled<T>) // weights of codes
        for (int64_t j = 0; j < count; ++j) {
          float valueScale = scaleBehind(v + (first + j) * vStride, dv);
          for (int i = 0; i < Q; ++i)
            score[i][j] *= valueScale;
        }
      constexpr int wide = Q == 4 ? 2 : 4;
      int64_t at = 0;
      for (; at + 8 * wide <= dv; at += 8 * wide)
        values<Q, wide>(query, at, first, count, score, factors);
      for (; at + 8 <= dv; at += 8)
        values<Q, 1>(query, at, first, count, score, factors);
      for (; at < dv; ++at)
        for (int i = 0; i < Q; ++i) {
          float sum = 0;
          for (int64_t j = 0; j < count; ++j)
            sum = __builtin_fmaf(score[i][j], load1(v[(first + j) * vStride + at]), sum);
          query[i].out[at] =
              __builtin_fmaf(query[i].out[at], factors[i].old, sum * factors[i].fresh);
        }
    }
    for (int i = 0; i < Q; ++i) {
      float factor = 1;
      if (sink && query[i].total != 0) { // joins last, as a block whose value is 0
        float extra = sink[(number + i) % heads];
        float both = query[i].largest > extra ? query[i].largest : extra;
        factor = exp(query[i].largest - both);
        query[i].total = __builtin_fmaf(query[i].total, factor, exp(extra - both));
      }
      float inverse = query[i].total == 0 ? 0 : factor / query[i].total;
      for (int64_t c = 0; c < dv; ++c)
        query[i].out[c] *= inverse;
    }
  }

  void runAll(int64_t rows) const {
    int64_t number = 0, total = rows * heads;
    if (d <= kMostWidth && dv <= kMostWidth) {
#ifdef __AVX512F__
      for (; number + 32 <= total; number += 32)
        attendLanes<16, 2>(*static_cast<const Task *>(this), number);
      for (; number + 16 <= total; number += 16)
        attendLanes<16, 1>(*static_cast<const Task *>(this), number);
#else
      for (; number + 16 <= total; number += 16)
        attendLanes<8, 2>(*static_cast<const Task *>(this), number);
#endif
    }
    for (; number + 4 <= total; number += 4)
      run<4>(number);
    for (; number + 2 <= total; number += 2)
      run<2>(number);
    if (number < total)
      run<1>(number);
  }
};

} // namespace
} // namespace otf::cpu

void otf_attention_f32(const float *q, int64_t rows, int64_t heads, int64_t qRowStride,
                       int64_t qHeadStride, const float *k, int64_t kStride, const float *v,
                       int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale,
                       float softcap, int64_t visible, int64_t window, const float *maskAdd,
                       const uint8_t *maskKeep, int64_t maskRowStride, int64_t maskHeadStride,
                       float *out, int64_t outRowStride, int64_t outHeadStride,
                       const float *sink) {
  otf::cpu::Attention<float>{{q,      qRowStride, qHeadStride, k,        kStride,
                             v,       vStride,    heads,       keys,     d,
                             dv,      scale,      softcap,     visible,  window,
                             maskAdd, maskKeep,   maskRowStride, maskHeadStride,
                             out,     outRowStride, outHeadStride, sink}}
      .runAll(rows);
}

void otf_attention_f16(const float *q, int64_t rows, int64_t heads, int64_t qRowStride,
                       int64_t qHeadStride, const uint16_t *k, int64_t kStride, const uint16_t *v,
                       int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale,
                       float softcap, int64_t visible, int64_t window, const float *maskAdd,
                       const uint8_t *maskKeep, int64_t maskRowStride, int64_t maskHeadStride,
                       float *out, int64_t outRowStride, int64_t outHeadStride,
                       const float *sink) {
  otf::cpu::Attention<uint16_t>{{q,      qRowStride, qHeadStride, k,        kStride,
                                v,       vStride,    heads,       keys,     d,
                                dv,      scale,      softcap,     visible,  window,
                                maskAdd, maskKeep,   maskRowStride, maskHeadStride,
                                out,     outRowStride, outHeadStride, sink}}
      .runAll(rows);
}

void otf_attention_i8(const float *q, int64_t rows, int64_t heads, int64_t qRowStride,
                       int64_t qHeadStride, const int8_t *k, int64_t kStride, const int8_t *v,
                       int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale,
                       float softcap, int64_t visible, int64_t window, const float *maskAdd,
                       const uint8_t *maskKeep, int64_t maskRowStride, int64_t maskHeadStride,
                       float *out, int64_t outRowStride, int64_t outHeadStride,
                       const float *sink) {
  otf::cpu::Attention<int8_t>{{q,      qRowStride, qHeadStride, k,        kStride,
                                v,       vStride,    heads,       keys,     d,
                                dv,      scale,      softcap,     visible,  window,
                                maskAdd, maskKeep,   maskRowStride, maskHeadStride,
                                out,     outRowStride, outHeadStride, sink}}
      .runAll(rows);
}
