// SPDX-License-Identifier: Apache-2.0
//
// Contractions: against float64 from the same records, integers against int64 exactly, and one row
// of a batch against the same row alone.
#include "Blob.h"

#include <cmath>

using namespace otf;
using namespace otf::test;

namespace {

class Tile : public KernelTest {
protected:
  void run(const Blob &blob, int64_t tile, const uint8_t *rec, int64_t stride, int64_t m,
           float *acc) {
    const WeightLayout &l = blob.layout;
    const Encoding &e = blob.encoding;
    const uint8_t *at = blob.tile(tile);
    switch (e.kind) {
    case EncodingKind::F32:
      return kernels->tiles_f32(at, 0, 1, rec, stride, m, l.columns, acc);
    case EncodingKind::F16:
      return kernels->tiles_f16(at, 0, 1, rec, stride, m, l.columns, acc);
    case EncodingKind::Int8:
      return kernels->tile_int8(at, rec, stride, m, l.background, e.group, l.outliers, acc);
    case EncodingKind::Int4:
      return kernels->tile_int4(at, rec, stride, m, l.background, e.group, l.outliers, acc);
    case EncodingKind::Codebook2:
      return kernels->tile_codebook2(at, rec, stride, m, l.background, e.group, l.outliers,
                                     e.table, acc);
    case EncodingKind::TernarySign:
      return kernels->tile_ternary_sign(at, rec, stride, m, l.background, e.group, l.outliers, acc);
    default:
      return planesKernels(*kernels, e.kind)
          .tile(at, rec, stride, m, l.background, e.group, l.outliers, acc);
    }
  }

  /// Σ W x with x as the record has it, and the sum of magnitudes, which bounds rounding.
  static void reference(const Blob &blob, int64_t row, const uint8_t *rec, double &sum,
                        double &magnitude) {
    const WeightLayout &l = blob.layout;
    RecordLayout r = recordLayout(l.background, l.outliers);
    sum = magnitude = 0;
    for (int64_t i = 0; i < l.columns; ++i) {
      double x;
      if (isPlain(blob.encoding.kind)) {
        x = reinterpret_cast<const float *>(rec)[i];
      } else if (i < l.background) {
        float scale;
        std::memcpy(&scale, rec + r.scaleOffset + i / 32 * 4, 4);
        x = double(int8_t(rec[i])) * scale;
      } else {
        float outlier;
        std::memcpy(&outlier, rec + r.outlierOffset + (i - l.background) * 4, 4);
        x = outlier;
      }
      double w = blob.weight(row, blob.index.empty() ? i : int64_t(blob.index[size_t(i)]));
      sum += w * x;
      magnitude += std::abs(w * x);
    }
  }

  void check(Encoding encoding, int64_t columns, int64_t outliers) {
    SCOPED_TRACE(testing::Message() << "kind " << int(encoding.kind) << " columns " << columns
                                    << " group " << encoding.group << " outliers " << outliers);
    Blob blob = makeBlob(encoding, 13, columns, outliers, unsigned(columns));
    const WeightLayout &l = blob.layout;
    bool plain = isPlain(encoding.kind);
    int64_t stride = plain ? plainRecordBytes(columns) : recordLayout(l.background, outliers).bytes;
    constexpr int64_t rows = 16;
    GuardedBytes records(size_t(stride * rows));
    Guarded<float> x(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows; ++i) {
      fillActivations({x.data(), x.size()}, unsigned(i + 1));
      if (plain)
        kernels->record_f32(x.data(), columns, 0, 0, nullptr, nullptr, records.data() + i * stride);
      else
        kernels->record_i8(x.data(), columns, 0, 0, nullptr, nullptr, blob.indexData(),
                           nullptr, l.background, outliers, records.data() + i * stride);
    }
    for (int64_t t = 0; t < l.tiles; ++t) {
      Guarded<float> alone(rows * 8);
      for (int64_t i = 0; i < rows; ++i)
        run(blob, t, records.data() + i * stride, stride, 1, alone.data() + 8 * i);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t r = 0; r < 8; ++r) {
          double sum, magnitude;
          reference(blob, 8 * t + r, records.data() + i * stride, sum, magnitude);
          // Sums of at most columns + 8 rounded terms, each of two or three rounded factors. The
          // codebook's zero meets Σx, whose terms are larger than those of the decoded weights.
          double slack = hasZeros(encoding.kind) ? 8 : 1;
          double bound = double(l.columns / (plain ? 1 : 32) + outliers + 8) * 0x1p-24 * slack;
          ASSERT_NEAR(alone[size_t(8 * i + r)], sum, bound * magnitude)
              << "row " << 8 * t + r << " of " << i;
        }
      for (int64_t m : {2, 3, 4, 5, 7, 16}) {
        Guarded<float> batch(size_t(m * 8));
        run(blob, t, records.data(), stride, m, batch.data());
        ASSERT_EQ(std::memcmp(batch.data(), alone.data(), size_t(m * 8 * 4)), 0) << "m " << m;
      }
    }
  }
};

} // namespace

