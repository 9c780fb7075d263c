# SPDX-License-Identifier: Apache-2.0
"""The text half of the runtime beside the packages that define its behaviour."""
import subprocess
import sys
import unittest

import otf

ORACLES = otf.here.parent / "Runtime" / "Text"


class Text(unittest.TestCase):
    def compare(self, oracle, driver, companion):
        folder = otf.smollm2["f32"]
        extra = [str(folder / companion)] if folder and (folder / companion).exists() else []
        done = subprocess.run([sys.executable, str(ORACLES / oracle), str(otf.tool(driver)), *extra],
                              capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_tokenizer_equals_tokenizers(self):
        self.compare("tokenizer_oracle.py", "otf-tokenize", "tokenizer.json")

    def test_chat_template_equals_jinja(self):
        self.compare("template_oracle.py", "otf-render-chat", "chat_template.jinja")
