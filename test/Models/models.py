# SPDX-License-Identifier: Apache-2.0
"""Runs models on inputs that lie beside them and compares every output. Two forms of folder are known, both with a meta.json:

    io/<case>/{in,out}/<tensor>.npy   `cases`, and `tolerance`, the largest absolute difference. Where there is an
                                      `attention_mask`, positions of the `logits` that it masks hold anything.
    set<k>/{input,output}_<i>.npy     `sets`, and `tolerance.rel_l2`, a bound for each output of norm(y - ref) / norm(ref).
                                      `float_outputs` are right instead of `outputs`: the same weights, activations not quantized.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True  # the source folder stays clean
import numpy as np
import onnx
from tools import Failure, Refusal, Tools, relative, same_kind

# What a compiler that dequantizes the weights owes to the float references.
FLOAT_TOLERANCE = 1e-3


def attended(name, array, inputs):
    """The part of an output that belongs to real positions: padding may hold anything."""
    mask = inputs.get("attention_mask")
    if mask is None:
        return array
    if name == "logits" and array.ndim == 3:
        return array[mask[:, -array.shape[1]:] == 1]
    if name.startswith(("present", "cache")) and array.ndim == 4 and mask.shape == (array.shape[0], array.shape[2]):
        return array.swapaxes(1, 2)[mask == 1]
    return array


def stored_cases(folder, meta, names):
    """(case, inputs by name as files, expected by name, check of one output) each."""
    inputs, outputs = names
    if "cases" in meta:
        for case in meta["cases"]:
            io = folder / "io" / case
            given = {p.stem: p for p in sorted((io / "in").glob("*.npy"))}
            expected = {p.stem: np.load(p) for p in sorted((io / "out").glob("*.npy"))}
            loaded = {"attention_mask": np.load(given["attention_mask"])} if "attention_mask" in given else {}

            def check(name, actual, want, loaded=loaded):
                worst = np.abs(attended(name, actual, loaded).astype(np.float64) - attended(name, want, loaded)).max(initial=0)
                if not worst <= meta["tolerance"]:
                    raise Failure(f"{name}: differs by {worst:.3g}, at most {meta['tolerance']} is right")
            yield case, given, expected, check
    for number, each in enumerate(meta.get("sets", [])):
        given = {name: folder / path for name, path in zip(inputs, each["inputs"])}
        bounds = dict(zip(outputs, meta["tolerance"]["rel_l2"]))
        expected = {name: np.load(folder / path) for name, path in zip(outputs, each["outputs"])}
        floats = {name: np.load(folder / path) for name, path in zip(outputs, each.get("float_outputs", []))}

        def check(name, actual, want, bounds=bounds, floats=floats):
            error = relative(actual, want)
            if error <= bounds[name] or name in floats and relative(actual, floats[name]) <= FLOAT_TOLERANCE:
                return
            beside = f" and {relative(actual, floats[name]):.3g} from the float reference" if name in floats else ""
            raise Failure(f"{name}: relative error {error:.3g}{beside}, at most {bounds[name]} is right")
        yield f"set{number}", given, expected, check


def judge(folder, tools):
    """Nothing, or (kind, why)."""
    meta = json.loads((folder / "meta.json").read_text())
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    weights = {i.name for i in graph.initializer}
    names = [i.name for i in graph.input if i.name not in weights], [o.name for o in graph.output]
    with tempfile.TemporaryDirectory(prefix="otf-model-") as temporary:
        temporary = pathlib.Path(temporary)
        plan, case = temporary / "model.plan", "compile"
        try:
            tools.compile(folder / "model.onnx", plan)
            for case, inputs, expected, check in stored_cases(folder, meta, names):
                got = tools.run(plan, [(n, p) for n, p in inputs.items()], names[1], temporary / case)
                for name, actual in zip(names[1], got):
                    if name not in expected:
                        raise Failure(f"{name}: nothing is stored to compare it with")
                    same_kind(name, actual, expected[name])
                    check(name, actual, expected[name])
        except Failure as failure:
            kind = "refused" if isinstance(failure, Refusal) and case == "compile" else "wrong"
            return kind, f"{case}: " + str(failure).replace(str(temporary), "").replace(str(folder) + "/", "")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", action="append", help="pattern of model names; may be repeated")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    found = sorted(p.parent for folder in args.folders for p in folder.rglob("meta.json") if (p.parent / "model.onnx").exists())
    found = [f for f in found if not args.only or any(fnmatch.fnmatch(f.name, n) for n in args.only)]
    short = 0
    tools = Tools(args.build, args.target, seconds=600)
    with ThreadPoolExecutor(args.jobs) as pool:
        for folder, result in zip(found, pool.map(lambda f: judge(f, tools), found)):
            if result:
                short += 1
                print(f"{folder.name}: {result[0]}: {result[1]}", flush=True)
    print(f"{len(found) - short} of {len(found)} models are right")
    sys.exit(short > 0 or not found)


main()
