// SPDX-License-Identifier: Apache-2.0
//
// An unnamed file (O_TMPFILE) needs no cleaning up even after kill -9. It cannot replace an
// existing name at once, so it gets a temporary one just before the rename. Where the file system
// has no unnamed files the temporary name is there from the beginning.
#include "lib/Plan/Writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::plan {

namespace {
constexpr size_t kBuffer = 1 << 20;
// The table must fit before the first section, whose place is fixed before the table is known.
constexpr size_t kMostSections = (kSectionAlignment - sizeof(FileHeader)) / sizeof(SectionEntry);
} // namespace

struct Writer::Hash {
  XXH3_state_t state;
};

Writer::Writer(std::string path) : Writer(std::move(path), "") {}

Writer::Writer(std::string path, std::string unfinished) : path_(std::move(path)), hash_(std::make_unique<Hash>()) {
  size_t slash = path_.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  buffer_.reserve(kBuffer);
  struct stat status;
  if (path_.empty() || path_.back() == '/' ||
      (stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))) {
    error_ = "the plan cannot be written: '" + path_ + "' is not the name of a regular file";
    return;
  }
  offset_ = kSectionAlignment;
  if (!unfinished.empty()) {
    file_ = open(unfinished.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    // Some file systems have no locks. What has another name by now is somebody's plan.
    struct stat named;
    if (file_ >= 0 && ((flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || fstat(file_, &status) != 0 ||
                       stat(unfinished.c_str(), &named) != 0 || named.st_ino != status.st_ino)) {
      error_ = "the plan cannot be written: another process is writing it ('" + unfinished + "' is locked)";
      close();
    } else if (file_ < 0) {
      fail("cannot be created");
    } else {
      temporary_ = unfinished;
      keeps_ = true;
    }
    return;
  }
  file_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (file_ < 0) {
    std::string name = path_ + "." + std::to_string(getpid()) + ".tmp";
    file_ = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) {
      fail("cannot be created");
      return;
    }
    temporary_ = name;
  }
}

Writer::~Writer() { close(); }

void Writer::close() {
  if (file_ >= 0)
    ::close(file_);
  file_ = -1;
  if (!temporary_.empty() && !keeps_)
    unlink(temporary_.c_str());
  temporary_.clear();
}

void Writer::fail(const char *what) {
  if (error_.empty())
    error_ = "the plan " + std::string(what) + " in '" + folder_ + "' (" + std::strerror(errno) + ")";
  close();
}

void Writer::flush() {
  const std::byte *data = buffer_.data();
  size_t left = buffer_.size();
  off_t at = off_t(offset_ - left);
  while (ok() && left) {
    ssize_t n = pwrite(file_, data, left, at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail("cannot be written");
    data += n, at += n, left -= size_t(n);
  }
  buffer_.clear();
}

void Writer::put(const void *data, size_t size) {
  auto *bytes = static_cast<const std::byte *>(data);
  while (ok() && size) {
    size_t n = std::min(size, kBuffer - buffer_.size());
    buffer_.insert(buffer_.end(), bytes, bytes + n);
    offset_ += n, bytes += n, size -= n;
    if (buffer_.size() == kBuffer)
      flush();
  }
}

void Writer::beginSection(SectionKind kind) {
  if (!ok())
    return;
  if (inSection_ || table_.size() == kMostSections) {
    error_ = "the plan cannot be written: a section begins inside another or is one too many";
    return close();
  }
  static const std::byte zeros[kSectionAlignment] = {};
  put(zeros, (kSectionAlignment - offset_ % kSectionAlignment) % kSectionAlignment);
  table_.push_back({uint32_t(kind), 0, offset_, 0, 0, 0});
  XXH3_64bits_reset(&hash_->state);
  inSection_ = true;
}

uint64_t Writer::position() const { return inSection_ ? offset_ - table_.back().offset : 0; }

void Writer::append(std::span<const std::byte> bytes) {
  if (!ok() || !inSection_ || bytes.empty())
    return;
  XXH3_64bits_update(&hash_->state, bytes.data(), bytes.size());
  put(bytes.data(), bytes.size());
}

void Writer::adopt(uint64_t bytes) {
  if (!ok() || !inSection_ || position() != 0)
    return;
  flush();
  std::vector<std::byte> piece(kBuffer);
  while (bytes) {
    ssize_t n = pread(file_, piece.data(), size_t(std::min<uint64_t>(bytes, kBuffer)), off_t(offset_));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail("cannot be read again");
    XXH3_64bits_update(&hash_->state, piece.data(), size_t(n));
    offset_ += uint64_t(n), bytes -= uint64_t(n);
  }
}

void Writer::align(uint64_t alignment) {
  static const std::byte zeros[64] = {};
  for (uint64_t left = (alignment - position() % alignment) % alignment; left;) {
    uint64_t n = std::min<uint64_t>(left, sizeof zeros);
    append(zeros, n);
    left -= n;
  }
}

void Writer::endSection() {
  if (!ok() || !inSection_)
    return;
  table_.back().size = position();
  table_.back().checksum = XXH3_64bits_digest(&hash_->state);
  inSection_ = false;
}

bool Writer::finish(std::string &error) {
  endSection();
  flush();
  if (ok()) {
    FileHeader header{{}, kFormatVersion, uint32_t(table_.size()), offset_, 0};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    std::vector<std::byte> page(kSectionAlignment);
    size_t bytes = table_.size() * sizeof(SectionEntry);
    if (bytes)
      std::memcpy(page.data() + sizeof header, table_.data(), bytes);
    constexpr size_t covered = offsetof(FileHeader, checksum);
    XXH3_64bits_reset(&hash_->state);
    XXH3_64bits_update(&hash_->state, &header, covered);
    XXH3_64bits_update(&hash_->state, page.data() + sizeof header, bytes);
    header.checksum = XXH3_64bits_digest(&hash_->state);
    std::memcpy(page.data(), &header, sizeof header);
    uint64_t end = offset_;
    buffer_ = std::move(page);
    offset_ = kSectionAlignment;
    flush();
    // A last section without a byte may begin past the last byte written.
    if (ok() && ftruncate(file_, off_t(end)) != 0)
      fail("cannot be written");
  }
  if (ok() && fsync(file_) != 0)
    fail("cannot be flushed to disk");
  if (ok() && temporary_.empty()) {
    std::string name = path_ + "." + std::to_string(getpid()) + ".tmp";
    std::string self = "/proc/self/fd/" + std::to_string(file_);
    unlink(name.c_str()); // of a process with our number that was killed between these lines
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail("cannot be given a name");
    else
      temporary_ = name;
  }
  if (ok() && rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("cannot be given its name");
  if (ok()) {
    temporary_.clear();
    // Failure here is not reported: the file is whole and has its name, and some file systems
    // refuse to flush a folder.
    if (int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
      (void)fsync(folder);
      ::close(folder);
    }
  }
  error = error_;
  close();
  return ok();
}

} // namespace otf::plan
