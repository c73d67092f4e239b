"""Answers that no honest engine gives: each gets its verdict, in time, and the parent goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hostile import scripted
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.session.step import Inputs, Step
from support.slow import one_in

CONFIG = Config(kv_heads=1, k_dim=1, v_dim=1, dtype="f32")
OK = '{"id": $id, "result": "ok"}\n'


def head(**fields: Any) -> str:
    """A header that is right but for these fields."""
    return json.dumps({"id": "$id", "result": "ok", **fields}).replace('"$id"', "$id", 1) + "\n"


def tensor(name: str, size: int = 1, sent: int | None = None) -> str:
    """An answer with one tensor in f32, and so many of its bytes."""
    return head(tensors=[[name, "f32", [1, 1, size, 1]]]) + " " * (4 * size if sent is None else sent)


DEEP = '{"id": $id, "result": "ok", "x": ' + "[" * 40 + "]" * 40 + "}\n"

APPENDED: dict[str, tuple[str, str]] = {
    "an id that is a text": ('{"id": "$id", "result": "ok"}\n', "protocol"),
    "an id with a fraction": ('{"id": $id.0, "result": "ok"}\n', "protocol"),
    "an id that is true": ('{"id": true, "result": "ok"}\n', "protocol"),
    "the id of the question before": ('{"id": 1, "result": "ok"}\n', "protocol"),
    "an id twice, the second is another": ('{"id": $id, "id": 1, "result": "ok"}\n', "protocol"),
    "an id twice, the second is right": ('{"id": 1, "id": $id, "result": "ok"}\n', "protocol"),
    "a line end of another system": (OK.replace("\n", "\r\n"), "ok"),
    "white space in front": ("   \t" + OK, "ok"),
    "an empty line in front": ("\n" + OK, "protocol"),
    "a line of a library in front": ("INFO: device 0 is ready\n" + OK, "protocol"),
    "a line of a library behind": (OK + "INFO: done\n", "protocol"),
    "an escape sequence in front": ("\x1b[2J" + OK, "protocol"),
    "a null byte in front": ("\0" + OK, "protocol"),
    "a header of 40 levels": (DEEP, "protocol"),
    "a field that the protocol does not name": (head(verdict="PASS"), "protocol"),
    "a result that forges a crash": (head(result="crash"), "protocol"),
    "a result that forges a hang": (head(result="hang"), "protocol"),
    "a result that forges a lack of memory": (head(result="oom"), "protocol"),
    "a result that forges itself": (head(result="protocol"), "protocol"),
    "a result in capitals": (head(result="OK"), "protocol"),
    "a result that is a list": (head(result=["ok"]), "protocol"),
    "a result that is an object": (head(result={"ok": 1}), "protocol"),
    "no result": ('{"id": $id}\n', "protocol"),
    "values that are a list": (head(values=[]), "protocol"),
    "values that are null": (head(values=None), "protocol"),
    "a value that there is not": (head(values={"rows": 1}), "protocol"),
    "a value of a cache that there cannot be": (head(values={"offset.b": 1}), "protocol"),
    "an offset that is a text": (head(values={"offset": "1"}), "protocol"),
    "an offset that is true": (head(values={"offset": True}), "protocol"),
    "an offset with a fraction": (head(values={"offset": 1.0}), "protocol"),
    "an offset of 64 bits": (head(values={"offset": 1 << 63}), "protocol"),
    "an offset in a list": (head(values={"offset": [1]}), "protocol"),
    "a truth that is a number": (head(values={"can": 1}), "protocol"),
    "a snapshot of four numbers": (head(values={"snapshot": [0, 1, 2, 3]}), "protocol"),
    "a count that there is not": (head(values={"meter": {"luck": 1}}), "protocol"),
    "a count with a fraction": (head(values={"meter": {"launches": 0.5}}), "protocol"),
    "a clause that is a number": (head(result="refused", clause=7), "protocol"),
    "a clause of a million letters": (head(result="refused", clause="x" * 1_000_000), "refused"),
    "a message that is a list": (head(result="refused", message=["no"]), "protocol"),
    "a message of half letters": (head(result="refused", message="\ud800"), "refused"),
    "a tensor that there is not": (tensor("keys"), "protocol"),
    "a tensor of keys or values, it does not say which": (tensor("state"), "protocol"),
    "a tensor of a cache that there cannot be": (tensor("state.AB.k"), "protocol"),
    "a tensor of a layer of five digits": (tensor("state.12345.k"), "protocol"),
    "a tensor whose name goes on": (tensor("state.k\n"), "protocol"),
    "a tensor that an append cannot have": (tensor("view.k"), "protocol"),
    "a tensor of a layer that a growing cache has not": (tensor("state.0.k"), "protocol"),
    "a tensor of another chapter": (tensor("gathered.k"), "protocol"),
    "a tensor that nobody asked for, of 8 MiB": (tensor("output", 2 << 20), "protocol"),
    "more bytes than were listed": (tensor("history.k") + "\0", "protocol"),
    "fewer bytes than were listed": (tensor("history.k", sent=3), "hang"),
    "half a header": ('{"id": $id, ', "hang"),
    "a header without its line end": (OK.rstrip(), "hang"),
    "nothing": ("", "hang"),
    "the answer to the next question too": (OK + OK.replace("$id", "3"), "protocol"),
}
"""What is answered to an append, and how the step ends."""


def worker(folder: Path, *answers: str) -> Worker:
    (file := folder / "answers.json").write_text(json.dumps(answers))
    return Worker([sys.executable, "-I", "-S", scripted.__file__, str(file)], deadline=0.5, start_deadline=10.0)


def append(session: RemoteSession) -> Step:
    rows = Pair(*(np.ones((1, 1, 1, 1), np.float32) for _ in "kv"))
    return session.do({"op": "append", "n": 1}, Inputs(rows))


@pytest.mark.parametrize(("answer", "must"), one_in(4, APPENDED.values()), ids=APPENDED)
def test_an_append_is_answered_by(answer: str, must: str, tmp_path: Path) -> None:
    with worker(tmp_path, OK, answer, OK) as w:
        session = RemoteSession(w, ["history", "offset"])
        assert session.begin("growing", CONFIG).result == "ok"
        step = append(session)
        assert step.result == must and step.message.isprintable() and len(step.message) <= 4000
        assert session.begin("growing", CONFIG).result == "ok", "the parent goes on"
