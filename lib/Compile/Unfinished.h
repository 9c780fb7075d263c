// SPDX-License-Identifier: Apache-2.0
//
// What a compilation leaves behind when it is killed, and how the next one goes on (`otf-compile --resume`).
//
// Encoding takes nearly all the time, so weights are what is kept. They are written to PLAN.unfinished, the plan as far as it is
// known (its first page is still empty), and PLAN.unfinished.journal says what they are worth. It is text:
//
//   otf-unfinished-1
//   compiler HASH          of everything that decides the bytes, a line each
//   model HASH
//   recipe HASH
//   statistics HASH
//   weights HASH
//   0 E H A B L GRID       weight 0 ends at byte E of the section, H is the XXH3 of its bytes, and the rest is for the report:
//   1 ...                  squares of the weight and of its error and what a low rank leaves in hexadecimal, and words about its grid
//
// Going on begins another journal, which takes the place of the one that was read when it holds as much. A line is written after its bytes. Bytes whose hash is not that of the line count as not written, and so does a line without an end.
#ifndef OTF_LIB_COMPILE_UNFINISHED_H
#define OTF_LIB_COMPILE_UNFINISHED_H

#include "lib/Compile/StreamEncoder.h"

#include <cstdio>
#include <memory>

namespace otf {

class Unfinished {
public:
  struct Identity {
    std::string what; ///< "model"
    uint64_t hash = 0;
  };
  static uint64_t hash(llvm::StringRef text);
  /// "name size time" of a file, as text to be hashed.
  static std::string describeFile(const std::string &path);

  /// Where the bytes of `plan` lie until it is whole.
  static std::string fileOf(const std::string &plan) { return plan + ".unfinished"; }

  Unfinished(const std::string &plan, std::vector<Identity> identity);
  /// Removes the files, unless keep() was called; the journal alone after finish().
  ~Unfinished();

  /// Reads the journal and says in `done` how many weights are there, which it makes `weights` know. Returns one clause if they are
  /// of another compilation.
  std::string read(StreamEncoder &weights, size_t &done);
  /// Begins a journal, or goes on with the one that was read.
  void begin(const StreamEncoder &weights, size_t done);
  void keep() { kept = true; }
  /// The other file has become the plan.
  void finish() { finished = true; }

  /// Bytes of the weight at hand, and then that it is complete (and in the file).
  void add(std::span<const std::byte> bytes);
  void close(const StoredWeight &weight);

private:
  std::string head() const;
  static std::string line(size_t weight, const StoredWeight &stored, uint64_t hash);

  std::string data, journal, fresh; ///< fresh: the next journal until it is whole
  std::vector<Identity> identity;
  std::vector<std::string> lines; ///< of weights that are done
  size_t next = 0;
  bool kept = false, finished = false;
  std::FILE *out = nullptr;
  struct Hash;
  std::unique_ptr<Hash> state;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_UNFINISHED_H
