# SPDX-License-Identifier: Apache-2.0
"""Calibration: what the statistics are, who finds them, what is refused, and the recipe that cannot do without."""
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np
import onnx
import otf
from onnx import TensorProto, helper, numpy_helper

DTYPES = {"I64": np.int64, "F64": np.float64, "F32": np.float32}


def read(path):
    """Metadata and tensors of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return metadata, tensors


def full(packed, channels):
    matrix = np.zeros((channels, channels))
    matrix[np.tril_indices(channels)] = packed
    return matrix + np.tril(matrix, -1).T


def save(path, nodes, weights, inputs, outputs):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "test", [value(*i) for i in inputs], [value(*o) for o in outputs],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def mlp(path, hidden=80, seed=0):
    rng = np.random.default_rng(seed)
    weights = {"w1": rng.standard_normal((50, hidden)).astype(np.float32) / 7, "b1": rng.standard_normal(hidden).astype(np.float32),
               "w2": rng.standard_normal((hidden, 10)).astype(np.float32) / 9}
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["a"]), helper.make_node("Relu", ["a"], ["h"]),
             helper.make_node("MatMul", ["h", "w2"], ["y"])]
    save(path, nodes, weights, [("x", ["n", 50])], [("y", ["n", 10])])
    return weights


def cnn(path):
    """Three convolutions, of which one is depthwise, then a classifier."""
    rng = np.random.default_rng(5)
    draw = lambda *shape: (rng.standard_normal(shape) * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
    weights = {"c1": draw(16, 3, 3, 3), "b1": draw(16), "c2": draw(16, 1, 3, 3), "c3": draw(32, 16, 3, 3), "b3": draw(32), "fc": draw(10, 32)}
    node = helper.make_node
    nodes = [node("Conv", ["image", "c1", "b1"], ["1"], pads=[1, 1, 1, 1]), node("Relu", ["1"], ["2"]),
             node("Conv", ["2", "c2"], ["3"], group=16, pads=[1, 1, 1, 1]), node("Relu", ["3"], ["4"]),
             node("Conv", ["4", "c3", "b3"], ["5"], strides=[2, 2], pads=[1, 1, 1, 1]), node("Relu", ["5"], ["6"]),
             node("GlobalAveragePool", ["6"], ["7"]), node("Flatten", ["7"], ["8"]), node("Gemm", ["8", "fc"], ["scores"], transB=1)]
    save(path, nodes, weights, [("image", ["n", 3, 32, 32])], [("scores", ["n", 10])])


def tokenizer():
    """One token a byte, numbered by the byte; letters are those of byte-level vocabularies."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = (chr(256 + i) for i in range(256))
    vocabulary = {chr(b) if b in visible else next(hidden): b for b in range(256)}
    return json.dumps({"version": "1.0", "added_tokens": [], "normalizer": None,
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                       "post_processor": None, "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": vocabulary, "merges": []}})


