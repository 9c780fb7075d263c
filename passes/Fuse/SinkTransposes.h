// SPDX-License-Identifier: Apache-2.0
#ifndef OTF_PASSES_FUSE_SINKTRANSPOSES_H
#define OTF_PASSES_FUSE_SINKTRANSPOSES_H

#include "mlir/Pass/Pass.h"

namespace otf {
std::unique_ptr<mlir::Pass> createSinkTransposesPass();
} // namespace otf

#endif // OTF_PASSES_FUSE_SINKTRANSPOSES_H
