# SPDX-License-Identifier: Apache-2.0
"""What otf-compile says of a plan: the report, its drawing, and a dry run."""
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import numpy as np

import otf

LLAMA = otf.fixtures / "llama-optimum" / "model.onnx"


class Report(unittest.TestCase):
    def test_the_report_adds_up(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            said = otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=rtn4", "--report", report)
            drawn = pathlib.Path(folder) / "report.svg"
            otf.succeed(sys.executable, otf.here.parent.parent / "utils" / "plot-report", report, "-o", drawn)
            svg = xml.etree.ElementTree.parse(drawn).getroot()
            report = json.loads(report.read_text())
        linears = [t for t in report["tensors"] if "group" in t and not t["vocabulary"]]
        self.assertEqual(14, len(linears))
        count = lambda key: sum(t[key] for t in linears)
        elements = sum(t["rows"] * t["columns"] for t in linears)
        self.assertAlmostEqual(8 * count("bytes") / elements, report["linear_bits_per_weight"])
        self.assertEqual({"tensors": 14, "bytes": count("bytes"), "file_bytes": count("file_bytes"), "elements": elements},
                         {k: report["linears"][k] for k in ("tensors", "bytes", "file_bytes", "elements")})
        self.assertEqual(4 * elements, count("file_bytes"))  # the file is f32
        for tensor in linears:
            self.assertAlmostEqual(-20 * np.log10(tensor["relative_error"]), tensor["snr_db"])
            self.assertRegex(tensor["node"], r"layers\.\d/.*_proj")
            self.assertEqual((32, "f32"), (tensor["group"], tensor["file"]))
        # A layer's seven linears are seven types, two weights each.
        self.assertEqual([2] * 7, [t["tensors"] for t in report["types"] if "_proj" in t["name"]])
        for key in ("tensors", "elements", "bytes", "file_bytes"):
            self.assertEqual(report["total"][key], sum(t[key] for t in report["types"]))
        self.assertIn("layers.*/mlp/down_proj", said)
        dots = [e for e in svg.iter("{http://www.w3.org/2000/svg}circle") if len(e)]
        self.assertEqual(2 * 14, len(dots))

    def test_what_lost_nothing_has_no_noise(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--report", report)
            report = json.loads(report.read_text())
        self.assertEqual({(0, None)}, {(t["relative_error"], t["snr_db"]) for t in report["tensors"]})
        self.assertEqual(32, report["linear_bits_per_weight"])

    def test_a_dry_run_says_what_running_takes(self):
        said = otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=rtn4", "--context=100000")
        # Two layers, keys and values, two heads of 16 floats.
        self.assertIn(f"{2 * 2 * 2 * 16 * 4 * 100000 / 1e6:.1f} MB of cache for 100000 positions", said)
        self.assertRegex(said, r"at most [0-9.]+ tokens/s with an empty cache and [0-9.]+ with a full one, since weights and cache are read at [0-9.]+ GB/s")
        said = otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=rtn4", "--context=100000", "--bandwidth=2GB")
        read, cache = (float(said.split(" MB of " + what)[0].split()[-1]) for what in ("weights read", "cache"))
        speed = float(said.split(" with a full one")[0].split()[-1])
        self.assertAlmostEqual(1, speed * (read + cache) / 2000, delta=0.01, msg=said)
        status, out, error = otf.call(otf.tool("otf-compile"), LLAMA, "-o", "x.plan", "--bandwidth=2GB")
        self.assertEqual((2, True), (status, "--bandwidth needs --dry-run" in error))
        status, out, error = otf.call(otf.tool("otf-compile"), LLAMA, "-o", "x.plan", "--context=5")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("--context needs --dry-run", error)
