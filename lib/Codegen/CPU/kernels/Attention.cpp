// SPDX-License-Identifier: Apache-2.0
//
// Attention of the queries that share one key-value head, by online softmax: keys come in blocks of
// 32, each query keeps its largest score and its sum of weights, and its output row holds the
// weighted sum of values so far. Rows of int8 are added as codes: a key's scale multiplies its score, a value's its weight. Up to
// four queries (heads of a group, or positions) go together, so a key or a value is loaded and converted once for all of them, and up to
// sixteen while a block is in the first-level cache; of many, 16 or more (AttentionLanes.h).
//
// The arithmetic is canonical (docs/Architecture.md): blocks begin at multiples of 32, a block is
// worked out by itself (weights relative to its own largest score), and blocks join in order. So
// results do not depend on how queries are grouped, and a GPU may take the blocks in parallel. A key
// that a query does not see has weight 0, and a block in which it sees none changes nothing.
#include "AttentionLanes.h"
#include "AttentionParts.h"
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

/// What a block of keys gives a query: its largest score, −∞ where it hides all, and the sum of its weights relative to that.
struct BlockSums {
  float largest, total;
};

/// What to multiply the sums so far, and those of the block, with.
struct Factors {
  float old, fresh;
};

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

  static constexpr int64_t kTogether = 16; ///< queries that pass a block while it is in the cache

  /// score[i][j] = q_i · k_(first + j), j < count. Eight products of query and key at a time.
  template <int Q>
  void scores(const Query *query, int64_t first, int64_t count, float (&score)[Q][kBlock]) const {
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

  /// Turns the scores of one query into weights relative to the block.
  BlockSums weigh(const Query &query, int64_t first, int64_t count, float (&score)[kBlock]) const {
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
      return {hidden, 0};
    }
    for (float &weight : score)
      weight = exp(weight - largest);
    // Distances 16, 8, 4, 2, 1.
    __m256 even = _mm256_add_ps(_mm256_loadu_ps(score), _mm256_loadu_ps(score + 16));
    __m256 odd = _mm256_add_ps(_mm256_loadu_ps(score + 8), _mm256_loadu_ps(score + 24));
    return {largest, horizontalSum(_mm256_add_ps(even, odd))};
  }

  /// Joins what a block gives.
  static Factors join(Query &query, BlockSums block) {
    if (block.largest == -__builtin_inff())
      return {1, 0};
    float both = query.largest > block.largest ? query.largest : block.largest;
    Factors factors{exp(query.largest - both), exp(block.largest - both)};
    query.total = __builtin_fmaf(query.total, factors.old, block.total * factors.fresh);
    query.largest = both;
    return factors;
  }

  /// Σ_j weight[i][j] v_(first + j) of W vectors from `at`, each to take(i, column, sum).
  template <int Q, int W, typename Take>
  void values(int64_t at, int64_t first, int64_t count, const float (&weight)[Q][kBlock], Take take) const {
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
      for (int w = 0; w < W; ++w)
        take(i, at + 8 * w, sum[i][w]);
  }

  /// A block of keys for Q queries. `meet(i, sums)` hears of each query's before vectors and columns of its weighted sum go to
  /// take(i, column, sum).
  template <int Q, typename Meet, typename Take>
  void block(const Query *query, int64_t first, int64_t count, Meet meet, Take take) const {
    float score[Q][kBlock];
    scores<Q>(query, first, count, score);
    for (int i = 0; i < Q; ++i)
      meet(i, weigh(query[i], first, count, score[i]));
    if constexpr (kScaled<T>) // weights of codes
      for (int64_t j = 0; j < count; ++j) {
        float valueScale = scaleBehind(v + (first + j) * vStride, dv);
        for (int i = 0; i < Q; ++i)
          score[i][j] *= valueScale;
      }
    constexpr int wide = Q == 4 ? 2 : 4;
    int64_t at = 0;
    for (; at + 8 * wide <= dv; at += 8 * wide)
      values<Q, wide>(at, first, count, score, take);
    for (; at + 8 <= dv; at += 8)
      values<Q, 1>(at, first, count, score, take);
    for (; at < dv; ++at)
      for (int i = 0; i < Q; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < count; ++j)
          sum = __builtin_fmaf(score[i][j], load1(v[(first + j) * vStride + at]), sum);
        take(i, at, sum);
      }
  }

  /// A block for `queries` of at most kTogether, in fours and threes where that is possible.
  template <typename Meet, typename Take>
  void blockForAll(const Query *query, int queries, int64_t first, int64_t count, Meet meet, Take take) const {
    for (int done = 0; done < queries;) {
      int left = queries - done, some = left == 5 || left == 6 ? 3 : left > 4 ? 4 : left;
      auto meetOne = [&](int i, BlockSums sums) { meet(done + i, sums); };
      auto takeOne = [&](int i, int64_t at, auto sum) { take(done + i, at, sum); };
      if (some == 4)
        block<4>(query + done, first, count, meetOne, takeOne);
      else if (some == 3)
        block<3>(query + done, first, count, meetOne, takeOne);
      else if (some == 2)
        block<2>(query + done, first, count, meetOne, takeOne);
      else
        block<1>(query + done, first, count, meetOne, takeOne);
      done += some;
    }
  }

  static void add(float *out, Factors factors, __m256 sum) {
    __m256 fresh = _mm256_mul_ps(sum, _mm256_set1_ps(factors.fresh));
    _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_loadu_ps(out), _mm256_set1_ps(factors.old), fresh));
  }
  static void add(float *out, Factors factors, float sum) {
    *out = __builtin_fmaf(*out, factors.old, sum * factors.fresh);
  }

  /// Query `number`'s sums, divided by that of its weights.
  void finish(Query &query, int64_t number) const {
    float factor = 1;
    if (sink && query.total != 0) { // joins last, as a block whose value is 0
      float extra = sink[number % heads];
      float both = query.largest > extra ? query.largest : extra;
      factor = exp(query.largest - both);
      query.total = __builtin_fmaf(query.total, factor, exp(extra - both));
    }
    float inverse = query.total == 0 ? 0 : factor / query.total;
    for (int64_t c = 0; c < dv; ++c)
      query.out[c] *= inverse;
  }

  void run(int64_t number, int queries) const {
    Query query[kTogether];
    Factors factors[kTogether];
    int64_t begin = keys, end = 0;
    for (int i = 0; i < queries; ++i) {
      query[i] = Task::query(number + i);
      begin = query[i].begin < begin ? query[i].begin : begin;
      end = query[i].end > end ? query[i].end : end;
      for (int64_t c = 0; c < dv; ++c)
        query[i].out[c] = 0;
    }
    for (int64_t first = begin / kBlock * kBlock; first < end; first += kBlock)
      blockForAll(
          query, queries, first, end - first < kBlock ? end - first : kBlock,
          [&](int i, BlockSums sums) { factors[i] = join(query[i], sums); },
          [&](int i, int64_t at, auto sum) { add(query[i].out + at, factors[i], sum); });
    for (int i = 0; i < queries; ++i)
      finish(query[i], number + i);
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
    for (; number < total; number += kTogether)
      run(number, int(total - number < kTogether ? total - number : kTogether));
  }

  /// Parts `first` to `last` of one row's keys, and all that is left to do where these were the last ones to be done.
  void runParts(const AttentionParts &parts, int64_t first, int64_t last) const {
    const int64_t blocks = AttentionParts::blocksOf(keys);
    for (int64_t number = first * blocks / parts.count; number < last * blocks / parts.count; ++number) {
      int64_t key = number * kBlock, count = keys - key < kBlock ? keys - key : kBlock;
      for (int64_t head = 0; head < heads; head += kTogether) {
        int queries = int(heads - head < kTogether ? heads - head : kTogether);
        Query query[kTogether];
        for (int i = 0; i < queries; ++i)
          query[i] = Task::query(head + i);
        auto sums = [&](int i) { return parts.sums + ((number * heads) + head + i) * (dv + 2); };
        blockForAll(
            query, queries, key, count,
            [&](int i, BlockSums block) { __builtin_memcpy(sums(i) + dv, &block, sizeof block); },
            [&](int i, int64_t at, auto sum) { __builtin_memcpy(sums(i) + at, &sum, sizeof sum); });
      }
    }
    if (!parts.finish(last - first))
      return;
    for (int64_t head = 0; head < heads; ++head) {
      Query query = Task::query(head);
      for (int64_t c = 0; c < dv; ++c)
        query.out[c] = 0;
      for (int64_t number = 0; number < blocks; ++number) {
        const float *sums = parts.sums + (number * heads + head) * (dv + 2);
        Factors factors = join(query, {sums[dv], sums[dv + 1]});
        int64_t c = 0;
        for (; c + 8 <= dv; c += 8)
          add(query.out + c, factors, _mm256_loadu_ps(sums + c));
        for (; c < dv; ++c)
          add(query.out + c, factors, sums[c]);
      }
      finish(query, head);
    }
  }
};

} // namespace
} // namespace otf::cpu

