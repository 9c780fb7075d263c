// SPDX-License-Identifier: Apache-2.0
#include "tools/otf-exec/Common.h"

#include <cstdio>

namespace otf::exec {

int fail(const std::string &file, const runtime::Status &status) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", file.c_str(), status.message().c_str());
  return int(status.code());
}

runtime::Result<Opened> open(const PlanOptions &options) {
  auto start = std::chrono::steady_clock::now();
  Opened opened;
  auto plan = runtime::PlanFile::open(options.plan);
  if (!plan.ok())
    return plan.status();
  opened.plan = std::move(plan.value());
  auto device = runtime::makeDevice(*opened.plan, options.device);
  if (!device.ok())
    return device.status();
  opened.device = std::move(device.value());
  auto session = runtime::Session::create(*opened.plan, *opened.device,
                                          {options.threads, options.context});
  if (!session.ok())
    return session.status();
  opened.session = std::move(session.value());
  opened.seconds = secondsSince(start);
  return opened;
}

} // namespace otf::exec
