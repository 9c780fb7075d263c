// SPDX-License-Identifier: Apache-2.0
#include "tools/otf-exec/Common.h"

#include "runtime/RegularFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::exec {

std::string printable(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string escaped;
  for (char c : text)
    if (uint8_t(c) < 0x20 || c == 0x7f)
      escaped += {'\\', 'x', digits[uint8_t(c) >> 4], digits[c & 15]};
    else
      escaped += c;
  return escaped;
}

int fail(const std::string &file, const runtime::Status &status) {
  std::fflush(stdout);
  // Devices fail with the log of a compiler, whose lines are wanted as they are.
  std::string message =
      status.code() == runtime::Code::device ? status.message() : printable(status.message());
  std::fprintf(stderr, "error: %s: %s\n", file.empty() ? "''" : printable(file).c_str(),
               message.c_str());
  return int(status.code());
}

int finishOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return 0;
  return fail("standard output",
              runtime::badInput("cannot be written",
                                errno ? runtime::cat(" (", std::strerror(errno), ")") : ""));
}

bool outputIsGone() {
  pollfd output = {STDOUT_FILENO, 0, 0};
  return std::ferror(stdout) || (poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)));
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
                                          {options.threads, options.context, options.iterations});
  if (!session.ok())
    return session.status();
  opened.session = std::move(session.value());
  opened.seconds = secondsSince(start);
  return opened;
}

std::vector<int32_t> benchPrompt(int64_t vocabulary, int64_t tokens) {
  const int64_t different = std::clamp<int64_t>(vocabulary, 1, 100);
  std::vector<int32_t> prompt(size_t(tokens), 0);
  for (int64_t i = 0; i < tokens; ++i)
    prompt[size_t(i)] = int32_t(i % different);
  return prompt;
}

/// tokenizer.json at this path, or in the folder at this path.
static runtime::Result<std::vector<std::byte>> readTokenizer(std::string path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    path += "/tokenizer.json";
  auto named = [&](const runtime::Status &s) {
    return runtime::Status(s.code(), runtime::cat("tokenizer '", path, "': ", s.message()));
  };
  auto file = runtime::RegularFile::open(path);
  if (!file.ok())
    return named(file.status());
  auto text = file.value().read();
  if (!text.ok())
    return named(text.status());
  if (text.value().empty())
    return named(runtime::badInput("the file is empty"));
  return text;
}

runtime::Result<runtime::LanguageModel> openLanguageModel(const runtime::PlanFile &plan,
                                                          const std::string &tokenizer) {
  if (tokenizer.empty())
    return runtime::LanguageModel::create(plan, {});
  auto text = readTokenizer(tokenizer);
  if (!text.ok())
    return text.status();
  return runtime::LanguageModel::create(
      plan, {reinterpret_cast<const char *>(text.value().data()), text.value().size()});
}

runtime::Result<std::string> readText(const std::string &path) {
  auto file = runtime::RegularFile::open(path);
  if (!file.ok())
    return file.status();
  auto bytes = file.value().read();
  if (!bytes.ok())
    return bytes.status();
  return std::string(reinterpret_cast<const char *>(bytes.value().data()), bytes.value().size());
}

} // namespace otf::exec
