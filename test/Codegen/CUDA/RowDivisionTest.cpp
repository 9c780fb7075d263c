// SPDX-License-Identifier: Apache-2.0
//
// How linears of one row divide over a machine: what kernels take for granted, of any sizes, and what is wanted of some.
#include "lib/Codegen/CUDA/RowDivision.h"

#include <gtest/gtest.h>

namespace {

using namespace otf::cuda;

TEST(RowDivision, TeamsAreWholeAndHaveChunks) {
  for (int64_t rows : {1, 8, 192, 576, 1536, 2560, 4096, 11008, 28672, 49152, 151936})
    for (int64_t chunks : {1, 2, 5, 18, 48, 64, 128, 344, 448}) {
      const int64_t tiles = (rows + 7) / 8;
      for (const std::vector<int64_t> &lanes : {std::vector{tiles}, std::vector{tiles, tiles / 4 + 1, tiles / 4 + 1}}) {
        const RowDivision division = divideRow(lanes, chunks);
        EXPECT_GE(division.threads, 256); // norms are summed by as many
        EXPECT_LE(division.threads, 768);
        EXPECT_EQ(division.threads % (32 * division.split), 0) << rows << " x " << chunks;
        EXPECT_TRUE(division.split == 1 || 4 * division.split <= chunks) << "a lane of each warp has a chunk";
        EXPECT_GE(division.blocks(tiles), 1);
        EXPECT_LE(division.blocks(tiles) * (division.threads / 32), tiles * division.split + division.threads / 32) << "no block is idle";
      }
    }
}

/// Qwen2.5-3B on 132 multiprocessors: no launch has a second round of blocks, and each makes one record a multiprocessor.
TEST(RowDivision, LargeBlocksWhereTheyFillTheMachine) {
  const RowDivision gateUp = divideRow({1376}, 64), qkv = divideRow({256, 32, 32}, 64), output = divideRow({256}, 64);
  EXPECT_EQ(gateUp.threads, 704);
  EXPECT_EQ(gateUp.blocks(1376), 126);
  EXPECT_EQ(qkv.threads, 768);
  EXPECT_EQ(qkv.blocks(256) + 2 * qkv.blocks(32), 108);
  EXPECT_EQ(output.threads, 512);
  EXPECT_EQ(output.blocks(256), 128);
}

/// A few tiles go to as many multiprocessors as there are blocks, and not to a few of them.
TEST(RowDivision, SmallBlocksWhereThereIsLittleToDo) { EXPECT_EQ(divideRow({72}, 18).threads, 256); }

} // namespace
