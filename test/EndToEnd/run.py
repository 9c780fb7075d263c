# SPDX-License-Identifier: Apache-2.0
"""Runs the end-to-end tests with the tools of a build and writes how they ended as JSON for utils/add_up.py.

    build/venv/bin/python test/EndToEnd/run.py --smollm2 build/models/smollm2-f32 [name ...]
    build/venv/bin/python test/EndToEnd/run.py --target=cuda test_fixtures          on a machine with a GPU
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the source folder stays clean
import otf


class Result(unittest.TextTestResult):
    """Keeps names by outcome. A subtest that fails fails its test."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.outcomes = {"passed": [], "failed": [], "skipped": []}

    def stopTest(self, test):
        super().stopTest(test)
        bad = {id(t) for t, _ in self.failures + self.errors} | {id(getattr(t, "test_case", t)) for t, _ in self.failures + self.errors}
        skipped = {id(t) for t, _ in self.skipped}
        outcome = "failed" if id(test) in bad else "skipped" if id(test) in skipped else "passed"
        self.outcomes[outcome].append(test.id())


def run_files(jobs, flags):
    """Each file of tests in a process of its own, `jobs` at a time, the largest first; what fails is printed whole."""
    files = sorted(otf.here.glob("test_*.py"), key=lambda file: -file.stat().st_size)
    outcomes = {"passed": [], "failed": [], "skipped": []}

    def run(file):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.json"
            command = [sys.executable, __file__, *flags, "--json", results, file.stem]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            return done, json.loads(results.read_text()) if results.exists() else {"failed": [f"{file.stem} (exit {done.returncode})"]}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for file, future in [(file, pool.submit(run, file)) for file in files]:
            done, ended = future.result()
            print(f"{file.stem}: {', '.join(f'{len(names)} {outcome}' for outcome, names in ended.items())}", flush=True)
            if done.returncode != 0:
                print(done.stdout)
                ended["failed"] = ended.get("failed") or [f"{file.stem} (exit {done.returncode})"]
            for outcome, names in ended.items():
                outcomes[outcome] += names
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=otf.build)
    parser.add_argument("--target", choices=("cpu", "cuda"), default=otf.target, help="what models are compiled for and run on")
    parser.add_argument("--smollm2", help="folder of SmolLM2-135M-Instruct in f32")
    parser.add_argument("--smollm2-f16", help="the same in f16")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files of tests at once, where all are run")
    parser.add_argument("names", nargs="*", help="tests to run, for instance test_fixtures; all by default")
    args = parser.parse_args()
    otf.build, otf.target = args.build.resolve(), args.target
    for kind, folder in (("f32", args.smollm2), ("f16", args.smollm2_f16), ("f32-genai", None), ("f32-opset23", None)):
        folder = pathlib.Path(folder or otf.build / "models" / f"smollm2-{kind}")
        otf.smollm2[kind] = folder if folder.is_dir() else None

    if not args.names:
        outcomes = run_files(args.jobs, sys.argv[1:])
        if args.json:
            args.json.write_text(json.dumps(outcomes))
        print(", ".join(f"{len(names)} {outcome}" for outcome, names in outcomes.items()))
        sys.exit(bool(outcomes["failed"]))
    tests = unittest.TestLoader().loadTestsFromNames(args.names)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Result).run(tests)
    # A module that cannot be imported has no name of its own.
    if args.json:
        args.json.write_text(json.dumps(result.outcomes))
    sys.exit(not result.wasSuccessful())


main()
