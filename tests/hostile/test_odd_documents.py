"""Documents in which one value is odd: what reads them says so in a line, or reads them in little memory."""

from __future__ import annotations

import copy
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.judge import trial
from kvconform.log import judge, log_file
from kvconform.vectors import files, verify
from kvreports import json_file
from kvspec import strict_json, trace
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.notation import from_sentence
from kvspec.records.run import Record
from kvspec.session.driver import Session
from kvspec.wire.framing import Decoder, ProtocolError, encode
from support.samples import logs
from support.samples.record_samples import failing

ODD = (-1, 1 << 31, 1 << 40, 1 << 62, 1e300, None, True, "", "a", [], [[]], {}, ["f32", 1 << 34])
"""What may stand in the place of any value of a document."""

MOST = 300 << 20
"""Bytes that reading a document and acting on it may take: the bounds of rows, snapshots and outputs of a trace."""

EACH = {False: 25, True: 600}
"""Documents of a sort, chosen by a seed: few in every run, and many."""

TOLD = ("growing", "ring", "mask", "snapshot", "mem")
CLAIM = {"name": "logger", "chapters": dict.fromkeys(TOLD, "storage")}
TRACE = from_sentence(
    "ring window=3 step=1 kv_heads=2: append 2; mask window=2; append 4; snapshot s; restore s 6; view"
)


def a_log() -> list[Any]:
    claims = description(CLAIM)
    lines = logs.performed(Reference(), TRACE, trial.observables(TRACE, claims, "storage"))
    return [logs.head("ring", TRACE.config.to_json(), **CLAIM), *lines]


def judge_log(document: Any, folder: Path) -> None:
    (life,) = log_file.read(logs.write(folder / "log.jsonl", *document))
    judge.judged(life, life.adapter)


def replay(document: Any, _: Path) -> None:
    read = trace.from_json(document)
    claims = description(Reference().describe())
    trial.run(read, Session(Reference(), trial.observables(read, claims, "storage")), claims)


def some_vectors() -> Any:
    document = files.read(files.FROZEN / files.name("examples", "snapshot"))
    return {**document, "vectors": document["vectors"][:3]}


def verify_vectors(document: Any, folder: Path) -> None:
    (folder / "vectors.json").write_text(json.dumps(document))
    for _ in verify.differences(folder / "vectors.json", with_tensors=False):
        pass


def read_record(document: Any, _: Path) -> None:
    json_file.from_json(document, Record)


def describe(document: Any, _: Path) -> None:
    description(document)


def decode(document: Any, _: Path) -> None:
    for _ in Decoder().feed(json.dumps(document).encode() + b"\n" + bytes(1 << 10)):
        pass


SORTS: dict[str, tuple[Callable[[], Any], Callable[[Any, Path], None]]] = {
    "log": (a_log, judge_log),
    "trace": (TRACE.to_json, replay),
    "vectors": (some_vectors, verify_vectors),
    "record": (lambda: json.loads(json_file.dumps(failing())), read_record),
    "description": (lambda: description(Reference().describe()).to_json(), describe),
    "answer": (
        lambda: {"result": "ok", "values": {"offset": 3}, "tensors": [["state.k", "f16", [1, 2, 3, 4]]]},
        decode,
    ),
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the way to each value of a document, but to the whole."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*at, key))


def changed(document: Any, at: tuple[Any, ...], to: Any) -> Any:
    whole = part = copy.deepcopy(document)
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = to
    return whole


@pytest.mark.must("BadInput or a verdict, in little memory")
@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.hostile)])
@pytest.mark.parametrize("sort", SORTS)
def test_an_odd_value_in_a(sort: str, many: bool, tmp_path: Path) -> None:
    make, act = SORTS[sort]
    whole, random = make(), Random(sort)
    act(whole, tmp_path)
    each = [(at, to) for at in places(whole) for to in ODD]
    for at, to in random.sample(each, min(EACH[many], len(each))):
        said = ""
        tracemalloc.start()
        try:
            act(changed(whole, at, to), tmp_path)
        except (BadInput, ProtocolError) as e:
            said = str(e)
        except Exception as e:
            raise AssertionError(f"{at} changed to {to!r}: {type(e).__name__}: {e}") from e
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert len(said) < 1000 and "\n" not in said
        assert peak < MOST, f"{at} changed to {to!r} takes {peak} bytes"


@pytest.mark.must("BadInput")
@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "c": 2, "a": 1}}', '[{"a": NaN}]', '{"a": -Infinity}']
)
def test_a_key_that_stands_twice_and_what_is_no_number_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"'a' stands twice|no JSON number"):
        strict_json.loads(text)


@pytest.mark.must("BadInput or ProtocolError")
@pytest.mark.parametrize("sort", ["log", "trace", "vectors", "record", "answer"])
def test_a_key_twice_in_a(sort: str, tmp_path: Path) -> None:
    """Each reader refuses it: of two values, another reader may take the other one."""
    make, _ = SORTS[sort]
    text = json.dumps(make()[0] if sort == "log" else make())
    twice = text[:-1] + ', "kvtrace": 2, "kvtrace": 2}'
    file = tmp_path / "file"
    file.write_text(twice + "\n")
    read: dict[str, Callable[[], object]] = {
        "log": lambda: log_file.read(file),
        "trace": lambda: trace.loads(twice),
        "vectors": lambda: files.read(file),
        "record": lambda: json_file.load(file, Record),
        "answer": lambda: list(Decoder().feed(twice.encode() + b"\n" + bytes(1 << 10))),
    }
    with pytest.raises((BadInput, ProtocolError), match=r"stands twice|not a JSON header"):
        read[sort]()


@pytest.mark.must("bytes")
def test_a_message_of_ours_has_each_key_once() -> None:
    assert encode({"result": "ok"}) == b'{"result":"ok"}\n'
