"""llama-server --cache-reuse: rows of another place and context stand for a prompt's own. Known, a choice.

SERVE-14: a prompt of a beginning and a middle of an earlier one. Rows of the middle are turned to their
new place, and were computed behind other tokens. Upstream: #9866, which brought it. Start it before:

    kvconform probe qwen3 --layers full,full --output tokens --format gguf -o probe
    llama-server -m probe/model.gguf --port 8080 -np 1 -c 512 --cache-reuse 8 -ctk f32 -ctv f32 -fa off
"""

import json
import random
import sys
from urllib.request import Request, urlopen


def asked(path, **body):
    with urlopen(Request(f"http://127.0.0.1:8080/{path}", json.dumps(body).encode() if body else None)) as said:
        return json.load(said)


def answer(prompt, new, cache):
    body = {"prompt": prompt, "n_predict": new, "temperature": 0, "return_tokens": True, "cache_prompt": cache}
    return asked("completion", **body)["tokens"]


draw, wrong = random.Random(0), 0
for _ in range(20):
    first = [draw.randrange(223) for _ in range(40)]
    answer(first, 1, True)
    second = first[:8] + first[20:36] + [draw.randrange(223) for _ in range(3)]
    wrong += answer(second, 8, True) != answer(second, 8, False)
print(f"llama-server {asked('props')['build_info']}: of 20 answers, those that differ from one without reuse")
print(f"expected: 0\nseen:     {wrong}")
sys.exit(not wrong)
