// SPDX-License-Identifier: Apache-2.0
//
// Machine code of sources that were compiled before, in files of this user. The name of a file is
// the hash of everything that decides its content (source with all headers inlined, options,
// architecture, version of NVRTC), so an entry never goes stale; its checksum is verified when it
// is read, and a damaged entry is compiled again. Files are written under another name and renamed,
// so that two processes may fill the cache at once.
//
//   file  8 bytes "OTFCUBIN", 8 bytes XXH3-64 of the rest, cubin
//
// Directory: $OTF_JIT_CACHE, else $XDG_CACHE_HOME/otf, else ~/.cache/otf; mode 0700, and not used
// when it belongs to someone else. "off" in OTF_JIT_CACHE turns it off; OTF_JIT_ONLY_CACHED=1 makes
// a miss an error.
#ifndef OTF_RUNTIME_CUDA_JITCACHE_H
#define OTF_RUNTIME_CUDA_JITCACHE_H

#include "runtime/CUDA/Nvrtc.h"

namespace otf::runtime {

class JitCache {
public:
  /// Never fails: without a usable directory nothing is found and nothing is kept.
  JitCache();
  /// In this directory, for tests.
  explicit JitCache(std::string directory);

  /// The cubin of `source`, from the cache or from NVRTC. NVRTC is loaded either way, because its
  /// version is in the key: 6 ms. `fromCache`, if not null, says where it came from.
  Result<std::vector<char>> get(const std::string &source, const std::string &architecture,
                                std::span<const std::string> options, bool *fromCache = nullptr);

  const std::string &directory() const { return directory_; }
  /// Name of an entry in the directory.
  static std::string key(const std::string &source, const std::string &architecture,
                         std::span<const std::string> options, int major, int minor);

private:
  bool prepare();
  bool read(const std::string &name, std::vector<char> &cubin) const;
  void write(const std::string &name, const std::vector<char> &cubin) const;
  std::string directory_;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_CUDA_JITCACHE_H
