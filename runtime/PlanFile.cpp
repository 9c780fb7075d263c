// SPDX-License-Identifier: Apache-2.0
//
// The container: header, section table, padding and checksums. Every byte of the file is covered
// by a checksum or must be zero, so any change is found here. Sums are checked by comparing with
// what is left of the file, which cannot wrap.
#include "runtime/PlanFile.h"

#include "runtime/RegularFile.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace otf::runtime {

using plan::FileHeader;
using plan::SectionEntry;
using plan::SectionKind;

size_t elementSize(ElementType type) {
  static constexpr uint8_t sizes[kElementTypes] = {4, 2, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8,
                                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  return sizes[unsigned(type)];
}

const char *elementName(ElementType type) {
  static constexpr const char *names[kElementTypes] = {
      "f32",      "f16",        "bf16",   "f64",        "i8",     "u8",     "i16", "u16",
      "i32",      "u32",        "i64",    "u64",        "bool",   "f8e4m3fn", "f8e4m3fnuz", "f8e5m2",
      "f8e5m2fnuz", "f8e8m0",   "f4e2m1", "i4",         "u4",     "i2",     "u2"};
  return names[unsigned(type)];
}

Result<std::unique_ptr<PlanFile>> PlanFile::open(const std::string &path) {
  Result<RegularFile> opened = RegularFile::open(path);
  if (!opened.ok())
    return opened.status();
  size_t size = size_t(opened.value().size());
  void *mapping =
      size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.value().descriptor(), 0) : nullptr;
  if (mapping == MAP_FAILED)
    return deviceError("cannot be mapped (", std::strerror(errno), ")");
  std::unique_ptr<PlanFile> plan(new PlanFile);
  plan->mapping = mapping;
  plan->file = {static_cast<const std::byte *>(mapping), size};
  OTF_TRY(plan->readContainer());
  OTF_TRY(plan->readMetadata(plan->section(SectionKind::metadata)));
  return plan;
}

Result<std::unique_ptr<PlanFile>> PlanFile::read(Bytes file) {
  std::unique_ptr<PlanFile> plan(new PlanFile);
  plan->file = file;
  OTF_TRY(plan->readContainer());
  OTF_TRY(plan->readMetadata(plan->section(SectionKind::metadata)));
  return plan;
}

PlanFile::~PlanFile() {
  if (mapping)
    munmap(mapping, file.size());
}

Bytes PlanFile::section(SectionKind kind) const {
  for (const Section &s : sections)
    if (s.kind == kind)
      return s.bytes;
  return {};
}

const ProgramInfo *PlanFile::program(std::string_view target) const {
  for (const ProgramInfo &p : programs)
    if (p.target == target)
      return &p;
  return nullptr;
}

static Status damaged(std::string_view what) {
  return badInput("damaged plan: ", what, " (compile the model again or copy the file again)");
}

static bool allZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte(0); });
}

Status PlanFile::readContainer() {
  FileHeader header;
  if (file.size() < sizeof header)
    return badInput(file.empty() ? "the file is empty" : "cut or not a plan: the file has only ",
                    file.empty() ? "" : cat(file.size(), " bytes"),
                    " (a plan begins with a header of 32 bytes)");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, plan::kMagic, sizeof header.magic) != 0)
    return badInput(std::memcmp(header.magic, plan::kMagic, 7) == 0
                        ? "damaged plan: line ends were changed (copy the file in binary mode)"
                        : "not a plan (expected a file that otf-compile wrote)");
  if (header.version > plan::kFormatVersion)
    return badInput("plan format ", header.version, ", this program reads up to ",
                    plan::kFormatVersion, " (use a newer otf-exec, or compile the model again)");
  if (header.version == 0)
    return damaged("format version 0");
  if (header.fileSize > file.size())
    return badInput("cut plan: the file has ", file.size(), " bytes of ", header.fileSize,
                    " (copy it again)");
  if (header.fileSize < file.size())
    return damaged(cat("the file has ", file.size(), " bytes, its header says ", header.fileSize));
  // One of each kind at most: a table of a hostile length is not worth reading.
  if (header.sectionCount > uint32_t(SectionKind::report))
    return damaged(cat(header.sectionCount, " sections"));
  if (header.sectionCount > (file.size() - sizeof header) / sizeof(SectionEntry))
    return damaged("the section table does not fit in the file");

  size_t tableBytes = header.sectionCount * sizeof(SectionEntry);
  std::vector<std::byte> covered(offsetof(FileHeader, checksum) + tableBytes);
  std::memcpy(covered.data(), file.data(), offsetof(FileHeader, checksum));
  if (tableBytes)
    std::memcpy(covered.data() + offsetof(FileHeader, checksum), file.data() + sizeof header,
                tableBytes);
  if (XXH3_64bits(covered.data(), covered.size()) != header.checksum)
    return damaged("the header's checksum is wrong");

  uint64_t end = sizeof header + tableBytes; // of what was read so far
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, file.data() + sizeof header + i * sizeof entry, sizeof entry);
    if (entry.kind < uint32_t(SectionKind::metadata) || entry.kind > uint32_t(SectionKind::report))
      return damaged(cat("section ", i, " has unknown kind ", entry.kind));
    if (entry.zero0 != 0 || entry.zero1 != 0)
      return damaged(cat("section ", i, " uses a reserved field"));
    if (entry.offset % plan::kSectionAlignment != 0 || entry.offset < end ||
        entry.offset > file.size() || entry.size > file.size() - entry.offset)
      return damaged(cat("section ", i, " lies outside the file or over another"));
    for (const Section &other : sections)
      if (uint32_t(other.kind) == entry.kind)
        return damaged(cat("two sections of kind ", entry.kind));
    if (!allZero(file.subspan(end, entry.offset - end)))
      return damaged(cat("bytes before section ", i, " are not zero"));
    Bytes bytes = file.subspan(entry.offset, entry.size);
    if (XXH3_64bits(bytes.data(), bytes.size()) != entry.checksum)
      return damaged(cat("the checksum of section ", i, " (kind ", entry.kind, ") is wrong"));
    sections.push_back({SectionKind(entry.kind), bytes});
    end = entry.offset + entry.size;
  }
  if (!allZero(file.subspan(end)))
    return damaged("bytes after the last section are not zero");
  for (SectionKind kind : {SectionKind::metadata, SectionKind::weights})
    if (std::none_of(sections.begin(), sections.end(), [&](auto &s) { return s.kind == kind; }))
      return damaged(kind == SectionKind::metadata ? "no metadata section" : "no weight section");
  return {};
}

} // namespace otf::runtime
