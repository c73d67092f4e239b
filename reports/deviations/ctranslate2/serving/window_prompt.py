"""CTranslate2, a window: a prompt longer than it, computed at once, gives wrong logits. A wrong result.

SERVE-1: a request alone is answered as the model answers. Token by token the logits are those of the model. Give
the folder of a probe:

    kvconform probe mistral --layers "2*window 8" --output tokens -o probe
"""

import sys
import tempfile
from pathlib import Path

import ctranslate2
import numpy as np
from ctranslate2.converters import TransformersConverter

TransformersConverter(sys.argv[1]).convert(folder := f"{tempfile.mkdtemp()}/ct2")
config = Path(folder, "config.json")  # the probe has no such token, and CTranslate2 wants one
config.write_text(config.read_text().replace('"bos_token": null', '"bos_token": "<zero>"'))
generator = ctranslate2.Generator(folder, compute_type="float32")


def logits(n, at_once):
    how = {"include_prompt_in_result": not at_once, "max_length": 1 if at_once else n}
    prompt = [f"t{i}" for i in range(10, 10 + n)]
    (result,) = generator.generate_batch([prompt], return_logits_vocab=True, **how)
    return np.array(result.logits[0][-1]).ravel()


off = [round(float(np.abs(logits(n, True) - logits(n, False)).max()), 3) for n in (8, 12, 30)]
print(f"ctranslate2 {ctranslate2.__version__}, a window of 8: logits of a prompt at once, and token by token")
print(f"expected: the same behind 8, 12 and 30 tokens\nseen:     they differ by {off}")
sys.exit(max(off) < 1e-3)
