// SPDX-License-Identifier: Apache-2.0
//
// Errors such as coding makes, in weights of a plan of floats.
//
// Problem: what an encoding costs a model is known when the model was coded in it, and there are as
// many of these as there are choices. Approach: codes leave errors of random sign and of a variance
// that the encoding has in closed form; error feedback shapes them as it does any (Feedback.h): e =
// z U⁻¹ with z independent. So one draw of z stands for every encoding.
#ifndef OTF_LIB_CALIBRATE_NOISE_H
#define OTF_LIB_CALIBRATE_NOISE_H

#include "lib/Encoding/Feedback.h"
#include "lib/Encoding/Rotation.h"
#include "runtime/PlanFile.h"

#include <memory>
#include <optional>

namespace otf {

/// A plan in memory that is a file's and may be written to: pages of it are no anonymous memory.
class WritablePlan {
public:
  /// Takes the file's name away, so a killed run leaves none.
  static runtime::Result<std::unique_ptr<WritablePlan>> open(const std::string &path);
  ~WritablePlan();

  const runtime::PlanFile &plan() const { return *file; }
  /// Null where the plan has no f32 matrix of that name.
  const runtime::WeightInfo *find(std::string_view weight) const;
  /// N × K floats, as tiles of plain encodings: [row / 8][column][row % 8], rows past N too.
  float *floats(const runtime::WeightInfo &weight) const;

private:
  WritablePlan() = default;
  void *mapping = nullptr;
  size_t bytes = 0;
  std::unique_ptr<runtime::PlanFile> file;
};

/// Zeros that are a nameless file's.
class ScratchFloats {
public:
  /// Beside `path`.
  static runtime::Result<std::unique_ptr<ScratchFloats>> create(const std::string &path,
                                                                size_t count);
  ~ScratchFloats();
  float *data() const { return static_cast<float *>(mapping); }

private:
  ScratchFloats() = default;
  void *mapping = nullptr;
  size_t bytes = 0;
};

/// How codes are chosen.
struct Rounding {
  const Feedback *feedback = nullptr; ///< null: the nearest
  const uint32_t *order = nullptr;    ///< of coding, as for Feedback::factor
  std::optional<Rotation> rotation;   ///< that the weight is coded in
};

/// Errors of an N × K weight, in the order of its floats: those of codes whose z has the variance 1
/// relative to the mean square of the row. The same for any number of threads. `seed` tells weights
/// apart.
void makeErrors(const runtime::WeightInfo &weight, const float *floats, const Rounding &rounding,
                uint64_t seed, unsigned threads, float *errors);

} // namespace otf

#endif // OTF_LIB_CALIBRATE_NOISE_H