TEST_P(Tile, PlainMatchesFloat64) {
  for (EncodingKind kind : {EncodingKind::F32, EncodingKind::F16})
    for (int64_t columns : {1, 2, 3, 4, 5, 31, 32, 33, 100, 576, 4304})
      check({kind}, columns, 0);
}

TEST_P(Tile, GroupedMatchesFloat64) {
  for (EncodingKind kind : {EncodingKind::Int8, EncodingKind::Int4, EncodingKind::Codebook2, EncodingKind::TernarySign})
    for (int64_t columns : {1, 5, 31, 32, 33, 100, 129, 192, 576, 4304})
      for (int64_t group : {32, 64, 128, 0})
        check({kind, group}, columns, 0);
  for (EncodingKind kind : kPlanes)
    for (int64_t columns : {1, 31, 33, 129, 576})
      for (int64_t group : {32, 256, 0})
        check({kind, group}, columns, 0);
  check({EncodingKind::Planes3x2, 96}, 4304, 5); // column 4,096 is inside a group
}

TEST_P(Tile, OutlierColumnsMatchFloat64) {
  for (EncodingKind kind : {EncodingKind::Int8, EncodingKind::Int4, EncodingKind::Codebook2, EncodingKind::TernarySign})
    for (int64_t columns : {1, 5, 33, 100, 576})
      for (int64_t outliers : {int64_t(1), std::min<int64_t>(columns, 7), columns})
        check({kind, 32}, columns, outliers);
  for (EncodingKind kind : kPlanes)
    for (int64_t outliers : {1, 7, 100})
      check({kind, 0}, 100, outliers);
}

