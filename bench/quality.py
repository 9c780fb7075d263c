# SPDX-License-Identifier: Apache-2.0
"""What each recipe costs in quality, beside other systems' formats: one table, each row a plan that otf-exec eval measures.

    bench/quality --text evaluation.txt --calibrate calibration.txt        every built-in recipe, auto at 2, 2.5, 3 and 4 bits
    bench/quality --text evaluation.txt --row rtn4 --row my.json --row "auto --budget=2.5bpw"

It calibrates once, and statistics stay beside the model; without --calibrate those that are there are used, and rows that need what is not there are
refused. A row is a recipe, built in or a file, and further options of otf-compile. Rows that are done stay in --results, so a run that was stopped goes
on where it was; a row is done again when its recipe, the compiler, the model, the text or the protocol is another. `--table` prints what there is.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "EndToEnd"))
import otf

# Measured for this project in November 2026 with xllamacpp 2026.10 (llama.cpp build 11549) and ik-llama-cpp-python 0.1.5 on SmolLM2-135M-Instruct,
# reference the f16 model dequantized from the same Q4_1 file: the first 16 windows of 512 tokens, tokens 64 and later scored. The text was a draft
# of the same mixture as today's evaluation text (perplexity 17.27), so a difference of a few per cent between a row of ours and one of these is none.
# Rows padded from 576 to 768 columns, so that 256-wide super-blocks apply. +im: importance matrix from the calibration text. Bits over the linear
# layers, everything counted. The Q4_1 origin makes 4-bit formats with groups of 32 and a minimum too good; "off the grid" undoes that.
PEERS = [
    # name, bits, KL, top-1, perplexity ratio
    ("Q8_0", 8.5, .0039, .962, 1.006),
    ("Q6_K", 6.56, .0149, .934, 1.021),
    ("Q5_K_M", 5.63, .0178, .923, 1.016),
    ("Q4_K_M (on the file's grid)", 4.76, .0145, .937, 1.013),
    ("Q4_K_M +im (on the file's grid)", 4.76, .0081, .945, 1.011),
    ("Q4_K_M (off the grid)", 4.76, .113, .808, 1.112),
    ("Q4_0", 4.5, .251, .724, 1.196),
    ("IQ4_KS", 4.36, .136, .797, 1.148),
    ("IQ4_KT trellis +im", 4.05, .084, .846, 1.084),
    ("Q3_K_M", 3.86, .345, .681, 1.405),
    ("Q3_K_M +im", 3.86, .168, .773, 1.153),
    ("IQ3_KT trellis +im", 3.17, .259, .730, 1.281),
    ("Q2_K", 2.94, 2.34, .290, 10.1),
    ("Q2_K +im", 2.94, .707, .570, 1.99),
    ("IQ2_KT trellis +im", 2.39, 1.060, .481, 2.80),
    ("IQ2_XS +im", 2.36, 1.37, .436, 3.88),
    ("IQ2_KS +im", 2.26, 1.61, .399, 4.88),
    ("IQ2_XXS +im", 2.13, 2.16, .315, 8.54),
]

# What this project asks of itself at these bits, at most .05 more: KL, top-1, perplexity ratio.
BARS = [(4.0, .06, .87, 1.06), (3.0, .19, .77, 1.18), (2.5, .40, .68, 1.45), (2.0, .90, .55, 2.4)]


def digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part.encode() if isinstance(part, str) else part)
        total.update(b"\0")
    return total.hexdigest()[:16]


def file_digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# What calibration writes beside a model.
SIDECARS = (".calibration.safetensors", ".sensitivities.json")

# Of budgets, those that the bars are about: at most .05 bits more.
BUDGETS = ["2bpw", "2.5bpw", "3.02bpw", "4.03bpw"]


def model_digest(folder, skip):
    """Of the names, sizes and times of its files: half a gigabyte is not read for each run. `skip`: what runs themselves write."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.endswith(skip)) if folder.is_dir() else [folder]
    return digest(*(f"{p.name} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in files))


def builtin():
    """Names that otf-compile --help lists."""
    text = " ".join(otf.succeed(otf.tool("otf-compile"), "--help").split())
    return re.search(r"--recipe \S+ (?:\[\S+\] )?([\w-]+(?:, [\w-]+)*), or a JSON file", text).group(1).split(", ")


def default_rows():
    """All that changes an f32 model: given-a8 runs codes that a file has, and there are none."""
    names = [name for name in builtin() if name not in ("none", "given-a8", "auto")]
    return names + [f"auto --budget={budget}" for budget in BUDGETS]


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = json.loads(path.read_text()) if path.exists() else {}

    def add(self, key, row):
        self.rows[key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(self.rows, indent=1))
        unfinished.replace(self.path)


class Bench:
    def __init__(self, args):
        self.args = args
        self.folder = args.build / "quality"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = Results(args.results or self.folder / "rows.json")
        self.about = digest(model_digest(args.model, SIDECARS if args.calibrate else ()), file_digest(otf.tool("otf-compile")), file_digest(args.text),
                            f"{args.tokens} {args.window} {args.score_from} {args.device}",
                            f"{file_digest(args.calibrate)} {args.calibrate_tokens}" if args.calibrate else "")
        self.reference = None

    def key(self, row):
        recipe, *flags = shlex.split(row)
        status, printed, _ = otf.call(otf.tool("otf-compile"), f"--recipe={recipe}", "--print-recipe")
        files = [file_digest(f.split("=", 1)[1]) for f in flags if "=" in f and os.path.isfile(f.split("=", 1)[1])]
        return digest(self.about, printed if status == 0 else recipe, *flags, *files)

    def compile(self, row, name):
        recipe, *flags = shlex.split(row)
        plan, report = self.folder / f"{name}.plan", self.folder / f"{name}.json"
        command = [otf.tool("otf-compile"), self.args.model, "-o", plan, f"--recipe={recipe}", f"--report={report}", *flags, *shlex.split(self.args.flags),
                   *([f"--calibrate={self.args.calibrate}", f"--calibrate-tokens={self.args.calibrate_tokens}"] if self.args.calibrate and recipe != "none" else []),
                   f"--target={'cuda' if self.args.device.startswith('cuda') else 'cpu'}"]
        status, _, error = otf.call(*command)
        return (None, error.strip()) if status else (plan, json.loads(report.read_text()))

    def measure(self, row):
        if self.reference is None:
            name = digest(self.about)
            self.reference = self.folder / f"{name}.plan"
            if not self.reference.exists():
                plan, why = self.compile("none", name)
                if plan is None:
                    sys.exit(f"the reference cannot be compiled: {why}")
        key = self.key(row)
        plan, report = self.compile(row, key)
        if plan is None:
            return {"row": row, "refused": report}
        out = json.loads(otf.succeed(otf.tool("otf-exec"), "eval", plan, "--reference", self.reference, "--text", self.args.text, "--json",
                                     f"--tokens={self.args.tokens}", f"--window={self.args.window}", f"--score-from={self.args.score_from}",
                                     f"--device={self.args.device}", f"--threads={self.args.threads}"))
        result = {"row": row, "bits": report["linear_bits_per_weight"], "all_bits": report["total"]["bits"], "plan_bytes": plan.stat().st_size,
                  "plan_sha256": file_digest(plan), "eval": {k: out[k] for k in ("text", "kl", "top1", "top5", "perplexity", "perplexity_ratio")}}
        if not self.args.keep:
            plan.unlink()
        return result

    def run(self, rows):
        for number, row in enumerate(rows, 1):
            if self.key(row) in self.results.rows:
                continue
            print(f"[{number}/{len(rows)}] {row}", file=sys.stderr)
            self.results.add(self.key(row), self.measure(row))
        if self.reference and not self.args.keep:
            self.reference.unlink()


def interval(estimate, places):
    ends = f" [{estimate['low']:.{places}f}, {estimate['high']:.{places}f}]" if estimate["low"] is not None else ""
    return f"{estimate['value']:.{places}f}{ends}"


def table(rows, args):
    print("| weights | bits, linears | bits, all | KL | KL 99 % | top-1 | perplexity ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    lines = [(bits, f"| llama.cpp: {name} | {bits} | | {kl} | | {top1} | {ratio} |") for name, bits, kl, top1, ratio in (PEERS if args.peers else [])]
    for row in rows:
        if "refused" not in row:
            e = row["eval"]
            lines.append((row["bits"], f"| **{row['row']}** | {row['bits']:.3f} | {row['all_bits']:.3f} | {interval(e['kl']['mean'], 4)} | {e['kl']['q99']['value']:.3f} | "
                                       f"{interval(e['top1'], 3)} | {interval(e['perplexity_ratio'], 3)} |"))
    for _, line in sorted(lines, key=lambda item: -item[0]):
        print(line)
    measured = [row for row in rows if "refused" not in row]
    if measured:
        said = measured[0]["eval"]
        print(f"\n{said['text']['predictions']} predictions of {args.text.name}, windows of {said['text']['window']} scored from token {said['text']['score_from']}; "
              f"perplexity of the reference {said['perplexity']['reference']['value']:.2f}; 95 % intervals, paired bootstrap over windows")
    for bits, kl, top1, ratio in BARS if args.peers else []:
        within = [row for row in measured if row["bits"] <= bits + .05]
        if within:
            best = min(within, key=lambda row: row["eval"]["kl"]["mean"]["value"])
            e = best["eval"]
            met = e["kl"]["mean"]["value"] <= kl and e["top1"]["value"] >= top1 and e["perplexity_ratio"]["value"] <= ratio
            print(f"at {bits} bits: {'met' if met else 'MISSED'} by {best['row']} (KL {e['kl']['mean']['value']:.3f}, at most {kl}; "
                  f"top-1 {e['top1']['value']:.3f}, at least {top1}; ratio {e['perplexity_ratio']['value']:.3f}, at most {ratio})")
    mixed(measured)
    for row in rows:
        if "refused" in row:
            print(f"refused: {row['row']}: {row['refused']}")


def mixed(rows):
    """A budget beside one width everywhere at equal bits: what mixing gains."""
    for row in (r for r in rows if "--budget" in r["row"]):
        alike = [r for r in rows if r["row"].startswith("ldlq") and abs(r["bits"] - row["bits"]) <= .03]
        for other in alike:
            ratio = row["eval"]["kl"]["mean"]["value"] / other["eval"]["kl"]["mean"]["value"]
            print(f"{row['row']}: {ratio:.2f} of the KL of {other['row']}, at {row['bits']:.3f} and {other['bits']:.3f} bits")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True, help="UTF-8 text that nothing was calibrated on")
    parser.add_argument("--calibrate", type=pathlib.Path, metavar="TEXT", help="another text, to calibrate on")
    parser.add_argument("--calibrate-tokens", type=int, default=20480)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build" / "models" / "smollm2-f32")
    parser.add_argument("--row", action="append", metavar="RECIPE [FLAG ...]", help="may be repeated; by default every built-in recipe, and auto for each of the bars")
    parser.add_argument("--flags", default="", help="of otf-compile, for every row: --flags='--threads=1 --verbose'")
    parser.add_argument("--results", type=pathlib.Path, help="finished rows; BUILD/quality/rows.json by default")
    parser.add_argument("--keep", action="store_true", help="the plans, in BUILD/quality")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="for another model than SmolLM2-135M")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--score-from", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    args.build = args.build.resolve()
    otf.build = args.build
    bench = Bench(args)
    rows = args.row or default_rows()
    if not args.table:
        bench.run(rows)
    done = [bench.results.rows[key] for key in map(bench.key, rows) if key in bench.results.rows]
    table(done, args)
    sys.exit(any("refused" in row for row in done))


main()
