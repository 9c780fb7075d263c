# SPDX-License-Identifier: Apache-2.0
"""otf-exec compare: which values of two plans are compared, and what is said of them."""
import json

import numpy as np

import otf
import test_eval

LLAMA, DIGITS = test_eval.LLAMA, otf.fixtures / "digits" / "model.onnx"


class Compare(test_eval.TinyText):
    def setUp(self):
        super().setUp()
        if otf.target != "cpu":
            self.skipTest("what steps write stays in a GPU's memory")

    def command(self, first, second, *flags):
        return [otf.tool("otf-exec"), "compare", first, second, "--text", self.text, "--tokenizer", self.tokenizer, "--tokens=20", *flags]

    def said(self, *arguments):
        return json.loads(otf.succeed(*self.command(*arguments, "--json")))

    def test_a_plan_equals_itself(self):
        said = self.said(self.reference, self.reference, "--threshold=0", "--by-layer")
        self.assertEqual(0, said["only_in_first"] + said["only_in_second"])
        self.assertIsNone(said["first_above"])
        self.assertEqual({0.0}, {value["relative_error"] for value in said["values"]})
        self.assertEqual({0.0}, {value["kl_cost"] for value in said["values"] if value["stream"]})

    def test_the_stream_is_found(self):
        # The embedding, and what two layers add: attention and the gated unit each.
        said = self.said(self.reference, otf.plan(LLAMA, "rtn4"))
        stream = [value["name"] for value in said["values"] if value["stream"]]
        self.assertEqual(5, len(stream), stream)
        self.assertTrue(all(value["shape"] == [1, 20, 48] for value in said["values"] if value["stream"]))
        self.assertIn("embed", stream[0])
        self.assertIn("layers.1", stream[-1])

    def test_errors_are_those_of_the_outputs(self):
        plan = otf.plan(LLAMA, "rtn4")
        said = self.said(self.reference, plan)
        p, q = (otf.run(path, otf.prompt_inputs(self.ids[:20]))["logits"] for path in (self.reference, plan))
        logits = said["values"][-1]
        self.assertEqual([1, 20, 211], logits["shape"])
        self.assertAlmostEqual(np.linalg.norm(p - q) / np.linalg.norm(p), logits["relative_error"], places=6)
        a, b = (test_eval.log_softmax(x[0]) for x in (p, q))
        self.assertAlmostEqual((np.exp(a) * (a - b)).sum(-1).mean(), said["kl"], places=6)

    def test_the_first_bad_value_is_that_of_the_changed_layer(self):
        # Two plans of one recipe are equal but for the weights of a model's second layer.
        import onnx
        from onnx import numpy_helper
        model = onnx.load(LLAMA)
        down = next(node for node in model.graph.node if "layers.1" in node.name and "down_proj" in node.name and node.op_type == "MatMul")
        tensor = next(t for t in model.graph.initializer if t.name == down.input[1])
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))
        changed = self.folder / "changed.plan"
        otf.succeed(otf.tool("otf-compile"), self.write(model, "changed.onnx"), "-o", changed)
        said = self.said(self.reference, changed, "--threshold=0", "--by-layer")
        bad = [value for value in said["values"] if value["relative_error"] > 0]
        self.assertEqual(said["first_above"], bad[0]["name"])
        stream = [value for value in said["values"] if value["stream"]]
        self.assertEqual(stream[-1]["name"], bad[0]["name"])
        # All of the cost is that layer's.
        self.assertEqual([0] * 4, [value["kl_cost"] for value in stream[:-1]])
        self.assertGreater(said["kl"], 0)
        self.assertEqual(said["kl"], stream[-1]["kl_cost"])
        self.assertEqual(0, stream[-1]["kl_after"])

    def test_costs_of_layers_add_up(self):
        said = self.said(self.reference, otf.plan(LLAMA, "rtn4"), "--by-layer")
        stream = [value for value in said["values"] if value["stream"]]
        self.assertAlmostEqual(said["kl"], sum(value["kl_cost"] for value in stream) + stream[-1]["kl_after"])

    def test_what_one_plan_has_alone_is_counted(self):
        # A coded linear reads a record, so the norm before it writes no floats.
        said = self.said(self.reference, otf.plan(LLAMA, "rtn4"))
        self.assertGreater(said["only_in_first"], 0)
        self.assertFalse([value for value in said["values"] if "layernorm" in value["name"] and "Mul_1" in value["name"]])

    def test_other_models_take_arrays(self):
        x = self.folder / "x.npy"
        np.save(x, np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 64))
        command = [otf.tool("otf-exec"), "compare", otf.plan(DIGITS), otf.plan(DIGITS, "rtn8"), "--input", f"pixels={x}"]
        said = json.loads(otf.succeed(*command, "--json"))
        self.assertIsNone(said["kl"])
        self.assertLess(0, said["values"][-1]["relative_error"])
        self.assertLess(said["values"][-1]["relative_error"], 0.05)
        self.assertIn("values in both", otf.succeed(*command))

    def test_the_table_says_the_largest_jumps(self):
        out = otf.succeed(*self.command(self.reference, otf.plan(LLAMA, "otf-int2"), "--by-layer"))
        self.assertIn("the stream, 5 values", out)
        self.assertIn("first above 0.1", out)
        self.assertIn("/model/layers.1/Add_1", out)

    def test_bad_input(self):
        digits, gpt2 = otf.plan(DIGITS), otf.plan(otf.fixtures / "gpt2-optimum" / "model.onnx")
        self.refuse(self.command(self.reference, digits), digits, "input")
        self.refuse(self.command(self.reference, gpt2), gpt2)
        self.refuse(self.command(self.reference, self.folder / "none.plan"), "none.plan")
        self.refuse([otf.tool("otf-exec"), "compare", self.reference, self.reference], "tokenizer: the plan has none")
        self.refuse([otf.tool("otf-exec"), "compare", digits, digits, "--input", "pixels=none.npy", "--by-layer"], "--text", status=2)
        self.refuse([otf.tool("otf-exec"), "compare", digits, digits], "--input gives other models what they read")
        self.refuse([otf.tool("otf-exec"), "compare", digits, digits, "--input", f"pixels={self.folder}/none.npy"], "none.npy")
