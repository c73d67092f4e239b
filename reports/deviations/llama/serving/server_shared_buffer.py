"""llama-server, one buffer for all slots: requests that each fit fail together, all of them. Known, a choice.

SERVE-12: four requests under way, of 125 tokens and 34 new ones, and 512 cells. Upstream: #23652; the pull request
that brought the buffer, #16736, says that one at a time should end. Start it before:

    kvconform probe gemma3 --layers "window 8,full" --format gguf -o probe
    llama-server -m probe/model.gguf --port 8080 -np 4 -c 512 --kv-unified -b 32 -ub 16
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def asked(path, **body):
    with urlopen(Request(f"http://127.0.0.1:8080/{path}", json.dumps(body).encode() if body else None)) as said:
        return json.load(said)


def status(first):
    try:
        asked("completion", prompt=[first, *range(10, 134)], n_predict=34, temperature=0, cache_prompt=False)
    except HTTPError as e:
        return e.code
    return 200


alone = [status(first) for first in range(4)]
with ThreadPoolExecutor(4) as together:
    seen = list(together.map(status, range(4)))
print(f"llama-server {asked('props')['build_info']}\nexpected: {alone}\nseen:     {seen}")
sys.exit(seen == alone)
