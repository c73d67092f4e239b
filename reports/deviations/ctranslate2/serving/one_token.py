"""CTranslate2, a batch with a prompt of one token: other answers are parts of their prompts. A wrong result.

SERVE-12: a request's answer is the same in any company. Give the folder of a probe:

    kvconform probe mistral --layers "full,full" --output tokens -o probe
"""

import sys
import tempfile
from pathlib import Path

import ctranslate2
from ctranslate2.converters import TransformersConverter

folder = f"{tempfile.mkdtemp()}/ct2"
TransformersConverter(sys.argv[1]).convert(folder)
config = Path(folder, "config.json")  # the probe has no such token, and CTranslate2 wants one
config.write_text(config.read_text().replace('"bos_token": null', '"bos_token": "<zero>"'))
generator = ctranslate2.Generator(folder, compute_type="float32")


def answer(*prompts):
    results = generator.generate_batch(prompts, include_prompt_in_result=False, max_length=4)
    return " ".join(results[-1].sequences[0])


prompt = [f"t{i}" for i in range(10, 17)]
alone, beside_two, beside_one = answer(prompt), answer(["t5", "t6"], prompt), answer(["t5"], prompt)
print(f"ctranslate2 {ctranslate2.__version__}: 4 tokens behind {' '.join(prompt)}, include_prompt_in_result=False")
print("expected: the same alone, beside a prompt of two tokens, and beside one of one token")
print(f"seen:     {alone}\n          {beside_two}\n          {beside_one}")
sys.exit(alone == beside_two == beside_one)
