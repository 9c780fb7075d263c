// SPDX-License-Identifier: Apache-2.0
//
// `otf-compile --calibrate`: an instrumented f32 plan of the model is made, run on the CPU on samples, and what its observers add up
// becomes a file of statistics (lib/Analysis/Statistics.h). The statistics are the file: the plan adds to its mapped pages, so
// memory does not grow with the number or width of linears, and no activation is stored anywhere. The file has no name before it
// is whole.
#ifndef OTF_LIB_CALIBRATE_CALIBRATE_H
#define OTF_LIB_CALIBRATE_CALIBRATE_H

#include "lib/Compile/Compile.h"

namespace otf {

struct CalibrationOptions {
  std::string model;
  /// A text file, a folder of .npy files, or "default": a text that is built in.
  std::string source;
  std::string output; ///< empty: defaultStatistics()
  int64_t tokens = 20480; ///< of a text: as many windows as hold them, spread over it
  int64_t window = 512;   ///< tokens that see each other
  unsigned threads = 2;
  bool allowNonfinite = false; ///< statistics that are NaN or infinite are left out, and not an error; so may weights be
};

/// Makes the file and says so, unless there is one of the same model, source and options. `made` is its path. Errors are printed as
/// by compile(); then nothing has been changed.
CompileStatus calibrate(const CalibrationOptions &options, std::string &made);

} // namespace otf

#endif // OTF_LIB_CALIBRATE_CALIBRATE_H
