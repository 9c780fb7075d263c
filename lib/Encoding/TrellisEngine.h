// SPDX-License-Identifier: Apache-2.0
//
// What the levels of the trellis search have in common: an interface, and one maker a level.
#ifndef OTF_ENCODING_TRELLISENGINE_H
#define OTF_ENCODING_TRELLISENGINE_H

#include "Encoding/Trellis.h"

namespace otf {

class TrellisEncoder::Engine {
public:
  virtual ~Engine() = default;
  virtual void encode(const TrellisBlocks &blocks) = 0;
};

std::unique_ptr<TrellisEncoder::Engine> makeBaselineTrellis(EncodingKind kind);
std::unique_ptr<TrellisEncoder::Engine> makeAvx2Trellis(EncodingKind kind);

} // namespace otf

#endif // OTF_ENCODING_TRELLISENGINE_H
