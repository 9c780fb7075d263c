// SPDX-License-Identifier: Apache-2.0
//
// Driver for template_oracle.py: renders a template file for a conversation
// given as role content role content... and prints the prompt.
#include "runtime/Text/ChatTemplate.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: render-chat-main template 0|1 [role content]...\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<otf::text::ChatMessage> messages;
  for (int i = 3; i + 1 < argc; i += 2)
    messages.push_back({argv[i], argv[i + 1]});
  auto prompt = otf::text::renderChat(
      text, messages, std::string_view(argv[2]) == "1", "<s>", "</s>");
  if (!prompt) {
    std::fprintf(stderr, "%s\n", prompt.error().message.c_str());
    return 1;
  }
  std::fwrite(prompt->data(), 1, prompt->size(), stdout);
  return 0;
}
