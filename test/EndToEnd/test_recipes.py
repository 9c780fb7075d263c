# SPDX-License-Identifier: Apache-2.0
"""Recipes as data, and what compiling promises about its output."""
import json
import pathlib
import tempfile
import unittest

import otf

LLAMA = otf.fixtures / "llama-optimum" / "model.onnx"
RECIPES = ("none", "rtn8", "rtn4", "otf-int2", "otf-int4", "otf-rla", "planes2", "planes3", "planes4", "turboquant")


class Recipes(unittest.TestCase):
    def test_a_printed_recipe_reads_back(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in RECIPES:
                printed = otf.succeed(otf.tool("otf-compile"), "--recipe", name, "--print-recipe")
                path = pathlib.Path(folder) / f"{name}.json"
                path.write_text(printed)
                self.assertEqual(printed, otf.succeed(otf.tool("otf-compile"), "--recipe", path, "--print-recipe"))

    def test_every_recipe_gives_a_plan_that_runs(self):
        for name in RECIPES:
            with self.subTest(recipe=name):
                self.assertEqual(4, len(otf.generate(otf.plan(LLAMA, name), [5, 7, 11], 4)))

    def test_the_report_tells_real_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=rtn4", "--report", report)
            tensors = json.loads(report.read_text())["tensors"]
        coded = [t for t in tensors if "int4" in t["kept"]]
        self.assertEqual(14, len(coded))
        for tensor in coded:
            # int4 in groups of 32 takes 4.5 bits where K is a multiple of 32 and N of 8.
            padded = -(-tensor["rows"] // 8) * 8 * (-(-tensor["columns"] // 32) * 32)
            self.assertEqual(tensor["bytes"] * 8, padded * 4.5)
            self.assertGreater(tensor["relative_error"], 0.01)
            self.assertLess(tensor["relative_error"], 0.2)


    def test_planes_take_their_bits_and_keep_what_they_promise(self):
        # Rows of 24 to 64 columns are no Gaussians of a million weights, and a scale each costs more.
        for bits, most in ((2, 0.33), (3, 0.18), (4, 0.10)):
            with self.subTest(bits=bits), tempfile.TemporaryDirectory() as folder:
                report = pathlib.Path(folder) / "report.json"
                otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", f"--recipe=planes{bits}", "--report", report)
                tensors = json.loads(report.read_text())["tensors"]
                coded = [t for t in tensors if f"planes3x{bits}" in t["kept"]]
                self.assertEqual(14, len(coded))
                for tensor in coded:
                    chunks, tiles = -(-tensor["columns"] // 32), -(-tensor["rows"] // 8)
                    self.assertEqual(tensor["bytes"], tiles * (chunks * 32 * bits + 16))
                    self.assertLess(tensor["relative_error"], most)
                    self.assertGreater(tensor["relative_error"], most / 3)

    def test_planes_for_vocabularies_and_a_group_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe = pathlib.Path(folder) / "both.json"
            recipe.write_text('{"name": "both", "linear": "planes4x2", "vocabulary": "planes3x4", "group": 0, "vocabulary-group": 32}')
            text = otf.succeed(otf.tool("otf-compile"), LLAMA, "--emit=annotated", f"--recipe={recipe}")
            self.assertIn("#otf.encoding<planes4x2>", text)
            self.assertIn("#otf.encoding<planes3x4, group = 32>", text)
            plan = pathlib.Path(folder) / "both.plan"
            otf.succeed(otf.tool("otf-compile"), LLAMA, "-o", plan, f"--recipe={recipe}")
            self.assertEqual(4, len(otf.generate(plan, [5, 7, 11], 4)))


class Plans(unittest.TestCase):
    def test_equal_input_gives_equal_bytes(self):
        """Whatever the number of threads, and from one run to the next."""
        for recipe in ("otf-int2", "planes3"):
            with self.subTest(recipe=recipe), tempfile.TemporaryDirectory() as folder:
                plan, made = pathlib.Path(folder) / "m.plan", set()
                for threads in (1, 2, 2, 3):
                    otf.succeed(otf.tool("otf-compile"), LLAMA, "-o", plan, f"--recipe={recipe}", f"--threads={threads}")
                    made.add(plan.read_bytes())
                self.assertEqual(1, len(made))

    def test_a_dry_run_says_the_real_size(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.plan"
            said = otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=rtn4", "-o", path)
            self.assertFalse(path.exists())
            otf.succeed(otf.tool("otf-compile"), LLAMA, "-o", path, "--recipe=rtn4")
            self.assertIn(f" {path.stat().st_size} bytes", said)

    def test_verify_accepts_a_plan(self):
        otf.succeed(otf.tool("otf-exec"), "verify", otf.plan(LLAMA))

    def test_every_stage_prints_and_reads_back(self):
        for stage in ("imported", "annotated", "quantized", "fused", "planned"):
            with self.subTest(stage=stage):
                text = otf.succeed(otf.tool("otf-compile"), LLAMA, f"--emit={stage}", "--recipe=otf-int2")
                again = otf.succeed(otf.tool("otf-opt"), f"--otf-verify-stage={stage}", input=text)
                self.assertEqual(text.strip(), again.strip())
