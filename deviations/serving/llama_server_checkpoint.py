"""llama-server (llama.cpp 0.5.0-dev, commit 0c1e570), a model with windows: a request that begins with one token of
an earlier one is answered as if another text stood there. Wrong result. Status 0 if it still reproduces.

    kvconform probe gemma3 --layers "window 8,full" --output tokens --format gguf -o probe
    llama-server -m probe/model.gguf --port 8080 -np 2 -c 512 -b 32 -ub 16 -ctk f32 -ctv f32 -fa off &
    python3 llama_server_checkpoint.py http://127.0.0.1:8080
"""

import json
import random
import sys
from urllib.request import Request, urlopen


def answer(prompt, new, cache):
    asked = {"prompt": prompt, "n_predict": new, "temperature": 0, "return_tokens": True, "cache_prompt": cache}
    with urlopen(Request(f"{sys.argv[1]}/completion", json.dumps(asked).encode())) as said:
        return json.load(said)["tokens"]


draw, wrong = random.Random(0), 0
for length in range(2, 22):
    first = [draw.randrange(223) for _ in range(length)]
    answer(first, 12, True)
    second = first[:1] + [draw.randrange(223) for _ in range(5)]
    reused, right = answer(second, 8, True), answer(second, 8, False)
    wrong += reused != right
    print(f"behind a prompt of {length}, one token in common: {reused}; without reuse: {right}")
print(f"{wrong} of 20 answers differ from those without reuse")
sys.exit(0 if wrong else 1)