int64_t otf_attention_parts(const void *scratch, int64_t positions, int64_t problems, int64_t heads, int64_t keys,
                            int64_t dv, int64_t most) {
  return positions == 1 ? otf::cpu::AttentionParts::of(scratch, problems, heads, keys, dv, most) : 0;
}

#define OTF_ATTENTION(name, T)                                                                                                  \
  void otf_attention_##name(const float *q, int64_t rows, int64_t heads, int64_t qRowStride, int64_t qHeadStride, const T *k,     \
                            int64_t kStride, const T *v, int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale,       \
                            float softcap, int64_t visible, int64_t window, const float *maskAdd, const uint8_t *maskKeep,        \
                            int64_t maskRowStride, int64_t maskHeadStride, float *out, int64_t outRowStride,                      \
                            int64_t outHeadStride, const float *sink) {                                                           \
    otf::cpu::Attention<T>{{q,       qRowStride,   qHeadStride,   k,              kStride, v,                                    \
                            vStride, heads,        keys,          d,              dv,      scale,                                \
                            softcap, visible,      window,        maskAdd,        maskKeep, maskRowStride,                       \
                            maskHeadStride, out,   outRowStride,  outHeadStride,  sink}}                                         \
        .runAll(rows);                                                                                                            \
  }                                                                                                                               \
  void otf_attention_part_##name(const float *q, int64_t heads, int64_t qHeadStride, const T *k, int64_t kStride, const T *v,     \
                                 int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale, float softcap,                \
                                 const float *maskAdd, const uint8_t *maskKeep, int64_t maskHeadStride, float *out,               \
                                 int64_t outHeadStride, const float *sink, const void *scratch, int64_t problem, int64_t parts,   \
                                 int64_t first, int64_t last) {                                                                   \
    otf::cpu::Attention<T>{{q,       0,     qHeadStride, k,             kStride,  v,                                             \
                            vStride, heads, keys,        d,             dv,       scale,                                         \
                            softcap, keys,  0,           maskAdd,       maskKeep, 0,                                             \
                            maskHeadStride, out, 0,      outHeadStride, sink}}                                                   \
        .runParts(otf::cpu::AttentionParts::at(scratch, problem, parts, heads, keys, dv), first, last);                           \
  }

OTF_ATTENTION(f32, float)
OTF_ATTENTION(f16, uint16_t)
OTF_ATTENTION(i8, int8_t)
