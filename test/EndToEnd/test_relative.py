# SPDX-License-Identifier: Apache-2.0
"""Relative transfer: linears that read (x − c) / s, and the recipes `relative-*` against a plain model of them."""
import json

import numpy as np
import otf
from onnx import helper
from recipes import RecipeTest, low_rank, symmetric
from test_calibrate import save


def relative(weight, bias, samples, power, center, most, group=32, rank=0):
    """The function of x that a linear becomes: float64 but for what the plan holds as floats and halves."""
    wide = samples.astype(np.float64)
    mean, deviation = wide.mean(0), wide.std(0)
    unit = np.where(deviation > 1e-6 * np.abs(wide).max(0), deviation, 1) ** power
    unit = unit.astype(np.float32)
    mean = mean.astype(np.float32) if center else np.zeros_like(unit)
    scaled = (weight * unit).astype(np.float64)
    coded = symmetric(scaled, most, group)
    if rank:
        r = (wide - mean) / unit
        left, right, _ = low_rank(scaled - coded, r.T @ r, min(rank, *weight.shape))
    else:
        left, right = np.zeros((len(weight), 1)), np.zeros((1, weight.shape[1]))
    shift = bias + weight.astype(np.float64) @ mean.astype(np.float64)

    def apply(x, activations):
        r = ((x - mean) / unit).astype(np.float32).astype(np.float64)
        q = r
        if activations == "row":
            most_of = np.abs(r).max(1, keepdims=True).astype(np.float32)
            scale = np.where(most_of == 0, np.float32(1), most_of / np.float32(127)).astype(np.float64)
            q = scale * np.rint((r / scale).astype(np.float32))
        return q @ coded.T + r @ right.T @ left.T + shift
    return apply


