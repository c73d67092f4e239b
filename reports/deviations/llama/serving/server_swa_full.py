"""llama-server --swa-full: a prompt that comes back from the host's cache lacks rows of windows. A wrong result.

SERVE-2: a prompt is put away for another one, and comes back to a request that begins as it does. Start it before:

    kvconform probe gemma3 --layers "window 8,full" --format gguf -o probe
    llama-server -m probe/model.gguf --port 8080 -np 4 -c 1024 --no-kv-unified --swa-full -ctk f32 -ctv f32 -fa off
"""

import json
import random
import sys
from urllib.request import Request, urlopen


def asked(path, **body):
    with urlopen(Request(f"http://127.0.0.1:8080/{path}", json.dumps(body).encode() if body else None)) as said:
        return json.load(said)


def answer(prompt, cache=True):
    told = asked("completion", prompt=prompt, n_predict=3, temperature=0, cache_prompt=cache, n_probs=300)
    return {x["id"]: x["logprob"] for x in told["completion_probabilities"][0]["top_logprobs"]}


draw, wrong = random.Random(0), 0
for _ in range(10):
    begin, first, other, more = (draw.choices(range(223), k=n) for n in (4, 32, 31, 32))
    answer(begin), answer(begin + first), answer(begin + other)
    reused, computed = answer(begin + first + more), answer(begin + first + more, False)
    wrong += max(abs(reused[i] - computed[i]) for i in reused.keys() & computed.keys()) > 0.001
print(f"llama-server {asked('props')['build_info']}: of 10 answers, those that are off the one without reuse")
print(f"expected: 0\nseen:     {wrong}")
sys.exit(not wrong)
