# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs each conformance test and compares every output.

Outcomes: `passed`; `host-placed`: right, but the host ran kernels that have no CUDA form; `refused`, with the compiler's
reason; `wrong`: an output differs, or an error that is no refusal; `crashed`: a signal, a time-out, or an error of more than
one line. refused.txt beside this file lists what may be refused. Exit status 1 if any test was wrong or crashed, or if a
test's refusal and that list disagree.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # the source folder stays clean
import numpy as np
import onnx
import suites

SECONDS = 120


def difference(test, name, actual, expected):
    """Why `actual` is not `expected`, or nothing."""
    if actual.dtype.kind == "V" and actual.dtype.itemsize == expected.dtype.itemsize:
        actual = actual.view(expected.dtype)
    if actual.dtype != expected.dtype:
        return f"{name}: type {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"{name}: shape {list(actual.shape)}, expected {list(expected.shape)}"
    exact = expected.dtype.kind in "biu"
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    if exact:
        close = actual == expected
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            # The onnx package's own runner allows results in bfloat16 two units in the last place.
            rtol = max(test.rtol, 2**-6) if expected.dtype.name == "bfloat16" else test.rtol
            close = np.isclose(actual.astype(wide), expected.astype(wide), rtol, test.atol, equal_nan=True)
    if np.all(close):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(close))[0])
    got, want = (np.atleast_1d(a)[at] for a in (actual, expected))
    return f"{name}{list(at)}: {got}, expected {want} ({np.count_nonzero(~close)} of {close.size} differ)"


def call(command):
    """(kind of ending, text): kinds are ok with standard output, refused, crashed."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "crashed", f"no answer within {SECONDS} s"
    if done.returncode == 0:
        return "ok", done.stdout
    lines = done.stderr.strip().splitlines()
    if done.returncode == 1 and len(lines) == 1 and lines[0].startswith("error: "):
        return "refused", lines[0].removeprefix("error: ")
    return "crashed", f"exit {done.returncode}: " + " | ".join(lines[-3:])


class Worker:
    """An `otf-exec batch` that runs plan after plan: to open a GPU takes longer than most tests."""

    def __init__(self, args):
        self.command = [str(args.build / "bin/otf-exec"), "batch", f"--device={args.target}", "--threads=1"]
        self.errors = tempfile.TemporaryFile()
        self.process = None

    def run(self, plan, inputs, folder):
        """As call(): one that has ended is started anew."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        seen = self.errors.seek(0, os.SEEK_END)
        watch = threading.Timer(SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(json.dumps({"plan": str(plan), "inputs": inputs, "output_dir": str(folder)}) + "\n")
            self.process.stdin.flush()
            status = self.process.stdout.readline().strip()
        except BrokenPipeError:
            status = ""
        late = not watch.is_alive()
        watch.cancel()
        if late:
            self.process.wait()
            return "crashed", f"no answer within {SECONDS} s"
        if status == "0":
            return "ok", ""
        if status == "3" or status == "":
            self.process.wait()  # it ends by itself, and the next test gets another
        self.errors.seek(seen)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        if status == "1" and len(lines) == 1 and lines[0].startswith("error: "):
            return "refused", lines[0].removeprefix("error: ")
        return "crashed", f"exit {status or self.process.wait()}: " + " | ".join(lines[-3:])


local = threading.local()


def run_test(test, args):
    if not hasattr(local, "worker"):
        local.worker = Worker(args)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="otf-conformance-"))
    try:
        model = folder / "model.onnx"
        model.write_bytes(test.model.SerializeToString())
        plan = folder / "model.plan"
        arch = ["--cpu-arch=native"]  # no other code is run
        arch += ["--cuda-arch=none"] if args.target == "cuda" else []
        kind, text = call([args.build / "bin/otf-compile", model, "-o", plan, "--recipe=none", f"--target={args.target}", *arch])
        if kind != "ok":
            return kind, text.replace(str(model), "model")
        host = [line for line in text.splitlines() if line.startswith("on the host: ")]
        for number, (inputs, outputs) in enumerate(test.data_sets):
            given = {}
            for i, (info, array) in enumerate(zip(test.model.graph.input, inputs)):
                given[info.name] = str(folder / f"{number}-{i}.npy")
                np.save(given[info.name], array)
            kind, text = local.worker.run(plan, given, folder / f"out{number}")
            if kind != "ok":
                return ("wrong" if kind == "refused" else kind), text.replace(str(plan), "plan")
            for info, expected in zip(test.model.graph.output, outputs):
                path = folder / f"out{number}" / (info.name.replace("/", "_") + ".npy")
                if not path.exists():
                    return "wrong", f"{info.name}: no such output"
                if why := difference(test, info.name, np.load(path), expected):
                    return "wrong", why
        return ("host-placed", " | ".join(host)) if host else ("passed", "")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(tests, outcomes, kinds):
    """One line an operator that single-operator tests are about, then the totals."""
    rows = collections.defaultdict(collections.Counter)
    for test in tests:
        operators = test.operators()
        rows[operators[0] if len(operators) == 1 else "(several)"][outcomes[test.name][0]] += 1
    lines = [f"| operator | {' | '.join(kinds)} |", "| --- |" + " --- |" * len(kinds)]
    for operator in sorted(rows, key=lambda o: (o == "(several)", o)):
        lines.append(f"| {operator} | " + " | ".join(str(rows[operator][k]) for k in kinds) + " |")
    return "\n".join(lines)


