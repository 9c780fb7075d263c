// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file is a Python dictionary with three known keys. This reads exactly the
// form that numpy writes, with any order and spacing.
#include "runtime/Npy.h"

#include "runtime/RegularFile.h"
#include "runtime/Session.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::runtime {
namespace {

/// Types that numpy lacks are bits to it, as those of ml_dtypes are: V1 and V2.
constexpr const char *kCodes[kElementTypes] = {
    "<f4", "<f2", "<V2", "<f8", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8",
    "|b1", "<V1", "<V1", "<V1", "<V1", "<V1", "<V1", "<V1", "<V1", "<V1", "<V1"};
constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMostAxes = 64;

class HeaderReader {
public:
  explicit HeaderReader(std::string_view text) : rest(text) {}

  Status read(NpyArray &array) {
    bool hasType = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return bad();
    while (!take('}')) {
      std::string_view key, type;
      if (!string(key) || !take(':'))
        return bad();
      if (key == "descr") {
        if (!string(type))
          return badInput("npy: structured types are not supported");
        OTF_TRY(setType(type, array));
        hasType = true;
      } else if (key == "fortran_order") {
        if (word("True"))
          return badInput("npy: column-major order is not supported "
                          "(save numpy.ascontiguousarray(x))");
        if (!word("False"))
          return bad();
        hasOrder = true;
      } else if (key == "shape") {
        if (!shape(array.shape))
          return bad();
        hasShape = true;
      } else {
        return bad();
      }
      take(',');
    }
    space();
    return hasType && hasOrder && hasShape && rest.empty() ? Status() : bad();
  }

private:
  static Status bad() { return badInput("npy: its header cannot be read (save it with numpy again)"); }

  void space() {
    while (!rest.empty() && std::strchr(" \t\r\n", rest[0]) && rest[0])
      rest.remove_prefix(1);
  }
  bool take(char c) {
    space();
    if (rest.empty() || rest[0] != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    space();
    if (rest.substr(0, w.size()) != w)
      return false;
    rest.remove_prefix(w.size());
    return true;
  }
  bool string(std::string_view &value) {
    space();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return false;
    size_t end = rest.find(rest[0], 1);
    if (end == rest.npos)
      return false;
    value = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool shape(std::vector<int64_t> &value) {
    if (!take('('))
      return false;
    while (!take(')')) {
      space();
      int64_t extent = -1;
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
      if (error != std::errc() || extent < 0 || value.size() == kMostAxes)
        return false;
      rest.remove_prefix(size_t(end - rest.data()));
      value.push_back(extent);
      if (!take(',') && (space(), rest.empty() || rest[0] != ')'))
        return false;
    }
    return true;
  }
  static Status setType(std::string_view code, NpyArray &array) {
    // One byte has no order, and '=' does not occur in files of numpy.
    auto same = [&](std::string_view known) {
      return known == code ||
             (known[2] == '1' && code.size() == 3 && code.substr(1) == known.substr(1));
    };
    array.isBits = same("<V1") || same("<f1") || same("<V2") || code == "|V2";
    if (array.isBits) { // ml_dtypes calls float8_e5m2 f1
      array.type = code[2] == '1' ? ElementType::u8 : ElementType::u16;
      return {};
    }
    for (unsigned i = 0; i < kElementTypes; ++i)
      if (same(kCodes[i])) {
        array.type = ElementType(i);
        return {};
      }
    return badInput("npy: elements of type '", code,
                    "' are not supported (little-endian integers, floats and bool are)");
  }

  std::string_view rest;
};

/// Everything but the elements, which begin at `begin`.
Status readHeader(Bytes file, NpyArray &array, size_t &begin) {
  std::string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  if (text.substr(0, kMagic.size()) != kMagic || text.size() < 10)
    return badInput("npy: not a .npy file (numpy.save writes one)");
  unsigned version = uint8_t(text[6]);
  if (version < 1 || version > 3)
    return badInput("npy: version ", version, ", expected 1 to 3");
  size_t sizeBytes = version == 1 ? 2 : 4, length = 0;
  if (text.size() < 8 + sizeBytes)
    return badInput("npy: the file is cut");
  for (size_t i = 0; i < sizeBytes; ++i)
    length |= size_t(uint8_t(text[8 + i])) << (8 * i);
  begin = 8 + sizeBytes;
  if (length > text.size() - begin)
    return badInput("npy: the file is cut");

  OTF_TRY(HeaderReader(text.substr(begin, length)).read(array));
  begin += length;
  Bytes data = file.subspan(begin);
  std::optional<int64_t> bytes = byteCount(array.type, array.shape);
  if (!bytes || uint64_t(*bytes) > data.size())
    return badInput("npy: the file is cut: ", data.size(), " bytes of data, its shape needs ",
                    bytes ? std::to_string(*bytes) : "more than 2^63");
  if (uint64_t(*bytes) < data.size())
    return badInput("npy: ", data.size(), " bytes of data, its shape needs ", *bytes);
  return {};
}

} // namespace

Result<NpyArray> parseNpy(Bytes file) {
  NpyArray array;
  size_t begin;
  OTF_TRY(readHeader(file, array, begin));
  array.bytes.assign(file.begin() + ptrdiff_t(begin), file.end());
  return array;
}

Result<NpyArray> readNpy(const std::string &path) {
  Result<RegularFile> file = RegularFile::open(path);
  if (!file.ok())
    return file.status();
  Result<std::vector<std::byte>> content = file.value().read();
  if (!content.ok())
    return content.status();
  NpyArray array;
  size_t begin;
  OTF_TRY(readHeader(content.value(), array, begin));
  array.bytes = std::move(content.value());
  array.bytes.erase(array.bytes.begin(), array.bytes.begin() + ptrdiff_t(begin));
  return array;
}

void NpyArray::readAs(ElementType wanted) {
  bool hasName = kCodes[unsigned(wanted)][1] != 'V';
  bool asBits = isBits || type == ElementType::u8 || type == ElementType::u16;
  if (!hasName && asBits && elementSize(wanted) == elementSize(type)) {
    type = wanted;
    isBits = false;
  }
}

Status writeNpy(const std::string &path, ElementType type, std::span<const int64_t> shape,
                const void *data) {
  std::string header = cat("{'descr': '", kCodes[unsigned(type)], "', 'fortran_order': False, ",
                           "'shape': (");
  for (size_t i = 0; i < shape.size(); ++i)
    header += cat(i ? " " : "", shape[i], ",");
  if (shape.size() > 1)
    header.pop_back();
  header += "), }";
  // Data begins at a multiple of 64; magic, version and length take 10 bytes.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {'\1', '\0', char(header.size() & 255), char(header.size() >> 8)};
  size_t bytes = size_t(byteCount(type, shape).value_or(0));

  // Without O_NONBLOCK a pipe that nobody reads would make us wait for ever.
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  FILE *file = fd < 0 || fcntl(fd, F_SETFL, 0) != 0 ? nullptr : fdopen(fd, "wb");
  if (!file) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    return badInput("cannot be created (", std::strerror(error), ")");
  }
  bool good = fwrite(start.data(), 1, start.size(), file) == start.size() &&
              fwrite(header.data(), 1, header.size(), file) == header.size() &&
              fwrite(data, 1, bytes, file) == bytes;
  struct stat status = {};
  bool isRegular = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode);
  if (fclose(file) != 0 || !good) {
    int error = errno;
    if (isRegular) // half an array helps nobody, but a device or a pipe is not ours to remove
      unlink(path.c_str());
    return badInput("cannot be written (", std::strerror(error), ")");
  }
  return {};
}

} // namespace otf::runtime
