// SPDX-License-Identifier: Apache-2.0
//
// Rows of an encoded table as floats: the embedding of token ids. Decoding follows Codec.cuh; the
// column index puts background and outlier columns back in their places.

namespace otf {

/// f(m, k, w) for the K columns of row ids[m], m < rows. `table`: the blob of a W. `ids`: [rows] of
/// an integer type; a negative id counts from the end, and an id outside the table gives zeros,
/// since a kernel cannot fail. A thread owns one value: tables
/// are read by rows of a tile, so its neighbours find the words in the first-level cache.
template <class W, class Id, class F>
OTF_DEVICE void embedding(const void *table, const Id *ids, int64_t rows, F f) {
  waitForInputs();
  const uint8_t *blob = static_cast<const uint8_t *>(table);
  const int64_t total = rows * W::kColumns;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += int64_t(gridDim.x) * kThreads) {
    const int64_t m = i / W::kColumns;
    const int64_t at = i - m * W::kColumns;
    int64_t id = int64_t(ids[m]);
    id += id < 0 ? W::kRows : 0;
    const bool inside = id >= 0 && id < W::kRows;
    id = inside ? id : 0;
    const uint8_t *tile = blob + W::kIndexBytes + id / 8 * W::kTileBytes;
    const int row = int(id & 7);
    float w;
    int64_t column = at;
    if constexpr (!W::Codec::kInteger) {
      w = W::at(tile, at, row);
    } else {
      if (W::kOutliers)
        column = __ldg(reinterpret_cast<const uint32_t *>(blob) + at);
      if (at >= W::kBackground) {
        w = W::outlier(tile, at - W::kBackground, row);
      } else {
        using C = typename W::Codec;
        const int c = int(at / 32), word = int(at / 4 & 7);
        uint32_t code[C::kWords], bytes[8], mine = 0;
        W::load(tile, c, row, code);
        C::decode(code, bytes);
#pragma unroll
        for (int j = 0; j < 8; ++j) // a variable index would put the array in local memory
          mine = j == word ? bytes[j] : mine;
        const int byte = int8_t(mine >> 8 * (at & 3));
        float zero = W::zero(tile, c, row);
        if constexpr (hasSigns<C>(0)) {
          C::signs(code, bytes);
#pragma unroll
          for (int j = 0; j < 8; ++j)
            mine = j == word ? bytes[j] : mine;
          zero *= float(int8_t(mine >> 8 * (at & 3)));
        }
        w = fmaf(float(byte - C::kOffset), W::scale(tile, c, row), zero);
      }
    }
    f(m, column, inside ? w : 0.0f);
  }
}

} // namespace otf
