# SPDX-License-Identifier: Apache-2.0
"""What a GPU cannot run is the host's by name: a sum of more inputs than a CUDA kernel has room for parameters."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import otf

COUNT = 512  # and the result: 511 buffers are a CUDA kernel's limit
REASON = f"a CUDA kernel takes at most 511 buffers, and this one has {COUNT + 1}"


class Placement(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.plan = self.folder / "sum.plan"

    def model(self, count):
        """y = the sum of `count` inputs; z has a kernel of its own that no GPU lacks."""
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])
        names = [f"x{i}" for i in range(count)]
        nodes = [helper.make_node("Sum", names, ["y"], "many"), helper.make_node("CumSum", ["x0", "axis"], ["z"], "running")]
        axis = helper.make_tensor("axis", TensorProto.INT64, [], [0])
        graph = helper.make_graph(nodes, "sums", [value(n) for n in names], [value("y"), value("z")], [axis])
        path = self.folder / "sum.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))
        return path

    def compile(self, count, *flags):
        return otf.call(otf.tool("otf-compile"), self.model(count), "-o", self.plan, "--target=cuda", "--cuda-arch=none", *flags)

    def test_the_host_is_named_with_the_reason(self):
        status, said, error = self.compile(COUNT)
        self.assertEqual(0, status, error)
        lines = [line for line in said.splitlines() if line.startswith("on the host: ")]
        self.assertEqual(1, len(lines), said)
        self.assertTrue(lines[0].endswith(": " + REASON), said)
        info = otf.succeed(otf.tool("otf-exec"), "info", self.plan)
        self.assertIn("placement of cuda\n      1 step  on the GPU\n      1 step  on the host, with CPU kernels\n      1 x ", info)
        self.assertIn(REASON, info)
        placed = json.loads(otf.succeed(otf.tool("otf-exec"), "info", self.plan, "--json"))["programs"][0]["placement"]
        self.assertEqual([1, 1, 0], [placed[key] for key in ("device", "host", "control")])
        self.assertEqual([REASON], [kernel["reason"] for kernel in placed["host_kernels"]])

    def test_nothing_is_the_hosts_where_the_gpu_can_run_all(self):
        status, said, error = self.compile(510, "--strict-placement")
        self.assertEqual(0, status, error)
        self.assertNotIn("on the host", said)

    def test_strict_placement_refuses(self):
        status, _, error = self.compile(COUNT, "--strict-placement")
        self.assertEqual(1, status)
        self.assertFalse(self.plan.exists())
        self.assertRegex(error, rf"^error: [^\n]*many: kernel '[a-z_0-9]+' has no CUDA form: {REASON} \(leave out "
                                r"--strict-placement, and the host runs it\)\n$")

    def test_strict_placement_is_about_cuda(self):
        status, _, error = otf.call(otf.tool("otf-compile"), self.model(2), "-o", self.plan, "--strict-placement")
        self.assertEqual((2, "error: command line: --strict-placement needs --target=cuda (see otf-compile --help)\n"), (status, error))

    @unittest.skipUnless(otf.target == "cuda", "needs a GPU: run.py --target=cuda")
    def test_the_host_computes_for_the_gpu(self):
        self.assertEqual(0, self.compile(COUNT)[0])
        rng = np.random.default_rng(0)
        inputs = {f"x{i}": rng.integers(-8, 8, 4).astype(np.float32) for i in range(COUNT)}
        got = otf.run(self.plan, inputs)
        np.testing.assert_array_equal(sum(inputs.values()), got["y"])
        np.testing.assert_array_equal(np.cumsum(inputs["x0"]), got["z"])
