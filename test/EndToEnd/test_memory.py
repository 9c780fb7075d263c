# SPDX-License-Identifier: Apache-2.0
"""otf-compile's own memory does not grow with the model: at most 150 MB, whatever is compiled."""
import json
import pathlib
import re
import tempfile
import unittest

import numpy as np
import otf
from onnx import helper
from test_calibrate import save

LIMIT = 150e6


class Memory(unittest.TestCase):
    def check(self, *command):
        status, error, peak = otf.peak_anonymous(otf.tool("otf-compile"), *command)
        self.assertEqual(0, status, error)
        self.assertGreater(peak, 1e6, "the watch saw nothing")
        self.assertLessEqual(peak, LIMIT)

    def test_smollm2(self):
        if not otf.smollm2["f32"]:
            self.skipTest("the f32 folder is not there (utils/check makes it)")
        with tempfile.TemporaryDirectory() as folder:
            for recipe in ("rtn8", "rtn4"):
                with self.subTest(recipe=recipe):
                    self.check(otf.smollm2["f32"], "-o", pathlib.Path(folder) / "m.plan", f"--recipe={recipe}")

    def test_four_gigabytes(self):
        # 100 layers of 3240 x 3240 f32 are 4.2 GB. The data file is a hole, so it takes no disk; a dry run encodes
        # everything and writes nothing.
        with tempfile.TemporaryDirectory() as folder:
            model = big_model(pathlib.Path(folder), layers=100, width=3240)
            self.assertGreater((model.parent / "model.onnx_data").stat().st_size, 4e9)
            self.check(model, "--dry-run", "--recipe=rtn8")

    def test_many_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(big_model(pathlib.Path(folder), layers=10, width=3240), "--dry-run", "--recipe=rtn8", "--threads=64")


class MostMemory(unittest.TestCase):
    """--max-host-memory is kept, or refused with what would do."""

    def test_feedback_on_wide_rows(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wide = 2048
            rng = np.random.default_rng(1)
            save(folder / "model.onnx", [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Neg", ["p"], ["y"])],
                 {"w": rng.standard_normal((wide, 64)).astype(np.float32)}, [("x", ["n", wide])], [("y", ["n", 64])])
            (folder / "samples").mkdir()
            np.save(folder / "samples" / "x.npy", rng.standard_normal((64, wide)).astype(np.float32))
            (folder / "r.json").write_text(json.dumps({"name": "r", "linear": "int4", "rounding": "feedback", "rotation": "kronecker"}))
            command = [otf.tool("otf-compile"), folder / "model.onnx", f"--recipe={folder / 'r.json'}", "--cpu-arch=native"]
            calibrate = [*command, "-o", folder / "free.plan", f"--calibrate={folder / 'samples'}"]
            otf.succeed(*calibrate)
            limited = [*command, "-o", folder / "m.plan"]
            status, out, error = otf.call(*limited, "--max-host-memory=64MB")
            self.assertEqual((1, ""), (status, out), error)
            found = re.search(r"with 2 threads takes (\d+)MB of memory, and --max-host-memory allows 64MB \(give more, or fewer --threads\)", error)
            self.assertIsNotNone(found, error)
            self.assertFalse((folder / "m.plan").exists())
            needed = int(found[1])
            self.assertGreater(needed, 84)  # 20 bytes for each of 2048 x 2048
            status, error, peak = otf.peak_anonymous(*limited, f"--max-host-memory={needed + 10}MB")
            self.assertEqual(0, status, error)
            self.assertLessEqual(peak, (needed + 10) * 1e6)
            self.assertEqual((folder / "free.plan").read_bytes(), (folder / "m.plan").read_bytes())


def big_model(folder, layers, width):
    from onnx import TensorProto, helper
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width],
                             data_location=TensorProto.EXTERNAL)
        length = width * width * 4
        for key, value in (("location", "model.onnx_data"), ("offset", i * length), ("length", length)):
            weight.external_data.add(key=key, value=str(value))
        weights.append(weight)
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"y{i}"])]
        last = f"y{i}"
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
    graph = helper.make_graph(nodes, "big", [value("x")], [value(last)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with open(folder / "model.onnx_data", "wb") as data:
        data.truncate(layers * width * width * 4)
    return folder / "model.onnx"
