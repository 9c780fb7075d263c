# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M in the place of GPT-2 124M: the published tables of relative transfer (W8A8, and int4 with low ranks), beside ours.

    build/venv/bin/python examples/smollm2_tables.py MODEL --text evaluation.txt --calibrate calibration.txt
    build/venv/bin/python examples/smollm2_tables.py MODEL --text ... --calibrate ... --row "relative int8 G128, W8A8" --blocks 4 --rounds 1

MODEL is a folder with model.onnx and its tokenizer (models/fetch_smollm2.py makes it). The protocol is the published one: blocks of 128 predicted tokens that
begin with an empty context, 64 of them; a request reads 32 tokens and writes 16, on one thread. As published, the head is coded apart from the f16 embedding
table. Ratios of times are formed inside a round, in which every plan runs once. Published accuracy is how often the text's token is the likeliest; ours is
agreement with f32's likeliest, so only changes compare. Groups of 16 are refused by OTF, so the published row with them has none of ours.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "EndToEnd"))
import otf


def int4(**keys):
    return {"name": "table", "linear": "int4", "vocabulary": "f16", "group": 32, "activations": "f32", "head": "linear", "tied-head": "coded", **keys}


def relative(rank, **keys):
    return int4(power=.5, **({"rank": rank} if rank else {}), **keys)


# Name, recipe, and published of GPT-2 on WikiText-2, one thread of an Apple M1 Pro: perplexity over f32's, change of accuracy in points, MB, times as fast as f32.
# The first int4 and the G16 row are of a first series (f32 embedding table), the others of a second (f16).
ROWS = [
    ("int4", int4(), None),
    ("int4, rank 8", int4(rank=8), "1.0500 [1.0418, 1.0585], −.73, 241.8 MB, .625×"),
    ("int4, rank 16", int4(rank=16), "1.0435, , 170.9 MB, .633×"),
    ("relative int4 G16", None, "1.2681, −2.86, 251.4 MB, .542×"),
    ("relative int4", relative(0), None),
    ("relative int4, rank 8", relative(8), None),
    ("relative int4, rank 16", relative(16), None),
    ("relative int4, rank 16, W4A8", relative(16) | {"activations": "row"}, "1.1188, , 171.5 MB, .934×"),
    ("relative int8 G128, W8A8", relative(0) | {"linear": "int8", "group": 128, "activations": "row"}, "[.9979, 1.0016], −.18 … +.20, 208.9 MB, 1.87×"),
]


def compiled(args, scratch, name, recipe):
    """The plan's path, and the bits a weight of its linears."""
    stem = "".join(c if c.isalnum() else "-" for c in name)
    plan, report = scratch / f"{stem}.plan", scratch / f"{stem}.json"
    command = [otf.tool("otf-compile"), args.model, "-o", plan, f"--report={report}"]
    if recipe:
        path = scratch / f"{stem}-recipe.json"
        path.write_text(json.dumps(recipe))
        # Without a power or a rank statistics do nothing. Those of a row before are used again.
        command += [f"--recipe={path}", f"--calibrate={args.calibrate}", f"--calibrate-tokens={args.calibrate_tokens}",
                    f"--calibration-out={args.statistics or scratch / 'calibration.safetensors'}"]
    otf.succeed(*command)
    return plan, json.loads(report.read_text())["linear_bits_per_weight"]


def measured(args, plan, reference):
    out = otf.succeed(otf.tool("otf-exec"), "eval", plan, "--reference", reference, "--text", args.text, "--json",
                      f"--tokens={129 * args.blocks}", "--window=129", "--score-from=1")
    return json.loads(out)


def request(plan):
    """Milliseconds of one: 32 tokens read, 16 written, on one thread."""
    out = otf.succeed(otf.tool("otf-exec"), "bench", plan, "--threads=1", "--prompt-tokens=32", "--tokens=16", "--repeat=1", "--json")
    speed = json.loads(out)["tokens_per_second"]
    return 1e3 * (32 / speed["prefill"] + 16 / speed["decode"])


def interval(estimate):
    ends = f" [{estimate['low']:.4f}, {estimate['high']:.4f}]" if estimate["low"] is not None else ""
    return f"{estimate['value']:.4f}{ends}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="UTF-8 text that nothing was calibrated on")
    parser.add_argument("--calibrate", type=pathlib.Path, required=True, help="UTF-8 text")
    parser.add_argument("--calibrate-tokens", type=int, default=20480)
    parser.add_argument("--statistics", type=pathlib.Path, help="where calibration is kept for another run")
    parser.add_argument("--row", action="append", choices=[name for name, recipe, _ in ROWS if recipe], help="may be repeated; every row by default")
    parser.add_argument("--blocks", type=int, default=64, help="of 128 predicted tokens")
    parser.add_argument("--rounds", type=int, default=5, help="of requests")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args = parser.parse_args()
    otf.build = args.build.resolve()
    rows = [row for row in ROWS if args.row is None or row[0] in args.row]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        plans = {name: compiled(args, scratch, name, recipe) for name, recipe in [("f32", None)] + [row[:2] for row in rows if row[1]]}
        reference = plans["f32"][0]
        results = {name: measured(args, plan, reference) for name, (plan, _) in plans.items() if name != "f32"}
        rounds = [{name: request(plan) for name, (plan, _) in plans.items()} for _ in range(args.rounds)]

        def times(name):
            return f"{statistics.median(r[name] for r in rounds):.0f} ms ({statistics.median(r['f32'] / r[name] for r in rounds):.2f}×)"

        print("| variant | GPT-2, published: perplexity ratio, accuracy, size, speed | perplexity ratio | top-1 | KL | bits | MB | request |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        print(f"| f32 | 1, 0, 498.0 MB, 1× | 1 | 1 | 0 | 32 | {reference.stat().st_size / 1e6:.1f} | {times('f32')} |")
        for name, recipe, published in rows:
            if recipe is None:
                print(f"| {name} | {published} | | | | | | |")
                continue
            out, (plan, bits) = results[name], plans[name]
            print(f"| {name} | {published or ''} | {interval(out['perplexity_ratio'])} | {interval(out['top1'])} | {interval(out['kl']['mean'])} | {bits:.3f} | "
                  f"{plan.stat().st_size / 1e6:.1f} | {times(name)} |")
        for out in list(results.values())[:1]:
            print(f"\n{out['text']['predictions']} predictions of {args.text.name}; perplexity of f32 {out['perplexity']['reference']['value']:.2f}; intervals 95 %, paired bootstrap over blocks")


main()
