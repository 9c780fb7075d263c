# SPDX-License-Identifier: Apache-2.0
"""otf-exec eval on a tiny model: its figures beside numpy's, its gates, and its errors."""
import json
import sys

import numpy as np

import otf
import test_bad_input

LLAMA = otf.fixtures / "llama-optimum" / "model.onnx"
CHARACTERS = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ"]  # as byte-level tokenizers write them


def tokenizer(characters=CHARACTERS):
    """A token for each character."""
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": {c: i for i, c in enumerate(characters)}, "merges": []}})


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


class TinyText(test_bad_input.Bad):
    """A text that a tiny model can read, and its reference plan."""
    WINDOW, FROM, WINDOWS = 24, 5, 6

    def setUp(self):
        super().setUp()
        self.tokenizer = self.write(tokenizer().encode(), "tokenizer.json")
        random = np.random.default_rng(1)
        self.ids = random.integers(0, len(CHARACTERS) - 2, self.WINDOW * self.WINDOWS + 7)
        self.text = self.write("".join(CHARACTERS[i] for i in self.ids).encode(), "text.txt")
        self.reference = otf.plan(LLAMA)


class Eval(TinyText):
    def command(self, plan, *flags, reference=None, text=None, window=None):
        return [otf.tool("otf-exec"), "eval", plan, "--reference", reference or self.reference, "--text", text or self.text,
                "--tokenizer", self.tokenizer, f"--window={window or self.WINDOW}", f"--score-from={self.FROM}", f"--device={otf.target}", *flags]

    def figures(self, plan, *flags, **options):
        return json.loads(otf.succeed(*self.command(plan, "--json", *flags, **options)))

    def test_figures_are_those_of_numpy(self):
        plan = otf.plan(LLAMA, "rtn4")
        said = self.figures(plan)
        kl, losses, same, five = [], [], [], []
        for start in range(0, self.WINDOW * self.WINDOWS, self.WINDOW):
            ids = self.ids[start:start + self.WINDOW]
            p, q = (log_softmax(otf.run(path, otf.prompt_inputs(ids))["logits"][0]) for path in (self.reference, plan))
            for at in range(self.FROM, self.WINDOW):
                a, b = p[at - 1], q[at - 1]
                kl.append((np.exp(a) * (a - b)).sum())
                losses.append((-a[ids[at]], -b[ids[at]]))
                same.append(a.argmax() == b.argmax())
                five.append(a.argmax() in np.argsort(-b)[:5])
        self.assertEqual({"windows": self.WINDOWS, "predictions": len(kl)}, {k: said["text"][k] for k in ("windows", "predictions")})
        self.assertEqual(7, said["text"]["tokens_left_over"])
        losses = np.array(losses)
        expected = {"mean": np.mean(kl), "median": np.median(kl), "q99": np.quantile(kl, .99), "q99.9": np.quantile(kl, .999)}
        for name, value in expected.items():
            self.assertAlmostEqual(value, said["kl"][name]["value"], delta=1e-5 * value, msg=name)
            self.assertLess(said["kl"][name]["low"], said["kl"][name]["high"])
        self.assertGreater(said["kl"]["mean"]["value"], 1e-4)  # else this would compare noise
        self.assertAlmostEqual(np.mean(same), said["top1"]["value"])
        self.assertAlmostEqual(np.mean(five), said["top5"]["value"])
        for name, column in (("reference", 0), ("plan", 1)):
            self.assertAlmostEqual(np.exp(losses[:, column].mean()), said["perplexity"][name]["value"], places=3)
        self.assertAlmostEqual(np.exp((losses[:, 1] - losses[:, 0]).mean()), said["perplexity_ratio"]["value"], places=5)

    def test_a_plan_does_not_differ_from_itself(self):
        said = self.figures(self.reference, "--max-kl=0", "--min-top1=1", "--max-perplexity-ratio=1")
        for name in ("value", "low", "high"):
            self.assertEqual(0, said["kl"]["mean"][name])
            self.assertEqual(1, said["top1"][name])
            self.assertEqual(1, said["perplexity_ratio"][name])
        self.assertEqual([True] * 3, [gate["kept"] for gate in said["gates"]])

    def test_threads_change_nothing(self):
        if otf.target != "cpu":
            self.skipTest("threads are the CPU's")
        plan = otf.plan(LLAMA, "rtn4")
        said = [self.figures(plan, f"--threads={n}") for n in (1, 2, 5)]
        for one in said:
            del one["seconds"]
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0], said[2])

    def test_tokens_count_whole_windows(self):
        self.assertEqual(2, self.figures(self.reference, f"--tokens={3 * self.WINDOW - 1}")["text"]["windows"])
        self.assertEqual(self.WINDOWS, self.figures(self.reference, "--tokens=0")["text"]["windows"])

    def test_a_broken_recipe_misses_its_gate(self):
        recipe = self.write(json.dumps({"name": "broken", "linear": "codebook2", "vocabulary": "codebook2", "group": 0}).encode(), "broken.json")
        broken = self.folder / "broken.plan"
        otf.succeed(otf.tool("otf-compile"), LLAMA, "-o", broken, f"--recipe={recipe}", *otf.target_flags())
        good = self.figures(otf.plan(LLAMA, "rtn8"))["kl"]["mean"]["high"]
        gate = f"--max-kl={2 * good}"
        self.figures(otf.plan(LLAMA, "rtn8"), gate)  # is kept
        status, out, error = otf.call(*self.command(broken, gate))
        self.assertEqual(4, status)
        self.assertIn("KL", out)  # the figures are there all the same
        self.assertEqual(1, len(error.strip().splitlines()))
        self.assertIn("gate missed: mean KL", error)

    def test_gates_judge_the_worse_end_of_the_interval(self):
        plan = otf.plan(LLAMA, "rtn4")
        kl = self.figures(plan)["kl"]["mean"]
        self.assertGreater(kl["high"], kl["value"])
        between = (kl["high"] + kl["value"]) / 2
        self.assertEqual(4, otf.call(*self.command(plan, f"--max-kl={between}"))[0])
        self.assertEqual(0, otf.call(*self.command(plan, f"--max-kl={between}", "--gate=point"))[0])

    def test_another_model_is_refused(self):
        other = otf.plan(otf.fixtures / "gpt2-optimum" / "model.onnx")
        self.refuse(self.command(other), other, "229", "211")

    def test_no_language_model_is_refused(self):
        digits = otf.plan(otf.fixtures / "digits" / "model.onnx")
        self.refuse(self.command(digits), digits, "input")

    def test_a_short_text_is_refused(self):
        text = self.write(b"abc", "short.txt")
        self.refuse(self.command(self.reference, text=text), text, "3 tokens", "--window")
        self.refuse(self.command(self.reference, text=self.write(b"", "empty.txt")), "0 tokens")

    def test_one_window_gives_no_interval_to_judge_by(self):
        self.assertIsNone(self.figures(self.reference, f"--tokens={self.WINDOW}")["kl"]["mean"]["low"])
        command = self.command(self.reference, f"--tokens={self.WINDOW}", "--max-kl=1")
        self.refuse(command, self.text, "one window", "--gate=point")
        self.assertEqual(0, otf.call(*command, "--gate=point")[0])

    def test_a_foreign_tokenizer_is_refused(self):
        # Ids of these characters begin above what the model knows.
        self.tokenizer = self.write(tokenizer([f"unused{i}" for i in range(300)] + CHARACTERS).encode(), "foreign.json")
        self.refuse(self.command(self.reference), self.reference, "token id", "0 to 210")

    def test_no_tokenizer_is_refused(self):
        command = [part for part in self.command(self.reference) if part not in ("--tokenizer", self.tokenizer)]
        self.refuse(command, self.reference, "tokenizer")

    def test_usage(self):
        self.refuse(self.command(self.reference, f"--score-from={self.WINDOW}"), "score", status=2)
        self.refuse(self.command(self.reference, "--gate=mean"), "gate", status=2)
        self.refuse([otf.tool("otf-exec"), "eval", self.reference, "--text", self.text], "--reference", status=2)

    def test_files_that_are_not_there(self):
        self.refuse(self.command(self.reference, text=self.folder / "none.txt"), "none.txt")
        self.refuse(self.command(self.reference, reference=self.folder / "none.plan"), "none.plan")


