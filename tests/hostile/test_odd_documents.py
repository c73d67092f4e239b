"""Documents in which one value is odd: what reads them says so in a line, or reads them in little memory."""

from __future__ import annotations

import copy
import json
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import to_builtins

from kvadapters.reference import Reference
from kvadapters.serve import Server
from kvconform.commands import report
from kvconform.judge import trial
from kvconform.log import judge, log_file
from kvconform.runner import journal
from kvconform.runner.verdict.tally import Tally
from kvconform.steps import verdict
from kvconform.vectors import files, verify
from kvreports import json_file
from kvreports.board import html as board_html
from kvreports.board import markdown as board_markdown
from kvreports.board.asked import Asked
from kvreports.board.engines import Board
from kvreports.difference import judged
from kvreports.difference import markdown as difference_markdown
from kvreports.difference import text as difference_text
from kvreports.difference.compare import compare
from kvreports.mutants import html as mutants_html
from kvreports.mutants import markdown as mutants_markdown
from kvreports.mutants import text as mutants_text
from kvreports.profile import html as profile_html
from kvreports.profile import markdown as profile_markdown
from kvreports.profile import text as profile_text
from kvreports.run import html, markdown, text
from kvreports.safe_text import cleaned
from kvreports.serving import html as serving_html
from kvreports.serving import markdown as serving_markdown
from kvreports.serving import text as serving_text
from kvspec import trace
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.notation import from_sentence
from kvspec.outside import read_json
from kvspec.reading.clauses import index
from kvspec.records.asked import AskedRecord
from kvspec.records.difference import Difference
from kvspec.records.mutants import Matrix
from kvspec.records.profile import Profile
from kvspec.records.run import Record
from kvspec.records.serving import ServingRecord
from kvspec.session.driver import Session
from kvspec.wire.framing import Decoder, ProtocolError, encode
from support.running.judging import ABOUT
from support.samples import logs, profile_samples, steps
from support.samples.record_samples import failing, passing
from tools.floors import ROOT
from tools.schemas import SCHEMAS

ODD = (-1, 1 << 31, 1 << 40, 1 << 62, 1e300, None, True, "", "a", [], [[]], {}, ["f32", 1 << 34])
"""What may stand in the place of any value of a document."""

MOST = 300 << 20
"""Bytes that reading a document and acting on it may take: the bounds of rows, snapshots and outputs of a trace."""

EACH = {False: 25, True: 150}
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


def told(kind: Any, *tell: Callable[[Any], str]) -> Callable[[Any, Path], None]:
    """Read a record, and write it in each form that it has."""

    def act(document: Any, _: Path) -> None:
        record = json_file.from_json(document, kind)
        for each in tell:
            each(record)

    return act


def of_run(render: Callable[..., str]) -> Callable[[Any], str]:
    return lambda record: render([record], index())


def of_board(render: Callable[[Board], str]) -> Callable[[Any], str]:
    return lambda record: render(Board([], [], asked=[Asked(cleaned(record), "")]))


def few(document: Any) -> Any:
    """The same document with the first items of each of its lists."""
    if isinstance(document, dict):
        return {name: few(part) for name, part in document.items()}
    return [few(part) for part in document[:3]] if isinstance(document, list) else document


def published(pattern: str) -> Any:
    smallest = min((ROOT / "reports/published").glob(pattern), key=lambda file: file.stat().st_size)
    return few(json.loads(smallest.read_text(encoding="utf-8")))


def a_difference() -> Any:
    return json.loads(json_file.dumps(compare(judged.of_run(passing()), judged.of_run(failing()), {})))


def a_journal() -> list[Any]:
    tally = Tally()
    tally.exercised["RING-1"] = Counter(example=1)
    adapter = description(Reference().describe()).to_json()
    return [
        {"event": "start", "adapter": adapter, "takes": [], "selected": ["RING-1"]},
        {"event": "judged", "test": "ring/example/RING-1.1", "tally": to_builtins(tally)},
        {"event": "end", "about": ABOUT},
    ]


def read_journal(document: Any, folder: Path) -> None:
    file = logs.write(folder / journal.NAME, *document)
    journal.failed(folder)
    text.render([report.load_run(file)], index())


def judge_steps(document: Any, folder: Path) -> None:
    steps.verdict(folder / "steps.jsonl", *document[1:], header=document[0])


