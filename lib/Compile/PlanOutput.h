// SPDX-License-Identifier: Apache-2.0
//
// The plan file while it is written: weights stream into it, with a journal beside it from which a killed compilation goes on
// (Unfinished.h), and then come the other sections. A dry run encodes and writes nothing.
#ifndef OTF_LIB_COMPILE_PLANOUTPUT_H
#define OTF_LIB_COMPILE_PLANOUTPUT_H

#include "lib/Analysis/Statistics.h"
#include "lib/Compile/Compile.h"
#include "lib/Compile/Progress.h"
#include "lib/Compile/StreamEncoder.h"
#include "lib/Compile/Unfinished.h"
#include "lib/Import/Importer.h"
#include "lib/Plan/Writer.h"

#include <functional>
#include <optional>

namespace otf {

inline constexpr char kProducer[] = "otf-compile 0.1.0";

struct PlanSection {
  plan::SectionKind kind;
  std::vector<std::string> parts; // one after another
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const std::string &part : parts)
      sum += part.size();
    return sum;
  }
};

class PlanOutput {
public:
  /// Prints an error and is a failure.
  using Fail = std::function<mlir::LogicalResult(const llvm::Twine &)>;

  /// All of these outlive it; `statistics` may be null.
  PlanOutput(const CompileOptions &options, const ModelFile &file, const Statistics *statistics, Progress &progress, Fail fail)
      : options(options), file(file), statistics(statistics), progress(progress), fail(std::move(fail)) {}

  /// Opens the file, and with --resume says in `weights` which are there.
  mlir::LogicalResult begin(StreamEncoder &weights);
  /// The section of weights.
  mlir::LogicalResult encode(StreamEncoder &weights);
  /// The other sections; then the file has its name.
  mlir::LogicalResult finish(const std::vector<PlanSection> &sections);

private:
  std::vector<Unfinished::Identity> identityOf(const StreamEncoder &weights) const;

  const CompileOptions &options;
  const ModelFile &file;
  const Statistics *statistics;
  Progress &progress;
  Fail fail;
  std::unique_ptr<plan::Writer> writer; // keeps others from the unfinished file until that is removed
  std::optional<Unfinished> unfinished;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_PLANOUTPUT_H
