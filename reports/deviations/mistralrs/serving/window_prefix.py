"""mistral.rs, a window: a request that begins with an earlier one is answered otherwise than alone. A wrong result.

SERVE-2: what is reused changes no answer. Give the folder of a probe with windows:

    kvconform probe mistral --layers "2*window 8" --output tokens -o probe
"""

import random
import sys
from importlib.metadata import version
from pathlib import Path

import mistralrs as m

DECODER = '"decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}'
text, other = Path(sys.argv[1], "tokenizer.json").read_text(), Path(sys.argv[1], "other.json")
other.write_text(text.replace('"decoder": null', DECODER))
which = m.Which.Plain(sys.argv[1], tokenizer_json=str(other), dtype=m.ModelDType.F32)


def answer(runner, words, new=4):
    asked = m.CompletionRequest(" ".join(words), model="default", max_tokens=new, temperature=0.0, ignore_eos=True)
    return runner.send_completion_request(asked).choices[0].text


draw, same = random.Random(0), 0
for words in ([f"t{draw.randrange(200)}" for _ in range(15)] for _ in range(10)):
    answer(runner := m.Runner(which=which, prefix_cache_n=16), words[:13], 1)
    same += answer(runner, words) == answer(m.Runner(which=which, prefix_cache_n=16), words)
print(f"mistral.rs {version('mistralrs')}, windows of 8: answers behind 13 reused tokens, as without reuse")
print(f"expected: 10 of 10\nseen:     {same} of 10")
sys.exit(same == 10)
