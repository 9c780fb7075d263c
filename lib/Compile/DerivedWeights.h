// SPDX-License-Identifier: Apache-2.0
//
// The weights that no file has, made while the plan is written (dialects/OTF/Derived.h): factors of
// what coding loses, bases and what differs from them, vectors of numbers.
//
// A pair of factors is made when the first of both is asked for, and kept until the second is. A
// weight whose factors are wanted is coded once more for them, with the same bytes, since the other
// time may come before or after.
#ifndef OTF_LIB_COMPILE_DERIVEDWEIGHTS_H
#define OTF_LIB_COMPILE_DERIVEDWEIGHTS_H

#include "lib/Compile/FeedbackSource.h"
#include "lib/Compile/TileEncoder.h"
#include "lib/Compile/WeightRows.h"
#include "lib/Encoding/LowRank.h"

#include "passes/Passes.h"

#include <map>
#include <string>

namespace otf {

/// W - coded W of a weight with an encoding, N x K in the coordinates that it is coded in; and W
/// itself in `weights`, if that is there. An error's message is a clause.
llvm::Expected<std::vector<float>> codingErrorOf(const FileSet &files, WeightOp weight,
                                                 FeedbackSource &feedbacks);

/// The best low rank of that, by what the linear multiplies. Needs statistics.
llvm::Expected<LowRank> lowRankOf(const FileSet &files, WeightOp weight, int64_t rank,
                                  const Statistics *statistics, FeedbackSource &feedbacks);

/// For otf-choose-low-rank. What is given must outlive the passes; `statistics` may be null.
CapturedEnergy capturedEnergyOf(const FileSet &files, const Statistics *statistics);

class DerivedWeights {
public:
  DerivedWeights(const FileSet &files, const Statistics *statistics, FeedbackSource &feedbacks)
      : files(files), statistics(statistics), feedbacks(feedbacks) {}

  /// The rows of a derived weight of `rows` x `columns`. An error's message is a clause.
  llvm::Expected<WeightRows> of(WeightOp weight, int64_t rows, int64_t columns);

  /// Bytes that making a weight takes at most, and that stay until the last that is derived.
  static int64_t workBytes(WeightOp weight);
  static int64_t keptBytes(WeightOp weight);
  /// Nanoseconds of it, beside coding the weight once more, on a machine of 2025.
  static double work(WeightOp weight);

  /// What stored parts say of the weight that they stand for, once they are written: a left factor,
  /// which part of the error it leaves in `leaves`, and that beside a base, what base and factors
  /// lose of the weight in `error`. Leaves others alone.
  void account(WeightOp weight, CodingError &error, double &leaves) const;

private:
  struct Base {
    std::vector<float> rows;
    std::map<std::string, LowRank> members; ///< A and Bᵀ, by weight
    std::map<std::string, CodingError> errors;
    int64_t columns = 0;
  };
  llvm::Expected<Base *> baseOf(WeightOp base);
  llvm::Expected<std::vector<float>> quotient(WeightOp weight, int64_t size);
  llvm::Expected<std::vector<float>> factor(WeightOp weight, llvm::StringRef part);

  const FileSet &files;
  const Statistics *statistics;
  FeedbackSource &feedbacks;
  std::map<std::string, LowRank> halves;    ///< of which the other factor is still to come
  std::map<std::string, double> remainders; ///< of coded weights with a rank
  std::map<std::string, Base> bases;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_DERIVEDWEIGHTS_H
