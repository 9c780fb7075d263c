# SPDX-License-Identifier: Apache-2.0
"""How far a recipe is from the float model: mean KL divergence of next-token distributions over a text, on the CPU.

    build/venv/bin/python bench/quality_cpu.py --model build/models/smollm2-f32 --text evaluation.txt --recipes rtn8,rtn4
"""
import argparse
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "EndToEnd"))
import otf


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build" / "models" / "smollm2-f32")
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--window", type=int, default=250, help="tokens seen at once; every window starts without a past")
    parser.add_argument("--recipes", default="rtn8,rtn4")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    otf.build, otf.target = args.build.resolve(), args.device
    from tokenizers import Tokenizer
    ids = Tokenizer.from_file(str(args.model / "tokenizer.json")).encode(args.text.read_text()).ids[:args.tokens]
    recipes = args.recipes.split(",")
    plans = {recipe: otf.plan(args.model, recipe) for recipe in ["none", *recipes]}
    total, same, nll = ({recipe: 0.0 for recipe in plans} for _ in range(3))
    for start in range(0, len(ids), args.window):
        window = ids[start:start + args.window]
        # The last window is short and the last token of each predicts nothing that is in it, but its distribution counts.
        logs = {r: log_softmax(otf.run(p, otf.prompt_inputs(window))["logits"][0]) for r, p in plans.items()}
        reference = logs["none"]
        for recipe, values in logs.items():
            total[recipe] += float((np.exp(reference) * (reference - values)).sum())
            same[recipe] += float((reference.argmax(-1) == values.argmax(-1)).sum())
            nll[recipe] -= float(values[np.arange(len(window) - 1), window[1:]].sum())
    predicted = len(ids) - -(-len(ids) // args.window)
    print(f"{len(ids)} tokens of {args.text.name}, windows of {args.window}, {args.device}")
    for recipe in plans:
        print(f"{recipe:10s} KL {total[recipe] / len(ids):.5f}  same top token {100 * same[recipe] / len(ids):.2f} %  "
              f"perplexity {np.exp(nll[recipe] / predicted):.3f}")


main()
