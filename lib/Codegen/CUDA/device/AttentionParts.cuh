// SPDX-License-Identifier: Apache-2.0
//
// Attention over long caches: keys divided over blocks of threads, in two kernels.

namespace otf {

/// Every block of keys by itself. `parts`: blocks there is room for, at least ceil(keys / kKeyBlock).
/// Partial results in `work`: f32 [batch * query heads * queries][parts][DV + 2] = top, total, o.
template <class S, class T, class Q, class Mask>
OTF_DEVICE void attentionParts(int batch, int kvHeads, int queries, int keys, int parts, Q q,
                               Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                               float *work) {
  __shared__ __align__(16) float qs[S::kRows * S::kQ];
  waitForInputs();
  const int rows = S::Group * queries, sets = divideUpInt(rows, S::kRows);
  const int reach = mask.reach(queries - 1, keys), teams = divideUpInt(parts, kWarps);
  for (int item = blockIdx.x; item < batch * kvHeads * sets * teams; item += gridDim.x) {
    const int team = item % teams, set = item / teams % sets;
    const int kvHead = item / teams / sets % kvHeads, b = item / teams / sets / kvHeads;
    const int rowBase = set * S::kRows, part = team * kWarps + int(threadIdx.x >> 5);
    __syncthreads();
    loadQueries<S>(qs, S::kRows, b, kvHead, rowBase, queries, q);
    __syncthreads();
    const int64_t at = int64_t((b * kvHeads + kvHead) * rows + rowBase) * parts + part;
    if (part < parts)
      attendPart<S>(qs, b, kvHead, rowBase, queries, part * kKeyBlock, reach, k, v, scale, softcap,
                    mask, work + at * S::kPart, int64_t(parts) * S::kPart, rows - rowBase);
  }
}

/// The second kernel: joins the blocks in order.
template <class S, class F>
OTF_DEVICE void attentionCombine(int batch, int kvHeads, int queries, int parts, const float *work,
                                 F f) {
  waitForInputs();
  const int64_t all = int64_t(batch) * kvHeads * S::Group * queries * S::DV;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < all;
       at += int64_t(gridDim.x) * kThreads) {
    const int row = int(at / S::DV);
    const int d = int(at % S::DV);
    const float *part = work + int64_t(row) * parts * S::kPart;
    float top = nothing(), total = 0, o = 0;
    for (int p = 0; p < parts; ++p, part += S::kPart) {
      const Joined joined = join(top, part[0]);
      top = joined.top;
      total = fmaf(total, joined.old, part[1] * joined.fresh);
      o = fmaf(o, joined.old, part[2 + d] * joined.fresh);
    }
    const int heads = kvHeads * S::Group;
    f(row / queries / heads, row / queries % heads, row % queries, d, o * inverse(total));
  }
}

} // namespace otf