// Many rows take another order of loops, and several tiles go together: the bits are those of one row and one tile.
TEST_P(Tile, ManyRowsAndTilesAreAsOneEach) {
  for (EncodingKind kind : {EncodingKind::Int8, EncodingKind::Int4, EncodingKind::Codebook2,
                            EncodingKind::Grid8z, EncodingKind::Grid4z, EncodingKind::Grid2z,
                            EncodingKind::Planes3x2, EncodingKind::Planes4x3})
    for (uint32_t table : {kCodebook2Table, 0x7f320181u})
      for (auto [columns, group, outliers] :
           {std::tuple<int64_t, int64_t, int64_t>{96, 32, 0}, {100, 64, 3}, {33, 0, 0}}) {
        if (kind != EncodingKind::Codebook2 && (table != kCodebook2Table))
          continue;
        bool grid = hasFloatParameters(kind);
        Encoding encoding{kind, group, kCodebook2Table};
        WeightLayout l;
        ASSERT_EQ(makeLayout(encoding, 8 * 9, columns, grid ? 0 : outliers, l), EncodeStatus::Ok);
        // Any bytes are codes; scales, zeros and outliers must be numbers.
        std::mt19937 random(5);
        GuardedBytes tiles(size_t(l.tileBytes * l.tiles));
        for (int64_t t = 0; t < l.tiles; ++t) {
          uint8_t *at = tiles.data() + t * l.tileBytes;
          for (int64_t c = 0, done = 0; c < l.chunks; ++c) {
            for (int64_t i = 0; i < chunkBytes(kind); ++i)
              *at++ = uint8_t(kind == EncodingKind::Int8 ? int(random() % 255) - 127 : int(random()));
            if (++done * kChunkColumns < l.group && c + 1 < l.chunks)
              continue;
            done = 0;
            for (int64_t i = 0; i < groupParameterBytes(kind) / (grid ? 4 : 2); ++i)
              if (float value = float(int(random() % 2001) - 1000) / 512; grid)
                std::memcpy(at + 4 * i, &value, 4);
              else
                storeHalf(at + 2 * i, floatToHalf(value));
            at += groupParameterBytes(kind);
          }
          for (int64_t i = 0; i < 8 * l.outliers; ++i, at += 2)
            storeHalf(at, floatToHalf(float(random() % 100) / 64));
        }
        constexpr int64_t most = 70;
        RecordLayout r = recordLayout(l.background, l.outliers);
        GuardedBytes records(size_t(r.bytes * most));
        std::vector<float> x(static_cast<size_t>(columns));
        std::vector<uint32_t> index(x.size());
        for (size_t i = 0; i < index.size(); ++i)
          index[i] = uint32_t(i);
        for (int64_t i = 0; i < most; ++i) {
          fillActivations(x, unsigned(i + 1));
          kernels->record_i8(x.data(), columns, 0, 0, nullptr, nullptr, l.outliers ? index.data() : nullptr,
                             nullptr, l.background, l.outliers, records.data() + i * r.bytes);
        }
        auto run = [&](int64_t tile, int64_t count, int64_t row, int64_t m, float *acc) {
          const uint8_t *at = tiles.data() + tile * l.tileBytes, *rec = records.data() + row * r.bytes;
          auto plain = [&](auto *kernel) {
            kernel(at, l.tileBytes, count, rec, r.bytes, m, l.background, group, l.outliers, acc);
          };
          switch (kind) {
          case EncodingKind::Int8:
            return plain(kernels->tiles_int8);
          case EncodingKind::Int4:
            return plain(kernels->tiles_int4);
          case EncodingKind::Grid8z:
            return plain(kernels->tiles_grid8z);
          case EncodingKind::Grid4z:
            return plain(kernels->tiles_grid4z);
          case EncodingKind::Grid2z:
            return plain(kernels->tiles_grid2z);
          case EncodingKind::Planes3x2:
            return plain(kernels->tiles_planes3x2);
          case EncodingKind::Planes4x3:
            return plain(kernels->tiles_planes4x3);
          default:
            return kernels->tiles_codebook2(at, l.tileBytes, count, rec, r.bytes, m, l.background, group,
                                            l.outliers, table, acc);
          }
        };
        for (int64_t m : {1, 3, 4, 7, 15, int(most)})
          for (int64_t count : {1, 2, 3, 4, 7}) {
            Guarded<float> acc(size_t(8 * m * count));
            run(2, count, 0, m, acc.data());
            for (int64_t t = 0; t < count; ++t)
              for (int64_t i = 0; i < m; ++i) {
                float alone[8];
                run(2 + t, 1, i, 1, alone);
                ASSERT_EQ(std::memcmp(acc.data() + 8 * (t * m + i), alone, 32), 0)
                    << "kind " << int(kind) << " columns " << columns << " m " << m << " tiles " << count
                    << " at " << t << ", " << i;
              }
          }
      }
}

namespace {

/// One tile whose scales are 1 and zeros 0, from codes; records whose scales are 1. Then every
/// result is an integer below 2^24 and floats hold it exactly.
template <typename Codec>
void checkExact(EncodingKind kind, const Codec &codec, int64_t columns, unsigned seed,
                auto chooseCode, auto runTile) {
  WeightLayout layout;
  ASSERT_EQ(makeLayout({kind, 32}, 8, columns, 0, layout), EncodeStatus::Ok);
  RecordLayout r = recordLayout(columns, 0);
  Guarded<uint8_t> tile(static_cast<size_t>(layout.tileBytes));
  Guarded<uint8_t> record(static_cast<size_t>(r.bytes));
  std::mt19937 random(seed);
  for (int64_t c = 0; c < layout.chunks; ++c)
    for (int row = 0; row < 8; ++row)
      storeHalf(tile.data() + c * layout.groupBytes + chunkBytes(kind) + 2 * row, 0x3c00);
  int64_t want[8] = {};
  int32_t *sums = reinterpret_cast<int32_t *>(record.data() + r.sumOffset);
  float *scales = reinterpret_cast<float *>(record.data() + r.scaleOffset);
  for (int64_t i = 0; i < columns; ++i) {
    int x = seed == 0 ? 127 : seed == 1 ? -127 : int(random() % 255) - 127;
    record[size_t(i)] = uint8_t(int8_t(x));
    sums[i / 32] += x;
    scales[i / 32] = 1;
    for (int row = 0; row < 8; ++row) {
      unsigned code = chooseCode(random, row);
      codec.put(tile.data() + i / 32 * layout.groupBytes, row, int(i % 32), code);
      want[row] += int64_t(codec.decode(code, 1, 0)) * x;
    }
  }
  float acc[8];
  runTile(tile.data(), record.data(), acc);
  for (int row = 0; row < 8; ++row)
    ASSERT_EQ(int64_t(acc[row]), want[row]) << "columns " << columns << " row " << row;
}

} // namespace

