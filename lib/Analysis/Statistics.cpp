// SPDX-License-Identifier: Apache-2.0
//
// Every number of the header is checked before anything is read by it: the file may be anybody's.

#include "lib/Analysis/Statistics.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

namespace otf {

using Json = nlohmann::json;

namespace {

/// A header is names and numbers of some thousand tensors.
constexpr uint64_t kMostHeader = 64 << 20;
/// Of channels: products of more would not fit in 64 bits of bytes, and no model has them.
constexpr uint64_t kMostChannels = uint64_t(1) << 30;

struct Tensor {
  std::string type;
  std::vector<uint64_t> shape;
  llvm::StringRef bytes;
};

/// The tensors of a file and its metadata. The first complaint stays.
class Header {
public:
  explicit Header(llvm::StringRef file) : file(file) {}

  std::string complaint;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  void complain(const llvm::Twine &what) {
    if (complaint.empty())
      complaint = what.str();
  }
  void read();

private:
  void tensor(const std::string &name, const Json &json, llvm::StringRef data);

  llvm::StringRef file;
};

void Header::read() {
  if (file.size() < 8)
    return complain("is no safetensors file: it ends within its first 8 bytes");
  uint64_t length = llvm::support::endian::read64le(file.data());
  if (length > kMostHeader || length > file.size() - 8)
    return complain("is no safetensors file: it has " + llvm::Twine(file.size()) + " bytes and says that its header takes " + llvm::Twine(length));
  llvm::StringRef text = file.substr(8, length), data = file.substr(8 + length);
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object())
    return complain("is no safetensors file: its header is no JSON object");
  for (const auto &[name, value] : json.items()) {
    if (name != "__metadata__") {
      tensor(name, value, data);
      continue;
    }
    if (!value.is_object())
      return complain("has metadata that is no JSON object");
    for (const auto &[key, text] : value.items())
      if (text.is_string())
        metadata[key] = text.get<std::string>();
  }
}

void Header::tensor(const std::string &name, const Json &json, llvm::StringRef data) {
  auto isNumbers = [](const Json &list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json &n) { return n.is_number_unsigned(); });
  };
  auto bad = [&](const llvm::Twine &what) { complain("tensor '" + llvm::Twine(name) + "' " + what); };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() || !json.contains("shape") ||
      !isNumbers(json["shape"]) || !json.contains("data_offsets") || !isNumbers(json["data_offsets"]) ||
      json["data_offsets"].size() != 2)
    return bad("has no dtype, shape and data_offsets as safetensors has them");
  Tensor tensor;
  tensor.type = json["dtype"].get<std::string>();
  tensor.shape = json["shape"].get<std::vector<uint64_t>>();
  uint64_t begin = json["data_offsets"][0], end = json["data_offsets"][1];
  uint64_t size = tensor.type == "F32" ? 4 : tensor.type == "F64" || tensor.type == "I64" ? 8 : 0;
  if (size == 0)
    return bad("is of type " + llvm::Twine(tensor.type) + ", and statistics are F32, F64 or I64");
  if (begin > end || end > data.size())
    return bad("lies in bytes " + llvm::Twine(begin) + " to " + llvm::Twine(end) + ", and the file has " + llvm::Twine(data.size()) +
               " bytes of tensors (was it cut?)");
  tensor.bytes = data.slice(begin, end);
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % size != 0)
    return bad("is not aligned to its elements");
  uint64_t expected = size;
  for (uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(expected, extent, &expected))
      return bad("has a shape that is too large");
  if (expected != end - begin)
    return bad("has " + llvm::Twine(end - begin) + " bytes, and its shape needs " + llvm::Twine(expected));
  tensors.emplace(name, std::move(tensor));
}

