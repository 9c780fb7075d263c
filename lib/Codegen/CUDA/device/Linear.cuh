// SPDX-License-Identifier: Apache-2.0
//
// y[m][n] = sum over k of x[m][k] * W[n][k], from records (Record.cuh) and encoded weights
// (Codec.cuh), handed to an epilogue f(m, n, acc) once for every m < rows, n < N. Up to 16 rows it
// streams the weights once (FewRows.cuh); beyond, blocks of 64 x 128 results share decoded weights
// (ManyRows.cuh). Integer weights: the sum over 32 columns (a chunk) is an exact integer, and
// what follows has the bits of the CPU kernel, whatever the launch and the number of rows:
//
//     term = (dot * xScale) * scale, with zeros fmaf(xScale * xSum, zero, term), with signs fmaf(signDot * xScale, zero, term)
//     acc = term[0] + term[1] + ... in this order, then the outlier columns' w * x in theirs
//
// Plain weights: the order of the sums is fixed by the launch, so results repeat.

namespace otf {

template <class W, bool = W::Codec::kInteger> struct StageOf {
  using type = IntegerStage<hasSigns<typename W::Codec>(0)>;
};
template <class W> struct StageOf<W, false> {
  using type = PlainStage;
};

/// `weight`: the blob of a W. `x`: `rows` rows, Rows or Windows. f(m, n, acc) is called once for
/// every result, by any thread. `Split`: a power of two up to kWarps. Grid: any; one block per
/// kWarps / Split tiles fills the machine.
template <class W, int Split, class X, class F>
OTF_DEVICE void contract(const void *weight, const X &x, int64_t rows, F f) {
  using Stage = typename StageOf<W>::type;
  constexpr int kStageFloats = int(sizeof(Stage) / sizeof(float));
  static_assert(kStageFloats >= kWarps * 8 * 16, "gemv's sums use it too");
  constexpr bool integer = W::Codec::kInteger;
  __shared__ __align__(16) float shared[integer ? larger(kStageFloats, kTermFloats) : kStageFloats];
  Stage &stage = *reinterpret_cast<Stage *>(shared);
  const uint8_t *tiles = static_cast<const uint8_t *>(weight) + W::kIndexBytes;
  waitForInputs();
  if (rows == 1)
    gemv<W, 1, Split>(tiles, x, int(rows), shared, f);
  else if (rows <= 4 && rows > 0)
    gemv<W, 4, Split>(tiles, x, int(rows), shared, f);
  else if (rows <= 16 && rows > 0)
    gemv<W, 16, Split>(tiles, x, int(rows), shared, f);
  else if constexpr (W::Codec::kInteger)
    gemmInteger<W>(tiles, x, int(rows), stage, f);
  else
    gemmPlain<W>(tiles, x, int(rows), stage, f);
}

/// The same for records of W::kRecordBytes, one after another.
template <class W, int Split, class F>
OTF_DEVICE void linear(const void *weight, const void *records, int64_t rows, F f) {
  contract<W, Split>(weight, Rows<W>{static_cast<const uint8_t *>(records)}, rows, f);
}

} // namespace otf
