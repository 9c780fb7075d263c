// SPDX-License-Identifier: Apache-2.0
//
// States between callers, who give and get f32, and memory, which may hold f16 or int8 with a scale
// for each row (lib/Encoding/CacheRow.h). What was got and is given again has the same bytes.
#ifndef OTF_RUNTIME_STATEROWS_H
#define OTF_RUNTIME_STATEROWS_H

#include "runtime/PlanFile.h"

#include <vector>

namespace otf::runtime {

inline bool isConverted(const StateInfo &state) {
  return state.type == ElementType::f16 || state.type == ElementType::i8;
}
inline ElementType callersType(const StateInfo &state) { return isConverted(state) ? ElementType::f32 : state.type; }

/// Bytes in memory of a state that is `bytes` for its caller. `shape`, the caller's, becomes memory's.
int64_t heldBytes(const StateInfo &state, std::vector<int64_t> &shape, int64_t bytes);

/// `from`: `count` floats of any alignment.
void holdRows(const StateInfo &state, const void *from, int64_t count, std::byte *to);

/// Into `to`, which it sizes. `shape`, memory's, becomes the caller's.
void giveRows(const StateInfo &state, const std::vector<std::byte> &from, std::vector<int64_t> &shape, std::vector<float> &to);

} // namespace otf::runtime

#endif // OTF_RUNTIME_STATEROWS_H
