"""mlx-lm 0.32.2, its server: a prompt that is an earlier one with its whole answer ends the thread that generates.

SERVE-5 (at least one token of a prompt is computed): `ask a 3 new=2; ask b a`. All rows are found, and nothing is
left to compute; `insert_segments` raises, and every later request is answered with an error. Known upstream: #1215,
#1581, #1887. Give the folder of a model and its tokenizer. Status 0 if it still reproduces.
"""

import json
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import Request, urlopen

PORT = "8397"


def asked(prompt: str) -> str | None:
    """Give an answer; None if there is none."""
    body = json.dumps({"prompt": prompt, "max_tokens": 2, "temperature": 0}).encode()
    try:
        with urlopen(Request(f"http://127.0.0.1:{PORT}/v1/completions", body), timeout=20) as said:
            return str(json.loads(said.read())["choices"][0]["text"])
    except (URLError, OSError, ValueError):
        return None


with subprocess.Popen([sys.executable, "-m", "mlx_lm", "server", "--model", sys.argv[1], "--port", PORT]) as server:
    until = time.monotonic() + 120
    while (first := asked("t1 t2 t3")) is None and time.monotonic() < until:
        time.sleep(1)
    exact, after = asked(f"t1 t2 t3 {first}"), asked("t5 t6")
    print(f"first {first!r}, with its answer {exact!r}, another one after it {after!r}")
    server.kill()
sys.exit(0 if first and exact is None and after is None else 1)
