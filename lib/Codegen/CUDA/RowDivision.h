// SPDX-License-Identifier: Apache-2.0
//
// How linears of one row divide over a GPU: how many threads a block has, how many warps share a tile of eight rows, how many
// blocks there are.
//
// Problem: each block makes the record of the row for itself, so few and large blocks do that least often; but a large block
// more than there are multiprocessors doubles the time. Approach: a model of the slowest multiprocessor, in tiles, and the division
// that it likes best.
#ifndef OTF_CODEGEN_CUDA_ROWDIVISION_H
#define OTF_CODEGEN_CUDA_ROWDIVISION_H

#include <cstdint>
#include <vector>

namespace otf::cuda {

/// Of a multiprocessor, and the most of a block: kOneRowThreads of OneRow.cuh.
inline constexpr int64_t kThreadsAtOnce = 768;

struct RowDivision {
  int64_t threads = 256; ///< of a block
  int64_t split = 1;     ///< warps that share a tile, a power of two
  int64_t blocks(int64_t tiles) const; ///< for one tile a team of warps; fewer where that is more than the machine holds at once
};

/// `tiles`: of each lane, whose blocks run beside those of the others. `chunks`: of 32 columns.
RowDivision divideRow(const std::vector<int64_t> &tiles, int64_t chunks);

} // namespace otf::cuda

#endif // OTF_CODEGEN_CUDA_ROWDIVISION_H
