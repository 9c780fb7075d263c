// SPDX-License-Identifier: Apache-2.0
//
// Damages a tokenizer.json and chat templates in thousands of small ways and
// runs them. There is nothing to compare: the point is that nothing crashes.
#include "TinyTokenizer.h"
#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/Tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using Random = std::mt19937_64;

const std::vector<std::string> templates = {
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != "
    "'system' %}{{ '<|im_start|>system\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>'}}{% endfor %}",
    "{%- set ns = namespace(i=0, l=[]) -%}{% for m in messages[::-1] if m.role "
    "is string %}{% set ns.i = ns.i + 1 %}{% set ns.l = ns.l + [m, ns.l] %}"
    "{{ m.content | trim | tojson ~ ns.i }}{% else %}none{% endfor %}",
    "{{ bos_token }}{% set a, b = ['x', {'k': [1, none, true]}] %}{{ b.items() "
    "| list }}{{ a.split('x', 1)[-1].strip('y') if a in 'xyz' else b['k'][1:] "
    "}}{# c #}{{ messages | selectattr('role', 'equalto', 'user') | "
    "map(attribute='content') | join(', ') | replace('a', 'bb') }}",
};

const std::vector<std::string> pieces = {
    "{{", "}}", "{%", "%}", "(", ")", "[", "]", "[::-1]", " not ", " is ", "|",
    " in ", "-9223372036854775807", "99999999", "'", "\\", "\xFF", "é", "null",
    "{}", "[]", "\"", ":", ",", "~", "+", "//0", "%", "*9", ".items()", "ns",
    "messages", "loop", "true", "-1", "ByteLevel", "Sequence", "Split",
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a|\\\\s)*\"}}",
};

void mutate(std::string &text, Random &random) {
  size_t count = 1 + (random() % 4 == 0);
  for (size_t i = 0; i < count; ++i) {
    size_t at = random() % (text.size() + 1);
    size_t length = std::min<size_t>(random() % 12, text.size() - at);
    switch (random() % 4) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, pieces[random() % pieces.size()]);
      break;
    case 2:
      text.insert(at, text.substr(random() % (text.size() + 1), length));
      break;
    default:
      text.insert(at, 1, static_cast<char>(random()));
    }
  }
}

/// Puts another value behind a random colon, so that the JSON stays valid.
void swapValue(std::string &json, Random &random) {
  static const std::vector<std::string> values = {
      "null", "true", "-1", "1e300", "\"\"", "\"a\"", "[]", "[[]]", "{}",
      "[\"a\", 1]", "\"Sequence\"", "\"Split\"", "{\"type\": \"ByteLevel\"}",
      "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
      "\"pattern\": {\"Regex\": \"(a|\\\\s)*\"}, \"behavior\": "
      "\"MergedWithNext\"}, {\"type\": \"ByteLevel\"}]}",
      "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, "
      "\"content\": \"<s>\"}"};
  size_t colon = json.find(": ", random() % json.size());
  if (colon == json.npos)
    return;
  size_t end = json.find_first_of(",}]", colon);
  if (end == json.npos)
    return;
  json.replace(colon + 2, end - colon - 2, values[random() % values.size()]);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
  Random random(1);
  int loaded = 0, rendered = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string json = otf::text::tinyTokenizerJson();
    // Damage in the long list of single bytes tells little.
    size_t vocab = json.find("\"vocab\""), merges = json.find("\"ab\"");
    std::string head = json.substr(0, vocab), tail = json.substr(merges);
    std::string &part = random() % 2 ? head : tail;
    if (random() % 4)
      swapValue(part, random);
    else
      mutate(part, random);
    auto tokenizer = otf::text::Tokenizer::fromJson(
        head + json.substr(vocab, merges - vocab) + tail);
    std::string text = "abc <s>x </s> 12\xFF 你";
    mutate(text, random);
    if (tokenizer) {
      ++loaded;
      if (auto ids = tokenizer->encode(text, true))
        tokenizer->decode(*ids, false);
    }
  }
  for (int i = 0; i < rounds * 10; ++i) {
    std::string text = templates[random() % templates.size()];
    mutate(text, random);
    std::vector<otf::text::ChatMessage> messages = {{"user", "a\xFF"},
                                                    {"assistant", text}};
    auto out = otf::text::renderChat(text, messages, i % 2, "<s>", "");
    rendered += out ? 1 : 0;
  }
  std::printf("%d of %d tokenizers loaded, %d of %d templates rendered\n",
              loaded, rounds, rendered, rounds * 10);
  return 0;
}
