// SPDX-License-Identifier: Apache-2.0
//
// The level that is run.
#include "Encoding/SurvivorEngine.h"

namespace otf {

SurvivorEncoder::Level SurvivorEncoder::best() {
  return __builtin_cpu_supports("avx2") ? Level::Avx2 : Level::Baseline;
}

SurvivorEncoder::SurvivorEncoder(EncodingKind planes, Level level)
    : engine(level == Level::Avx2 ? makeAvx2Survivors(planes) : makeBaselineSurvivors(planes)) {}
SurvivorEncoder::~SurvivorEncoder() = default;

float SurvivorEncoder::search(const BlockForm &form, const float *wanted, uint32_t *words) {
  return engine->search(form, wanted, words);
}
float SurvivorEncoder::improve(const BlockForm &form, const float *wanted, uint32_t *words) {
  return engine->improve(form, wanted, words);
}

} // namespace otf