def questions() -> list[Any]:
    """Of each sort: a beginning, an operation with rows, another opening, and operations in a row."""
    config, rows = TRACE.config.to_json(), [["keys", "f16", [1, 2, 2, 8]], ["values", "f16", [1, 2, 2, 6]]]
    return [
        {"id": 1, "op": "begin", "kind": "ring", "config": config, "observe": ["state", "offset"]},
        {"id": 2, "op": "append", "n": 2, "tensors": rows},
        {"id": 3, "op": "plan", "n": 7},
        {"id": 4, "op": "open", "cache": "B", "kind": "ring", "config": config},
        {"id": 5, "op": "run", "times": 3, "ops": [{"op": "ask", "to": 1}, {"op": "rewind", "to": 1}]},
    ]


def answer(document: Any, _: Path) -> None:
    server, decoder = Server("reference"), Decoder()
    for question in document:
        length = sum(2 * math.prod(shape) for _, _, shape in rows_of(question))
        for head, tensors in decoder.feed(json.dumps(question).encode() + b"\n" + bytes(length)):
            server.answer(head, tensors)


def rows_of(question: Any) -> list[Any]:
    """The tensors that a question announces, where their sizes are such as could be sent."""
    listed = question.get("tensors") if isinstance(question, dict) else None
    whole = isinstance(listed, list) and all(isinstance(t, list) and len(t) == 3 for t in listed)
    sizes = [t[2] for t in listed] if whole and listed else []
    sent = all(
        isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 10 for n in shape) for shape in sizes
    )
    return listed if whole and sent and listed else []


def describe(document: Any, _: Path) -> None:
    description(document)


def decode(document: Any, _: Path) -> None:
    for _ in Decoder().feed(json.dumps(document).encode() + b"\n" + bytes(1 << 10)):
        pass


SORTS: dict[str, tuple[Callable[[], Any], Callable[[Any, Path], None]]] = {
    "log": (a_log, judge_log),
    "trace": (TRACE.to_json, replay),
    "vectors": (some_vectors, verify_vectors),
    "record": (
        lambda: json.loads(json_file.dumps(failing())),
        told(Record, of_run(text.render), of_run(html.render), of_run(markdown.render)),
    ),
    "profile": (
        lambda: json.loads(json_file.dumps(profile_samples.whole())),
        told(Profile, profile_text.render, profile_html.render, profile_markdown.render),
    ),
    "mutants": (
        lambda: published("mutants/*.json"),
        told(Matrix, mutants_text.render, mutants_html.render, mutants_markdown.render),
    ),
    "serving": (
        lambda: published("serving/*/record.json"),
        told(ServingRecord, serving_text.render, serving_html.render, serving_markdown.render),
    ),
    "asked": (
        lambda: published("engines/asked/llama-cpp.json"),
        told(AskedRecord, of_board(board_markdown.render), of_board(board_html.render)),
    ),
    "difference": (a_difference, told(Difference, difference_text.render, difference_markdown.render)),
    "journal": (a_journal, read_journal),
    "steps": (lambda: [steps.HEADER, *steps.WHOLE], judge_steps),
    "describe": (lambda: description(Reference().describe()).to_json(), describe),
    "question": (questions, answer),
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


@pytest.mark.must("a sort of document for each")
def test_every_published_schema_is_of_such_a_document() -> None:
    assert set(SCHEMAS) <= set(SORTS)


@pytest.mark.must("BadInput")
@pytest.mark.parametrize(
    "document", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "c": 2, "a": 1}}', '[{"a": NaN}]', '{"a": -Infinity}']
)
def test_a_key_that_stands_twice_and_what_is_no_number_are_refused(document: str) -> None:
    with pytest.raises(BadInput, match=r"'a' stands twice|no JSON number"):
        read_json(document)


@pytest.mark.must("BadInput or ProtocolError")
@pytest.mark.parametrize("sort", ["log", "steps", "journal", "trace", "vectors", "record", "answer"])
def test_a_key_twice_in_a(sort: str, tmp_path: Path) -> None:
    """Each reader refuses it: of two values, another reader may take the other one."""
    make, _ = SORTS[sort]
    document = make()
    whole = json.dumps(document[0] if isinstance(document, list) else document)
    twice = whole[:-1] + ', "kvtrace": 2, "kvtrace": 2}'
    file = tmp_path / journal.NAME
    file.write_text(twice + "\n")
    read: dict[str, Callable[[], object]] = {
        "log": lambda: log_file.read(file),
        "steps": lambda: verdict.judged(file),
        "journal": lambda: report.load_run(file),
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
