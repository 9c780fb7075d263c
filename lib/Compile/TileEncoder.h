// SPDX-License-Identifier: Apache-2.0
//
// Encodes blocks of rows of one weight with lib/Encoding, and measures what that costs. It knows no
// MLIR: the caller says the encoding as the number that #otf.encoding gives its kind.
#ifndef OTF_LIB_COMPILE_TILEENCODER_H
#define OTF_LIB_COMPILE_TILEENCODER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace otf {

/// Sums of squares: of a weight, and of what coding changed in it.
struct CodingError {
  double weight = 0, difference = 0;

  CodingError &operator+=(const CodingError &other) {
    weight += other.weight;
    difference += other.difference;
    return *this;
  }
  /// ‖W − Ŵ‖ / ‖W‖; 0 for a weight of zeros that stayed zeros.
  double relative() const;
};

/// A grid that is to be kept: f32 scale and zero of each group of each row, row-major.
struct GivenGrid {
  std::vector<float> scales, zeros;
};

class Feedback;

class TileEncoder {
public:
  /// Nothing, and one clause in `error`, where there is no such layout. `outliers` ascend. `jointFit`: as in lib/Encoding.
  static std::unique_ptr<TileEncoder> create(int kind, int64_t group, int64_t rows, int64_t columns,
                                             std::span<const int64_t> outliers, std::string &error, bool jointFit = false);
  ~TileEncoder();

  int64_t rows() const;
  int64_t columns() const;
  int64_t blobBytes() const;
  int64_t tileBytes() const;
  int64_t groups() const; // of a row
  bool isSearched() const; // codes of neighbours depend on each other, so coding takes long
  /// The column index as it stands before the first tile, padded; empty without outliers.
  std::span<const std::byte> index() const;
  /// The order in which columns are coded, columns() of them; null for 0, 1, 2, …
  const uint32_t *order() const;

  /// Encodes `rows` rows (a multiple of 8, except at the end of the weight) of columns() floats
  /// each, tile after tile, into `out`: on the grid of these rows where one is `given`, with `feedback` in the order of
  /// order() where there is one. Returns null, or one clause that says what is wrong.
  const char *encode(const float *weights, int64_t rows, std::byte *out, CodingError &error,
                     const GivenGrid *given = nullptr, const Feedback *feedback = nullptr) const;

  /// Tiles of f32 with the floats as they are, NaN and infinities too.
  void keep(const float *weights, int64_t rows, std::byte *out) const;

  /// What `rows` rows of tiles mean, columns() each.
  void decode(const std::byte *tiles, int64_t rows, double *out) const;

private:
  TileEncoder();
  struct Layout;
  std::unique_ptr<Layout> layout;
};

/// Floats to halves; null, or one clause that says what is wrong. Infinities and NaN pass.
const char *toHalf(const float *from, int64_t count, std::byte *to);

} // namespace otf

#endif // OTF_LIB_COMPILE_TILEENCODER_H
