// SPDX-License-Identifier: Apache-2.0
//
// A file of statistics while it is made: unnamed, mapped and written to by a plan.
#ifndef OTF_LIB_CALIBRATE_SIDECAR_H
#define OTF_LIB_CALIBRATE_SIDECAR_H

#include "runtime/PlanFile.h"
#include "runtime/Session.h"

#include <map>
#include <memory>
#include <string>

namespace otf {

class Sidecar {
public:
  /// Makes room for the statistics of `plan`, whose inputs "SET/…" they are for each set in `weights` (weight to set); zeros.
  /// `output` says in which folder.
  static runtime::Result<std::unique_ptr<Sidecar>> create(const std::string &output, const runtime::PlanFile &plan,
                                                          const std::map<std::string, std::string> &weights);
  ~Sidecar();

  /// Whether an input of the plan is memory of this file.
  bool owns(std::string_view input) const { return tensors.count(std::string(input)) != 0; }
  runtime::Status lendTo(runtime::Session &session) const;

  /// The first set that holds NaN or infinities, and the channel; sets that were left out are not looked at. `last` also looks at the
  /// products. Empty where there is none.
  std::pair<std::string, int64_t> findNonfinite(bool last) const;
  /// These statistics will not be in the file's list of weights.
  void leaveOut(const std::string &set) { left.insert({set, {}}); }
  /// Weights whose statistics were left out.
  std::vector<std::string> weightsLeftOut() const;
  /// Channels of the widest set that has products.
  int64_t widest() const;

  /// Writes the header and gives the file its name.
  runtime::Status finish(std::map<std::string, std::string> metadata);

private:
  struct Tensor {
    runtime::ElementType type;
    std::vector<int64_t> shape;
    uint64_t begin, bytes; // within the data
  };
  Sidecar() = default;
  std::pair<std::string, int64_t> findNonfinite(bool last, bool others) const;
  std::string header(const std::map<std::string, std::string> &metadata) const;
  std::byte *data(const Tensor &tensor) const { return mapping + headerBytes + tensor.begin; }

  std::string output, folder, temporary; // temporary: a name that goes with this object, or empty
  std::map<std::string, std::string> weights, left; // weight to set; sets that are left out
  std::map<std::string, Tensor> tensors;
  std::vector<std::string> order;
  uint64_t headerBytes = 0, fileBytes = 0;
  int file = -1;
  std::byte *mapping = nullptr;
};

} // namespace otf

#endif // OTF_LIB_CALIBRATE_SIDECAR_H