// Seeds 0 and 1 take the largest activations; rows 0 and 1 the largest weights.
TEST_P(Tile, Int8IsExact) {
  for (int64_t columns : {1, 31, 32, 33, 960})
    for (unsigned seed = 0; seed < 20; ++seed)
      checkExact(
          EncodingKind::Int8, Int8Codec{}, columns, seed,
          [](std::mt19937 &random, int row) {
            return uint8_t(row == 0 ? 127 : row == 1 ? -127 : int(random() % 255) - 127);
          },
          [&](const void *tile, const void *rec, float *acc) {
            kernels->tile_int8(tile, rec, 0, 1, columns, 32, 0, acc);
          });
}

/// A grid of the file's on both sides: every byte meets every byte, -128 among them, alone and in a row of itself.
TEST_P(Tile, Grid8TakesAnyByte) {
  constexpr int64_t columns = 416;
  WeightLayout layout;
  ASSERT_EQ(makeLayout({EncodingKind::Grid8, 0}, 8, columns, 0, layout), EncodeStatus::Ok);
  RecordLayout r = recordLayout(columns, 0);
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    Guarded<uint8_t> tile(static_cast<size_t>(layout.tileBytes));
    GuardedBytes records(size_t(5 * r.bytes));
    int64_t want[5][8] = {};
    int8_t w[8][columns];
    for (int row = 0; row < 8; ++row) {
      float one = 1;
      std::memcpy(tile.data() + layout.tileBytes - 32 + 4 * row, &one, 4);
      for (int64_t i = 0; i < columns; ++i) {
        w[row][i] = row == 0 ? -128 : row == 1 ? 127 : row == 2 && round % 2 ? -127 : int8_t(random());
        Int8Codec{}.put(tile.data() + i / 32 * chunkBytes(EncodingKind::Int8), row, int(i % 32), uint8_t(w[row][i]));
      }
    }
    for (int64_t m = 0; m < 5; ++m) {
      uint8_t *record = records.data() + m * r.bytes;
      auto *sums = reinterpret_cast<int32_t *>(record + r.sumOffset);
      auto *scales = reinterpret_cast<float *>(record + r.scaleOffset);
      for (int64_t i = 0; i < columns; ++i) {
        int8_t x = m == 0 ? -128 : m == 1 ? 127 : m == 2 && i % 7 ? -127 : int8_t(random());
        record[i] = uint8_t(x);
        sums[i / 32] = (i % 32 ? sums[i / 32] : 0) + x;
        scales[i / 32] = 1;
        for (int row = 0; row < 8; ++row)
          want[m][row] += int64_t(x) * w[row][i];
      }
    }
    float acc[5 * 8];
    for (int64_t count : {3, 5}) { // few rows, and many
      for (int64_t group : {0, OTF_EXACT_SUMS}) {
        kernels->tile_grid8(tile.data(), records.data(), r.bytes, count, columns, group, 0, acc);
        for (int m = 0; m < count; ++m)
          for (int row = 0; row < 8; ++row)
            ASSERT_EQ(int64_t(acc[8 * m + row]), want[m][row]) << round << " " << m << " " << row;
      }
    }
  }
}

