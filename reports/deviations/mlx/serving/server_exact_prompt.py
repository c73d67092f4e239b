"""mlx-lm, its server: a prompt that is an earlier one with its whole answer ends the thread that generates. Known.

SERVE-18, by hand: ask a 3 new=2; ask b a. All rows are found, nothing is left to compute, and `insert_segments`
raises; every later request is answered with an error. Upstream: #1215, #1581, #1887. Start it before:

    mlx_lm.server --model FOLDER --port 8080
"""

import json
import sys
from importlib.metadata import version
from urllib.request import Request, urlopen


def asked(prompt):
    body = json.dumps({"prompt": prompt, "max_tokens": 2, "temperature": 0}).encode()
    try:
        with urlopen(Request("http://127.0.0.1:8080/v1/completions", body), timeout=20) as said:
            return json.load(said)["choices"][0]["text"]
    except OSError as e:
        return type(e).__name__


first = asked("t1 t2 t3")
again, later = asked(f"t1 t2 t3 {first}"), asked("t5 t6")
expected, seen = "two texts", [again, later]
print(f"mlx-lm {version('mlx-lm')}\nexpected: {expected}\nseen:     {seen}")
sys.exit(not any("Error" in answer for answer in seen))
