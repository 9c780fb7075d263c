#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our tokenizer with the PyPI package `tokenizers`, id for id.

A mixed text (code, prose, emoji, CJK, Cyrillic, digits, special tokens, odd
white space, control characters) is generated from a fixed seed. Tokenizers in
the configurations of well-known model families are trained on it, and both
implementations encode the whole text and thousands of short pieces of it, and
decode the ids again.

usage: tokenizer_oracle.py path/to/otf-tokenize [tokenizer.json ...]
Files named on the command line are compared as well. Exit status 77 means that
`tokenizers` is not installed.
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                            normalizers, pre_tokenizers, processors, trainers)
except ImportError:
    print("tokenizers is not installed; nothing compared")
    sys.exit(77)

TEXT_CHARS = 200_000
WORDS = (
    "the of and runtime tensor Don't we'll I'VE they're it's naïve façade "
    "Straße größer İstanbul ﬁnal ΑΒΓ λόγος привет мир Ёлка тест Україна "
    "שלום مرحبا नमस्ते สวัสดี 你好 世界 機械学習 モデル ことば 한국어 텍스트 𠮷野家 "
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 e\u0301 a\u0300\u0323 ½ Ⅷ ٣٤٥ ४२ 𝟘 ² 3.14159 1234567890 "
    "0xDEADBEEF 1e-9 C++ foo_bar __init__ camelCase x+=1; a->b(); {'k':[1,2]} "
    "#include <vector> // comment /* block */ https://example.org/?q=a&b=%20c "
    "user@example.com ... --- *** $100 €5 100% \\n \\u00e9 <|im_start|> "
    "<|im_end|>user <|endoftext|> <|im_startX <tool>word</tool> maskword"
).split(" ")
SPACES = [" "] * 30 + ["  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\t\t",
                       "        ", "\u00a0", "\u2003", "\u3000", "\u2028",
                       "\u0085", "\u180e", "\u200b", "\ufeff", "\v", "\f", ""]
# The libraries know different versions of Unicode, so only characters of 3.2
# are drawn at random. NUL is out because it separates our records.
OLD_CHARS = [chr(c) for c in range(1, 0x3000)
             if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]
CONTROL = ["\x01", "\x02", "\x1b[31m", "\x7f", "\x1c", "\x1f", "\ufffd",
           "\U0010ffff", "\ue000"]

GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CJK = r"[\p{Han}\p{Hiragana}]+|\w+|[^\S\r\n]+"


def mixed_text():
    rng = random.Random(20240229)
    parts = []
    size = 0
    while size < TEXT_CHARS:
        kind = rng.random()
        if kind < 0.90:
            part = rng.choice(WORDS)
        elif kind < 0.93:
            part = str(rng.randrange(10 ** rng.randrange(1, 15)))
        elif kind < 0.96:
            part = "".join(rng.choice("abcABC_-'.") for _ in range(12))
        elif kind < 0.98:
            part = "".join(rng.choice(OLD_CHARS) for _ in range(3))
        else:
            part = rng.choice(CONTROL)
        part += rng.choice(SPACES)
        parts.append(part)
        size += len(part)
    return "".join(parts)


def trained(text, pre_tokenizer, added=(), **model_options):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        text.splitlines(True),
        trainers.BpeTrainer(
            vocab_size=2000, show_progress=False,
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    for name, value in model_options.items():
        setattr(tokenizer.model, name, value)
    tokenizer.add_tokens(list(added))
    return tokenizer


def split_then_bytes(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior, invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def digits_then_bytes(individual):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])


def configurations(text):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    yield "gpt2", trained(text, byte_level)
    yield "prefix space", trained(text, pre_tokenizers.ByteLevel())
    yield "smollm digits", trained(text, digits_then_bytes(True))
    yield "grouped digits", trained(text, digits_then_bytes(False))
    yield "gpt4o", trained(text, split_then_bytes(GPT4O))
    yield "scripts and words", trained(text, split_then_bytes(CJK))
    yield "falcon", trained(text, pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), byte_level,
        pre_tokenizers.Digits(False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    for behavior in ("isolated", "removed", "contiguous",
                     "merged_with_previous", "merged_with_next"):
        for invert in (False, True):
            yield (f"{behavior}, invert {invert}",
                   trained(text, split_then_bytes(r"\p{P}", behavior, invert)))

    llama = trained(text, split_then_bytes(LLAMA3), ignore_merges=True)
    llama.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single="<|endoftext|> $A <|im_end|>",
            special_tokens=[("<|endoftext|>", 0), ("<|im_end|>", 2)])])
    yield "llama3", llama

    yield "added tokens", trained(text, byte_level, [
        AddedToken("<tool>", lstrip=True), AddedToken("</tool>", rstrip=True),
        AddedToken("mask", single_word=True), AddedToken("word", rstrip=True,
                                                        lstrip=True),
        AddedToken("  ", normalized=False), AddedToken("    ", normalized=False),
        AddedToken("ир", single_word=True, normalized=False)])

    normalized = trained(text, byte_level, [AddedToken("the", normalized=True),
                                            AddedToken("of", normalized=False)])
    normalized.normalizer = normalizers.Sequence([
        normalizers.Replace("e", "ee"), normalizers.Prepend("\u2581")])
    yield "normalizer", normalized


def pieces_of(text):
    rng = random.Random(7)
    for _ in range(3000):
        begin = rng.randrange(len(text))
        yield text[begin:begin + rng.randrange(40)]
    yield "a" * 20000
    yield " " * 20000
    yield "\u0301" * 5000


def run_driver(driver, json_path, content, *options):
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return subprocess.run([driver, json_path, file.name, *options],
                              check=True, stdout=subprocess.PIPE).stdout


def compare(driver, name, json_path, text):
    tokenizer = Tokenizer.from_file(json_path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    records = [text, *pieces_of(text)]
    for options in (["--records"], ["--records", "--special"]):
        special = "--special" in options
        content = "".join(r + "\0" for r in records).encode()
        lines = run_driver(driver, json_path, content, *options).split(b"\n")
        for record, line in zip(records, lines, strict=False):
            want = tokenizer.encode(record, add_special_tokens=special).ids
            got = [int(i) for i in line.split()]
            if got != want:
                at = next((i for i, (g, w) in enumerate(zip(got, want))
                           if g != w), min(len(got), len(want)))
                print(f"{name}: ids differ at token {at} of {record[:60]!r}: "
                      f"{got[at - 2:at + 4]} instead of {want[at - 2:at + 4]}, "
                      f"near {tokenizer.decode(want[max(0, at - 5):at + 5])!r}")
                return False

    ids = tokenizer.encode(text).ids
    # Random ids give byte sequences that are not UTF-8.
    rng = random.Random(1)
    ids += [rng.randrange(tokenizer.get_vocab_size()) for _ in range(20000)]
    for options in (["--decode"], ["--decode", "--special"]):
        content = " ".join(map(str, ids)).encode()
        got = run_driver(driver, json_path, content, *options).decode()
        if got != tokenizer.decode(ids, skip_special_tokens=len(options) == 2):
            print(f"{name}: decoded text differs with {options}")
            return False
    print(f"{name}: {len(text.encode())} bytes, {len(records)} texts, equal")
    return True


def main():
    driver, *files = sys.argv[1:]
    text = mixed_text()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, tokenizer) in enumerate(configurations(text)):
            path = str(pathlib.Path(folder) / f"{number}.json")
            tokenizer.save(path)
            good &= compare(driver, name, path, text)
        for path in files:
            good &= compare(driver, path, path, text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