class Calibrate(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model.onnx"
        self.statistics = self.folder / "model.onnx.calibration.safetensors"
        self.plan = self.folder / "model.plan"

    def samples(self, **arrays):
        folder = self.folder / "samples"
        folder.mkdir(exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        return folder

    def compile(self, *flags):
        return otf.succeed(otf.tool("otf-compile"), self.model, "-o", self.plan, *flags)

    def refuse(self, *flags):
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, *flags)
        self.assertEqual(1, status, out + error)
        self.assertEqual(1, error.count("error: "), error)
        self.assertFalse(self.plan.exists())
        return error

    def assertNothingLeft(self, *expected):
        names = {path.name for path in self.folder.iterdir()}
        self.assertEqual(set(expected), names - {"samples"})

    def test_statistics_of_an_mlp(self):
        weights = mlp(self.model)
        x = np.random.default_rng(1).standard_normal((70, 50)).astype(np.float32)
        x[:, 7] *= 100
        self.compile("--recipe=none", f"--calibrate={self.samples(x=x)}")
        metadata, tensors = read(self.statistics)
        h = np.maximum(x.astype(np.float64) @ weights["w1"] + weights["b1"], 0)
        self.assertEqual({"w1": "w1", "w2": "w2"}, json.loads(metadata["weights"]))
        for name, value in (("w1", x.astype(np.float64)), ("w2", h)):
            self.assertEqual(70, tensors[f"{name}/rows"][0])
            moments = tensors[f"{name}/moments"]
            scale = np.abs(value).sum(0).max()
            for row, expected in enumerate((value.sum(0), np.abs(value).sum(0), (value**2).sum(0), np.minimum(value.min(0), 0), np.maximum(value.max(0), 0))):
                np.testing.assert_allclose(moments[row], expected, rtol=1e-5, atol=1e-6 * scale)
            products = full(tensors[f"{name}/products"], value.shape[1])
            np.testing.assert_allclose(products, value.T @ value, rtol=0, atol=2e-6 * np.abs(value).T.dot(np.abs(value)).max())
            histogram = tensors[f"{name}/histogram"]
            self.assertEqual(value.size, histogram.sum())
        expected = np.bincount(x.view(np.uint32).ravel() >> 20, minlength=4096)
        np.testing.assert_array_equal(expected, tensors["w1/histogram"])
        # Zeros of a ReLU are in bin 0, and nothing is negative.
        self.assertGreater(tensors["w2/histogram"][0], 70)
        self.assertEqual(0, tensors["w2/histogram"][2048:].sum())

    def test_threads_and_runs_change_no_bit(self):
        cnn(self.model)
        images = self.samples(image=np.random.default_rng(2).standard_normal((3, 3, 32, 32)).astype(np.float32))
        bytes_of = []
        for threads in (1, 2, 3):
            self.compile(f"--calibrate={images}", f"--threads={threads}")
            bytes_of.append(self.statistics.read_bytes())
            self.statistics.unlink()
        self.assertEqual(bytes_of[0], bytes_of[1])
        self.assertEqual(bytes_of[0], bytes_of[2])
        tensors = read_tensors(bytes_of[0])
        self.assertEqual(3 * 32 * 32, tensors["c1/rows"][0])
        self.assertEqual((5, 27), tensors["c1/moments"].shape)
        self.assertEqual(3 * 16 * 16, tensors["c3/rows"][0])

    def test_once_for_all_recipes(self):
        mlp(self.model)
        x = np.random.default_rng(3).standard_normal((64, 50)).astype(np.float32)
        x[:, 3:6] *= 30
        samples = self.samples(x=x)
        recipe = self.folder / "r.json"
        recipe.write_text('{"name": "r", "linear": "int4", "outliers": 0.06}')
        report = self.folder / "report.json"
        self.assertIn("64 samples", self.compile(f"--calibrate={samples}"))
        made = self.statistics.stat().st_mtime_ns
        self.compile(f"--recipe={recipe}", f"--report={report}")
        told = json.loads(report.read_text())
        self.assertIn("64 samples", told["calibration"]["source"])
        self.assertEqual({"column norm times mean |x|"}, {t["outliers_by"] for t in told["tensors"] if t["outliers"]})
        annotated = otf.succeed(otf.tool("otf-compile"), self.model, "--emit=annotated", f"--recipe={recipe}")
        self.assertIn("outliers = #otf.outliers<[3, 4, 5]>", annotated)
        # Asked for again, they are used as they are; told not to, nobody looks.
        self.assertIn("using", self.compile(f"--calibrate={samples}"))
        self.assertEqual(made, self.statistics.stat().st_mtime_ns)
        self.assertIn('otf.scored_by = "column norm"', otf.succeed(otf.tool("otf-compile"), self.model, "--emit=annotated", f"--recipe={recipe}", "--calibrate=none"))
        moved = self.folder / "elsewhere.safetensors"
        self.statistics.rename(moved)
        self.assertIn("times mean", otf.succeed(otf.tool("otf-compile"), self.model, "--emit=annotated", f"--recipe={recipe}", f"--calibrate={moved}"))

    def test_statistics_of_another_model(self):
        mlp(self.model)
        samples = self.samples(x=np.ones((4, 50), np.float32))
        self.compile(f"--calibrate={samples}")
        self.plan.unlink()
        mlp(self.model, seed=1)
        error = self.refuse("--recipe=w8a8")
        self.assertIn("these statistics are of another model", error)
        self.assertRegex(error, r"they are of [0-9a-f]{32}, and .* is [0-9a-f]{32}")
        self.statistics.write_bytes(self.statistics.read_bytes()[:-8])
        self.assertIn("(was it cut?)", self.refuse("--recipe=w8a8"))
        self.compile("--recipe=w8a8", f"--calibrate={samples}")  # makes them anew

    def test_a_moved_model_keeps_its_statistics(self):
        mlp(self.model)
        self.compile(f"--calibrate={self.samples(x=np.ones((4, 50), np.float32))}")
        other = self.folder / "other"
        other.mkdir()
        for path in (self.model, self.statistics):
            path.rename(other / path.name)
        self.model = other / "model.onnx"
        self.compile("--recipe=w8a8")

    def test_samples_that_do_not_fit(self):
        mlp(self.model)
        good = np.ones((4, 50), np.float32)
        self.assertIn("has no x.npy for input 'x'", self.refuse(f"--calibrate={self.samples()}"))
        self.assertIn("z.npy: is no input of the model", self.refuse(f"--calibrate={self.samples(x=good, z=good)}"))
        (self.folder / "samples/z.npy").unlink()
        self.assertIn("expected elements of type f32, found f64", self.refuse(f"--calibrate={self.samples(x=good.astype(np.float64))}"))
        self.assertIn("has 1 axes, and input 'x' has 2", self.refuse(f"--calibrate={self.samples(x=good[0])}"))
        self.assertIn("has 0 samples", self.refuse(f"--calibrate={self.samples(x=good[:0])}"))
        self.assertIn("expected 50", self.refuse(f"--calibrate={self.samples(x=good[:, :49])}"))
        (self.folder / "samples/x.npy").write_text("no array")
        self.assertIn("x.npy: ", self.refuse(f"--calibrate={self.folder / 'samples'}"))
        self.assertIn("--calibrate takes", self.refuse(f"--calibrate={self.folder / 'nothing'}"))
        self.assertNothingLeft("model.onnx")

    def test_nan_and_infinity_are_named(self):
        mlp(self.model)
        x = np.ones((4, 50), np.float32)
        for value, text in ((np.nan, "NaN"), (np.inf, "infinite"), (3e30, "too large")):
            x[2, 9] = value
            error = self.refuse(f"--calibrate={self.samples(x=x)}")
            self.assertIn("w1: what this weight is multiplied with is NaN, infinite or too large at channel 9", error)
        self.assertNothingLeft("model.onnx")
        x[2, 9] = np.nan
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, f"--calibrate={self.samples(x=x)}", "--allow-nonfinite")
        self.assertEqual(0, status, error)
        self.assertIn("left out, of what these weights are multiplied with: w1, w2\n", error)
        self.assertEqual({}, json.loads(read(self.statistics)[0]["weights"]))

    def test_static_int8_needs_calibration(self):
        mlp(self.model)
        self.assertIn("give --calibrate", self.refuse("--recipe=w8a8"))
        self.assertIn("give --calibrate", self.refuse("--recipe=w8a8", "--calibrate=none"))
        bad = self.folder / "r.json"
        bad.write_text('{"name": "r", "linear": "int4", "activations": "static"}')
        self.assertIn("need 'linear' of int8", self.refuse(f"--recipe={bad}"))

    def check_static(self, make, shape, name, output):
        make(self.model)
        rng = np.random.default_rng(7)
        self.compile("--recipe=w8a8", f"--calibrate={self.samples(**{name: rng.standard_normal((16, *shape)).astype(np.float32)})}",
                     f"--report={self.folder / 'report.json'}")
        tensors = [t for t in json.loads((self.folder / "report.json").read_text())["tensors"] if "activations" in t]
        self.assertEqual({"int8, one calibrated range"}, {t["activations"] for t in tensors if not t["vocabulary"]})
        self.assertEqual([True] * len(tensors), [1e-3 < t["relative_error"] < 0.02 for t in tensors])
        inputs = {name: rng.standard_normal((5, *shape)).astype(np.float32)}
        plain = self.folder / "plain.plan"
        otf.succeed(otf.tool("otf-compile"), self.model, "-o", plain)
        ours, exact = (otf.run(plan, inputs)[output].ravel().astype(np.float64) for plan in (self.plan, plain))
        cosine = ours @ exact / np.linalg.norm(ours) / np.linalg.norm(exact)
        self.assertGreater(cosine, 0.9995)
        self.assertLess(cosine, 1 - 1e-9)  # it is not f32 after all
        return cosine

    def test_static_int8_mlp(self):
        self.check_static(mlp, (50,), "x", "y")

    def test_static_int8_cnn(self):
        self.check_static(cnn, (3, 32, 32), "image", "scores")

    def test_texts(self):
        shutil.copy(otf.fixtures / "llama-optimum" / "model.onnx", self.model)
        text = self.folder / "text.txt"
        text.write_text("The river leaves the hills a little above the old mill. " * 40)
        self.assertIn("tokenizer: there is none beside the model", self.refuse(f"--calibrate={text}"))
        (self.folder / "tokenizer.json").write_text(tokenizer())
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, f"--calibrate={text}", "--calibrate-tokens=256")
        self.assertEqual(0, status, error)
        self.assertIn("256 tokens are few for linears of 80 channels", error)
        metadata, tensors = read(self.statistics)
        named = json.loads(metadata["weights"])
        weights = {name: its for name, its in named.items() if not name.startswith("cache:")}
        sets = set(weights.values())
        # Keys and values of two layers, two heads each; they have no products.
        caches = sorted(named.keys() - weights.keys())
        self.assertEqual([(512, 0)] * 4, [(int(tensors[f"{name}/rows"][0]), tensors[f"{name}/products"].size) for name in caches])
        # q, k, v and gate, up share theirs: four sets a layer, and the head.
        self.assertEqual((15, 9), (len(weights), len(sets)))
        self.assertEqual({256}, {int(tensors[f"{name}/rows"][0]) for name in sets})
        self.statistics.unlink()
        self.plan.unlink()
        text.write_text("short")
        self.assertIn("the text is too short: 5 tokens, and one window takes", self.refuse(f"--calibrate={text}"))
        text.write_bytes("€ÿ".encode() * 4000)
        self.assertIn("is the tokenizer this model's?", self.refuse(f"--calibrate={text}"))
        text.write_text("")
        self.assertIn("the text is too short", self.refuse(f"--calibrate={text}"))
        self.assertIn("regular file", self.refuse("--calibrate=/dev/zero"))
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, "--calibrate=default")
        self.assertEqual(0, status, error)
        self.assertIn("tokens of the built-in text", out)

    def test_a_model_without_tokens_takes_no_text(self):
        mlp(self.model)
        text = self.folder / "text.txt"
        text.write_text("text " * 1000)
        self.assertIn("input 'x': does not follow from a text", self.refuse(f"--calibrate={text}"))

    def test_killed_runs_leave_nothing(self):
        mlp(self.model, hidden=900)
        samples = self.samples(x=np.random.default_rng(4).standard_normal((4000, 50)).astype(np.float32))
        for delay in (0.05, 0.2, 0.4, 0.7, 1.0):
            process = subprocess.Popen([otf.tool("otf-compile"), self.model, "--dry-run", f"--calibrate={samples}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if self.statistics.exists():  # it was quicker
                read(self.statistics)
                self.statistics.unlink()
            self.assertNothingLeft("model.onnx")

    def test_places_that_cannot_be_written(self):
        mlp(self.model)
        samples = self.samples(x=np.ones((2, 50), np.float32))
        error = self.refuse(f"--calibrate={samples}", f"--calibration-out={self.folder}/none/there")
        self.assertIn("cannot be", error)
        self.assertIn("is not the name of a regular file", self.refuse(f"--calibrate={samples}", f"--calibration-out={self.folder}"))
        status, _, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, "--calibration-out=x")
        self.assertEqual(2, status)


def read_tensors(data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return read(file.name)[1]
