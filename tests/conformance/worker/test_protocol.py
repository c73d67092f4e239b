"""What is no answer, or comes out of turn, breaks the protocol; questions sent ahead are answered in order."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
import pytest

from kvconform.worker.client import ProtocolBroken, Worker
from kvconform.worker.remote_session import RemoteSession
from support import fakes
from support.running.workers import CONFIG, NOTHING, failure, worker

PROTOCOL = {
    "answers_out_of_order": "answer to question 2; the question was 1",
    "answers_without_id": "answer to question None",
    "answers_twice": "two answers",
    "wrong_byte_count": "1 bytes of a header followed",
    "huge_header": "a header of more than",
    "huge_tensor": "more than the 268435456 bytes",
    "not_json": "not a JSON header: b'Hello! I am",
    "deep_json": "not a JSON header",
    "endless_output": "a header of more than",
    "closes_its_output": "closed its standard output and is still running",
}


@pytest.mark.parametrize(("name", "says"), PROTOCOL.items(), ids=PROTOCOL)
def test_what_is_no_answer_breaks_the_protocol(name: str, says: str, pids: list[int]) -> None:
    start = time.monotonic()
    e = failure(worker(fakes.process(name)))
    assert isinstance(e, ProtocolBroken) and says in e.message
    assert time.monotonic() - start < 30


def test_an_answer_to_half_a_question_breaks_the_protocol(pids: list[int]) -> None:
    large = {"keys": np.zeros(4 << 20, np.float32)}
    e = failure(worker(fakes.process("answers_before_it_reads")), NOTHING, large)
    assert isinstance(e, ProtocolBroken) and "before it read the question" in e.message


def test_a_second_answer_that_comes_late_breaks_the_protocol(pids: list[int]) -> None:
    with worker(fakes.process("answers_twice_slowly")) as w:
        assert w.ask(NOTHING) == ({"result": "ok"}, {})
        time.sleep(0.2)
        with pytest.raises(ProtocolBroken, match=r"an answer to question 1; the question was 2|two answers"):
            w.ask(NOTHING)


def test_answers_without_end_are_caught_at_the_next_question(pids: list[int]) -> None:
    with worker(fakes.process("endless_answers")) as w, pytest.raises(ProtocolBroken, match="answer"):
        [w.ask(NOTHING) for _ in range(2)]


@pytest.mark.parametrize("answer", [{}, {"result": "fine"}, {"result": "error", "message": 3}, {"result": []}])
def test_a_description_of_any_other_form_breaks_the_protocol(answer: dict[str, Any]) -> None:
    with worker([]) as w:
        w.ask = lambda *_: (answer, {})  # type: ignore[method-assign]
        with pytest.raises(ProtocolBroken):
            w.describe()


def test_an_answer_that_the_protocol_does_not_name_ends_the_trace(pids: list[int]) -> None:
    with worker(fakes.adapter("Honest")) as w:
        session = RemoteSession(w)
        session.begin("growing", CONFIG)
        said = {"result": "ok", "values": {"offset": True}}
        receive, w.receive = w.receive, lambda: (said, {})  # type: ignore[method-assign]
        step = session.do({"op": "free"})
        assert (step.result, step.message) == ("protocol", "offset must be a whole number or null, is True")
        w.receive = receive  # type: ignore[method-assign]
        assert session.do({"op": "free"}).result == "absent"
        assert session.begin("growing", CONFIG).result == "ok"
    assert len(pids) == 2


def test_questions_sent_ahead_are_answered_in_order() -> None:
    with worker(fakes.adapter("Honest")) as w:
        w.ask({"op": "begin", "kind": "growing", "config": CONFIG.to_json(), "observe": []})
        for to in (9, 0, 9):
            w.send({"op": "rewind", "to": to})
        assert [w.receive()[0]["result"] for _ in range(3)] == ["refused", "ok", "refused"]


def test_a_trace_and_what_opens_its_cache_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(fakes.adapter("Honest")) as w:
        w.describe()
        written, write = list[int](), os.write
        monkeypatch.setattr(os, "write", lambda pipe, data: written.append(write(pipe, data)) or written[-1])
        session = RemoteSession(w)
        begun, *asked = session.begin_later("growing", CONFIG), *(session.later({"op": "free"}) for _ in range(3))
        assert not written
        assert [answer().result for answer in (begun, *asked)] == ["ok"] * 4 and len(written) == 1


def test_what_is_asked_behind_a_cache_that_is_not_opened_finds_none() -> None:
    with worker(fakes.adapter("Honest")) as w:
        session = RemoteSession(w)
        asked = session.begin_later("growing", CONFIG.changed(kv_heads=0)), session.later({"op": "free"})
        assert [answer().result for answer in asked] == ["refused", "absent"]
        assert session.begin("growing", CONFIG).result == "ok"


IN_PAIRS = """
import os
from kvspec.wire.framing import Decoder
decoder, waiting = Decoder(), []
while data := os.read(0, 1 << 18):
    for head, _ in decoder.feed(data):
        waiting.append(b'{"id": %d, "result": "ok"}\\n' % head["id"])
        if head["op"] != "append":
            os.write(1, b"".join(waiting))
            waiting.clear()
"""
"""An engine that answers an append together with the next question."""


def test_questions_behind_one_that_no_pipe_holds_are_written_and_those_after_it() -> None:
    with Worker([sys.executable, "-c", IN_PAIRS], deadline=5, env=fakes.environment()) as w:
        rows = dict.fromkeys(("keys", "values"), np.zeros((1, 1, 1 << 18, 8), np.float16))
        for _ in range(3):
            w.ask({"op": "begin"})
            w.send({"op": "append", "n": 1 << 18}, rows)
            w.send({"op": "ask", "to": 0})
            assert [w.receive()[0]["result"] for _ in range(2)] == ["ok", "ok"]
