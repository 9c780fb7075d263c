// SPDX-License-Identifier: Apache-2.0
//
// Drawn at most ten times a second, so that it costs nothing.

#include "lib/Compile/Progress.h"

#include <cstdio>
#include <unistd.h>

namespace otf {

using Clock = std::chrono::steady_clock;

Progress::Progress() : start(Clock::now()), drawn(start), terminal(isatty(STDERR_FILENO)) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Progress::show(const std::string &what, uint64_t done, uint64_t total) {
  Clock::time_point now = Clock::now();
  if (!terminal || now - start < std::chrono::seconds(2) ||
      now - drawn < std::chrono::milliseconds(100))
    return;
  drawn = now;
  visible = true;
  if (total == 0) {
    std::fprintf(stderr, "\r\033[K%s ...", what.c_str());
    return;
  }
  constexpr int width = 30;
  int filled = int(double(done) / double(total) * width);
  std::string bar = std::string(size_t(filled), '#') + std::string(size_t(width - filled), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %3.0f %%", what.c_str(), bar.c_str(),
               100 * double(done) / double(total));
}

void Progress::clear() {
  if (visible)
    std::fputs("\r\033[K", stderr);
  visible = false;
}

} // namespace otf
