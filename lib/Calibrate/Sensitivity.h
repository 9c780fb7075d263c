// SPDX-License-Identifier: Apache-2.0
//
// Measures for recipes that choose among encodings what a model loses where one weight has errors
// (lib/Analysis/Sensitivities.h): a plan of floats is run on a few samples, each time with errors
// in another weight.
#ifndef OTF_LIB_CALIBRATE_SENSITIVITY_H
#define OTF_LIB_CALIBRATE_SENSITIVITY_H

#include "lib/Compile/Compile.h"

namespace otf {

struct SensitivityOptions {
  std::string model, source;
  Recipe recipe;          ///< whose rounding makes the errors
  std::string statistics; ///< for rounding with feedback
  std::string output;     ///< empty: defaultSensitivities()
  unsigned threads = 2;
  bool allowNonfinite = false; ///< as CompileOptions has it
};

/// Makes the file and says so, unless there is one of the same model, source and rounding. `made`
/// is its path. Errors are printed as by compile(); then nothing has been changed.
CompileStatus measureSensitivities(const SensitivityOptions &options, std::string &made);

} // namespace otf

#endif // OTF_LIB_CALIBRATE_SENSITIVITY_H
