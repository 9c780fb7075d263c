// SPDX-License-Identifier: Apache-2.0
//
// What a weight's codes are chosen with, from the calibration's statistics: the second moments of what the linear reads, in the
// rotation that the weight is coded in, factored. Weights that read one tensor follow each other, so the last
// factors are kept.
#ifndef OTF_LIB_COMPILE_FEEDBACKSOURCE_H
#define OTF_LIB_COMPILE_FEEDBACKSOURCE_H

#include "dialects/OTF/OTF.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Encoding/Feedback.h"

namespace otf {

class FeedbackSource {
public:
  /// `statistics` may be null; then no weight may want feedback.
  explicit FeedbackSource(const Statistics *statistics) : statistics(statistics) {}

  /// Null for a weight that is coded without. `order`: TileEncoder::order(). What is returned stands until the next call; an error's
  /// message is a clause.
  llvm::Expected<const Feedback *> of(WeightOp weight, const uint32_t *order);

private:
  const Statistics *statistics;
  Feedback feedback;
  const ChannelStatistics *channels = nullptr; // that `feedback` was made of, with ...
  mlir::Attribute rotation, unit, center, outliers, damping;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_FEEDBACKSOURCE_H
