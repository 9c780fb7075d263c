// SPDX-License-Identifier: Apache-2.0
//
// All of the file is allocated before it is mapped: a full disk is then an error here, and not a signal in a kernel. The header comes
// first and says at its end which weights are there, so room for the longest header is kept and filled with spaces, as safetensors allows.
#include "lib/Calibrate/Sidecar.h"

#include "dialects/OTF/Observed.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf {

using runtime::badInput;
using runtime::ElementType;
using runtime::Status;
using Json = nlohmann::ordered_json;

// Metadata beside the list of weights: a few names and hashes.
static constexpr uint64_t kMetadataRoom = 8192;

static const char *typeName(ElementType type) { return type == ElementType::f32 ? "F32" : type == ElementType::f64 ? "F64" : "I64"; }

std::string Sidecar::header(const std::map<std::string, std::string> &metadata) const {
  Json json, names = Json::object();
  for (const auto &[weight, set] : weights)
    if (!left.count(set))
      names[weight] = set;
  for (const auto &[key, value] : metadata)
    json["__metadata__"][key] = value;
  json["__metadata__"]["weights"] = names.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const std::string &name : order) {
    const Tensor &tensor = tensors.at(name);
    json[name] = {{"dtype", typeName(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

runtime::Result<std::unique_ptr<Sidecar>> Sidecar::create(const std::string &output, const runtime::PlanFile &plan,
                                                          const std::map<std::string, std::string> &weights) {
  std::unique_ptr<Sidecar> sidecar(new Sidecar);
  Sidecar &s = *sidecar;
  s.output = output;
  s.weights = weights;
  size_t slash = output.rfind('/');
  s.folder = slash == std::string::npos ? "." : slash == 0 ? "/" : output.substr(0, slash);
  std::map<std::string, bool> sets;
  for (const auto &[weight, set] : weights)
    sets[set] = true;
  uint64_t dataBytes = 0;
  // Elements of 8 bytes first, so that all are aligned without holes.
  for (bool wide : {true, false})
    for (const runtime::TensorInfo &input : plan.inputs) {
      size_t at = input.name.rfind('/');
      if (at == std::string_view::npos || !sets.count(std::string(input.name.substr(0, at))) || (runtime::elementSize(input.type) == 8) != wide)
        continue;
      Tensor tensor{input.type, {}, dataBytes, 0};
      for (runtime::SizeId id : input.shape)
        tensor.shape.push_back(plan.sizes[id].empty() ? 0 : plan.sizes[id][0].coefficient);
      std::optional<int64_t> bytes = runtime::byteCount(input.type, tensor.shape);
      if (!bytes || __builtin_add_overflow(dataBytes, uint64_t(*bytes), &dataBytes))
        return badInput(output, ": the statistics would be too large");
      tensor.bytes = uint64_t(*bytes);
      s.order.push_back(std::string(input.name));
      s.tensors.emplace(s.order.back(), std::move(tensor));
    }
  s.headerBytes = (8 + s.header({}).size() + kMetadataRoom + 63) / 64 * 64;
  s.fileBytes = s.headerBytes + dataBytes;

  auto fail = [&](const char *what, int error) {
    return badInput(output, ": ", what, " (", std::strerror(error), "; ", s.fileBytes, " bytes are needed; name another file with --calibration-out)");
  };
  struct stat status;
  if (output.empty() || output.back() == '/' || (stat(output.c_str(), &status) == 0 && !S_ISREG(status.st_mode)))
    return badInput(output, ": is not the name of a regular file (name one with --calibration-out)");
  s.file = open(s.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (s.file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) { // a file system without unnamed files
    s.temporary = output + "." + std::to_string(getpid()) + ".tmp";
    s.file = open(s.temporary.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  }
  if (s.file < 0) {
    s.temporary.clear();
    return fail("the statistics cannot be created", errno);
  }
  if (int error = posix_fallocate(s.file, 0, off_t(s.fileBytes)))
    return fail("there is no room for the statistics", error);
  void *mapped = mmap(nullptr, s.fileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, s.file, 0);
  if (mapped == MAP_FAILED)
    return fail("the statistics cannot be mapped", errno);
  s.mapping = static_cast<std::byte *>(mapped);
  return sidecar;
}

Sidecar::~Sidecar() {
  if (mapping)
    munmap(mapping, fileBytes);
  if (file >= 0)
    close(file);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

Status Sidecar::lendTo(runtime::Session &session) const {
  for (const auto &[name, tensor] : tensors)
    OTF_TRY(session.lendInput(name, {tensor.type, tensor.shape, data(tensor)}, data(tensor)));
  return {};
}

/// Whether a set is of no weight.
static bool isOther(llvm::StringRef set) { return set.starts_with(kCacheSet) || set.starts_with(kExpertsSet); }

std::pair<std::string, int64_t> Sidecar::findNonfinite(bool last) const {
  auto found = findNonfinite(last, /*others=*/false); // what a cache gets is made of what a weight gives
  return found.first.empty() ? findNonfinite(last, /*others=*/true) : found;
}

std::pair<std::string, int64_t> Sidecar::findNonfinite(bool last, bool others) const {
  for (const auto &[name, tensor] : tensors) {
    size_t at = name.rfind('/');
    std::string set = name.substr(0, at), part = name.substr(at + 1);
    if (left.count(set) || isOther(set) != others)
      continue;
    if (part == "moments") { // sums of |x| and of x²; a sum of x may vanish though its terms do not
      auto *values = reinterpret_cast<const double *>(data(tensor));
      int64_t k = tensor.shape[1];
      for (int64_t i = k; i < 3 * k; ++i)
        if (!std::isfinite(values[i]))
          return {set, i % k};
    } else if (part == "products" && last && tensor.bytes) {
      auto *values = reinterpret_cast<const float *>(data(tensor));
      for (int64_t i = 0, at = 0; at < tensor.shape[0]; at += ++i + 1) // the diagonal; none is larger
        if (!std::isfinite(values[at]))
          return {set, i};
    }
  }
  return {};
}

std::vector<std::string> Sidecar::weightsLeftOut() const {
  std::vector<std::string> names;
  for (const auto &[weight, set] : weights)
    if (!isOther(set) && left.count(set))
      names.push_back(weight);
  return names;
}

int64_t Sidecar::widest() const {
  int64_t widest = 0;
  for (const auto &[name, tensor] : tensors)
    if (name.ends_with("/moments") && tensors.at(name.substr(0, name.size() - 7) + "products").bytes)
      widest = std::max(widest, tensor.shape[1]);
  return widest;
}

Status Sidecar::finish(std::map<std::string, std::string> metadata) {
  std::string text = header(metadata);
  if (8 + text.size() > headerBytes)
    return badInput(output, ": its description does not fit (this is a bug of otf-compile)");
  text.resize(headerBytes - 8, ' ');
  uint64_t length = text.size();
  std::memcpy(mapping, &length, 8); // little-endian, as all machines that this runs on are
  std::memcpy(mapping + 8, text.data(), text.size());
  auto fail = [&](const char *what) { return badInput(output, ": ", what, " (", std::strerror(errno), ")"); };
  if (msync(mapping, fileBytes, MS_SYNC) != 0 || fsync(file) != 0)
    return fail("the statistics cannot be written");
  // An unnamed file cannot replace a name at once: it has a temporary one for a moment.
  if (temporary.empty()) {
    std::string name = output + "." + std::to_string(getpid()) + ".tmp", self = "/proc/self/fd/" + std::to_string(file);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return fail("the statistics cannot be given their name");
    temporary = name;
  }
  if (rename(temporary.c_str(), output.c_str()) != 0)
    return fail("the statistics cannot be given their name");
  temporary.clear();
  return {};
}

} // namespace otf
