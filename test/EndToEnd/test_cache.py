# SPDX-License-Identifier: Apache-2.0
"""Caches of f16 and int8: what they round to, that callers see f32, and that nothing else changes."""
import json
import pathlib
import tempfile
import unittest

import numpy as np

import otf

MODELS = ("llama-optimum", "gemma2-optimum", "llama-genai-fp32")
IDS = [5, 7, 11, 3, 5, 7, 11, 3, 9]


def recipe(cache):
    """A file of rtn8 with a cache of this type. It stays, so that plans made by it are not made again."""
    folder = otf.build / "test-plans"
    folder.mkdir(parents=True, exist_ok=True)
    path, told = folder / f"rtn8-cache-{cache}.json", json.loads(otf.succeed(otf.tool("otf-compile"), "--recipe=rtn8", "--print-recipe"))
    text = json.dumps(told | {"cache": cache})
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def rounded(x, cache):
    """What a cache of this type gives back for rows of x."""
    if cache == "f32":
        return x
    if cache == "f16":
        return np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32)
    scale = (np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)).astype(np.float32)
    scale = ((scale.view(np.uint32) + np.uint32(0xff)) & np.uint32(0xffffff00)).view(np.float32)
    codes = np.rint(np.divide(x, scale, out=np.zeros_like(x), where=scale > 0))
    return codes.astype(np.float32) * scale


def info(plan):
    return json.loads(otf.succeed(otf.tool("otf-exec"), "info", plan, "--json"))


def shapes(plan):
    """Heads and width of each state by the name of its input, and the names after a step."""
    told = [(s["input"], s["output"], s["type"]) for s in info(plan)["states"]]
    sizes = {name: [int(part.split()[0].rstrip("]")) for part in type.split("[")[1].split(", ")[1::2]] for name, _, type in told}
    return sizes, {name: output for name, output, _ in told}


def run(plan, ids, past=None):
    """Logits, and the states after the step by the names of their inputs."""
    sizes, outputs = shapes(plan)
    past = past or {name: np.zeros((1, heads, 0, width), np.float32) for name, (heads, width) in sizes.items()}
    before = next(iter(past.values())).shape[2]
    wanted = {entry["name"] for entry in info(plan)["inputs"]}
    inputs = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, before + len(ids)), np.int64),
              "position_ids": np.arange(before, before + len(ids))[None]}
    got = otf.run(plan, {name: value for name, value in inputs.items() if name in wanted} | past)
    return got["logits"], {name: got[output] for name, output in outputs.items()}


@unittest.skipIf(otf.target != "cpu", "caches of f16 and int8 are for CPUs")
class Caches(unittest.TestCase):
    def plans(self, cache):
        return [otf.plan(otf.fixtures / model / "model.onnx", recipe(cache)) for model in MODELS]

    def test_rows_are_rounded_as_defined(self):
        for cache in ("f16", "int8"):
            for plan, exact in zip(self.plans(cache), self.plans("f32")):
                states, wide = run(plan, IDS)[1], run(exact, IDS)[1]
                # The first layer's do not depend on what attention reads.
                for name in sorted(states)[:2]:
                    self.assertEqual(np.float32, states[name].dtype)
                    np.testing.assert_array_equal(rounded(wide[name], cache), states[name])
                    self.assertGreater(np.abs(states[name] - wide[name]).max(), 0)

    def test_logits_stay_near(self):
        for cache, most in (("f16", 0.03), ("int8", 0.1)):
            for plan, exact in zip(self.plans(cache), self.plans("f32")):
                got, want = run(plan, IDS)[0], run(exact, IDS)[0]
                distance = np.linalg.norm(got - want) / np.linalg.norm(want)
                self.assertLess(distance, most)
                self.assertGreater(distance, 0)

    def test_states_that_are_given_back_change_no_bit(self):
        for cache in ("f16", "int8"):
            for plan in self.plans(cache):
                whole, after = run(plan, IDS)
                _, past = run(plan, IDS[:-1])
                logits, states = run(plan, IDS[-1:], past)
                np.testing.assert_array_equal(whole[:, -1], logits[:, -1])
                for name in states:
                    np.testing.assert_array_equal(after[name], states[name])

    def test_threads_and_drafts_change_no_token(self):
        for cache in ("f16", "int8"):
            for plan in self.plans(cache):
                told = otf.generate(plan, IDS, 24)
                self.assertEqual(told, otf.generate(plan, IDS, 24, "--draft=ngram"))
                self.assertEqual(told, otf.generate(plan, IDS, 24, "--threads=3"))

    def test_memory_is_told(self):
        for cache, row in (("f32", 64), ("f16", 32), ("int8", 20)):
            with self.subTest(cache=cache):
                model, file = otf.fixtures / "llama-optimum" / "model.onnx", recipe(cache)
                position = 2 * 2 * 2 * row  # two layers, keys and values, two heads
                plan = otf.plan(model, file)
                self.assertEqual(position, info(plan)["state_bytes_per_position"])
                self.assertIn(f"{position} bytes a position", otf.succeed(otf.tool("otf-exec"), "info", plan))
                said = otf.succeed(otf.tool("otf-compile"), model, "--dry-run", f"--recipe={file}", "--context=100000")
                self.assertIn(f"{position * 100000 / 1e6:.1f} MB of cache for 100000 positions", said)

    def test_cuda_kernels_read_what_is_held(self):
        model = otf.fixtures / "llama-optimum" / "model.onnx"
        for cache, held, row in (("f32", "float", 16), ("f16", "otf::half_t", 16), ("int8", "signed char", 20)):
            with self.subTest(cache=cache):
                text = otf.succeed(otf.tool("otf-compile"), model, f"--recipe={recipe(cache)}", "--emit=cuda")
                self.assertRegex(text, rf"otf::Heads<{held}>\{{b1, 2ll \* capacity \* {row}ll, capacity \* {row}ll, {row}ll\}}")

    def test_a_state_of_another_width_is_refused(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx", recipe("int8"))
        sizes, _ = shapes(plan)
        past = {name: np.zeros((1, heads, 2, width + 4), np.float32) for name, (heads, width) in sizes.items()}
        with self.assertRaisesRegex(AssertionError, r"exit 1: error: [^\n]*expected 16 on axis 3, found 20$"):
            run(plan, IDS, past)


class Refusals(unittest.TestCase):
    def refused(self, text, *command):
        status, _, error = otf.call(otf.tool("otf-compile"), *command)
        self.assertEqual(1, status)
        self.assertRegex(error, rf"^error: [^\n]*{text}[^\n]*\n$")

    def test_refusals(self):
        llama = otf.fixtures / "llama-optimum" / "model.onnx"
        self.refused("'cache' must be f32, f16 or int8, not \"fp8\"", llama, f"--recipe={recipe('fp8')}", "--dry-run")
        self.refused("no cache of keys and values", otf.fixtures / "digits" / "model.onnx", f"--recipe={recipe('f16')}", "--dry-run")

    def test_a_printed_recipe_reads_back(self):
        with tempfile.TemporaryDirectory() as folder:
            printed = otf.succeed(otf.tool("otf-compile"), f"--recipe={recipe('int8')}", "--print-recipe")
            self.assertEqual("int8", json.loads(printed)["cache"])
            path = pathlib.Path(folder) / "again.json"
            path.write_text(printed)
            self.assertEqual(printed, otf.succeed(otf.tool("otf-compile"), f"--recipe={path}", "--print-recipe"))


if __name__ == "__main__":
    unittest.main()
