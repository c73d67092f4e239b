"""Fake engines on the wire: the reference, but for what each answers to appends, as its docstring says.

Used as `python engines.py out_of_order`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from kvadapters.serve import Server
from kvspec.wire import framing


def out_of_order(answer: bytes) -> bytes:
    """Answers the question after the one that was asked."""
    head, newline, tensors = answer.partition(b"\n")
    said = json.loads(head)
    return json.dumps({**said, "id": said["id"] + 1}).encode() + newline + tensors


def a_byte_too_many(answer: bytes) -> bytes:
    """Sends one byte more than it announced."""
    return answer + b"x"


def a_byte_too_few(answer: bytes) -> bytes:
    """Sends one byte less than it announced."""
    return answer[:-1]


def an_unknown_tensor(answer: bytes) -> bytes:
    """Sends a tensor under a name that the protocol does not know."""
    return answer.replace(b'"state.k"', b'"stake.k"')


def a_result_of_its_own(answer: bytes) -> bytes:
    """Calls its result by another name."""
    return answer.replace(b'"result":"ok"', b'"result": "fine"')


def lie(change: Callable[[bytes], bytes]) -> None:
    """Answer as the reference does, but to appends."""
    server, decoder = Server("support.fakes.adapters:Fake"), framing.Decoder()
    while data := os.read(0, 1 << 20):
        for head, tensors in decoder.feed(data):
            answer = server.answer(dict(head), tensors)
            os.write(1, change(answer) if head["op"] == "append" else answer)


if __name__ == "__main__":
    lie(globals()[sys.argv[1]])
