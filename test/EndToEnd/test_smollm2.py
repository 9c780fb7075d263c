# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct against models/smollm2/reference.json: float32 logits and greedy tokens of transformers."""
import json
import unittest

import numpy as np

import otf

PROMPTS = json.loads((otf.here.parent.parent / "models" / "smollm2" / "reference.json").read_text())["prompts"]


class SmolLM2(unittest.TestCase):
    def folder(self, kind):
        if not otf.smollm2[kind]:
            self.skipTest(f"the {kind} folder is not there (utils/check makes it)")
        return otf.smollm2[kind]

    def logits(self, plan, prompt):
        return otf.run(plan, otf.prompt_inputs(prompt["ids"]))["logits"][0, -1]

    def test_f32_logits(self):
        plan = otf.plan(self.folder("f32"))
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt["prompt"][:24]):
                got = self.logits(plan, prompt)
                self.assertEqual(prompt["top_ids"][0], int(got.argmax()))
                self.assertLessEqual(np.abs(got[prompt["top_ids"]] - prompt["top_logits"]).max(), 1e-3)

    def test_f32_greedy_tokens(self):
        plan = otf.plan(self.folder("f32"))
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt["prompt"][:24]):
                self.assertEqual(prompt["greedy"], otf.generate(plan, prompt["ids"], 48))

    def test_f16_logits(self):
        # Weights rounded to f16, computed in f32: closer than f16 arithmetic, which differs by up to 0.07.
        plan = otf.plan(self.folder("f16"))
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt["prompt"][:24]):
                got = self.logits(plan, prompt).astype(np.float32)
                self.assertLessEqual(np.abs(got[prompt["top_ids"]] - prompt["top_logits"]).max(), 0.07)

    def test_rtn8_is_close(self):
        plan = otf.plan(self.folder("f32"), "rtn8")
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt["prompt"][:24]):
                got = self.logits(plan, prompt)
                self.assertEqual(prompt["top_ids"][0], int(got.argmax()))
                error = got[prompt["top_ids"]] - prompt["top_logits"]
                self.assertLessEqual(np.sqrt(np.mean(error**2)), 0.1 * prompt["logits_std"])

    def test_rtn4_answers(self):
        plan = otf.plan(self.folder("f32"), "rtn4")
        self.assertEqual(PROMPTS[0]["greedy"][0], otf.generate(plan, PROMPTS[0]["ids"], 1)[0])
