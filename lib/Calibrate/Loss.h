// SPDX-License-Identifier: Apache-2.0
//
// How far a model's outputs are from what they were.
#ifndef OTF_LIB_CALIBRATE_LOSS_H
#define OTF_LIB_CALIBRATE_LOSS_H

#include "runtime/CPU/Team.h"
#include "runtime/Session.h"

#include <memory>
#include <vector>

namespace otf {

class Loss {
public:
  /// `isText`: KL of next-token distributions, in nats a token, where the plan has logits. Else,
  /// and for all other models, the squared error of all f32 outputs relative to their squares.
  static runtime::Result<std::unique_ptr<Loss>> create(runtime::Session &session, bool isText,
                                                       unsigned threads);

  /// "kl" or "error".
  const char *measure() const { return logits ? "kl" : "error"; }
  /// Keeps the outputs of the run that has just ended: of sample 0, 1, ….
  runtime::Status remember();
  /// Adds to the loss what the run that has just ended says about sample `index`.
  runtime::Status add(size_t index);
  /// The mean over what was added, which is forgotten. Infinite where some output is not finite.
  double take();

private:
  explicit Loss(runtime::Session &session) : session(session) {}
  runtime::Status read(std::vector<std::vector<float>> &outputs);

  runtime::Session &session;
  std::optional<size_t> logits;
  std::unique_ptr<runtime::Team> team;
  std::vector<std::vector<std::vector<float>>> samples; // outputs of each
  double sum = 0, count = 0;
};

} // namespace otf

#endif // OTF_LIB_CALIBRATE_LOSS_H
