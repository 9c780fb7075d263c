# SPDX-License-Identifier: Apache-2.0
"""How compiling grows with a model: a graph of many nodes, and a model with gigabytes of weights beside it.

    build/venv/bin/python bench/import.py                 # all of it, a Markdown table
    build/venv/bin/python bench/import.py --only blocks --nodes 5000

`blocks` is an encoder without biases, its norms and attention spelled out as exporters do (35 nodes a block); `chain` is one
elementwise operator after another; `wide` many values of one input that meet in a sum. `weights` has its external data in a
sparse file, so importing it is measured, and not the disk; it stops at the stage `imported`, which reads no weight.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

root = pathlib.Path(__file__).resolve().parent.parent
HIDDEN, HEADS = 32, 2


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(0)

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def const(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def matrix(self, rows, columns):
        return self.const(self.rng.standard_normal((rows, columns), np.float32) / np.float32(rows) ** 0.5)

    def model(self, x, shape):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(self.nodes, "grown", [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def norm(g, x, shared):
    mean = g.add("ReduceMean", x, axes=[-1])
    centred = g.add("Sub", x, mean)
    variance = g.add("ReduceMean", g.add("Pow", centred, shared["two"]), axes=[-1])
    scaled = g.add("Div", centred, g.add("Sqrt", g.add("Add", variance, shared["eps"])))
    return g.add("Mul", scaled, g.const(np.ones(HIDDEN, np.float32)))


def block(g, x, shared):
    def heads(value):
        return g.add("Transpose", g.add("Reshape", value, shared["split"]), perm=[0, 2, 1, 3])
    h = norm(g, x, shared)
    q, k, v = (g.add("MatMul", h, g.matrix(HIDDEN, HIDDEN)) for _ in range(3))
    k = g.add("Transpose", g.add("Reshape", k, shared["split"]), perm=[0, 2, 3, 1])
    scores = g.add("Softmax", g.add("MatMul", g.add("Mul", heads(q), shared["scale"]), k), axis=-1)
    joined = g.add("Reshape", g.add("Transpose", g.add("MatMul", scores, heads(v)), perm=[0, 2, 1, 3]), shared["join"])
    x = g.add("Add", x, g.add("MatMul", joined, g.matrix(HIDDEN, HIDDEN)))
    up = g.add("MatMul", norm(g, x, shared), g.matrix(HIDDEN, 2 * HIDDEN))
    return g.add("Add", x, g.add("MatMul", g.add("Relu", up), g.matrix(2 * HIDDEN, HIDDEN)))


def blocks(count):
    g = Graph()
    shared = {"two": g.const(np.float32(2)), "eps": g.const(np.float32(1e-5)), "scale": g.const(np.float32(0.25)),
              "split": g.const(np.array([0, 0, HEADS, HIDDEN // HEADS], np.int64)), "join": g.const(np.array([0, 0, HIDDEN], np.int64))}
    x = "x"
    while len(g.nodes) < count:
        x = block(g, x, shared)
    return g.model("x", ["batch", "sequence", HIDDEN])


def chain(count):
    g, x = Graph(), "x"
    ops = ["Relu", "Tanh", "Sigmoid", "Neg", "Abs"]
    for i in range(count):
        x = g.add(ops[i % len(ops)], x)
    return g.model("x", ["batch", HIDDEN])


def wide(count):
    g = Graph()
    ops = ["Relu", "Tanh", "Sigmoid", "Neg", "Abs"]
    total = g.add("Neg", "x")
    while len(g.nodes) < count:
        total = g.add("Add", total, g.add(ops[len(g.nodes) // 2 % len(ops)], "x"))
    return g.model("x", ["batch", HIDDEN])


def weights(folder, gigabytes):
    width, g, x = 2048, Graph(), "x"
    each = width * width * 4
    count = round(gigabytes * 1e9 / each)
    for i in range(count):
        name = f"w{i}"
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[width, width], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "model.onnx.data"), ("offset", i * each), ("length", each)):
            tensor.external_data.add(key=key, value=str(value))
        g.weights.append(tensor)
        x = g.add("Relu", g.add("MatMul", x, name))
    with open(folder / "model.onnx.data", "wb") as data:
        data.truncate(count * each)
    return g.model("x", ["batch", width])


def watch(command):
    """Seconds, seconds of CPU, and the largest RssAnon in bytes: pages of mapped files are not the process's own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    error, peak, status = [], 0, pathlib.Path(f"/proc/{process.pid}/status")
    reader = threading.Thread(target=lambda: error.append(process.stderr.read()))
    reader.start()
    while process.poll() is None:
        try:
            line = next(l for l in status.read_text().splitlines() if l.startswith("RssAnon:"))
            peak = max(peak, int(line.split()[1]) * 1024)
        except (OSError, StopIteration):
            pass  # it is just ending
        time.sleep(0.005)
    seconds = time.monotonic() - start
    reader.join()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {error[0].strip()[:500]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 10000, 20000])
    parser.add_argument("--gigabytes", type=float, default=3)
    parser.add_argument("--only", nargs="+", choices=("blocks", "chain", "wide", "weights"), default=["blocks", "chain", "wide", "weights"])
    parser.add_argument("--emit", default="plan", help="stage at which to stop")
    parser.add_argument("--repeat", type=int, default=1, help="the quickest counts")
    args = parser.parse_args()
    compiler = args.build / "bin/otf-compile"
    print("| model | nodes | seconds | CPU seconds | own memory, MB |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(prefix="otf-import-") as folder:
        folder = pathlib.Path(folder)

        def measure(name, model, emit):
            path = folder / "model.onnx"
            onnx.save(model, path)
            command = [compiler, path, "-o", folder / "out", "--emit", emit]
            seconds, cpu, peak = min(watch(command) for _ in range(args.repeat))
            print(f"| {name} | {len(model.graph.node)} | {seconds:.1f} | {cpu:.1f} | {peak / 1e6:.0f} |", flush=True)

        for kind in args.only:
            if kind == "weights":
                model = weights(folder, args.gigabytes)
                size = os.stat(folder / "model.onnx.data").st_size
                measure(f"weights, {size / 1e9:.2f} GB, imported", model, "imported")
                continue
            for count in args.nodes:
                measure(kind, {"blocks": blocks, "chain": chain, "wide": wide}[kind](count), args.emit)


main()
