// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries: the arithmetic of Attention.cpp, to the bit, with one query a lane. A key
// or a value is then a broadcast load, scores have no horizontal sums, and largest scores, weights and
// factors of V vectors of queries are worked out side by side.
#ifndef OTF_CODEGEN_CPU_ATTENTIONLANES_H
#define OTF_CODEGEN_CPU_ATTENTIONLANES_H

#include "AttentionTask.h"
#include "Math.h"

namespace otf::cpu {

/// Columns of a head that fit the memory below.
constexpr int64_t kMostWidth = 128;

/// Queries number … number + L · V − 1 of a task, L lanes a vector.
template <typename T, int L, int V> struct AttentionLanes {
  using Task = AttentionTask<T>;
  using Floats = float __attribute__((vector_size(4 * L)));
  static constexpr int count = L * V;
  using Row = float[count]; ///< one number of each query

  const Task &task;
  typename Task::Query query[count];
  alignas(64) Row q[kMostWidth];   ///< transposed
  alignas(64) Row out[kMostWidth]; ///< sums of values so far, transposed
  alignas(64) Row score[kBlock];   ///< of a block of keys; then their weights
  alignas(64) Row largest, total, old, fresh;
  alignas(64) float block[sizeof(T) < 4 ? kBlock * kMostWidth : 1]; ///< keys or values as f32, or their codes

  AttentionLanes(const Task &task) : task(task) {}

  static Floats &vector(Row &row, int v) { return reinterpret_cast<Floats *>(row)[v]; }
  static Floats fused(Floats a, Floats b, Floats c) { return __builtin_elementwise_fma(a, b, c); }

  /// Rows first … of a matrix of floats, and their stride.
  struct Rows {
    const float *at;
    int64_t stride;
  };
  Rows rows(const T *from, int64_t stride, int64_t first, int64_t rows, int64_t width) {
    if constexpr (sizeof(T) == 4) {
      return {from + first * stride, stride};
    } else {
      for (int64_t j = 0; j < rows; ++j) {
        const T *row = from + (first + j) * stride;
        int64_t c = 0;
        for (; c + 8 <= width; c += 8)
          _mm256_storeu_ps(block + j * width + c, load8(row + c));
        for (; c < width; ++c)
          block[j * width + c] = load1(row[c]);
      }
      return {block, width};
    }
  }

  /// score[j] of N keys from j on: each is eight partial sums, of the columns c mod 8, which meet in pairs.
  template <int N> void scores(Rows keys, int64_t j, int64_t last) {
    const float *key[N];
    for (int n = 0; n < N; ++n) // past the last key, that one again: what comes of it is hidden
      key[n] = keys.at + (j + n < last ? j + n : last - 1) * keys.stride;
    Floats part[8][N][V];
#pragma clang loop unroll(disable)
    for (int r = 0; r < 8; ++r) {
      Floats sum[N][V] = {};
      for (int64_t c = r; c < task.d; c += 8)
        for (int n = 0; n < N; ++n)
          for (int v = 0; v < V; ++v)
            sum[n][v] = fused(vector(q[c], v), key[n][c] - Floats{}, sum[n][v]);
      for (int n = 0; n < N; ++n)
        for (int v = 0; v < V; ++v)
          part[r][n][v] = sum[n][v];
    }
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < V; ++v) {
        Floats(&p)[8][N][V] = part;
        vector(score[j + n], v) = ((p[0][n][v] + p[1][n][v]) + (p[2][n][v] + p[3][n][v])) +
                                  ((p[4][n][v] + p[5][n][v]) + (p[6][n][v] + p[7][n][v]));
      }
  }

  /// Scores, or weights, by the scales of rows of codes.
  void multiply(const T *from, int64_t stride, int64_t first, int64_t keys, int64_t width) {
    if constexpr (kScaled<T>)
      for (int64_t j = 0; j < keys; ++j)
        for (int v = 0; v < V; ++v)
          vector(score[j], v) *= scaleBehind(from + (first + j) * stride, width);
  }

