// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/SampleRun.h"

#include <algorithm>

namespace otf {

using runtime::cat;
using runtime::Result;
using runtime::Status;

Result<SampleRun> SampleRun::create(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                    const SampleOptions &options, unsigned threads) {
  SampleRun run;
  auto samples = makeSamples(plan, sidecar, source, options);
  if (!samples.ok())
    return samples.status();
  run.samples = std::move(samples.value());
  auto device = runtime::makeDevice(plan, "cpu");
  if (!device.ok())
    return device.status();
  run.device = std::move(device.value());
  runtime::SessionOptions sessionOptions;
  sessionOptions.threads = threads;
  sessionOptions.capacity = std::max<int64_t>(options.window, 1);
  auto session = runtime::Session::create(plan, *run.device, sessionOptions);
  if (!session.ok())
    return session.status();
  run.session = std::move(session.value());
  return run;
}

Status SampleRun::run(size_t index, const std::string &modelFile) {
  Status status = samples->run(*session, index);
  if (status.ok())
    return status;
  return Status(status.code(), cat(modelFile, ": sample ", index, " of ", samples->words(), ": ", status.message()));
}

} // namespace otf