// Integers added over a whole row have the bits of chunks that are converted and added.
TEST_P(Tile, SumsOfCodesAreAsSumsOfChunks) {
  constexpr int64_t tiles = 9, most = 70;
  for (int64_t columns : {33, 384, 390, 1000}) {
    WeightLayout l;
    ASSERT_EQ(makeLayout({EncodingKind::Grid8, 0}, 8 * tiles, columns, 0, l), EncodeStatus::Ok);
    RecordLayout r = recordLayout(columns, 0);
    GuardedBytes blob(size_t(l.tileBytes * tiles)), records(size_t(r.bytes * most));
    std::mt19937 random(unsigned(columns) + 0);
    for (int64_t t = 0; t < tiles; ++t) {
      uint8_t *at = blob.data() + t * l.tileBytes;
      for (int64_t i = 0; i < l.tileBytes - 32; ++i)
        at[i] = uint8_t(random());
      for (int row = 0; row < 8; ++row) {
        float one = 1;
        std::memcpy(at + l.tileBytes - 32 + 4 * row, &one, 4);
      }
    }
    std::vector<float> x(static_cast<size_t>(columns));
    const float grid[] = {1.0f / 64, 5};
    for (int64_t i = 0; i < most; ++i) {
      fillActivations(x, unsigned(i + 1));
      kernels->record_i8(x.data(), columns, 0, 0, nullptr, nullptr, nullptr, grid, columns, 0, records.data() + i * r.bytes);
    }
    for (int64_t m : {1, 3, 4, 7, 15, int(most)})
      for (int64_t count : {1, 2, 3, 4, 9}) {
        Guarded<float> chunks(size_t(8 * m * count)), sums(size_t(8 * m * count));
        for (auto [group, acc] : {std::pair<int64_t, float *>{0, chunks.data()}, {OTF_EXACT_SUMS, sums.data()}})
          kernels->tiles_grid8(blob.data(), l.tileBytes, count, records.data(), r.bytes, m, columns, group, 0, acc);
        ASSERT_EQ(std::memcmp(chunks.data(), sums.data(), size_t(32 * m * count)), 0)
            << "columns " << columns << " m " << m << " tiles " << count;
      }
  }
}

TEST_P(Tile, Int4IsExact) {
  for (int64_t columns : {1, 31, 32, 33, 960})
    for (unsigned seed = 0; seed < 20; ++seed)
      checkExact(
          EncodingKind::Int4, Int4Codec{}, columns, seed,
          [](std::mt19937 &random, int row) {
            return row == 0 ? 15u : row == 1 ? 0u : unsigned(random() % 16);
          },
          [&](const void *tile, const void *rec, float *acc) {
            kernels->tile_int4(tile, rec, 0, 1, columns, 32, 0, acc);
          });
}

TEST_P(Tile, Codebook2IsExactForEveryKindOfTable) {
  // The default; ternary; spans at most 127; odd differences over more than 127; the extremes.
  for (uint32_t table : {kCodebook2Table, 0x007f0081u, 0x3f2001c1u, 0x7f320181u, 0x81817f7fu})
    for (int64_t columns : {1, 31, 32, 33, 960})
      for (unsigned seed = 0; seed < 20; ++seed)
        checkExact(
            EncodingKind::Codebook2, Codebook2Codec{table}, columns, seed,
            [](std::mt19937 &random, int row) {
              return row < 4 ? unsigned(row) : unsigned(random() % 4);
            },
            [&](const void *tile, const void *rec, float *acc) {
              kernels->tile_codebook2(tile, rec, 0, 1, columns, 32, 0, table, acc);
            });
}

