// SPDX-License-Identifier: Apache-2.0
//
// From a kind of planes that is known at run time to code that is made for it.
#ifndef OTF_ENCODING_PLANESKINDS_H
#define OTF_ENCODING_PLANESKINDS_H

#include "Layout.h"

#include <memory>

namespace otf {

/// A new Search<kind> as its base, or null for a kind that is none of planes. `Search` has internal linkage where it is
/// compiled for several instruction sets, and so has then this function.
template <template <EncodingKind> class Search, class Base> std::unique_ptr<Base> makeForPlanes(EncodingKind kind) {
  switch (kind) {
  case EncodingKind::Planes3x1:
    return std::make_unique<Search<EncodingKind::Planes3x1>>();
  case EncodingKind::Planes3x2:
    return std::make_unique<Search<EncodingKind::Planes3x2>>();
  case EncodingKind::Planes3x3:
    return std::make_unique<Search<EncodingKind::Planes3x3>>();
  case EncodingKind::Planes3x4:
    return std::make_unique<Search<EncodingKind::Planes3x4>>();
  case EncodingKind::Planes4x1:
    return std::make_unique<Search<EncodingKind::Planes4x1>>();
  case EncodingKind::Planes4x2:
    return std::make_unique<Search<EncodingKind::Planes4x2>>();
  case EncodingKind::Planes4x3:
    return std::make_unique<Search<EncodingKind::Planes4x3>>();
  default:
    return nullptr;
  }
}

} // namespace otf

#endif // OTF_ENCODING_PLANESKINDS_H
