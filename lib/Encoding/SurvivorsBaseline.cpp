// SPDX-License-Identifier: Apache-2.0
#include "SurvivorSearch.h"

std::unique_ptr<otf::SurvivorEncoder::Engine> otf::makeBaselineSurvivors(EncodingKind kind) {
  return makeSearch(kind);
}