template <typename T> llvm::ArrayRef<T> elements(const Tensor &tensor) {
  return {reinterpret_cast<const T *>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

/// The set `name`, or a complaint.
ChannelStatistics readSet(Header &header, const std::string &name) {
  ChannelStatistics set;
  auto find = [&](const char *part, const char *type) -> const Tensor * {
    auto found = header.tensors.find(name + "/" + part);
    if (found != header.tensors.end() && found->second.type == type)
      return &found->second;
    header.complain("has no tensor '" + llvm::Twine(name) + "/" + part + "' of type " + type);
    return nullptr;
  };
  const Tensor *rows = find("rows", "I64"), *moments = find("moments", "F64"), *histogram = find("histogram", "I64"),
               *products = find("products", "F32");
  if (!rows || !moments || !histogram || !products)
    return set;
  auto bad = [&](const llvm::Twine &what) { header.complain("the statistics of '" + llvm::Twine(name) + "' " + what); };
  if (rows->shape != std::vector<uint64_t>{1} || moments->shape.size() != 2 || moments->shape[0] != 5 || moments->shape[1] > kMostChannels ||
      histogram->shape != std::vector<uint64_t>{uint64_t(kHistogramBins)} || products->shape.size() != 1) {
    bad("have other shapes than rows [1], moments [5, K], histogram [4096] and products [K (K+1) / 2]");
    return set;
  }
  uint64_t k = moments->shape[1];
  if (products->shape[0] != 0 && products->shape[0] != k * (k + 1) / 2) {
    bad("have " + llvm::Twine(products->shape[0]) + " products of " + llvm::Twine(k) + " channels, where " +
        llvm::Twine(k * (k + 1) / 2) + " or none were expected");
    return set;
  }
  set.channels = int64_t(k);
  set.rows = elements<int64_t>(*rows)[0];
  llvm::ArrayRef<double> all = elements<double>(*moments);
  set.sums = all.slice(0, k);
  set.absoluteSums = all.slice(k, k);
  set.squareSums = all.slice(2 * k, k);
  set.least = all.slice(3 * k, k);
  set.largest = all.slice(4 * k, k);
  set.histogram = elements<int64_t>(*histogram);
  set.products = elements<float>(*products);
  if (set.rows < 1)
    bad("count " + llvm::Twine(set.rows) + " rows (calibrate again)");
  if (!llvm::all_of(set.squareSums, [](double x) { return x >= 0; })) // that are NaN too
    bad("are NaN (calibrate again)");
  if (!llvm::all_of(set.histogram, [](int64_t n) { return n >= 0; }))
    bad("count a negative number of values");
  return set;
}

} // namespace

bool Statistics::isStatistics(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) || !llvm::sys::fs::is_regular_file(status) || status.getSize() < 10)
    return false;
  auto begin = llvm::MemoryBuffer::getFileSlice(path, 10, 0);
  if (!begin)
    return false;
  llvm::StringRef bytes = (*begin)->getBuffer();
  return bytes.size() == 10 && llvm::support::endian::read64le(bytes.data()) <= kMostHeader && bytes.substr(8) == "{\"";
}

llvm::Expected<Statistics> Statistics::open(llvm::StringRef path) {
  auto fail = [&](const llvm::Twine &what) { return llvm::createStringError(path + ": " + what); };
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return fail("the statistics cannot be read (" + error.message() + "; make them with --calibrate)");
  if (!llvm::sys::fs::is_regular_file(status))
    return fail("is no file of statistics (give what --calibrate wrote)");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail("the statistics cannot be read (" + buffer.getError().message() + ")");
  Statistics result;
  result.name = path.str();
  result.file = std::move(*buffer);
  Header header(result.file->getBuffer());
  header.read();
  if (!header.complaint.empty())
    return fail(header.complaint + " (calibrate again)");
  if (header.metadata["format"] != kStatisticsFormat)
    return fail("is no file of statistics: its metadata has no \"format\" of \"" + kStatisticsFormat +
                "\" (give what --calibrate wrote)");
  result.modelKey = header.metadata["model"];
  result.sourceWords = header.metadata["source"];
  result.settingsKey = header.metadata["settings"];
  Json names = Json::parse(header.metadata["weights"], nullptr, false);
  if (!names.is_object())
    return fail("its metadata does not say which weights it is about (calibrate again)");
  llvm::StringMap<const ChannelStatistics *> byName;
  for (const auto &[weight, set] : names.items()) {
    if (!set.is_string())
      return fail("its metadata gives weight '" + llvm::Twine(weight) + "' no name of a set (calibrate again)");
    const std::string &name = set.get_ref<const std::string &>();
    const ChannelStatistics *&statistics = byName[name];
    if (!statistics) {
      result.sets.push_back(readSet(header, name));
      statistics = &result.sets.back();
    }
    if (!header.complaint.empty())
      return fail(header.complaint + (llvm::StringRef(header.complaint).contains("(calibrate") ? "" : " (calibrate again)"));
    result.weights[weight] = statistics;
  }
  return result;
}

std::vector<std::string> Statistics::namesOf(llvm::StringRef prefix) const {
  std::vector<std::string> names;
  for (const auto &entry : weights)
    if (entry.getKey().starts_with(prefix))
      names.push_back(entry.getKey().str());
  llvm::sort(names);
  return names;
}

const ChannelStatistics *Statistics::find(llvm::StringRef weight) const {
  auto found = weights.find(weight);
  return found == weights.end() ? nullptr : found->second;
}

} // namespace otf
