# SPDX-License-Identifier: Apache-2.0
"""Tiny models by real exporters against what ONNX Runtime made of them, without quantization."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import otf


def load(folder):
    return {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}


def attended(name, array, mask):
    """The part of an output that belongs to real positions; padding may hold anything."""
    if name == "logits":  # [batch, sequence, vocabulary]
        return array[mask[:, -array.shape[1]:] == 1]
    if name.startswith(("present.", "cache.")):  # [batch, heads, positions, width]
        return array.swapaxes(1, 2)[mask == 1]
    return array


class Decoders(unittest.TestCase):
    def check(self, name):
        folder = otf.fixtures / name
        meta = json.loads((folder / "meta.json").read_text())
        plan = otf.plan(folder / "model.onnx")
        for case in meta["cases"]:
            with self.subTest(case=case):
                inputs, expected = load(folder / "io" / case / "in"), load(folder / "io" / case / "out")
                got = otf.run(plan, inputs)
                self.assertEqual(set(expected), set(got))
                for tensor, want in expected.items():
                    self.assertEqual(want.shape, got[tensor].shape, tensor)
                    self.assertEqual(want.dtype, got[tensor].dtype, tensor)
                    a, b = want, got[tensor]
                    if "attention_mask" in inputs:
                        a, b = (attended(tensor, x, inputs["attention_mask"]) for x in (a, b))
                    worst = np.abs(a.astype(np.float64) - b).max(initial=0)
                    self.assertLessEqual(worst, meta["tolerance"], tensor)

    def test_llama(self):
        self.check("llama-optimum")

    def test_qwen2(self):
        self.check("qwen2-optimum")

    def test_gpt2(self):
        self.check("gpt2-optimum")

    def test_gemma2(self):
        self.check("gemma2-optimum")

    def test_llama_genai(self):
        self.check("llama-genai-fp32")

    def test_gemma2_genai(self):
        self.check("gemma2-genai-fp32")

    def test_llama_opset23(self):
        self.check("llama-opset23")

    def test_llama_mobius(self):
        self.check("llama-mobius")

    def test_llama_mobius_static(self):
        self.check("llama-mobius-static")

    def test_gpt2_mobius(self):
        self.check("gpt2-mobius")

    def test_exporters_reach_one_form(self):
        """What a llama is made of, whoever wrote it. The genai builder packs queries, keys and values in one linear."""
        for name, linears in (("optimum", 15), ("genai-fp32", 11), ("opset23", 15), ("mobius", 15)):
            with self.subTest(exporter=name):
                text = otf.succeed(otf.tool("otf-compile"), otf.fixtures / f"llama-{name}" / "model.onnx", "--emit=annotated",
                                   "-o", "-")
                count = lambda op: text.count(f" otf.{op} ")
                self.assertEqual([linears, 1, 5, 4, 4, 2, 2, 4], [count(op) for op in (
                    "linear", "embedding", "norm", "rope", "append", "attention", "gated_activation", "state")])


    def test_code_for_each_instruction_set(self):
        """All of them by default, and where one is named that one."""
        model = otf.fixtures / "digits" / "model.onnx"
        with tempfile.TemporaryDirectory() as folder:
            def levels(*flags):
                plan = pathlib.Path(folder) / "p.plan"
                subprocess.run([otf.tool("otf-compile"), model, "-o", plan, "--recipe=rtn8", *flags], check=True, stdout=subprocess.DEVNULL)
                return [code["level"] for code in json.loads(otf.succeed(otf.tool("otf-exec"), "info", plan, "--json"))["code"]]
            both = ["avx2", "avx512vnni"]
            self.assertEqual(both, levels())
            self.assertEqual(both[1:], levels("--cpu-arch=avx512vnni"))
            native = levels("--cpu-arch=native")
            self.assertIn(native, (both[:1], both[1:]))
            self.assertIn(f"cpu ({native[0]})", otf.succeed(otf.tool("otf-exec"), "info", otf.plan(model)))
            self.assertEqual(["avx2"] if native == ["avx2"] else both, levels("--cpu-arch=avx2,native,avx2"))


class Digits(unittest.TestCase):
    """The 64-64-10 classifier, on inputs that numpy can compute too."""

    def setUp(self):
        import onnx
        from onnx import numpy_helper
        path = otf.fixtures / "digits" / "model.onnx"
        graph = onnx.load(str(path)).graph
        self.plan = otf.plan(path)
        self.weights = {i.name: numpy_helper.to_array(i).astype(np.float64) for i in graph.initializer}
        self.nodes = graph.node

    def reference(self, x):
        values = {"pixels": x.astype(np.float64), **self.weights}
        for node in self.nodes:
            inputs = [values[name] for name in node.input]
            if node.op_type == "Relu":
                values[node.output[0]] = np.maximum(inputs[0], 0)
                continue
            turned = any(a.name == "transB" and a.i for a in node.attribute)
            values[node.output[0]] = inputs[0] @ (inputs[1].T if turned else inputs[1]) + inputs[2]
        return values["logits"]

    def test_every_batch_size(self):
        rng = np.random.default_rng(0)
        for batch in (1, 2, 7, 8, 9, 33):
            with self.subTest(batch=batch):
                x = (rng.integers(0, 17, (batch, 64)) / 16).astype(np.float32)
                want, got = self.reference(x), otf.run(self.plan, {"pixels": x})["logits"]
                self.assertLessEqual(np.linalg.norm(want - got), 1e-5 * np.linalg.norm(want))
