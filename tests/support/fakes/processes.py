"""Fake processes that speak the wire by themselves: each tells one lie, named in its docstring.

Used as `python processes.py never_reads`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, NoReturn

FOREVER = 600.0


def ask() -> dict[str, Any]:
    """One question without its tensors' bytes; those asked of these processes have none."""
    question: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    return question


def say(data: bytes | dict[str, Any]) -> None:
    left = data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n"
    while left:
        left = left[os.write(1, left) :]


def sleep() -> NoReturn:
    while True:
        time.sleep(FOREVER)


def never_reads() -> None:
    """Takes no question out of its pipe."""
    sleep()


def answers_before_it_reads() -> None:
    """Guesses the question, and leaves it in the pipe."""
    say({"id": 1, "result": "ok"})
    sleep()


def stalls_in_mid_tensor() -> None:
    """Sends 12 bytes of 16."""
    say({"id": ask()["id"], "result": "ok", "tensors": [["state.k", "f32", [4]]]})
    say(bytes(12))
    sleep()


def dies_in_mid_tensor() -> None:
    """Sends 12 bytes of 16, and ends."""
    say({"id": ask()["id"], "result": "ok", "tensors": [["state.k", "f32", [4]]]})
    say(bytes(12))
    sys.exit(3)


def answers_out_of_order() -> None:
    """Answers a question that was not asked yet."""
    say({"id": ask()["id"] + 1, "result": "ok"})
    sleep()


def answers_without_id() -> None:
    """Leaves open what it answers."""
    ask()
    say({"result": "ok"})
    sleep()


def answers_twice() -> None:
    """Says everything twice."""
    answer = json.dumps({"id": ask()["id"], "result": "ok"}).encode() + b"\n"
    say(answer + answer)
    sleep()


def answers_twice_slowly() -> None:
    """Says everything twice, the second time when nobody listens."""
    while True:
        answer = {"id": ask()["id"], "result": "ok"}
        say(answer)
        time.sleep(0.1)
        say(answer)


def wrong_byte_count() -> None:
    """Sends 17 bytes where it said 16."""
    head = {"id": ask()["id"], "result": "ok", "tensors": [["state.k", "f32", [4]]]}
    say(json.dumps(head).encode() + b"\n" + bytes(17))
    sleep()


def huge_header() -> None:
    """Sends a header of 2 MiB."""
    say({"id": ask()["id"], "result": "ok", "message": "x" * (2 << 20)})
    sleep()


def huge_tensor() -> None:
    """Announces a petabyte."""
    say({"id": ask()["id"], "result": "ok", "tensors": [["state.k", "f32", [1 << 24, 1 << 24]]]})
    sleep()


def not_json() -> None:
    """Greets."""
    ask()
    say(b"Hello! I am a language model.\n")
    sleep()


def deep_json() -> None:
    """Nests a hundred thousand lists."""
    ask()
    say(b"[" * 100_000 + b"\n")
    sleep()


def endless_output() -> None:
    """Writes without end and without a newline."""
    ask()
    while True:
        say(b"x" * 65536)


def endless_answers() -> None:
    """Answers without end."""
    answer = {"id": ask()["id"], "result": "ok"}
    while True:
        say(answer)


def no_newline() -> None:
    """Sends a header that does not end."""
    ask()
    say(b'{"id": 1, "result": "ok"}')
    sleep()


def drips() -> None:
    """Sends a byte now and then: never silent, never done."""
    ask()
    while True:
        say(b" ")
        time.sleep(0.02)


def floods_standard_error() -> None:
    """Writes to standard error without end, and never answers."""
    ask()
    while True:
        os.write(2, b"noise " * 4096)


def closes_its_standard_error() -> None:
    """Closes its standard error, and never answers."""
    os.close(2)
    sleep()


def closes_its_output() -> None:
    """Closes its output, and goes on running."""
    ask()
    os.close(1)
    sleep()


def closes_its_input() -> None:
    """Closes its input, and goes on running."""
    os.close(0)
    sleep()


def dies_and_leaves_its_output_open() -> None:
    """Ends, while a child of its own holds its output open."""
    ask()
    subprocess.Popen(["sleep", "60"])
    os._exit(5)


def dies_before_it_reads() -> None:
    """Ends at once."""
    print("no licence found", file=sys.stderr)
    sys.exit(7)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
