// SPDX-License-Identifier: Apache-2.0
//
// Each case is a template and what Jinja prints for it; template_oracle.py
// compares whole chat templates with Jinja itself.
#include "runtime/Text/ChatTemplate.h"

#include <gtest/gtest.h>

namespace otf::text {
namespace {

const std::vector<ChatMessage> conversation = {
    {"system", "Be brief."}, {"user", " Hé \"you\"\n"}, {"assistant", "Yes"}};

std::string render(std::string_view text) {
  auto out = renderChat(text, conversation, true, "<s>", "</s>");
  return out ? *out : out.error().message;
}

TEST(ChatTemplate, PrintsTextAndValues) {
  EXPECT_EQ(render("a{{ bos_token }}b{{ 1 + 2 * 3 }}{{ none }}{{ nothing }}"),
            "a<s>b7None");
  EXPECT_EQ(render("{{ [1, 'a', true] }}{{ {'k': none} }}"),
            "[1, 'a', True]{'k': None}");
}

TEST(ChatTemplate, LoopsKnowTheirPosition) {
  EXPECT_EQ(render("{% for m in messages %}{{ loop.index0 }}{{ m.role[0] }}"
                   "{{ ',' if not loop.last else '.' }}{% endfor %}"),
            "0s,1u,2a.");
  EXPECT_EQ(render("{% for x in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for x in [1,2,3,4] if x is even %}{{ x }}{% endfor %}"),
            "24");
  EXPECT_EQ(render("{% for k, v in {'a': 1}.items() %}{{ k ~ v }}{% endfor %}"),
            "a1");
}

TEST(ChatTemplate, LoopsScopeWhatTheySetAndNamespacesDoNot) {
  EXPECT_EQ(render("{% set x = 1 %}{% set ns = namespace(x=1) %}{% for i in "
                   "[2, 3] %}{% set x = i %}{% set ns.x = i %}{% endfor %}"
                   "{{ x }}{{ ns.x }}"),
            "13");
}

TEST(ChatTemplate, SlicesFollowPython) {
  EXPECT_EQ(render("{{ 'aébc'[1:3] }}{{ 'abc'[::-1] }}{{ 'abc'[-2:] }}"),
            "ébcbabc");
  EXPECT_EQ(render("{{ messages[1:] | length }}{{ messages[9:] | length }}"),
            "20");
}

TEST(ChatTemplate, WhiteSpaceControlFollowsTheChatSettings) {
  EXPECT_EQ(render("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(render("a \n {%- if true -%} \n b {{- 'c' -}} \n{%- endif %} d"),
            "abc d");
  EXPECT_EQ(render("{# c #}\n  {{ 'x' }}\n\n"), "  x\n");
}

TEST(ChatTemplate, TestsAndFilters) {
  EXPECT_EQ(render("{{ nothing is defined }}{{ tools is none }}"
                   "{{ messages[0].content is string }}{{ not x is defined }}"),
            "FalseTrueTrueTrue");
  EXPECT_EQ(render("{{ messages[1].content | trim }}|{{ ' x ' | length }}"),
            "Hé \"you\"|3");
  EXPECT_EQ(render("{{ messages[1].content | tojson }}"),
            R"(" Hé \"you\"\n")");
  EXPECT_EQ(render("{{ messages | selectattr('role', 'equalto', 'user') | list "
                   "| length }}{{ ['a', 'b'] | join('-') | upper }}"),
            "1A-B");
}

TEST(ChatTemplate, StringMethods) {
  EXPECT_EQ(render("{{ 'a</t>b'.split('</t>')[-1].lstrip('b') }}"
                   "{{ '\\n x'.strip() }}{{ 'abc'.startswith('ab') }}"
                   "{{ 'a-b'.replace('-', '+') }}{{ ' a  b '.split() }}"),
            "xTruea+b['a', 'b']");
}

TEST(ChatTemplate, OperatorsShortCircuit) {
  EXPECT_EQ(render("{{ nothing is defined and nothing.x }}{{ 1 or nothing.x }}"),
            "False1");
  EXPECT_EQ(render("{{ 'user' in ['user'] and 'x' not in 'abc' }}"), "True");
}

TEST(ChatTemplate, RaiseExceptionSpeaksInTheTemplatesWords) {
  EXPECT_EQ(render("{{ raise_exception('No system role!') }}"),
            "chat template: refused the conversation: No system role!");
}

TEST(ChatTemplate, UnsupportedPartsAreNamedWithTheirLine) {
  EXPECT_EQ(render("\n\n{% macro f() %}{% endmacro %}"),
            "chat template: line 3: 'macro' is not supported in templates; "
            "supported are if, for, set, break and continue");
  EXPECT_EQ(render("\n{{ 1 | wordwrap }}"),
            "chat template: line 2: the filter 'wordwrap' is not supported; "
            "rewrite the template without it");
  EXPECT_EQ(render("{{ 'x'.format() }}"),
            "chat template: line 1: the string method format() is not "
            "supported; rewrite the template without it");
}

TEST(ChatTemplate, SyntaxErrorsAreErrors) {
  for (const char *text :
       {"{{", "{% if x %}", "{{ 1 + }}", "{{ (1 }}", "{% endfor %}", "{{ 'a }}",
        "{% for x in %}{% endfor %}", "{{ 1 < 2 < 3 }}", "{# x", "{{ a..b }}",
        "{% set x %}y{% endset %}", "{{ 1.5 }}", "{% break %}", "{{ [1 2] }}",
        "{{ x.y }}", "{{ 1 // 0 }}", "{{ {1: 2} }}", "{% set a, b = [1] %}"})
    EXPECT_FALSE(renderChat(text, conversation, true, "", "")) << text;
}

TEST(ChatTemplate, HostileTemplatesEndInAnError) {
  std::string open(100000, '('), minus(100001, '-'), nots;
  std::string sum = "{{ 1", ifs;
  for (int i = 0; i < 10000; ++i) {
    sum += "+1";
    nots += "not ";
    ifs += "{% if 1 %}";
  }
  for (std::string text :
       {"{{ " + open, "{{ " + minus + "1 }}", sum + " }}", ifs,
        "{{ " + nots + "1 }}",
        std::string("{% for i in range(9999999999) %}{% endfor %}"),
        std::string("{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in "
                    "range(60) %}{% set n.s = n.s + n.s %}{% endfor %}"),
        std::string("{% set n = namespace(l=[]) %}{% for i in range(9999) %}"
                    "{% set n.l = [n.l, n.l] %}{% endfor %}"),
        std::string("{% set n = namespace(l=[]) %}{% for i in range(50) %}"
                    "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}"),
        std::string("{% set n = namespace() %}{% set n.n = n %}{{ n.n }}")})
    EXPECT_FALSE(renderChat(text, {}, true, "", "")) << text.substr(0, 80);
}

} // namespace
} // namespace otf::text
