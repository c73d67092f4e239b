"""A process that answers each question with prepared bytes: `python scripted.py ANSWERS`.

ANSWERS is a JSON file with a list: for each question a text in Latin-1, in which `$id` stands for its id.
Behind the last it answers nothing and goes on reading.
"""

from __future__ import annotations

import json
import sys
from math import prod
from pathlib import Path

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "bool": 1}


def question() -> int:
    """Read one question with its tensors; give its id."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    head = json.loads(line)
    listed = head.get("tensors", [])
    sys.stdin.buffer.read(sum(BYTES[dtype] * prod(shape) for _, dtype, shape in listed if dtype))
    return int(head["id"])


if __name__ == "__main__":
    for answer in json.loads(Path(sys.argv[1]).read_text()):
        text = answer.replace("$id", str(question()))
        sys.stdout.buffer.write(text.encode("latin-1"))
        sys.stdout.buffer.flush()
    while True:
        question()
