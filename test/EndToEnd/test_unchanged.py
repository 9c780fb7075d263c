# SPDX-License-Identifier: Apache-2.0
"""What changes a float model's form changes none of its outputs: folds, rotations and orders of columns, against float64, to 2e-6 of the outputs' norm."""
import numpy as np
import otf
from onnx import TensorProto, helper, numpy_helper
import onnx
from recipes import RecipeTest, half

MOST = 2e-6


class Unchanged(RecipeTest):
    def build(self, columns, rows=48, gain=None, weight=None, x=None):
        """y = -(norm(x) Wᵀ), or without a norm."""
        rng = np.random.default_rng(columns)
        self.weight = rng.standard_normal((rows, columns)).astype(np.float32) if weight is None else weight
        arrays = {"w": np.ascontiguousarray(self.weight.T)}
        nodes = [helper.make_node("MatMul", ["n" if gain is not None else "x", "w"], ["p"], name="dense"), helper.make_node("Neg", ["p"], ["y"])]
        if gain is not None:
            arrays["gain"] = gain
            nodes.insert(0, helper.make_node("RMSNormalization", ["x", "gain"], ["n"], axis=-1, epsilon=1e-5))
        graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", columns])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", rows])],
                                  [numpy_helper.from_array(array, name) for name, array in arrays.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), self.model)
        self.x = (rng.standard_normal((20, columns)) * np.exp(rng.standard_normal(columns))).astype(np.float32) if x is None else x
        wide = self.x.astype(np.float64)
        if gain is not None:
            wide = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * gain
        self.exact = -(wide @ self.weight.astype(np.float64).T)

    def check(self, keys, stage, mark):
        """The change is there, and the outputs are those of float64."""
        text = otf.succeed(otf.tool("otf-compile"), self.model, f"--emit={stage}", f"--recipe={self.recipe(keys)}")
        self.assertIn(mark, text)
        self.assert_close(otf.run(self.compile(keys)[0], {"x": self.x})["y"], self.exact, MOST)

    def test_a_norm_that_is_folded(self):
        for columns in (33, 576):
            with self.subTest(columns=columns):
                self.build(columns, gain=np.exp(np.random.default_rng(1).standard_normal(columns) * 2).astype(np.float32))
                self.check({"linear": "f32"}, "quantized", "scale = @gain")

    def test_rotations(self):
        for columns, kind in ((64, "hadamard"), (576, "hadamard"), (576, "kronecker"), (1536, "kronecker"), (60, "kronecker"), (2048, "hadamard")):
            with self.subTest(columns=columns, kind=kind):
                self.build(columns)
                self.check({"linear": "f32", "rotation": kind, "seed": 1}, "quantized", "otf.rotate")

    def test_a_rotation_behind_a_fold(self):
        self.build(576, gain=np.exp(np.random.default_rng(1).standard_normal(576)).astype(np.float32))
        self.check({"linear": "f32", "rotation": "kronecker", "seed": 1}, "quantized", "otf.rotate")

    def test_an_order_of_columns(self):
        """Columns that are kept are read after all others, wherever they lie. The others are ±7/8 and meet ±127, which int4 and int8 hold exactly, so that only the order is left."""
        for columns in (33, 128, 576):
            with self.subTest(columns=columns):
                rng = np.random.default_rng(columns)
                count = int(np.floor(0.1 * columns + 0.5))
                kept = np.sort(rng.choice(columns, count, replace=False))
                self.build(columns)
                weight = 0.875 * np.sign(self.weight)
                weight[:, kept] = half(8 + rng.random((len(weight), count)))
                x = 127 * np.sign(self.x)
                x[:, kept] = self.x[:, kept]
                self.build(columns, weight=weight.astype(np.float32), x=x)
                self.check({"linear": "int4", "outliers": 0.1}, "annotated", f"outliers = #otf.outliers<{kept.tolist()}>")


if __name__ == "__main__":
    import unittest
    unittest.main()