  /// Scores as the softmax sees them.
  void hide(int64_t first, int64_t keys) {
    constexpr float hidden = -__builtin_inff();
    const float scale = task.scale;
    bool same = true, whole = keys == kBlock; // one row of the mask; all keys seen
    for (int i = 0; i < count; ++i) {
      same = same && query[i].mask == query[0].mask;
      whole = whole && query[i].begin <= first && query[i].end - first >= kBlock;
    }
    const bool adds = task.maskAdd && same && task.softcap == 0;
    for (int64_t j = 0; j < keys; ++j)
      for (int v = 0; v < V; ++v) {
        Floats scaled = vector(score[j], v) * scale;
        vector(score[j], v) = adds ? scaled + task.maskAdd[query[0].mask + first + j] : scaled;
      }
    if (task.softcap != 0)
      for (int64_t j = 0; j < keys; ++j)
        for (int i = 0; i < count; ++i)
          score[j][i] = task.softcap * tanh(score[j][i] / task.softcap);
    if (task.maskAdd && !adds && keys == kBlock)
      for (int i = 0; i < count; i += 8)
        for (int64_t j = 0; j < kBlock; j += 8) {
          __m256 m[8];
          for (int n = 0; n < 8; ++n)
            m[n] = _mm256_loadu_ps(task.maskAdd + query[i + n].mask + first + j);
          transpose(m);
          for (int n = 0; n < 8; ++n)
            _mm256_store_ps(&score[j + n][i], _mm256_add_ps(_mm256_load_ps(&score[j + n][i]), m[n]));
        }
    else if (task.maskAdd && !adds)
      for (int i = 0; i < count; ++i)
        for (int64_t j = 0; j < keys; ++j)
          score[j][i] += task.maskAdd[query[i].mask + first + j];
    if (task.maskKeep)
      for (int i = 0; i < count; ++i)
        for (int64_t j = 0; j < keys; ++j)
          score[j][i] = task.maskKeep[query[i].mask + first + j] ? score[j][i] : hidden;
    if (whole)
      return;
    for (int i = 0; i < count; ++i) {
      for (int64_t j = 0; j < query[i].begin - first && j < keys; ++j)
        score[j][i] = hidden;
      int64_t seen = query[i].end - first;
      for (int64_t j = seen < 0 ? 0 : seen < keys ? seen : keys; j < kBlock; ++j)
        score[j][i] = hidden;
    }
  }

  /// e to the power of each, in a loop for the vectoriser: unrolled, it would not be one vector.
  static void exponentials(float *of, int64_t n) {
#pragma clang loop unroll(disable) vectorize_width(L) interleave_count(2)
    for (int64_t i = 0; i < n; ++i)
      of[i] = exp(of[i]);
  }
  static Floats larger(Floats a, Floats b) { return a > b ? a : b; }

  /// Turns scores into weights relative to the block, and joins their sums.
  void weigh() {
    const Floats hidden = -__builtin_inff() - Floats{};
    Floats high[V], sum[kBlock / 2];
    alignas(64) Row factors[2]; // of what was, and of the block
    for (int v = 0; v < V; ++v) {
      Floats part[4];
      for (int j = 0; j < 4; ++j)
        part[j] = vector(score[j], v);
      for (int j = 4; j < kBlock; ++j)
        part[j % 4] = larger(part[j % 4], vector(score[j], v));
      high[v] = larger(larger(part[0], part[1]), larger(part[2], part[3]));
      Floats both = larger(vector(largest, v), high[v]);
      vector(factors[0], v) = vector(largest, v) - both; // NaN where nothing was seen yet, and nothing is
      vector(factors[1], v) = high[v] - both;
      vector(largest, v) = both;
      // Less infinity, what is hidden would be NaN.
      Floats base = high[v] == hidden ? Floats{} : high[v];
      for (int j = 0; j < kBlock; ++j)
        vector(score[j], v) -= base;
    }
    exponentials(&score[0][0], kBlock * count);
    exponentials(&factors[0][0], 2 * count);
    for (int v = 0; v < V; ++v) {
      for (int j = 0; j < kBlock / 2; ++j)
        sum[j] = vector(score[j], v) + vector(score[j + kBlock / 2], v);
      for (int distance = kBlock / 4; distance > 0; distance /= 2)
        for (int j = 0; j < distance; ++j)
          sum[j] += sum[j + distance];
      auto none = high[v] == hidden;
      vector(old, v) = none ? 1 - Floats{} : vector(factors[0], v);
      vector(fresh, v) = none ? Floats{} : vector(factors[1], v);
      vector(total, v) = fused(vector(total, v), vector(old, v), sum[0] * vector(fresh, v));
    }
  }

