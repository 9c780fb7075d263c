# SPDX-License-Identifier: Apache-2.0
"""Runs a folder of cases, each a model with what is right for it. `case.json` holds:

    kind              `run`: compiles with recipe `none` and gives the expected arrays; `must-fail`: is refused
    model             file, relative to the case
    inputs, outputs   graph name and .npy file each
    rtol, atol        tolerance of the run
    accept_reject     a refusal is right too
    quant             also run quantized: largest relative error by bits, unless the error is below `abs_ok` in all
    stage, mentions   of a must-fail: the last stage that may refuse it, and words of which the message has at least one

A refusal is exit status 1 and one sentence, within 10 s and 64 MiB + 4 times the model's file of memory, and leaves no file.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True  # the source folder stays clean
import numpy as np
import onnx
from tools import Failure, Refusal, Tools, close, relative, same_kind

RECIPES = {"8": "rtn8", "4": "rtn4", "2": "otf-int2"}
SECONDS, OWN_MEMORY = 10, 64 << 20


def special_files(model):
    """Version control and archives keep neither pipes nor always links, so these are made here: an external location where
    nothing lies is a pipe, and one whose file holds nothing but the path of another file is a link to it."""
    for tensor in onnx.load(model, load_external_data=False).graph.initializer:
        for entry in tensor.external_data:
            path = pathlib.PurePosixPath(entry.value)
            if entry.key != "location" or path.is_absolute() or ".." in path.parts:
                continue
            path = model.parent / path
            if not path.exists():
                os.mkfifo(path)
            elif path.is_file() and path.stat().st_size < 256:
                target = path.read_bytes()
                if b"\0" not in target and (path.parent / os.fsdecode(target)).is_file():
                    path.unlink()
                    path.symlink_to(os.fsdecode(target))


def quantized(tools, case, model, folder, inputs, outputs):
    rules = case["quant"]
    for bits, bound in rules["max_rel_err"].items():
        if bits not in RECIPES:
            continue
        plan = folder / f"{bits}.plan"
        tools.compile(model, plan, RECIPES[bits])
        got = tools.run(plan, inputs, [o["name"] for o in case["outputs"]], folder / f"out{bits}")
        for output, actual, expected in zip(case["outputs"], got, outputs):
            same_kind(output["name"], actual, expected)
            if np.linalg.norm(actual.astype(np.float64) - expected) <= rules["abs_ok"]:
                continue
            columns = expected.shape[-1] if rules["per_column"] and expected.ndim else 0
            error = max((relative(actual[..., c], expected[..., c]) for c in range(columns)), default=0) if columns else \
                relative(actual, expected)
            if not error <= bound:
                raise Failure(f"{RECIPES[bits]}: {output['name']}: relative error {error:.3g}, at most {bound} is right")


def runs(tools, case, model, folder):
    inputs = [(i["name"], inputs_folder(case, model) / i["file"]) for i in case["inputs"]]
    outputs = [np.load(inputs_folder(case, model) / o["file"]) for o in case["outputs"]]
    try:
        tools.compile(model, folder / "none.plan")
        got = tools.run(folder / "none.plan", inputs, [o["name"] for o in case["outputs"]], folder / "out")
    except Refusal:
        if case.get("accept_reject"):
            return
        raise
    for output, actual, expected in zip(case["outputs"], got, outputs):
        close(output["name"], actual, expected, case["rtol"], case["atol"])
    if "quant" in case:
        quantized(tools, case, model, folder, inputs, outputs)


def inputs_folder(case, model):
    return model.parents[len(pathlib.PurePath(case["model"]).parts) - 1]


def is_refused(tools, case, model, folder):
    recipe = "rtn4" if case["stage"] == "quantize" else "none"
    before = sorted(p for p in folder.rglob("*"))
    plan = folder / "none.plan"
    try:
        tools.compile(model, plan, recipe, SECONDS)
        if case["stage"] != "run":
            raise Failure("compiles, but is to be refused")
        inputs = [(i["name"], inputs_folder(case, model) / i["file"]) for i in case["inputs"]]
        before.append(plan)
        try:
            tools.run(plan, inputs, [], folder / "out")
        except Failure as failure:
            (folder / "out").rmdir() if (folder / "out").exists() else None
            raise failure
        raise Failure("runs, but is to be refused")
    except Refusal as refusal:
        text = str(refusal)
        if not any(word.lower() in text.lower() for word in case["mentions"]):
            raise Failure(f"names none of {', '.join(case['mentions'])}: {text}") from None
        most = OWN_MEMORY + 4 * model.stat().st_size
        if refusal.peak > most:
            raise Failure(f"takes {refusal.peak >> 20} MiB of memory, at most {most >> 20} are right") from None
    left = set(folder.rglob("*")) - set(before)
    if left:
        raise Failure("leaves " + ", ".join(sorted(p.name for p in left)))


def judge(path, tools):
    case = json.loads((path / "case.json").read_text())
    with tempfile.TemporaryDirectory(prefix="otf-case-") as folder:
        folder = pathlib.Path(folder)
        copy = folder / path.name
        shutil.copytree(path, copy, symlinks=True, copy_function=shutil.copyfile)
        for each in [copy, *copy.rglob("*")]:
            each.chmod(0o700)
        model = copy / case["model"]
        try:
            if case["kind"] == "run":
                runs(tools, case, model, folder)
            else:
                special_files(model)
                is_refused(tools, case, model, folder)
        except Failure as failure:
            return str(failure).replace(str(folder), "")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="patterns of case names; all by default")
    args = parser.parse_args()
    cases = sorted(p.parent for p in args.folder.glob("*/case.json"))
    cases = [c for c in cases if not args.names or any(fnmatch.fnmatch(c.name, n) for n in args.names)]
    short = 0
    tools = Tools(args.build, args.target)
    with ThreadPoolExecutor(args.jobs) as pool:
        for case, why in zip(cases, pool.map(lambda c: judge(c, tools), cases)):
            if why:
                short += 1
                print(f"{case.name}: {why}", flush=True)
    print(f"{len(cases) - short} of {len(cases)} cases are right")
    sys.exit(short > 0 or not cases)


main()
