"""mistral.rs, a window: a request that begins with an earlier one is answered otherwise than alone. A wrong result.

SERVE-2: what is reused changes no answer. Give the folder of a probe with windows:

    kvconform probe mistral --layers "2*window 8" --output tokens -o probe
"""

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

import mistralrs

folder = Path(sys.argv[1])
tokenizer = json.loads((folder / "tokenizer.json").read_text())
tokenizer["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
(folder / "with-decoder.json").write_text(json.dumps(tokenizer))


def started():
    files = {"model_id": str(folder), "tokenizer_json": str(folder / "with-decoder.json")}
    return mistralrs.Runner(which=mistralrs.Which.Plain(**files, dtype=mistralrs.ModelDType.F32), prefix_cache_n=16)


def answer(runner, prompt, new):
    asked = mistralrs.CompletionRequest(prompt, model="default", max_tokens=new, temperature=0.0, ignore_eos=True)
    return runner.send_completion_request(asked).choices[0].text


random.seed(0)
same, texts = 0, [[f"t{random.randrange(200)}" for _ in range(15)] for _ in range(10)]
for words in texts:
    runner = started()
    answer(runner, " ".join(words[:13]), 1)
    same += answer(runner, " ".join(words), 4) == answer(started(), " ".join(words), 4)
print(f"mistral.rs {version('mistralrs')}, windows of 8: answers behind 13 reused tokens, as without reuse")
print(f"expected: 10 of 10\nseen:     {same} of 10")
sys.exit(same == 10)
