// SPDX-License-Identifier: Apache-2.0
//
// A journal that cannot be written (a full disk) is no error of its own: the plan is then not written either, or cannot be resumed.

#include "lib/Compile/Unfinished.h"

#include "include/otf/PlanFormat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cinttypes>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf {

static const char magic[] = "otf-unfinished-1\n";

struct Unfinished::Hash {
  XXH3_state_t state;
  Hash() { XXH3_64bits_reset(&state); }
};

uint64_t Unfinished::hash(llvm::StringRef text) { return XXH3_64bits(text.data(), text.size()); }

std::string Unfinished::describeFile(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return path + " is missing\n";
  return path + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec) + "\n";
}

Unfinished::Unfinished(const std::string &plan, std::vector<Identity> identity)
    : data(fileOf(plan)), journal(data + ".journal"), fresh(journal + ".new"), identity(std::move(identity)), state(std::make_unique<Hash>()) {}

Unfinished::~Unfinished() {
  if (out)
    std::fclose(out);
  if (kept)
    return;
  unlink(fresh.c_str());
  unlink(journal.c_str());
  if (!finished)
    unlink(data.c_str());
}

std::string Unfinished::head() const {
  std::string text = magic;
  for (const Identity &part : identity)
    text += part.what + " " + llvm::utohexstr(part.hash, /*LowerCase=*/true, 16) + "\n";
  return text;
}

std::string Unfinished::line(size_t weight, const StoredWeight &stored, uint64_t hash) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "%zu %" PRIu64 " %016" PRIx64 " %a %a %a ", weight, stored.offset + stored.size, hash,
                stored.error.weight, stored.error.difference, stored.leaves);
  return numbers + stored.grid + "\n";
}

/// XXH3 of bytes [begin, end) of a file; false where it is shorter.
static bool hashPart(int file, uint64_t begin, uint64_t end, uint64_t &hash) {
  std::vector<char> piece(1 << 20);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  while (begin < end) {
    ssize_t n = pread(file, piece.data(), size_t(std::min<uint64_t>(end - begin, piece.size())), off_t(begin));
    if (n <= 0)
      return false;
    XXH3_64bits_update(&state, piece.data(), size_t(n));
    begin += uint64_t(n);
  }
  hash = XXH3_64bits_digest(&state);
  return true;
}

std::string Unfinished::read(StreamEncoder &weights, size_t &done) {
  done = 0;
  auto text = llvm::MemoryBuffer::getFile(journal, /*IsText=*/false, /*RequiresNullTerminator=*/true, /*IsVolatile=*/true);
  if (!text)
    return {}; // nothing was begun
  llvm::StringRef rest = (*text)->getBuffer();
  if (!rest.consume_front(magic))
    return rest.contains('\n') ? "its journal is of another version of otf-compile" : "";
  for (const Identity &part : identity) {
    auto [first, more] = rest.split('\n');
    if (first.size() == rest.size())
      return {}; // killed while it was begun
    uint64_t hash;
    if (!first.consume_front(part.what + " ") || first.getAsInteger(16, hash))
      return "its journal is of another version of otf-compile";
    if (hash != part.hash)
      return part.what == "weights" ? "its weights were to be coded otherwise" : "it was made with another " + part.what;
    rest = more;
  }
  int file = open(data.c_str(), O_RDONLY | O_CLOEXEC);
  uint64_t begin = 0;
  while (file >= 0 && done < weights.stored().size()) {
    auto [first, more] = rest.split('\n');
    if (first.size() == rest.size())
      break;
    rest = more;
    const StoredWeight &stored = weights.stored()[done];
    llvm::SmallVector<llvm::StringRef, 7> fields;
    first.split(fields, ' ', /*MaxSplit=*/6);
    uint64_t index, end, expected, found;
    if (fields.size() != 7 || fields[0].getAsInteger(10, index) || index != done || fields[1].getAsInteger(10, end) ||
        end != stored.offset + stored.size || fields[2].getAsInteger(16, expected) ||
        !hashPart(file, plan::kSectionAlignment + begin, plan::kSectionAlignment + end, found) || found != expected)
      break;
    auto number = [&](size_t i) { return std::strtod(fields[i].str().c_str(), nullptr); };
    weights.setDone(done, {number(3), number(4)}, number(5), fields[6].str());
    lines.push_back(first.str() + "\n");
    begin = end;
    ++done;
  }
  if (file >= 0)
    ::close(file);
  return {};
}

void Unfinished::begin(const StreamEncoder &weights, size_t done) {
  next = done;
  // The journal that was read holds until the next one is whole: a kill in between loses nothing.
  unlink(fresh.c_str()); // whatever it is
  out = std::fopen(fresh.c_str(), "wx");
  if (!out)
    return;
  std::fputs(head().c_str(), out);
  for (const std::string &line : lines)
    std::fputs(line.c_str(), out);
  if (std::fflush(out) == 0 && !std::ferror(out) && rename(fresh.c_str(), journal.c_str()) == 0)
    return;
  std::fclose(out);
  out = nullptr;
  unlink(fresh.c_str());
  unlink(journal.c_str()); // it would not know of what is written from here on
}

void Unfinished::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state->state, bytes.data(), bytes.size());
}

void Unfinished::close(const StoredWeight &weight) {
  uint64_t hash = XXH3_64bits_digest(&state->state);
  XXH3_64bits_reset(&state->state);
  if (out) {
    std::fputs(line(next, weight, hash).c_str(), out);
    std::fflush(out);
  }
  ++next;
}

} // namespace otf
