// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/JitCache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::runtime {
namespace {

constexpr char kMagic[8] = {'O', 'T', 'F', 'C', 'U', 'B', 'I', 'N'};
constexpr size_t kHeader = 16;
// A cubin of a large model has some hundred kernels of 50 kB; anything past this is not ours.
constexpr off_t kLargest = 1 << 30;

std::string directoryFromEnvironment() {
  if (const char *own = std::getenv("OTF_JIT_CACHE"); own && *own)
    return std::strcmp(own, "off") == 0 ? "" : own;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return cat(cache, "/otf");
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return cat(home, "/.cache/otf");
  return "";
}

/// mkdir -p with mode 0700.
void makeDirectories(const std::string &path) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

struct File {
  int fd;
  explicit File(int fd) : fd(fd) {}
  ~File() {
    if (fd >= 0)
      close(fd);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
};

bool readAll(int fd, char *to, size_t size) {
  while (size) {
    ssize_t got = ::read(fd, to, size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    to += got;
    size -= size_t(got);
  }
  return true;
}

bool writeAll(int fd, const char *from, size_t size) {
  while (size) {
    ssize_t put = ::write(fd, from, size);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return false;
    from += put;
    size -= size_t(put);
  }
  return true;
}

} // namespace

JitCache::JitCache() : JitCache(directoryFromEnvironment()) {}
JitCache::JitCache(std::string directory) : directory_(std::move(directory)) {
  if (!prepare())
    directory_.clear();
}

bool JitCache::prepare() {
  if (directory_.empty())
    return false;
  makeDirectories(directory_);
  struct stat info;
  // Code is run from here: nobody else may be able to put it there.
  return lstat(directory_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid() &&
         ((info.st_mode & 0077) == 0 || chmod(directory_.c_str(), 0700) == 0);
}

std::string JitCache::key(const std::string &source, const std::string &architecture,
                          std::span<const std::string> options, int major, int minor) {
  std::string what = cat("1;", architecture, ";", major, ".", minor);
  for (const char *option : Nvrtc::fixedOptions())
    what += cat(";", option);
  for (const std::string &option : options)
    what += cat(";", option);
  what += '\0';
  what += source;
  XXH128_hash_t hash = XXH3_128bits(what.data(), what.size());
  std::string name;
  for (uint64_t part : {uint64_t(hash.high64), uint64_t(hash.low64)})
    for (int shift = 60; shift >= 0; shift -= 4)
      name += "0123456789abcdef"[part >> shift & 15];
  return name + ".cubin";
}

bool JitCache::read(const std::string &name, std::vector<char> &cubin) const {
  if (directory_.empty())
    return false;
  File file(open(cat(directory_, "/", name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != geteuid() || info.st_size <= off_t(kHeader) || info.st_size > kLargest)
    return false;
  char header[kHeader];
  cubin.resize(size_t(info.st_size) - kHeader);
  if (!readAll(file.fd, header, kHeader) || !readAll(file.fd, cubin.data(), cubin.size()))
    return false;
  uint64_t checksum;
  std::memcpy(&checksum, header + 8, 8);
  return std::memcmp(header, kMagic, 8) == 0 && XXH3_64bits(cubin.data(), cubin.size()) == checksum;
}

void JitCache::write(const std::string &name, const std::vector<char> &cubin) const {
  if (directory_.empty())
    return;
  std::string temporary = cat(directory_, "/tmp.XXXXXX");
  File file(mkstemp(temporary.data()));
  if (file.fd < 0)
    return; // a cache that cannot be written costs time, not answers
  char header[kHeader];
  const uint64_t checksum = XXH3_64bits(cubin.data(), cubin.size());
  std::memcpy(header, kMagic, 8);
  std::memcpy(header + 8, &checksum, 8);
  const bool written =
      writeAll(file.fd, header, kHeader) && writeAll(file.fd, cubin.data(), cubin.size());
  if (!written || rename(temporary.c_str(), cat(directory_, "/", name).c_str()) != 0)
    unlink(temporary.c_str());
}

Result<std::vector<char>> JitCache::get(const std::string &source, const std::string &architecture,
                                        std::span<const std::string> options, bool *fromCache) {
  Result<std::unique_ptr<Nvrtc>> nvrtc = Nvrtc::open();
  if (!nvrtc.ok())
    return nvrtc.status();
  const std::string name =
      key(source, architecture, options, nvrtc.value()->major(), nvrtc.value()->minor());
  std::vector<char> cubin;
  const bool found = read(name, cubin);
  if (fromCache)
    *fromCache = found;
  if (found)
    return cubin;
  if (const char *only = std::getenv("OTF_JIT_ONLY_CACHED"); only && *only == '1')
    return deviceError("JIT cache: no entry ", name, " in '", directory_,
                       "' (OTF_JIT_ONLY_CACHED is set)");
  Result<CudaBinary> binary = nvrtc.value()->compile(source, architecture, options);
  if (!binary.ok()) {
    // Whoever looks into it wants the source, which exists nowhere else.
    if (directory_.empty())
      return binary.status();
    const std::string kept = cat(directory_, "/failed.cu");
    File file(open(kept.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.fd < 0 || !writeAll(file.fd, source.data(), source.size()))
      return binary.status();
    return deviceError(binary.status().message(), "\n(the source was kept in ", kept, ")");
  }
  write(name, binary.value().cubin);
  return std::move(binary.value().cubin);
}

} // namespace otf::runtime
