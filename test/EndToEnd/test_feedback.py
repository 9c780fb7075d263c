# SPDX-License-Identifier: Apache-2.0
"""Error feedback: weights that are rounded by what they multiply lose less of it, whatever their encoding and rotation."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import otf
from onnx import helper
from test_calibrate import save


def linear(path, columns=192, rows=64):
    """One matrix, and inputs that go together: 400 samples of 12 hidden causes and a little noise."""
    rng = np.random.default_rng(11)
    weights = {"w": rng.standard_normal((columns, rows)).astype(np.float32)}
    # Negated, since what only a matrix gives is a head.
    save(path, [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Neg", ["p"], ["y"])], weights, [("x", ["n", columns])], [("y", ["n", rows])])
    causes = rng.standard_normal((12, columns))
    draw = lambda count: (rng.standard_normal((count, 12)) @ causes + 0.3 * rng.standard_normal((count, columns))).astype(np.float32)
    return weights["w"].astype(np.float64), draw(400), draw(100)


class Feedback(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model.onnx"
        w, samples, self.x = linear(self.model)
        (self.folder / "samples").mkdir()
        np.save(self.folder / "samples" / "x.npy", samples)
        self.exact = -(self.x.astype(np.float64) @ w)

    def compile(self, recipe, *flags):
        path, plan = self.folder / "r.json", self.folder / "model.plan"
        path.write_text(json.dumps({"name": "r", "vocabulary": "f16", **recipe}))
        otf.succeed(otf.tool("otf-compile"), self.model, "-o", plan, f"--recipe={path}", f"--calibrate={self.folder / 'samples'}", *flags)
        return plan

    def loss(self, recipe, *flags):
        y = otf.run(self.compile(recipe, *flags), {"x": self.x})["y"]
        return np.linalg.norm(y - self.exact) / np.linalg.norm(self.exact)

    def test_it_loses_less(self):
        for linear, group, outliers, rotation in (("int4", 32, 0, "none"), ("int4", 64, 0.04, "none"), ("codebook2", 32, 0, "none"),
                                                  ("ternary_sign", 64, 0, "hadamard"), ("planes3x2", 0, 0, "none"),
                                                  ("planes3x2", 0, 0, "kronecker"), ("planes3x3", 96, 0, "kronecker")):
            with self.subTest(linear=linear, rotation=rotation, outliers=outliers):
                recipe = {"linear": linear, "group": group, "rotation": rotation}
                if outliers:
                    recipe["outliers"] = outliers
                nearest, fed = self.loss(recipe), self.loss({**recipe, "rounding": "feedback"})
                # int8 activations lose about a hundredth, which is left in both.
                self.assertLess(fed, 0.6 * nearest + 0.01)

    def test_threads_change_no_byte_and_the_report_says_it(self):
        recipe = {"linear": "planes3x2", "group": 0, "rotation": "kronecker", "rounding": "feedback"}
        report = self.folder / "report.json"
        one, two = (self.compile(recipe, f"--threads={threads}", f"--report={report}").read_bytes() for threads in (1, 2))
        self.assertEqual(one, two)
        self.assertEqual(["feedback"], [t["rounding"] for t in json.loads(report.read_text())["tensors"] if "planes" in t["kept"]])

    def test_what_it_needs(self):
        def refuse(recipe, *flags):
            path = self.folder / "r.json"
            path.write_text(json.dumps(recipe))
            status, out, error = otf.call(otf.tool("otf-compile"), self.model, "--dry-run", f"--recipe={path}", *flags)
            self.assertEqual(1, status, out + error)
            return error
        fed = {"name": "r", "linear": "int4", "rounding": "feedback"}
        self.assertIn("rounds weights by what they multiply, and nothing is known", refuse(fed, "--calibrate=none"))
        self.assertIn("must be nearest or feedback", refuse({**fed, "rounding": "up"}))
        self.assertIn("but linear is f16", refuse({**fed, "linear": "f16"}))
        self.assertIn("'damping' is a fraction", refuse({**fed, "damping": 0}))
        self.assertIn("'damping' needs 'rounding'", refuse({"name": "r", "linear": "int4", "damping": 0.1}))
        np.save(self.folder / "samples" / "x.npy", np.zeros((4, 192), np.float32))
        self.assertIn("zero throughout the calibration (calibrate on what reaches it, or take a recipe that rounds to nearest)", refuse(fed, f"--calibrate={self.folder / 'samples'}"))
