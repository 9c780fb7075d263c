// SPDX-License-Identifier: Apache-2.0
//
// Driver for tokenizer_oracle.py. Without an option, prints the ids of a text
// file on one line. With --records, the file is a list of texts that end in a
// NUL byte, and each gets a line of its own. --special adds what the
// post-processor asks for. With --decode, the file holds ids and the text is
// printed; --special then leaves special tokens out.
#include "runtime/Text/Tokenizer.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace {

bool readFile(const char *path, std::string &content) {
  std::ifstream file(path, std::ios::binary);
  content.assign(std::istreambuf_iterator<char>(file), {});
  return file.good() || file.eof();
}

bool printIds(const otf::text::Tokenizer &tokenizer, std::string_view text,
              bool addSpecial) {
  auto ids = tokenizer.encode(text, addSpecial);
  if (!ids) {
    std::fprintf(stderr, "%s\n", ids.error().message.c_str());
    return false;
  }
  for (int32_t id : *ids)
    std::printf("%d ", id);
  std::printf("\n");
  return true;
}

} // namespace

int main(int argc, char **argv) {
  std::string json, text;
  if (argc < 3 || !readFile(argv[1], json) || !readFile(argv[2], text)) {
    std::fprintf(stderr, "usage: tokenize-main tokenizer.json file "
                         "[--records] [--special] [--decode]\n");
    return 2;
  }
  bool records = false, special = false, decode = false;
  for (int i = 3; i < argc; ++i) {
    std::string_view option = argv[i];
    records |= option == "--records";
    special |= option == "--special";
    decode |= option == "--decode";
  }

  auto tokenizer = otf::text::Tokenizer::fromJson(json);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  if (decode) {
    std::istringstream stream(text);
    std::vector<int32_t> ids(std::istream_iterator<int32_t>(stream), {});
    std::string decoded = tokenizer->decode(ids, /*skipSpecial=*/special);
    std::fwrite(decoded.data(), 1, decoded.size(), stdout);
    return 0;
  }
  if (!records)
    return printIds(*tokenizer, text, special) ? 0 : 1;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == text.npos)
      end = text.size();
    if (!printIds(*tokenizer, std::string_view(text).substr(at, end - at),
                  special))
      return 1;
    at = end + 1;
  }
  return 0;
}