/// Random words are codes like any other; row 0 has the largest sums, and activations are extreme in two rounds. Several tiles
/// together, and f32 rows of the same integers, give the same. Few rows take 4,096 columns at a time.
TEST_P(Tile, PlanesAreExact) {
  for (EncodingKind kind : kPlanes)
    for (int64_t columns : {1, 31, 32, 33, 160, 4200})
      for (unsigned seed = 0; seed < (columns > 1000 ? 3 : 10); ++seed) {
        const int64_t tiles = 3, rows = seed % 2 == 0 ? 5 : 2;
        const PlanesCode &code = planesCode(kind);
        WeightLayout layout;
        ASSERT_EQ(makeLayout({kind, 0}, 8 * tiles, columns, 0, layout), EncodeStatus::Ok);
        RecordLayout r = recordLayout(columns, 0);
        Guarded<uint8_t> blob(static_cast<size_t>(layout.blobBytes));
        GuardedBytes records(size_t(rows * r.bytes));
        std::vector<float> x(size_t(rows * columns));
        std::mt19937 random(seed);
        for (uint8_t &byte : blob)
          byte = uint8_t(random());
        for (int64_t t = 0; t < tiles; ++t)
          for (int row = 0; row < 8; ++row)
            storeHalf(blob.data() + (t + 1) * layout.tileBytes - 16 + 2 * row, 0x3c00);
        for (int64_t m = 0; m < rows; ++m) {
          uint8_t *record = records.data() + m * r.bytes;
          auto *sums = reinterpret_cast<int32_t *>(record + r.sumOffset);
          auto *scales = reinterpret_cast<float *>(record + r.scaleOffset);
          for (int64_t i = 0; i < columns; ++i) {
            int value = seed == 0 ? 127 : seed == 1 ? -128 : int(random() % 255) - 127;
            x[size_t(m * columns + i)] = float(value);
            record[i] = uint8_t(int8_t(value));
            sums[i / 32] += value;
            scales[i / 32] = 1;
          }
        }
        PlanesKernels of = planesKernels(*kernels, kind);
        Guarded<float> acc(8 * tiles * rows), one(8 * rows), floats(8 * rows);
        of.tiles(blob.data(), layout.tileBytes, tiles, records.data(), r.bytes, rows, columns, 0, 0, acc.data());
        for (int64_t t = 0; t < tiles; ++t) {
          const uint8_t *tile = blob.data() + t * layout.tileBytes;
          of.tile(tile, records.data(), r.bytes, rows, columns, 0, 0, one.data());
          of.floats(tile, x.data(), columns * 4, rows, columns, 0, 0, floats.data());
          for (int64_t m = 0; m < rows; ++m)
            for (int row = 0; row < 8; ++row) {
              int64_t want = 0;
              for (int64_t i = 0; i < columns; ++i) {
                uint32_t words[4];
                for (int p = 0; p < code.planes; ++p)
                  std::memcpy(words + p, tile + i / 32 * 32 * code.planes + 32 * p + 4 * row, 4);
                want += int64_t(x[size_t(m * columns + i)]) * (planesSum(code, words, 1, int(i % 32)) - code.offset);
              }
              ASSERT_EQ(int64_t(one[size_t(8 * m + row)]), want) << int(kind) << " columns " << columns;
              ASSERT_EQ(int64_t(acc[size_t(8 * (t * rows + m) + row)]), want) << int(kind) << " columns " << columns;
              ASSERT_EQ(int64_t(floats[size_t(8 * m + row)]), want) << int(kind) << " columns " << columns;
            }
        }
      }
}

/// Both products, apart: scale 1 and zero 0, then scale 0 and zero 1.
TEST_P(Tile, TernarySignIsExact) {
  for (int64_t columns : {1, 31, 32, 33, 960})
    for (unsigned seed = 0; seed < 20; ++seed)
      for (bool signs : {false, true}) {
        struct Half : TernarySignCodec {
          bool signs;
          double decode(unsigned code, double, double) const { return signs ? signOf(code) : ternaryOf(code); }
        } codec{{}, signs};
        checkExact(
            EncodingKind::TernarySign, codec, columns, seed,
            [](std::mt19937 &random, int row) {
              return row < 2 ? unsigned(row) * 6 : unsigned(random() % 3 + 4 * (random() % 2));
            },
            [&](uint8_t *tile, const void *rec, float *acc) {
              for (int64_t chunk = 0; signs && chunk < (columns + 31) / 32; ++chunk)
                for (int row = 0; row < 8; ++row) {
                  uint8_t *parameters = tile + chunk * 128 + 96 + 2 * row;
                  storeHalf(parameters, 0);
                  storeHalf(parameters + 16, 0x3c00);
                }
              kernels->tile_ternary_sign(tile, rec, 0, 1, columns, 32, 0, acc);
            });
      }
}

OTF_INSTANTIATE(Tile);
