// SPDX-License-Identifier: Apache-2.0
//
// Drawn at most ten times a second, so that it costs nothing.

#include "lib/Compile/Progress.h"

#include <cstdio>
#include <unistd.h>

namespace otf {

using Clock = std::chrono::steady_clock;

Progress::Progress() : start(Clock::now()), drawn(start), begun(start), terminal(isatty(STDERR_FILENO)) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "1 h 05 min", "3 min 20 s", "8 s".
static std::string inWords(double seconds) {
  auto whole = int64_t(seconds + 0.5);
  char text[64];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld h %02lld min", (long long)(whole / 3600), (long long)(whole / 60 % 60));
  else if (whole >= 60)
    std::snprintf(text, sizeof text, "%lld min %02lld s", (long long)(whole / 60), (long long)(whole % 60));
  else
    std::snprintf(text, sizeof text, "%lld s", (long long)whole);
  return text;
}

std::string Progress::line(const std::string &what, const std::string &at, uint64_t done, uint64_t total, double seconds) {
  if (total == 0)
    return what + " ...";
  constexpr int width = 30;
  constexpr size_t mostAt = 40; // its end says more than its beginning
  double part = double(done) / double(total);
  int filled = int(part * width);
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f %%", 100 * part);
  std::string text = what + " [" + std::string(size_t(filled), '#') + std::string(size_t(width - filled), '.') + "] " + percent;
  // Before that it is guesswork.
  if (seconds >= 3 && part > 0.01 && done < total)
    text += ", " + inWords(seconds / part - seconds) + " left";
  if (!at.empty())
    text += "  " + (at.size() <= mostAt ? at : "..." + at.substr(at.size() - mostAt));
  return text;
}

void Progress::show(const std::string &what, uint64_t done, uint64_t total, const std::string &at) {
  Clock::time_point now = Clock::now();
  if (what != doing) {
    doing = what;
    begun = now;
  }
  if (!terminal || now - start < std::chrono::seconds(2) ||
      now - drawn < std::chrono::milliseconds(100))
    return;
  drawn = now;
  visible = true;
  double seconds = std::chrono::duration<double>(now - begun).count();
  std::fprintf(stderr, "\r\033[K%s", line(what, at, done, total, seconds).c_str());
}

void Progress::clear() {
  if (visible)
    std::fputs("\r\033[K", stderr);
  visible = false;
}

} // namespace otf
