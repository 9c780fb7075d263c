# SPDX-License-Identifier: Apache-2.0
"""Budgets: bits go where errors cost most, what is foretold is about what comes, and what cannot be is said."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
import otf
from onnx import TensorProto, helper, numpy_helper
from test_calibrate import save


def network(path):
    """Four matrices; the output hardly depends on the branch through w2 and w3."""
    rng = np.random.default_rng(3)
    draw = lambda rows, columns: (rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
    weights = {"w1": draw(64, 128), "w2": draw(128, 128), "w3": draw(128, 128), "w4": draw(128, 64), "small": np.float32([0.02])}
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w1"], ["1"]), node("Tanh", ["1"], ["h"]),
             node("MatMul", ["h", "w2"], ["2"]), node("Tanh", ["2"], ["3"]), node("MatMul", ["3", "w3"], ["4"]), node("Mul", ["4", "small"], ["5"]),
             node("Add", ["h", "5"], ["6"]), node("MatMul", ["6", "w4"], ["7"]), node("Neg", ["7"], ["y"])]  # negated, so that w4 is no head
    save(path, nodes, weights, [("x", ["n", 64])], [("y", ["n", 64])])
    return {name: array.astype(np.float64) for name, array in weights.items()}


class Budget(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model, self.plan = self.folder / "model.onnx", self.folder / "model.plan"
        w = network(self.model)
        rng = np.random.default_rng(4)
        (self.folder / "samples").mkdir()
        np.save(self.folder / "samples" / "x.npy", rng.standard_normal((64, 8, 64)).astype(np.float32))
        self.x = rng.standard_normal((200, 64)).astype(np.float32)
        h = np.tanh(self.x.astype(np.float64) @ w["w1"])
        self.exact = -(h + np.tanh(h @ w["w2"]) @ w["w3"] * w["small"]) @ w["w4"]
        self.sensitivities = self.folder / "model.onnx.sensitivities.json"

    def compile(self, *flags):
        report = self.folder / "report.json"
        said = otf.succeed(otf.tool("otf-compile"), self.model, "-o", self.plan, f"--report={report}", *flags)
        tensors = {t["name"]: t for t in json.loads(report.read_text())["tensors"] if "planes" in t["kept"] or "int8" in t["kept"]}
        error = np.sum((otf.run(self.plan, {"x": self.x})["y"] - self.exact) ** 2) / np.sum(self.exact**2)
        return said, tensors, error

    def refuse(self, *flags):
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.plan, *flags)
        self.assertEqual(1, status, out + error)
        self.assertEqual(1, error.count("error: "), error)
        self.assertFalse(self.plan.exists())
        return error

    def test_bits_go_where_errors_cost(self):
        self.assertIn("nothing is known of activations (give --calibrate=TEXT, or a folder of .npy)", self.refuse("--budget=3bpw"))
        said, tensors, error = self.compile("--budget=3.2bpw", f"--calibrate={self.folder / 'samples'}")
        bits = {name: tensor["bits"] for name, tensor in tensors.items()}
        self.assertEqual({"w1", "w2", "w3", "w4"}, set(bits))
        self.assertGreater(min(bits["w1"], bits["w4"]), max(bits["w2"], bits["w3"]))
        self.assertLessEqual(sum(t["bytes"] for t in tensors.values()) * 8, 3.2 * sum(t["rows"] * t["columns"] for t in tensors.values()))
        self.assertTrue(all(t["foretold_loss"] >= 0 for t in tensors.values()))
        # The same bits for all of them lose more.
        uniform = self.folder / "uniform.json"
        uniform.write_text(json.dumps({"name": "u", "linear": "planes3x3", "group": 0, "rotation": "kronecker", "seed": 1, "rounding": "feedback",
                                       "vocabulary": "f32"}))
        _, alike, error_alike = self.compile(f"--recipe={uniform}")
        self.assertLess(sum(t["bytes"] for t in tensors.values()), 1.06 * sum(t["bytes"] for t in alike.values()))
        self.assertLess(error, 0.7 * error_alike)
        # What was foretold, to a third; int8 activations add their part.
        foretold = float(said.split("error ")[1].split(" foretold")[0])
        self.assertLess(abs(error / foretold - 1), 0.4, said)

    def test_of_one_measurement_all_budgets_and_the_same_bytes(self):
        self.compile("--budget=3bpw", f"--calibrate={self.folder / 'samples'}", "--threads=2")
        plan, measured = self.plan.read_bytes(), self.sensitivities.read_bytes()
        self.compile("--budget=3bpw", "--threads=1")
        self.assertEqual(plan, self.plan.read_bytes())
        said, _, _ = self.compile("--budget=kl=0.004")
        self.assertIn("kl=0.004 were spent on ", said)
        self.assertLessEqual(float(said.split("error ")[1].split(" foretold")[0]), 0.004)
        self.compile("--recipe=auto", "--budget=0.02MB")
        self.assertIn("using ", otf.succeed(otf.tool("otf-compile"), self.model, "--dry-run", "--budget=3bpw", f"--calibrate={self.folder / 'samples'}"))
        self.sensitivities.unlink()
        otf.succeed(otf.tool("otf-compile"), self.model, "--dry-run", "--budget=3bpw", f"--calibrate={self.folder / 'samples'}", "--threads=1")
        self.assertEqual(measured, self.sensitivities.read_bytes())
        self.assertEqual([], [p for p in self.folder.iterdir() if p.name.endswith((".plan", ".errors")) and p != self.plan])

    def test_a_budget_of_bytes_is_spent_on_tables_too(self):
        rng = np.random.default_rng(5)
        table, w = rng.standard_normal((400, 64)).astype(np.float32), rng.standard_normal((64, 128)).astype(np.float32) / 8
        nodes = [helper.make_node("Gather", ["table", "ids"], ["e"]), helper.make_node("MatMul", ["e", "w"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 128])],
                                  [numpy_helper.from_array(table, "table"), numpy_helper.from_array(w, "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(self.model))
        (self.folder / "samples" / "x.npy").unlink()
        np.save(self.folder / "samples" / "ids.npy", rng.integers(0, 400, (16, 32)))

        def encodings(budget, *flags):
            report = self.folder / "report.json"
            said = otf.succeed(otf.tool("otf-compile"), self.model, "-o", self.plan, f"--budget={budget}", f"--report={report}", *flags)
            return {t["name"]: t["kept"] for t in json.loads(report.read_text())["tensors"]}, said

        kept, _ = encodings("3bpw", f"--calibrate={self.folder / 'samples'}")
        self.assertIn("int8, group = 32", kept["table"])  # bits are those of linears
        self.assertEqual({"table"}, set(json.loads(self.sensitivities.read_text())["tables"]))
        kept, said = encodings("0.018MB")
        self.assertIn("int4, group = 32", kept["table"])
        self.assertIn("1 table int4 with a scale each 32", said)
        self.assertIn("int8", encodings("0.04MB")[0]["table"])
        self.assertIn("cannot be met: the least that is possible is 0.01", self.refused("0.01MB"))

    def refused(self, budget):
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "-o", self.folder / "none.plan", f"--budget={budget}")
        self.assertEqual(1, status, out + error)
        return error

    def test_what_cannot_be(self):
        otf.succeed(otf.tool("otf-compile"), self.model, "--dry-run", "--budget=3bpw", f"--calibrate={self.folder / 'samples'}")
        self.assertIn("the budget 0.4bpw cannot be met: the least that is possible is 1.", self.refuse("--budget=0.4bpw"))
        self.assertIn("the budget kl=0.00000001 cannot be met: the least that is possible is a loss of ", self.refuse("--budget=kl=0.00000001"))
        self.assertIn("a budget looks like 2.5bpw, 1.2GB or kl=0.05, not '3'", self.refuse("--budget=3"))
        self.assertIn("recipe 'rtn4' has nothing to choose among", self.refuse("--recipe=rtn4", "--budget=3bpw"))
        recipe = self.folder / "r.json"
        for keys, what in (({"choices": ["planes3x2"]}, "'linear' must be one of 'choices'"), ({"budget": "2bpw"}, "'budget' needs 'choices'"),
                           ({"choices": ["planes3x3", "f16"], "budget": "2bpw"}, "'choices' names 'f16', and may name int4, int8 and planes"),
                           ({"choices": ["planes3x3"]}, "'choices' need a 'budget'"), ({"vocabulary-choices": ["int8:32"]}, "'vocabulary-choices' need 'choices'"),
                           ({"choices": ["planes3x3"], "budget": "2bpw", "vocabulary": "int8", "vocabulary-choices": ["int8"]}, "each with its group: int8:32"),
                           ({"choices": ["planes3x3"], "budget": "2bpw", "vocabulary": "int8", "vocabulary-choices": ["int4:32"]}, "'vocabulary' must be one of"),
                           ({"scale": "f32"}, "'scale' of f32 is for 'linear' of int8 or int4, and it is planes3x3"),
                           ({"choices": ["planes3x3"], "budget": "2bpw", "outliers": 0.1}, "'choices' go with none of"),
                           ({"choices": ["planes3x3"], "budget": "2bpw", "group": 0}, "this was measured for other errors")):
            recipe.write_text(json.dumps({"name": "r", "linear": "planes3x3", **keys}))
            self.assertIn(what, self.refuse(f"--recipe={recipe}"))
        kept = json.loads(self.sensitivities.read_text())
        for change, what in (({"model": "x"}, "this was measured on another model"), ({"noise": 0}, "'noise' must be above 0"),
                             ({"weights": {"w1": -1}}, "the loss of 'w1' must be a number from 0 on"), ({"weights": {}}, "was not measured"),
                             ({"together": [[2, 1], [1, 1]]}, "both ascending"), ({"format": "y"}, "is no file of sensitivities of this version")):
            self.sensitivities.write_text(json.dumps({**kept, **change}))
            self.assertIn(what, self.refuse("--budget=3bpw"))
        self.sensitivities.write_text("{")
        self.assertIn("is no file of sensitivities (measure again with --calibrate)", self.refuse("--budget=3bpw"))


if __name__ == "__main__":
    unittest.main()
