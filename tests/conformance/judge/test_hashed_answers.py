"""A worker answers a frozen trace with hashes: what is told is what is told of its arrays."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kvconform.generate.frozen_traces import walks
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.session.step import Step
from kvspec.trace import Trace
from kvspec.wire import answered, framing
from kvspec.wire.framing import Decoder, ProtocolError, array_hash

WRONG = '''
from kvadapters.reference import Reference
from kvref.growing import Growing
from kvref.memory.meter import meter
from kvspec.geometry import Pair

class Wrong(Growing):
    """One bit of the newest row is wrong while `{when}`, counted from the first row that is read."""

    reads = 0

    def read(self, what):
        pair = super().read(what)
        Wrong.reads += 1
        if pair is None or not pair.keys.size or not ({when}):
            return pair
        keys = pair.keys.copy()
        keys.view("u1")[..., -1] ^= 1
        return Pair(keys, pair.values)

    appends = 0

    def append(self, keys, values):
        super().append(keys, values)
        Wrong.appends += 1
        meter.allocations += 0 * (Wrong.appends == 3)

class Adapter(Reference):
    caches = {{**Reference.caches, "growing": Wrong}}
'''


WARM_UP = "meter.allocations += 0"
"""What an append adds to the meter the third time."""


@pytest.fixture
def walk() -> Trace:
    return max(walks("growing", "several-sizes, few"), key=lambda walk: len(walk.ops))


def worker_of(folder: Path, when: str) -> Worker:
    (folder / "wrong.py").write_text(WRONG.format(when=when))
    return worker_of_file(folder)


def worker_of_file(folder: Path) -> Worker:
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return Worker(python_worker("wrong:Adapter"), env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


def judged(worker: Worker, trace: Trace) -> TrialResult:
    return trial.on(trace, partial(RemoteSession, worker), worker.describe())


def told(seen: TrialResult) -> object:
    return seen.verdict, seen.blamed, len(seen.steps), [d.message for d in seen.differences]


def test_no_array_crosses_while_answers_are_right(walk: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()
    feed = Decoder.feed
    monkeypatch.setattr(Decoder, "feed", lambda self, data: (read.append(len(data)), feed(self, data))[1])
    with Worker(python_worker("reference")) as worker:
        assert not judged(worker, walk).failed
        hashed = sum(read)
        assert not judged(worker, replace(walk, frozen=None)).failed
        assert sum(read) - hashed > 20 * hashed


def test_a_wrong_bit_is_told_as_it_is_without_hashes(walk: Trace, tmp_path: Path) -> None:
    with worker_of(tmp_path, "self.offset > 20") as worker:
        found = [told(judged(worker, t)) for t in (walk, replace(walk, frozen=None))]
    assert found[0] == found[1] and found[0][0] == "FAIL"  # type: ignore[index]


def test_an_answer_that_is_right_when_asked_again_was_wrong(walk: Trace, tmp_path: Path) -> None:
    with worker_of(tmp_path, "Wrong.reads == 6") as worker:
        seen = judged(worker, walk)
    assert seen.verdict == "FAIL" and "another hash" in seen.differences[0].message
    assert 1 < len(seen.steps) < len(walk.ops) and seen.blamed


def test_what_costs_too_much_the_first_time_alone_costs_too_much(walk: Trace, tmp_path: Path) -> None:
    with worker_of(tmp_path, "False") as worker:
        seen = judged(worker, walk)
    assert not seen.failed and WARM_UP in WRONG
    (tmp_path / "wrong.py").write_text(WRONG.replace(WARM_UP, WARM_UP.replace("0", "99")).format(when="False"))
    with worker_of_file(tmp_path) as worker:
        seen = judged(worker, walk)
    assert seen.blamed and seen.differences[0].field == "meter", seen.differences
    assert 1 < len(seen.steps) < len(walk.ops)


def test_an_engine_that_crashes_once_has_crashed(walk: Trace, tmp_path: Path) -> None:
    once = f"not __import__('pathlib').Path({str(tmp_path / 'once')!r}).exists()"
    crash = f"{once} and (open({str(tmp_path / 'once')!r}, 'w').close() or __import__('os')._exit(3))"
    with worker_of(tmp_path, crash) as worker:
        seen = judged(worker, walk)
    assert seen.verdict == "CRASH", seen.differences


def arrays() -> Iterator[dict[str, np.ndarray | None]]:
    keys = np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4)
    yield {"state.k": keys, "state.v": None}
    yield {"state.k": keys[:, :, ::-1], "state.v": None}
    yield {"state.k": keys.reshape(2, 1, 3, 4), "state.v": None}
    yield {"state.k": keys.view(np.int16), "state.v": None}
    yield {"state.k": None, "state.v": keys}
    yield {"state.k": keys}
    yield {"state.k": keys[:, :, :0], "state.v": None}
    yield {}


def test_a_hash_is_of_names_dtypes_shapes_and_bytes() -> None:
    assert len({array_hash(each) for each in arrays()}) == len(list(arrays()))
    first = next(arrays())
    keys = np.arange(24, dtype="<f2").tobytes()
    told = zlib.crc32(b"state.k f16[1, 2, 3, 4];" + keys + b"state.v none;")
    assert array_hash(dict(reversed(first.items()))) == array_hash(first) == f"{told:08x}"


def test_what_is_hashed_is_listed_and_not_sent() -> None:
    given = next(arrays())
    sent = answered.answer(1, Step(arrays=given), hashed=True)
    ((head, listed),) = Decoder().feed(sent + b"")
    assert sent.endswith(b"\n") and head["hash"] == array_hash(given)
    assert {n: a is None or (a.dtype, a.shape, a.any()) for n, a in listed.items()} == {
        "state.k": (np.dtype(np.float16), (1, 2, 3, 4), False),
        "state.v": True,
    }


@pytest.mark.parametrize("hashed", ["", "5f0c3a9", "5F0C3A91", 5, None])
def test_a_hash_that_is_none_breaks_the_protocol(hashed: object) -> None:
    head = {"id": 1, "result": "ok", framing.HASH: hashed}
    with pytest.raises(ProtocolError, match="hash"):
        answered.step(head, {})
