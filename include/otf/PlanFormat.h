// SPDX-License-Identifier: Apache-2.0
//
// The container around plan.fbs. All integers are little-endian.
//
//   offset  size  field
//        0     8  magic "OTFPLAN\n": a text-mode transfer damages it visibly
//        8     4  format version, now 1. A reader refuses a newer one.
//       12     4  number of sections
//       16     8  total file size in bytes: a cut file is told apart from a damaged one
//       24     8  XXH3-64 of bytes 0..23 followed by the section table
//       32  40*n  section table
//   then each section at a multiple of 4096, in table order, zero-filled between.
//
// A section table entry:
//        0     4  kind (SectionKind)
//        4     4  zero
//        8     8  offset from the start of the file
//       16     8  size in bytes, without padding
//       24     8  XXH3-64 of the content
//       32     8  zero
#ifndef OTF_PLANFORMAT_H
#define OTF_PLANFORMAT_H

#include <cstdint>

namespace otf::plan {

inline constexpr char kMagic[8] = {'O', 'T', 'F', 'P', 'L', 'A', 'N', '\n'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint64_t kSectionAlignment = 4096;
/// Every weight starts at a multiple of this, so that a tile may be read with 64-byte vectors.
inline constexpr uint64_t kWeightAlignment = 64;

enum class SectionKind : uint32_t {
  metadata = 1,    // FlatBuffer of plan.fbs, exactly one
  weights = 2,     // encoded weights, exactly one
  objects = 3,     // shared objects of the CPU program, one after another
  cudaSource = 4,  // one translation unit with every kernel, all headers inlined
  cubins = 5,      // one after another
  tokenizer = 6,   // tokenizer.json as found beside the model
  recipe = 7,      // the recipe as --print-recipe writes it
  report = 8,      // report.json
};

struct SectionEntry {
  uint32_t kind;
  uint32_t zero0;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;
  uint64_t zero1;
};
static_assert(sizeof(SectionEntry) == 40);

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount;
  uint64_t fileSize;
  uint64_t checksum;
};
static_assert(sizeof(FileHeader) == 32);

} // namespace otf::plan

#endif // OTF_PLANFORMAT_H
