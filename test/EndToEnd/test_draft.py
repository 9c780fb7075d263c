# SPDX-License-Identifier: Apache-2.0
"""generate --draft=ngram: guesses change how often the model runs, and never the text."""
import json
import unittest

import otf

REPEATING = [5, 9, 23, 7, 40] * 6


class Draft(unittest.TestCase):
    def generate(self, plan, ids, *flags):
        return json.loads(otf.succeed(otf.tool("otf-exec"), "generate", plan, "--prompt-ids", ",".join(map(str, ids)), "--ignore-eos",
                                      "--json", f"--device={otf.target}", *flags))

    def test_the_text_is_the_same(self):
        for model in ("llama-optimum", "gpt2-optimum"):
            plan = otf.plan(otf.fixtures / model / "model.onnx", "rtn8")
            for flags in (["--greedy"], ["--temperature=0.3", "--top-k=5", "--seed=7"], ["--greedy", "--no-repeat-ngram=4"],
                          ["--greedy", "--repetition-penalty=1.3"]):
                for ids in (REPEATING, [3, 1, 2]):
                    for count in (2, 33):
                        with self.subTest(model=model, flags=flags, ids=len(ids), count=count):
                            plain = self.generate(plan, ids, *flags, "--max-tokens", count)
                            drafted = self.generate(plan, ids, *flags, "--max-tokens", count, "--draft=ngram")
                            self.assertEqual(plain["ids"], drafted["ids"])
                            self.assertEqual(plain["reason"], drafted["reason"])

    def test_guesses_are_right_where_a_text_repeats(self):
        # A tiny random model soon goes round in a circle when it is greedy.
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx", "rtn8")
        draft = self.generate(plan, REPEATING, "--greedy", "--max-tokens=60", "--draft=ngram")["draft"]
        self.assertLess(0, draft["guessed"])
        self.assertLess(0, draft["accepted"])
        self.assertLessEqual(draft["accepted"], draft["guessed"])

    def test_the_context_ends_it_at_the_same_place(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx", "rtn8")
        told = [self.generate(plan, REPEATING, "--greedy", "--context=50", "--max-tokens=100", *more) for more in ([], ["--draft=ngram"])]
        self.assertEqual("context", told[0]["reason"])
        self.assertEqual(told[0]["ids"], told[1]["ids"])
        self.assertEqual(told[0]["reason"], told[1]["reason"])

    def test_unknown_kinds_are_refused(self):
        status, _, error = otf.call(otf.tool("otf-exec"), "generate", "a.plan", "--prompt-ids=1", "--draft=magic")
        self.assertEqual(2, status)
        self.assertRegex(error, r"^error: command line: [^\n]*--draft[^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
