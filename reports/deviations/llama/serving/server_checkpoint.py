"""llama-server, windows or linear layers: a prompt is answered as if another text stood there. A wrong result.

SERVE-6: a request that begins with one token of an earlier one, and goes on otherwise. Start it before:

    kvconform probe gemma3 --layers "window 8,full" --output tokens --format gguf -o probe
    (or qwen3-next --layers linear,full: 7 of 20 answers differ, with Gemma 3 14)
    llama-server -m probe/model.gguf --port 8080 -np 2 -c 512 -b 32 -ub 16 -ctk f32 -ctv f32 -fa off
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
for length in range(2, 22):
    first = [draw.randrange(223) for _ in range(length)]
    answer(first, 12, True)
    second = first[:1] + [draw.randrange(223) for _ in range(5)]
    wrong += answer(second, 8, True) != answer(second, 8, False)
print(f"llama-server {asked('props')['build_info']}: of 20 answers, those that differ from one without reuse")
print(f"expected: 0\nseen:     {wrong}")
sys.exit(not wrong)
