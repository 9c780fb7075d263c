// SPDX-License-Identifier: Apache-2.0
//
// What --calibrate names: a text, the built-in text, or a folder of arrays.
#ifndef OTF_LIB_CALIBRATE_SOURCE_H
#define OTF_LIB_CALIBRATE_SOURCE_H

#include "runtime/Status.h"

#include <string>
#include <string_view>

namespace otf {

struct Source {
  std::string folder;         ///< of .npy files; empty: it is a text
  std::string text, textName; ///< textName: in words and errors
  std::string
      settings; ///< a hash of `purpose` and all that is read, so that equal runs are known again

  /// `name`: a file, a folder, or "default". `purpose`: what else a result depends on.
  static runtime::Result<Source> read(const std::string &name, std::string_view purpose);
};

} // namespace otf

#endif // OTF_LIB_CALIBRATE_SOURCE_H