class Relative(RecipeTest):
    def build(self, hidden=40, inputs=64, outputs=10):
        """Gemm, Relu, Gemm over inputs of different sizes with means, of which one never varies."""
        rng = np.random.default_rng(3)
        self.weights = [rng.standard_normal((hidden, inputs)).astype(np.float32) / 8, rng.standard_normal((outputs, hidden)).astype(np.float32) / 6]
        self.biases = [rng.standard_normal(n).astype(np.float32) for n in (hidden, outputs)]
        nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], transB=1), helper.make_node("Relu", ["a"], ["h"]),
                 helper.make_node("Gemm", ["h", "w2", "b2"], ["y"], transB=1)]
        save(self.model, nodes, {"w1": self.weights[0], "b1": self.biases[0], "w2": self.weights[1], "b2": self.biases[1]}, [("x", ["n", inputs])], [("y", ["n", outputs])])
        sizes, means = np.exp(rng.standard_normal(inputs)), rng.standard_normal(inputs)
        draw = lambda count: ((rng.standard_normal((count, inputs)) + means) * sizes).astype(np.float32)
        self.samples, self.x = draw(200), draw(50)
        self.samples[:, 5] = self.x[:, 5] = 0.7
        self.calibrate_on(x=self.samples)

    def model_of(self, x, activations="f32", **options):
        first = relative(self.weights[0], self.biases[0], self.samples, **options)
        exact = np.maximum(self.samples @ self.weights[0].T + self.biases[0], 0).astype(np.float32)  # statistics are of the float model
        second = relative(self.weights[1], self.biases[1], exact, **options)
        hidden = np.maximum(first(x, activations), 0).astype(np.float32)
        return second(hidden, activations)

    def test_a_plan_computes_what_numpy_does(self):
        self.build()
        for power, center, rank in ((1, True, 0), (0.5, False, 0), (0.5, True, 4), (0, True, 0), (1, False, 4)):
            with self.subTest(power=power, center=center, rank=rank):
                keys = {"linear": "int4", "group": 32, "activations": "f32", "head": "linear", "power": power, "center": center, "rank": rank}
                y = otf.run(self.compile(keys)[0], {"x": self.x})["y"]
                self.assert_close(y, self.model_of(self.x, power=power, center=center, most=7, rank=rank), 3e-5)

    def test_so_do_the_published_recipes(self):
        self.build()
        for name, activations, options in (("relative-int4", "f32", {"most": 7, "rank": 16}), ("relative-int8", "row", {"most": 127, "group": 128}),
                                           ("relative-w4a8", "row", {"most": 7, "rank": 16})):
            with self.subTest(recipe=name):
                y = otf.run(self.compile(name)[0], {"x": self.x})["y"]
                # A code of an activation that lies between two may fall either way.
                self.assert_close(y, self.model_of(self.x, activations, power=0.5, center=False, **options), 3e-5 if activations == "f32" else 2e-3)

    def test_a_norm_takes_units_in(self):
        rng = np.random.default_rng(8)
        weight, gain, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 64), 64, 64))
        save(self.model, [helper.make_node("LayerNormalization", ["x", "g", "b"], ["n"]), helper.make_node("MatMul", ["n", "w"], ["p"]), helper.make_node("Neg", ["p"], ["y"])],
             {"w": np.ascontiguousarray(weight.T), "g": gain, "b": bias}, [("x", ["n", 64])], [("y", ["n", 24])])
        x = rng.standard_normal((150, 64)).astype(np.float32)
        self.calibrate_on(x=x)
        wide = x.astype(np.float64)
        normal = ((wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * gain + bias).astype(np.float32)
        for center in (False, True):
            keys = {"linear": "int4", "group": 32, "power": 0.5, "center": center}
            apply = relative(weight, np.zeros(24), normal, power=0.5, center=center, most=7)
            plan, report = self.compile({**keys, "activations": "f32"})
            self.assert_close(otf.run(plan, {"x": x})["y"], -apply(normal, "f32"), 3e-5)
            # One kernel less than linears, norm and program would be.
            self.assertEqual(["quotient"] * 2, [t["derived"] for t in report["tensors"] if t.get("derived") == "quotient"])
            fused = otf.succeed(otf.tool("otf-compile"), self.model, "--emit=fused", f"--recipe={self.recipe(keys)}")
            self.assertIn("otf.prologue layer", fused)
            self.assertNotIn("otf.norm", fused)

    def test_rows_have_one_scale(self):
        self.build()
        keys = {"linear": "int8", "group": 128, "activations": "row", "head": "linear", "power": 0}
        x = np.concatenate([self.x, np.zeros((1, 64), np.float32)])  # and a row of zeros
        y = otf.run(self.compile(keys)[0], {"x": x})["y"]
        self.assert_close(y, self.model_of(x, "row", power=0, center=False, most=127, group=128), 2e-3)
        # One large input takes the codes of all others in its row, and of no other row.
        x[0, 0] = 1e6
        large = otf.run(self.folder / "model.plan", {"x": x})["y"]
        np.testing.assert_array_equal(large[1:], y[1:])
        self.assert_close(large[:1], self.model_of(x[:1], "row", power=0, center=False, most=127, group=128), 2e-3)

    def test_int8_is_about_as_good(self):
        self.build()
        exact = otf.run(otf.plan(self.model), {"x": self.x})["y"]
        keys = {"linear": "int8", "group": 32, "activations": "f32", "head": "linear"}
        plain = otf.run(self.compile(keys)[0], {"x": self.x})["y"]
        for power, center in ((1, True), (0.5, False)):
            y = otf.run(self.compile({**keys, "power": power, "center": center})[0], {"x": self.x})["y"]
            self.assertLess(np.linalg.norm(y - exact), 3 * np.linalg.norm(plain - exact))

    def test_units_go_with_rotations_and_feedback(self):
        self.build()
        exact = otf.run(otf.plan(self.model), {"x": self.x})["y"]
        def loss(**more):
            y = otf.run(self.compile({"linear": "int4", "group": 32, "head": "linear", "activations": "f32", **more})[0], {"x": self.x})["y"]
            return np.linalg.norm(y - exact) / np.linalg.norm(exact)
        nearest = loss(power=0.5)
        self.assertLess(loss(power=0.5, rounding="feedback"), nearest)
        self.assertLess(loss(power=0.5, rotation="hadamard"), 2 * nearest)
        self.assertLess(loss(power=0.5, center=True, rotation="kronecker", rounding="feedback", rank=2), nearest)

    def test_the_report_says_it_and_counts_it(self):
        self.build()
        _, report = self.compile({"linear": "int4", "group": 32, "activations": "f32", "head": "linear", "power": 1, "center": True, "rank": 4})
        tensors = report["tensors"]
        coded = [t for t in tensors if "int4" in t["kept"]]
        self.assertEqual([("units and center", "f32", 4)] * 2, [(t["relative"], t["activations"], t["rank"]) for t in coded])
        first = [t for t in tensors if not t["vocabulary"] and (t["name"].startswith("w1"))]
        self.assertEqual(report["linear_bits_per_weight"], 8 * sum(t["bytes"] for t in first) / (40 * 64))
        self.assertEqual({"left", "right", "values", None}, {t.get("derived") for t in first})
        # 5 tiles of 8 rows: int4 codes and f16 scales of 2 groups, f16 factors, of which the right one fills half a tile; s, c and W c are f32.
        parts = {t["name"]: t["bytes"] for t in first}
        self.assertEqual(parts, {"w1": 5 * 2 * (128 + 16), "w1.left": 5 * 4 * 8 * 2, "w1.right": 64 * 8 * 2, "w1.unit": 4 * 64, "w1.center": 4 * 64,
                                 "w1.center_products": 4 * 40})

    def test_units_are_divided_by_where_their_inputs_are_made(self):
        self.build()
        self.compile("relative-int4")
        fused = otf.succeed(otf.tool("otf-compile"), self.model, "--emit=fused", "--recipe=relative-int4")
        # The model's own input has no maker; those of the second layer are what the first one's epilogue gives.
        self.assertEqual(1, fused.count("= tensor.generate"))
        self.assertEqual(2, fused.count("arith.divf"))
        self.assertEqual(2, fused.count("epilogue {"))

    def test_the_built_in_ones_say_so(self):
        printed = lambda name: json.loads(otf.succeed(otf.tool("otf-compile"), f"--recipe={name}", "--print-recipe"))
        common = {"vocabulary": "f16", "outliers": 0, "head": "linear", "power": 0.5, "center": False}
        self.assertEqual(printed("relative-int4"), {**common, "name": "relative-int4", "linear": "int4", "group": 32, "activations": "f32", "rank": 16})
        self.assertEqual(printed("relative-w4a8"), {**common, "name": "relative-w4a8", "linear": "int4", "group": 32, "activations": "row", "rank": 16})
        self.assertEqual(printed("relative-int8"), {**common, "name": "relative-int8", "linear": "int8", "group": 128, "activations": "row"})

    def test_what_it_needs(self):
        self.build()
        self.assertIn("makes inputs relative to what they vary by, and nothing is known", self.refused("relative-int4", "--calibrate=none"))
        for keys, message in (({"power": 3}, "'power' of a channel's deviation is from 0 to 2"), ({"center": True}, "'center' needs 'power'"),
                              ({"power": 1, "center": "yes"}, "'center' must be true or false"), ({"power": 1, "outliers": 0.1}, "'power' and 'outliers'"),
                              ({"linear": "f16", "power": 1}, "'power' changes what is coded, but linear is f16"),
                              ({"scope": "model"}, "'scope' must be linear"), ({"tied-head": "coded"}, "'tied-head' of coded needs 'head' of linear"),
                              ({"base": "shared", "rank": 4}, "'base' of shared needs 'linear' of f16"), ({"sweeps": 1}, "'sweeps' needs 'base' of shared")):
            with self.subTest(**keys):
                self.assertIn(message, self.refused({"linear": "int4", **keys}))
