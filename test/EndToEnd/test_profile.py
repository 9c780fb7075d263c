# SPDX-License-Identifier: Apache-2.0
"""otf-exec profile: times of steps add up, bytes are those of the plan's weights, and the trace is one that browsers read."""
import json
import pathlib
import tempfile
import unittest

import numpy as np

import otf


@unittest.skipIf(otf.target != "cpu", "clocks of a GPU's steps are another test's")
class Profile(unittest.TestCase):
    def profile(self, plan, *flags):
        return json.loads(otf.succeed(otf.tool("otf-exec"), "profile", plan, *flags, "--json"))

    def test_a_decoder(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx", "rtn4")
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "trace.json"
            told = self.profile(plan, "--prompt-tokens=5", "--tokens=7", "--threads=1", "--each", "--trace", trace)
            events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual((7, 1), (told["runs"], told["rows"]))
        kernels = told["kernels"]
        self.assertAlmostEqual(told["seconds_in_steps"], sum(k["seconds"] for k in kernels), places=9)
        self.assertLess(0, told["seconds_in_steps"])
        self.assertEqual(7 * len(kernels), len(events))
        self.assertTrue(all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events))
        # A token reads every linear's weights once.
        info = json.loads(otf.succeed(otf.tool("otf-exec"), "info", plan, "--json"))
        linears = sum(k["bytes"] for k in kernels if k["kernel"].startswith("linear"))
        coded = sum(v["bytes"] for name, v in info["weights"]["encodings"].items() if "int" in name)
        self.assertEqual(coded, linears)
        attention = [k for k in kernels if k["kernel"].startswith("attention")]
        self.assertTrue(attention and all(k["bytes"] > 0 and k["what"] == "cache" for k in attention))
        self.assertLess(0, told["ceilings"]["read_bytes_per_second"])
        self.assertTrue(all(0 < k["limit_share"] for k in kernels if k["bytes"]))

    def test_equal_kernels_count_together(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx", "rtn4")
        each = self.profile(plan, "--prompt-tokens=3", "--tokens=2", "--each")["kernels"]
        together = self.profile(plan, "--prompt-tokens=3", "--tokens=2")["kernels"]
        self.assertLess(len(together), len(each))
        self.assertEqual(len(each), sum(k["steps"] for k in together))
        self.assertEqual(sum(k["bytes"] for k in each), sum(k["bytes"] for k in together))

    def test_a_model_on_arrays(self):
        plan = otf.plan(otf.fixtures / "digits" / "model.onnx")
        with tempfile.TemporaryDirectory() as folder:
            np.save(pathlib.Path(folder) / "x.npy", np.zeros((1, 64), np.float32))
            told = self.profile(plan, "--input", f"pixels={folder}/x.npy", "--repeat=3")
        self.assertEqual(3, told["runs"])
        self.assertTrue(told["kernels"])

    def test_what_cannot_be_profiled(self):
        status, _, error = otf.call(otf.tool("otf-exec"), "profile", otf.plan(otf.fixtures / "digits" / "model.onnx"))
        self.assertEqual(1, status)
        self.assertRegex(error, r"^error: [^\n]*pixels[^\n]*--input[^\n]*\n$")
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        status, _, error = otf.call(otf.tool("otf-exec"), "profile", plan, "--tokens=1", "--trace=/no/such/folder/t.json")
        self.assertEqual(2, status)
        self.assertRegex(error, r"^error: command line: --trace: [^\n]*No such file[^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