  /// N columns of the sums of values.
  template <int N> void values(Rows values, int64_t c, int64_t keys) {
    Floats sum[N][V] = {};
#pragma clang loop unroll(disable)
    for (int64_t j = 0; j < keys; ++j) {
      const float *value = values.at + j * values.stride + c;
      for (int n = 0; n < N; ++n)
        for (int v = 0; v < V; ++v)
          sum[n][v] = fused(vector(score[j], v), value[n] - Floats{}, sum[n][v]);
    }
    for (int n = 0; n < N; ++n)
      for (int v = 0; v < V; ++v)
        vector(out[c + n], v) = fused(vector(out[c + n], v), vector(old, v), sum[n][v] * vector(fresh, v));
  }

  void run(int64_t number) {
    int64_t begin = task.keys, end = 0;
    for (int i = 0; i < count; ++i) {
      query[i] = task.query(number + i);
      begin = query[i].begin < begin ? query[i].begin : begin;
      end = query[i].end > end ? query[i].end : end;
      largest[i] = -__builtin_inff();
      total[i] = 0;
    }
    transposed([&](int i) { return query[i].q; }, task.d);
    for (int64_t c = 0; c < task.dv; ++c)
      for (int v = 0; v < V; ++v)
        vector(out[c], v) = Floats{};

    constexpr int N = L == 16 ? 8 : 4;
    for (int64_t first = begin / kBlock * kBlock; first < end; first += kBlock) {
      int64_t keys = end - first < kBlock ? end - first : kBlock;
      Rows k = rows(task.k, task.kStride, first, keys, task.d);
      for (int64_t j = 0; j < keys; j += N)
        scores<N>(k, j, keys);
      multiply(task.k, task.kStride, first, keys, task.d);
      hide(first, keys);
      weigh();
      multiply(task.v, task.vStride, first, keys, task.dv);
      Rows v = rows(task.v, task.vStride, first, keys, task.dv);
      int64_t c = 0;
      for (; c + N <= task.dv; c += N)
        values<N>(v, c, keys);
      for (; c < task.dv; ++c)
        values<1>(v, c, keys);
    }
    finish(number);
  }

  /// q[c][i] = row(i)[c], in blocks of eight by eight.
  template <typename RowOf> void transposed(RowOf row, int64_t width) {
    for (int i = 0; i < count; i += 8) {
      int64_t c = 0;
      for (; c + 8 <= width; c += 8) {
        __m256 m[8];
        for (int n = 0; n < 8; ++n)
          m[n] = _mm256_loadu_ps(row(i + n) + c);
        transpose(m);
        for (int n = 0; n < 8; ++n)
          _mm256_store_ps(&q[c + n][i], m[n]);
      }
      for (; c < width; ++c)
        for (int n = 0; n < 8; ++n)
          q[c][i + n] = row(i + n)[c];
    }
  }

  void finish(int64_t number) {
    for (int i = 0; i < count; ++i) {
      float factor = 1;
      if (task.sink && total[i] != 0) { // joins last, as a block whose value is 0
        float extra = task.sink[(number + i) % task.heads];
        float both = largest[i] > extra ? largest[i] : extra;
        factor = exp(largest[i] - both);
        total[i] = __builtin_fmaf(total[i], factor, exp(extra - both));
      }
      fresh[i] = total[i] == 0 ? 0 : factor / total[i];
    }
    for (int64_t c = 0; c < task.dv; ++c)
      for (int v = 0; v < V; ++v)
        vector(out[c], v) = vector(out[c], v) * vector(fresh, v);
    for (int i = 0; i < count; i += 8) {
      int64_t c = 0;
      for (; c + 8 <= task.dv; c += 8) {
        __m256 m[8];
        for (int n = 0; n < 8; ++n)
          m[n] = _mm256_load_ps(&out[c + n][i]);
        transpose(m);
        for (int n = 0; n < 8; ++n)
          _mm256_storeu_ps(query[i + n].out + c, m[n]);
      }
      for (; c < task.dv; ++c)
        for (int n = 0; n < 8; ++n)
          query[i + n].out[c] = out[c][i + n];
    }
  }
};

template <int L, int V, typename T> inline void attendLanes(const AttentionTask<T> &task, int64_t number) {
  AttentionLanes<T, L, V>(task).run(number);
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_ATTENTIONLANES_H
