# SPDX-License-Identifier: Apache-2.0
"""One model by three exporters: how fast each decodes on the CPU, which should be the same, and what each launches.

Rounds are interleaved and each is compared with the first exporter of its round, so a machine that is busy for a while is busy
for all of them. Beside the speed stands the processor time of the whole process, which other processes disturb less; with one thread nobody
waits for another.

    build/venv/bin/python bench/exporters.py --rounds 7
"""
import argparse
import collections
import json
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPORTERS = {"optimum": "smollm2-f32", "genai": "smollm2-f32-genai", "opset23": "smollm2-f32-opset23"}


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def launches(build, model, recipe):
    """Launches of one step by what they compute."""
    text = run(build / "bin" / "otf-compile", model, f"--recipe={recipe}", "--emit=planned", "-o", "-")
    main = text[text.index("func.func @main"):]
    return collections.Counter(kernel or "bind" for kernel in re.findall(r"plan\.(?:launch @(\w+?)_\d+\(|bind)", main))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--recipe", default="rtn4")
    parser.add_argument("--plans", type=pathlib.Path, help="a folder where plans are kept for the next time")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--launches", action="store_true", help="compare what is launched, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.plans or pathlib.Path(temporary)
        plans = {name: folder / f"{model}-{args.recipe}.plan" for name, model in EXPORTERS.items()}
        for name, plan in plans.items():
            if not plan.exists():
                run(args.build / "bin" / "otf-compile", args.build / "models" / EXPORTERS[name], "-o", plan, f"--recipe={args.recipe}")
        rates, times = {name: [] for name in plans}, {name: [] for name in plans}
        for _ in range(args.rounds):
            for name, plan in plans.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                out = json.loads(run(args.build / "bin" / "otf-exec", "bench", plan, f"--threads={args.threads}", "--prompt-tokens=64",
                                     f"--tokens={args.tokens}", "--repeat=1", "--json"))
                rates[name].append(out["tokens_per_second"]["decode"])
                times[name].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    first = next(iter(rates))
    for name, list_ in rates.items():
        ratios, work = ([mine / other for mine, other in zip(of[name], of[first])] for of in (rates, times))
        print(f"{name:8} {statistics.median(list_):7.1f} tokens/s ({min(list_):.1f} to {max(list_):.1f}), "
              f"{statistics.median(ratios):.3f} of {first} ({min(ratios):.3f} to {max(ratios):.3f}), "
              f"processor time {statistics.median(work):.3f} of {first}'s")
    if args.launches:
        counts = {name: launches(args.build, args.build / "models" / model, args.recipe) for name, model in EXPORTERS.items()}
        for kernel in sorted(set().union(*counts.values())):
            print(f"  {kernel:32}", *(f"{counts[name][kernel]:6}" for name in counts))


main()
