// SPDX-License-Identifier: Apache-2.0
//
// Sizes and offsets, and what is refused.
#include "Encoding/Layout.h"

#include <gtest/gtest.h>

using namespace otf;

namespace {

WeightLayout layoutOf(Encoding encoding, int64_t rows, int64_t columns, int64_t outliers = 0) {
  WeightLayout layout;
  EXPECT_EQ(makeLayout(encoding, rows, columns, outliers, layout), EncodeStatus::Ok);
  return layout;
}

EncodeStatus statusOf(Encoding encoding, int64_t rows, int64_t columns, int64_t outliers = 0) {
  WeightLayout layout;
  return makeLayout(encoding, rows, columns, outliers, layout);
}

} // namespace

TEST(Layout, BitsPerWeightAreThoseOfTheArchitecture) {
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::F32}, 64, 64).bitsPerWeight(), 32);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::F16}, 64, 64).bitsPerWeight(), 16);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::Int8}, 64, 64).bitsPerWeight(), 8.5);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::Int8, 128}, 64, 256).bitsPerWeight(), 8.125);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::Int4}, 64, 64).bitsPerWeight(), 4.5);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::Codebook2}, 64, 64).bitsPerWeight(), 3);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::TernarySign, 64}, 64, 64).bitsPerWeight(), 3.5);
  EXPECT_DOUBLE_EQ(layoutOf({EncodingKind::TernarySign, 128}, 64, 256).bitsPerWeight(), 3.25);
}

TEST(Layout, CountsIndexPanelAndPadding) {
  WeightLayout l = layoutOf({EncodingKind::Int4}, 9, 100, 3);
  EXPECT_EQ(l.background, 97);
  EXPECT_EQ(l.chunks, 4);
  EXPECT_EQ(l.groups, 4);
  EXPECT_EQ(l.panelOffset, 4 * (128 + 16));
  EXPECT_EQ(l.tileBytes, l.panelOffset + 3 * 16);
  EXPECT_EQ(l.indexBytes, 448); // 400 rounded up to 64
  EXPECT_EQ(l.tiles, 2);
  EXPECT_EQ(l.blobBytes, 448 + 2 * l.tileBytes);
  EXPECT_EQ(l.tileOffset(1), 448 + l.tileBytes);
}

TEST(Layout, ALongGroupIsOneShortGroup) {
  for (int64_t group : {0, 64, 4096}) {
    WeightLayout l = layoutOf({EncodingKind::Codebook2, group}, 8, 40);
    EXPECT_EQ(l.groups, 1);
    EXPECT_EQ(l.tileBytes, 2 * 64 + 32);
  }
  EXPECT_EQ(layoutOf({EncodingKind::Int8, 64}, 8, 100).groups, 2);
}

TEST(Layout, EveryTileStartsAtAMultipleOf16) {
  for (EncodingKind kind : {EncodingKind::F32, EncodingKind::F16, EncodingKind::Int8,
                            EncodingKind::Int4, EncodingKind::Codebook2})
    for (int64_t columns : {1, 5, 31, 32, 33, 100, 4304})
      for (int64_t outliers : {0, 1, 5}) {
        if (outliers > columns || (isPlain(kind) && outliers))
          continue;
        WeightLayout l = layoutOf({kind}, 100, columns, outliers);
        EXPECT_EQ(l.tileBytes % 16, 0);
        EXPECT_EQ(l.indexBytes % 64, 0);
      }
}

TEST(Layout, AllColumnsMayBeOutliers) {
  WeightLayout l = layoutOf({EncodingKind::Int4}, 8, 7, 7);
  EXPECT_EQ(l.groups, 0);
  EXPECT_EQ(l.tileBytes, 7 * 16);
}

TEST(Layout, RefusesBadGroups) {
  EXPECT_EQ(statusOf({EncodingKind::Int4, 16}, 8, 64), EncodeStatus::BadGroup);
  EXPECT_EQ(statusOf({EncodingKind::Int4, 48}, 8, 64), EncodeStatus::BadGroup);
  EXPECT_EQ(statusOf({EncodingKind::Int4, -32}, 8, 64), EncodeStatus::BadGroup);
}

TEST(Layout, RefusesBadShapes) {
  EXPECT_EQ(statusOf({EncodingKind::Int4}, 0, 64), EncodeStatus::BadShape);
  EXPECT_EQ(statusOf({EncodingKind::Int4}, 8, 0), EncodeStatus::BadShape);
  EXPECT_EQ(statusOf({EncodingKind::Int4}, 8, 64, 65), EncodeStatus::BadShape);
  EXPECT_EQ(statusOf({EncodingKind::Int4}, 8, 64, -1), EncodeStatus::BadShape);
  EXPECT_EQ(statusOf({EncodingKind::F16}, 8, 64, 1), EncodeStatus::NoOutliers);
}

TEST(Layout, RefusesSizesThatWouldOverflow) {
  EXPECT_EQ(statusOf({EncodingKind::F32}, INT64_MAX, 1024), EncodeStatus::TooLarge);
  EXPECT_EQ(statusOf({EncodingKind::Int4}, 8, INT64_MAX), EncodeStatus::TooLarge);
  EXPECT_EQ(statusOf({EncodingKind::Int4}, INT64_MAX, (int64_t(1) << 32) - 1),
            EncodeStatus::TooLarge);
}

TEST(Layout, RecordsFollowTheArchitecture) {
  RecordLayout r = recordLayout(97, 3);
  EXPECT_EQ(r.padded, 128);
  EXPECT_EQ(r.scaleOffset, 128);
  EXPECT_EQ(r.sumOffset, 128 + 16);
  EXPECT_EQ(r.outlierOffset, 128 + 32);
  EXPECT_EQ(r.bytes, 192); // 172 rounded up to 64
  EXPECT_EQ(plainRecordBytes(17), 128);
}
