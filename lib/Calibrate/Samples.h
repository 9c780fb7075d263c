// SPDX-License-Identifier: Apache-2.0
//
// What a model is run on while it is observed.
#ifndef OTF_LIB_CALIBRATE_SAMPLES_H
#define OTF_LIB_CALIBRATE_SAMPLES_H

#include "lib/Calibrate/Sidecar.h"
#include "lib/Calibrate/Source.h"

#include <memory>
#include <string>

namespace otf {

class Samples {
public:
  virtual ~Samples() = default;
  virtual size_t count() const = 0;
  /// Gives the session's inputs sample `index` and runs it, in several steps if need be.
  virtual runtime::Status run(runtime::Session &session, size_t index) = 0;
  /// "20480 tokens of calibration.txt", for reports.
  virtual std::string words() const = 0;
  /// What is to be said about them, or empty.
  virtual std::string warning(int64_t widest) const = 0;
};

struct SampleOptions {
  int64_t tokens, window; ///< of a text: all of them, and those that see each other
  int64_t beginnings;     ///< as many more tokens in short windows: what begins a text is else one of a window's tokens
};

/// What `source` has for the inputs of `plan`, but for those that are memory of `sidecar`, which may be null.
runtime::Result<std::unique_ptr<Samples>> makeSamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                                      const SampleOptions &options);

/// Windows of a text for a model of token ids: `tokens` / `window` of them, then those of `beginnings`, evenly spread, each from an empty context. Fails where the
/// plan has no tokenizer or inputs that do not follow from token ids, and where the text has less than one window.
runtime::Result<std::unique_ptr<Samples>> makeTextSamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                                          const SampleOptions &options);

/// A folder with a file NAME.npy for each input (a '/' in its name is '_'), whose first axis counts samples. A sample keeps that axis, as
/// a batch of one, where the file has as many axes as the input, and loses it where it has one more. An input of a fixed batch b takes b at a time.
runtime::Result<std::unique_ptr<Samples>> makeArraySamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const std::string &folder);

} // namespace otf

#endif // OTF_LIB_CALIBRATE_SAMPLES_H
