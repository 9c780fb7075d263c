// SPDX-License-Identifier: Apache-2.0
//
// A plan that runs on samples on the CPU: what calibration and the measuring of losses begin with.
#ifndef OTF_LIB_CALIBRATE_SAMPLERUN_H
#define OTF_LIB_CALIBRATE_SAMPLERUN_H

#include "lib/Calibrate/Samples.h"
#include "runtime/Session.h"

#include <memory>
#include <string>

namespace otf {

struct SampleRun {
  std::unique_ptr<Samples> samples;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Session> session;

  /// `plan` outlives it; `sidecar`, whose memory some inputs are, may be null.
  static runtime::Result<SampleRun> create(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                           const SampleOptions &options, unsigned threads);
  /// Runs sample `index`; errors name it and the model's file.
  runtime::Status run(size_t index, const std::string &modelFile);
};

} // namespace otf

#endif // OTF_LIB_CALIBRATE_SAMPLERUN_H
