// SPDX-License-Identifier: Apache-2.0
//
// What calibration knows of the activations that each weight meets: the sidecar that `otf-compile --calibrate` writes, read back.
//
// The file has the safetensors format: `u64 n`, n bytes of JSON that say where each tensor is, then the tensors. Each set of
// statistics (one for all weights that read the same tensor, see otf-insert-observers) is four tensors, of what `otf.observe` adds up:
//
//   NAME/rows       I64 [1]             rows seen
//   NAME/moments    F64 [5, K]          sum x, sum |x|, sum x², least, largest, of each channel
//   NAME/histogram  I64 [4096]          values by the top 12 bits of their f32
//   NAME/products   F32 [K (K+1) / 2]   sum x_i x_j for j <= i, row i from i (i + 1) / 2 on; or [0]
//
// "__metadata__" has "format" = kStatisticsFormat, "model" (the key of the model, ModelKey.h), "source" (what was run, in words),
// "settings" (a hash of it), and "weights": JSON text of an object from the name of each weight to that of its set.
// "cache:NAME" and "experts:NODE" are names of such sets too, without products: what was added to a cache, and as sums how many tokens chose each expert.
//
// The file is mapped, and nothing of it is copied: pages of products that nobody reads are never read.
#ifndef OTF_LIB_ANALYSIS_STATISTICS_H
#define OTF_LIB_ANALYSIS_STATISTICS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace otf {

inline constexpr llvm::StringLiteral kStatisticsFormat = "otf-calibration-1";

/// Bins of a histogram, by the top bits of an f32: sign, exponent, and three bits of mantissa.
inline constexpr int64_t kHistogramBins = 4096;

/// The channels that one weight, or several, contract with. Views into the mapped file.
struct ChannelStatistics {
  int64_t channels = 0; ///< K
  int64_t rows = 0;     ///< M, never 0 in a file that opens
  llvm::ArrayRef<double> sums, absoluteSums, squareSums, least, largest; ///< of K
  llvm::ArrayRef<int64_t> histogram;                                    ///< of kHistogramBins
  llvm::ArrayRef<float> products;                                       ///< of K (K + 1) / 2, or empty

  double mean(int64_t k) const { return sums[size_t(k)] / double(rows); }
  double meanAbsolute(int64_t k) const { return absoluteSums[size_t(k)] / double(rows); }
  double meanSquare(int64_t k) const { return squareSums[size_t(k)] / double(rows); }

  bool hasProducts() const { return !products.empty(); }
  /// Σ x_i x_j over all rows. Where there are products.
  float product(int64_t i, int64_t j) const {
    if (i < j)
      std::swap(i, j);
    return products[size_t(i * (i + 1) / 2 + j)];
  }
  /// Row i of the lower triangle, i + 1 elements.
  llvm::ArrayRef<float> productRow(int64_t i) const { return products.slice(size_t(i * (i + 1) / 2), size_t(i + 1)); }
};

class Statistics {
public:
  /// An error's message is whole: "<path>: <what> (<why, and what to try>)".
  static llvm::Expected<Statistics> open(llvm::StringRef path);
  /// Whether a file begins like one of these, so that --calibrate can tell it from a text.
  static bool isStatistics(llvm::StringRef path);

  /// By the name of an otf.weight; null for weights that were not observed.
  const ChannelStatistics *find(llvm::StringRef weight) const;

  /// Names of sets of no weight that begin so (dialects/OTF/Observed.h), in order.
  std::vector<std::string> namesOf(llvm::StringRef prefix) const;

  const std::string &path() const { return name; }
  const std::string &model() const { return modelKey; }
  const std::string &source() const { return sourceWords; }
  const std::string &settings() const { return settingsKey; }
  size_t setCount() const { return sets.size(); }
  size_t weightCount() const { return weights.size(); }

private:
  std::string name, modelKey, sourceWords, settingsKey;
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::deque<ChannelStatistics> sets;
  llvm::StringMap<const ChannelStatistics *> weights;
};

} // namespace otf

#endif // OTF_LIB_ANALYSIS_STATISTICS_H