class Arrays(test_bad_input.Bad):
    """eval --inputs, for models that read no text."""

    def setUp(self):
        super().setUp()
        digits = otf.fixtures / "digits" / "model.onnx"
        self.reference, self.plan = otf.plan(digits), otf.plan(digits, "rtn4")
        self.samples = []
        for number in range(3):
            (self.folder / "in" / str(number)).mkdir(parents=True)
            self.samples.append(np.random.default_rng(number).random((5, 64), dtype=np.float32))
            np.save(self.folder / "in" / str(number) / "pixels.npy", self.samples[-1])

    def command(self, *flags, plan=None, inputs=None):
        return [otf.tool("otf-exec"), "eval", plan or self.plan, "--reference", self.reference, "--inputs", inputs or self.folder / "in",
                f"--device={otf.target}", *flags]

    def test_figures_are_those_of_numpy(self):
        said = json.loads(otf.succeed(*self.command("--json")))
        self.assertEqual(3, said["samples"])
        errors, cosines, same = [], [], []
        for x in self.samples:
            a, b = (otf.run(plan, {"pixels": x})["logits"].astype(np.float64) for plan in (self.reference, self.plan))
            errors.append(np.linalg.norm(a - b) / np.linalg.norm(a))
            cosines.append((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
            same += list(a.argmax(-1) == b.argmax(-1))
        output, = said["outputs"]
        self.assertAlmostEqual(np.mean(errors), output["relative_error"]["mean"], places=9)
        self.assertAlmostEqual(np.max(errors), output["relative_error"]["most"], places=9)
        self.assertAlmostEqual(np.mean(cosines), output["cosine"]["mean"], places=9)
        self.assertAlmostEqual(np.min(cosines), output["cosine"]["least"], places=9)
        self.assertAlmostEqual(np.mean(same), output["top1"])

    def test_a_gate_is_kept_or_missed(self):
        self.assertEqual(0, otf.call(*self.command("--min-cosine=1", plan=self.reference))[0])
        status, out, error = otf.call(*self.command("--min-cosine=0.999999"))
        self.assertEqual(4, status)
        self.assertIn("logits", out)
        self.assertIn("gate missed: cosine of output 'logits'", error)

    def test_one_sample_may_lie_in_the_folder_itself(self):
        self.assertEqual(1, json.loads(otf.succeed(*self.command("--json", inputs=self.folder / "in" / "1")))["samples"])

    def test_bad_input(self):
        (self.folder / "none").mkdir()
        self.refuse(self.command(inputs=self.folder / "none"), "none", "holds no .npy")
        self.refuse(self.command(inputs=self.folder / "missing"), "missing")
        (self.folder / "in" / "1" / "pixels.npy").rename(self.folder / "in" / "1" / "other.npy")
        self.refuse(self.command(), "pixels.npy")
        self.refuse(self.command("--max-kl=1"), "--text", status=2)
        self.refuse([otf.tool("otf-exec"), "eval", self.plan, "--reference", self.reference], "--text", status=2)


class QualityTable(TinyText):
    """bench/quality.py on a tiny model."""

    def test_rows_are_measured_once(self):
        model = otf.copy_fixture("llama-optimum", self.folder)
        (model / "tokenizer.json").write_text(tokenizer())
        results = self.folder / "rows.json"
        command = [sys.executable, otf.here.parent.parent / "bench" / "quality.py", "--build", otf.build, "--model", model, "--text", self.text, "--results", results,
                   f"--window={self.WINDOW}", f"--score-from={self.FROM}", f"--device={otf.target}", "--no-peers", "--row", "rtn8", "--row", "rtn4", "--row", "no-such-recipe"]
        status, out, error = otf.call(*command)
        self.assertEqual(1, status, error)
        self.assertIn("[2/3] rtn4", error)
        rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| **")]
        self.assertEqual(["**rtn8**", "**rtn4**"], rows)  # the most bits first
        self.assertIn("refused: no-such-recipe: error: recipe 'no-such-recipe'", out)
        before = results.read_text()
        status, again, error = otf.call(*command)
        self.assertEqual((1, out, "", before), (status, again, error, results.read_text()))
        self.text.write_text(self.text.read_text()[::-1])
        self.assertIn("[1/3] rtn8", otf.call(*command)[2])  # another text is another row
