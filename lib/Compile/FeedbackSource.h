// SPDX-License-Identifier: Apache-2.0
//
// What a weight's codes are chosen with, from the calibration's statistics: the second moments of what the linear reads, in the
// rotation that the weight is coded in, factored. Weights that read one tensor and are coded alike share their factors.
#ifndef OTF_LIB_COMPILE_FEEDBACKSOURCE_H
#define OTF_LIB_COMPILE_FEEDBACKSOURCE_H

#include "dialects/OTF/OTF.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Encoding/Feedback.h"

namespace otf {

/// What factors are made of; empty for a weight that is coded without. Any thread may make them.
struct FactorSource {
  const ChannelStatistics *channels = nullptr;
  WeightOp weight; ///< whose inputs they are
  const uint32_t *order = nullptr; ///< TileEncoder::order()

  /// `statistics` may be null; then no weight may want feedback. An error's message is a clause.
  static llvm::Expected<FactorSource> of(WeightOp weight, const Statistics *statistics, const uint32_t *order);

  explicit operator bool() const { return channels != nullptr; }
  bool makesTheSame(const FactorSource &other) const;

  /// Bytes of the factors, and the most there are of anything while they are made.
  int64_t keptBytes() const;
  int64_t workBytes() const;
  /// Returns a clause where there are none.
  std::string make(Feedback &feedback) const;
};

/// Factors of one weight after another; the last are kept.
class FeedbackSource {
public:
  explicit FeedbackSource(const Statistics *statistics) : statistics(statistics) {}

  /// Null for a weight that is coded without. What is returned stands until the next call; an error's message is a clause.
  llvm::Expected<const Feedback *> of(WeightOp weight, const uint32_t *order);

private:
  const Statistics *statistics;
  Feedback feedback;
  FactorSource known; ///< that `feedback` was made of
};

} // namespace otf

#endif // OTF_LIB_COMPILE_FEEDBACKSOURCE_H
