#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our chat templates with Jinja, set up as Hugging Face sets it up.

The templates below use the constructs of common model families. Both sides
must print the same prompt or both must refuse.

usage: template_oracle.py path/to/otf-render-chat [template.jinja ...]
Exit status 77 means that `jinja2` is not installed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("jinja2 is not installed; nothing compared")
    sys.exit(77)

CONVERSATIONS = [
    [("user", "Hi")],
    [("system", " Be brief.\n"), ("user", "Schöne \"Grüße\"\t你好 <b>&amp;"),
     ("assistant", "<think>\nhm\n</think>\n\nYes. "), ("user", "More\\n'x'")],
    [("user", "a"), ("user", "b")],
    [("assistant", "x")],
    [],
]

TEMPLATES = {
    "chatml": """{% for message in messages %}{% if loop.first and \
messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You help.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}
{{ raise_exception('No system role') }}{% endif %}
{% for message in messages %}
  {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
    {{ raise_exception('Roles must alternate') }}
  {% endif %}
  {%- set role = 'model' if message['role'] == 'assistant' else message.role -%}
  {{ '<turn>' + role + '\\n' + message['content'] | trim + '<end>\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{'<turn>model\\n'}}{% endif %}
""",
    "llama3": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|end|>\\n\\n" }}
{%- if tools is not none %}{{- "tools" }}{%- endif %}
{{- system_message }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|end|>\\n\\n'+ message['content'] | trim }}
    {%- elif message.tool_calls %}
        {{- message.tool_calls | tojson }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|end|>\\n\\n' }}
{%- endif %}
""",
    "qwen3": """{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string \
and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning is string %}{%- set thought = message.reasoning %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thought)) %}
            {{- '<|' + message.role + '>\\n' + thought.strip('\\n') + '|' + content }}
        {%- else %}
            {{- '<|' + message.role + '>' + content }}
        {%- endif %}
    {%- else %}
        {{- '<|' ~ message.role ~ loop.index ~ '>' ~ content }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt and enable_thinking is not defined %}{{- 'go' }}{%- endif %}
""",
    "mistral": """{%- if messages and messages[0]["role"] == "system" %}
    {%- set system = messages[0]["content"] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{%- set users = rest | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in rest | rejectattr("role", "eq", "tool") %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system is defined %}
            {{- "[INST] " + system + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] in ["assistant", "bot"] %}
        {{- " " + message["content"] + eos_token }}
    {%- else %}
        {{- raise_exception("Unknown role " + message["role"]) }}
    {%- endif %}
{%- endfor %}
{{- users | length }}
""",
    "everything": """{# comment #}
  {% set a, b = [1, 'x'] %}
  {{ a }} {{ b ~ a }}  {{- ' y' -}}   z
{% for k, v in {'p': 1, 'q': [none, true, 'it\\'s']}.items() %}
 {{ k }}={{ v }}{{ ", " if not loop.last }}
{%- else %}
never
{% endfor %}
{% for i in range(10) if i is odd %}{% if i == 3 %}{% continue %}{% endif %}
{% if i > 7 %}{% break %}{% endif %}{{ i }}{{ loop.revindex }}{% endfor +%}

{{ 'abcdef'[::2] }} {{ 'abcdef'[-3:-1] }} {{ [1, 2, 3][::-1] }} {{ 7 // -2 }} {{ 7 % -2 }}
{{ -3 + 2 * 2 - 1 }} {{ 'a,b,,c'.split(',', 2) }} {{ ' a  b '.split() }}
{{ messages | map(attribute='role') | join('/') | upper }} {{ none or 'd' }}
{{ nothing | default('dflt') }} {{ '' | default('e', true) }} {{ 'x' is in ['x'] }}
{{ messages | tojson }} {{ 'hello world' | title | replace('o', '0') }}
{{ not true and false }} {{ (1 if false) is defined }} {{ 'q' * 1 if false else "w" "v" }}
{% if messages %}{{ messages[-1].content[:3] }}{{ messages | last == messages[-1] }}{% endif %}
""",
}


def refuse(message):
    raise jinja2.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def reference(source, conversation, add_generation_prompt):
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    try:
        return environment.from_string(source).render(
            messages=[{"role": r, "content": c} for r, c in conversation],
            tools=None, documents=None, bos_token="<s>", eos_token="</s>",
            add_generation_prompt=add_generation_prompt)
    except jinja2.TemplateError:
        return None


def ours(driver, path, conversation, add_generation_prompt):
    words = [word for message in conversation for word in message]
    result = subprocess.run(
        [driver, path, str(int(add_generation_prompt)), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode not in (0, 1):
        sys.exit(f"{path}: the driver crashed")
    return (result.stdout.decode() if result.returncode == 0 else None,
            result.stderr.decode())


def main():
    driver, *files = sys.argv[1:]
    templates = dict(TEMPLATES)
    for name in files:
        templates[name] = pathlib.Path(name).read_text()
    good = True
    for name, source in templates.items():
        refused = 0
        with tempfile.NamedTemporaryFile("w", newline="") as file:
            file.write(source)
            file.flush()
            for conversation in CONVERSATIONS:
                for prompt in (False, True):
                    want = reference(source, conversation, prompt)
                    got, message = ours(driver, file.name, conversation, prompt)
                    refused += want is None
                    if got != want:
                        good = False
                        print(f"{name}: {conversation}\n  ours {got!r}\n"
                              f"  want {want!r}\n  {message}")
        print(f"{name}: {2 * len(CONVERSATIONS)} prompts compared, "
              f"{refused} refused by both")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
