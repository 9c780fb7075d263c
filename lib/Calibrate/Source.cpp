// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Source.h"

#include "lib/Calibrate/Samples.h"
#include "runtime/RegularFile.h"
#include "runtime/Text/DefaultText.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace otf {

using runtime::badInput;
using runtime::cat;
using runtime::Result;

namespace fs = std::filesystem;

// More of a text is not read: it is a thousand times what calibration takes.
static constexpr uint64_t kMostText = 64 << 20;

Result<Source> Source::read(const std::string &name, std::string_view purpose) {
  Source source;
  XXH3_state_t hash;
  XXH3_128bits_reset(&hash);
  auto add = [&](std::string_view bytes) {
    XXH3_128bits_update(&hash, bytes.data(), bytes.size());
  };
  add(cat(purpose, "\n"));
  std::error_code error;
  if (name == "default") {
    source.textName = "the built-in text";
    source.text = otf::text::defaultText();
    add(source.text);
  } else if (fs::is_directory(name, error)) {
    source.folder = name;
    std::vector<std::string> files;
    for (fs::directory_iterator at(name, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".npy")
        files.push_back(at->path().filename().string());
    if (error)
      return badInput(name, ": cannot be read (", error.message(), ")");
    std::sort(files.begin(), files.end());
    for (const std::string &array : files) {
      Result<runtime::RegularFile> file = runtime::RegularFile::open(name + "/" + array);
      if (!file.ok())
        return badInput(name, "/", array, ": ", file.status().message());
      Result<std::vector<std::byte>> bytes = file.value().read();
      if (!bytes.ok())
        return badInput(name, "/", array, ": ", bytes.status().message());
      add(array);
      add({reinterpret_cast<const char *>(bytes.value().data()), bytes.value().size()});
    }
  } else {
    Result<runtime::RegularFile> file = runtime::RegularFile::open(name);
    if (!file.ok())
      return badInput(name, ": ", file.status().message(),
                      " (--calibrate takes a text, a folder of .npy files, what it wrote before, "
                      "default, or none)");
    source.textName = name;
    source.text.resize(size_t(std::min(file.value().size(), kMostText)));
    size_t done = 0;
    while (done < source.text.size()) {
      ssize_t got = pread(file.value().descriptor(), source.text.data() + done,
                          source.text.size() - done, off_t(done));
      if (got <= 0)
        return badInput(name, ": cannot be read");
      done += size_t(got);
    }
    add(source.text);
  }
  XXH128_hash_t digest = XXH3_128bits_digest(&hash);
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx",
                static_cast<unsigned long long>(digest.high64),
                static_cast<unsigned long long>(digest.low64));
  source.settings = digits;
  return source;
}

} // namespace otf
