// SPDX-License-Identifier: Apache-2.0
//
// What the levels of the survivors' search have in common: an interface, and one maker a level.
#ifndef OTF_ENCODING_SURVIVORENGINE_H
#define OTF_ENCODING_SURVIVORENGINE_H

#include "Encoding/Survivors.h"

namespace otf {

class SurvivorEncoder::Engine {
public:
  virtual ~Engine() = default;
  virtual float search(const BlockForm &form, const float *wanted, uint32_t *words) = 0;
  virtual float improve(const BlockForm &form, const float *wanted, uint32_t *words) = 0;
};

std::unique_ptr<SurvivorEncoder::Engine> makeAvx2Survivors(EncodingKind kind);
std::unique_ptr<SurvivorEncoder::Engine> makeBaselineSurvivors(EncodingKind kind);

} // namespace otf

#endif // OTF_ENCODING_SURVIVORENGINE_H
