// SPDX-License-Identifier: Apache-2.0
#include "Encoding/TrellisSearch.h"

std::unique_ptr<otf::TrellisEncoder::Engine> otf::makeAvx2Trellis(EncodingKind kind) { return makeSearch(kind); }
