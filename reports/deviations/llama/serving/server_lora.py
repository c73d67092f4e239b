"""llama-server --lora: a prompt that was computed with an adapter is reused without it. A wrong result.

SERVE-19: each row was computed with the request's own adapter. Start it before:

    kvconform probe qwen3 --layers full,full --adapters --format gguf -o probe
    llama-server -m probe/model.gguf --port 8080 --lora probe/adapters/x.gguf -np 1 -c 512 -ctk f32 -ctv f32 -fa off
"""

import json
import random
import sys
from urllib.request import Request, urlopen


def asked(path, **body):
    return json.load(urlopen(Request(f"http://127.0.0.1:8080/{path}", json.dumps(body).encode() if body else None)))


def answer(prompt, scale, cache=True):
    lora = [{"id": 0, "scale": scale}]
    told = asked("completion", prompt=prompt, n_predict=1, lora=lora, cache_prompt=cache, n_probs=1186)
    return {x["id"]: x["logprob"] for x in told["completion_probabilities"][0]["top_logprobs"]}


draw, wrong = random.Random(0), 0
for _ in range(10):
    first, other, more = (draw.choices(range(223), k=n) for n in (32, 31, 3))
    answer(first, 1.0), answer(other, 0.0)
    reused, computed = answer(first + more, 0.0), answer(first + more, 0.0, False)
    wrong += max(abs(reused[i] - computed[i]) for i in reused.keys() & computed.keys()) > 0.001
print(f"llama-server {asked('props')['build_info']}: of 10 answers, those that are off the one without reuse")
print(f"expected: 0\nseen:     {wrong}")
sys.exit(not wrong)