KINDS = {"cpu": ("passed", "refused", "wrong", "crashed"), "cuda": ("passed", "host-placed", "refused", "wrong", "crashed")}


def disagreements(outcomes):
    """What refused.txt says of the tests that ran, and is not so: (name, text) pairs."""
    lines = pathlib.Path(__file__).with_name("refused.txt").read_text().splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    for name, (kind, reason) in outcomes.items():
        if kind == "refused" and name not in listed:
            yield name, f"refused, and not listed in refused.txt: {reason}"
        elif kind in ("passed", "host-placed") and name in listed:
            yield name, "passed: take it out of refused.txt"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", type=pathlib.Path, help="file for the table, in Markdown")
    parser.add_argument("--json", type=pathlib.Path, help="file for the names that passed, failed and were refused (skipped), with the reasons")
    parser.add_argument("names", nargs="*", help="patterns of test names; all by default")
    args = parser.parse_args()

    tests = [t for t in suites.all_tests() if not args.names or any(fnmatch.fnmatch(t.name, p) for p in args.names)]
    kinds = KINDS[args.target]
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for test, outcome in zip(tests, pool.map(lambda t: run_test(t, args), tests)):
            outcomes[test.name] = outcome
            if outcome[0] in ("wrong", "crashed") or args.names and outcome[0] != "passed":
                print(f"{outcome[0]}: {test.name}: {outcome[1]}", flush=True)
    unexpected = dict(disagreements(outcomes))
    for name, text in unexpected.items():
        print(f"unexpected: {name}: {text}")
    if args.json:
        of = lambda *kinds: [n for n, (k, _) in outcomes.items() if k in kinds and n not in unexpected]
        results = {"passed": of("passed", "host-placed"), "failed": of("wrong", "crashed") + list(unexpected), "skipped": of("refused"),
                   "reasons": {n: f"{k}: {why}" for n, (k, why) in outcomes.items() if k != "passed"}}
        args.json.write_text(json.dumps(results, indent=1))
    if args.table:
        args.table.write_text(table(tests, outcomes, kinds) + "\n")
    by_suite = collections.defaultdict(collections.Counter)
    for test in tests:
        by_suite[test.suite][outcomes[test.name][0]] += 1
    for suite, count in by_suite.items():
        print(f"{suite}: " + ", ".join(f"{count[k]} {k}" for k in kinds) + f" of {sum(count.values())}")
    bad = sum(count["wrong"] + count["crashed"] for count in by_suite.values())
    sys.exit(bad > 0 or bool(unexpected) or not tests)


main()
