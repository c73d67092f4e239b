"""The Python worker answers whatever it is asked, keeps the wire to itself, and finds adapters by name."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvadapters import find
from kvadapters.find import load, names
from kvadapters.serve import ClaimedSession
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Pair, description
from kvspec.errors import BadInput, CannotRun
from kvspec.geometry import Config
from kvspec.registry import OBSERVABLES
from kvspec.rows.legible import legible
from kvspec.session.step import NOTHING, Inputs, Step
from kvspec.wire import framing
from support import fakes
from support.fakes import lies

CONFIG = Config()
BEGIN = {
    "op": "begin",
    "kind": "growing",
    "config": CONFIG.to_json(),
    "observe": ["state", "history", "offset", "can"],
}


@pytest.fixture(scope="module")
def honest() -> Iterator[Worker]:
    with Worker(fakes.adapter("Honest"), env=fakes.environment()) as worker:
        yield worker


def rows(n: int) -> Pair:
    return Pair(legible(CONFIG, "k", 0, n), legible(CONFIG, "v", 0, n))


def given(op: dict[str, Any]) -> Inputs:
    return Inputs(rows(op["n"])) if op["op"] == "append" else NOTHING


def steps(session: Any) -> list[Step]:
    """What a session sees of a short trace that does everything a growing cache can."""
    ops: list[dict[str, Any]] = [
        {"op": "append", "n": 3},
        {"op": "rewind", "to": 2},
        {"op": "rewind", "to": 5},
        {"op": "view"},
        {"op": "scribble"},
        {"op": "append", "n": 0},
        {"op": "append", "n": 2, "cache": "C"},
        {"op": "snapshot", "name": "s"},
        {"op": "close", "name": "s"},
        {"op": "free"},
    ]
    seen = [session.begin("growing", CONFIG)]
    seen += [session.do({"op": "open", "cache": "B"}, Inputs(opening=("ring", CONFIG.changed(window=2))))]
    seen += [session.do({"op": "open", "cache": "B"}, Inputs(opening=("growing", CONFIG.changed(batch=0))))]
    return seen + [session.do(op, given(op)) for op in ops]


def test_a_remote_session_sees_what_a_session_here_sees(honest: Worker) -> None:
    there = steps(RemoteSession(honest, ["state", "history", "offset"]))
    claims = description(lies.Honest().describe())
    here = steps(ClaimedSession(lies.Honest(), ("state", "history", "offset"), claims))
    for a, b in zip(there, here, strict=True):
        assert (a.result, a.clause, a.message, a.values) == (b.result, b.clause, b.message, b.values)
        assert list(a.arrays) == list(b.arrays)
        assert all(same(a.arrays[n], b.arrays[n]) for n in a.arrays)
    assert {s.result for s in here} == {"ok", "refused", "unsupported", "absent"}


def same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


@pytest.mark.parametrize("observe", [[], ["state"], ["history"], list(OBSERVABLES)])
def test_only_what_was_asked_for_is_observed(observe: list[str]) -> None:
    with Worker(python_worker("reference"), env=fakes.environment()) as worker:
        session = RemoteSession(worker, observe)
        session.begin("growing", CONFIG)
        step = session.do({"op": "append", "n": 3}, Inputs(rows(3)))
    arrays = {name.partition(".")[0] for name in step.arrays}
    assert arrays == {"state", "history", "mask"} & set(observe)
    assert {"held", "meter"} & set(step.values) <= set(observe)


def test_beginning_drops_what_was(honest: Worker) -> None:
    session = RemoteSession(honest, ["state", "offset"])
    session.begin("growing", CONFIG)
    session.do({"op": "open", "cache": "B"}, Inputs(opening=("growing", CONFIG)))
    assert session.do({"op": "free", "cache": "B"}).result == "ok"
    session.begin("growing", CONFIG)
    assert session.do({"op": "free", "cache": "B"}).result == "absent"


def first_append(name: str) -> tuple[Step, str]:
    """The step of the first append, and what came on standard error; the next question must be answered too."""
    with Worker(fakes.adapter(name), env=fakes.environment(), deadline=5) as worker:
        session = RemoteSession(worker, ["state", "history", "offset"])
        session.begin("growing", CONFIG)
        step = session.do({"op": "append", "n": 3}, Inputs(rows(3)))
        assert session.do({"op": "free"}).result in ("ok", "error")
        assert worker.starts == 1
        return step, worker.stderr


def test_what_an_adapter_prints_never_meets_the_wire() -> None:
    step, stderr = first_append("PrintsToStandardOutput")
    assert step.result == "ok"
    assert sorted(stderr.split()) == ["echoed", "printed", "underlined", "written"]


def test_a_noisy_adapter_is_not_blocked_and_its_last_words_are_kept() -> None:
    step, stderr = first_append("PrintsALot")
    assert step.result == "ok"
    assert (stderr[-6:], len(stderr)) == ("noise\n", 64 << 10)


def test_questions_larger_than_a_pipe_are_answered_one_after_the_other(honest: Worker) -> None:
    config = CONFIG.changed(k_dim=1 << 10, v_dim=1 << 10)
    session = RemoteSession(honest, ["history", "offset"])
    session.begin("growing", config)
    pair = Pair(legible(config, "k", 0, 1 << 9), legible(config, "v", 0, 1 << 9))
    for n in (1, 2, 3):
        step = session.do({"op": "append", "n": 1 << 9}, Inputs(pair))
        assert step.arrays["history.k"] is not None and step.arrays["history.v"] is not None
        assert same(step.arrays["history.k"], np.concatenate([pair.keys] * n, 2))
        assert same(step.arrays["history.v"], np.concatenate([pair.values] * n, 2))


def test_an_adapter_that_reads_finds_an_empty_standard_input() -> None:
    step, _ = first_append("ReadsItsStandardInput")
    assert (step.result, step.values["offset"]) == ("ok", 3)


def test_an_exception_is_an_error_with_its_place() -> None:
    step, _ = first_append("RaisesKeyError")
    assert step.result == "error"
    assert step.message.startswith("KeyError: 'slot 7' (lies.py:")


def test_rows_in_double_precision_are_an_error_that_says_so() -> None:
    step, _ = first_append("WrongDtype")
    assert (step.result, "history.k: dtype float64 cannot be sent" in step.message) == ("error", True)


def test_an_offset_that_is_no_whole_number_is_an_error_that_says_so() -> None:
    step, _ = first_append("CountsInFloats")
    assert (step.result, step.message) == ("error", "offset must be a whole number or null, is 3.5")


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    step, _ = first_append("CountsInNumpy")
    assert (step.result, type(step.values["offset"])) == ("ok", int)


def test_wrong_shapes_and_values_arrive_as_they_are() -> None:
    shaped, _ = first_append("WrongShape")
    assert shaped.arrays["history.k"] is not None and shaped.arrays["history.k"].shape == (1, 3, 2, 8)
    filled, _ = first_append("SendsNaN")
    assert filled.arrays["history.v"] is not None and np.isnan(filled.arrays["history.v"]).all()


BAD_QUESTIONS: dict[str, dict[str, Any]] = {
    "unknown op": {"op": "defragment"},
    "no op": {},
    "op no text": {"op": ["append"]},
    "unknown argument": {"op": "free", "hard": True},
    "argument missing": {"op": "rewind"},
    "argument no number": {"op": "rewind", "to": True},
    "cache named wrongly": {"op": "free", "cache": "cache"},
    "rows missing": {"op": "append", "n": 1},
    "parts missing": {"op": "mask"},
    "part unknown": {"op": "mask", "parts": ["diagonal"]},
    "tensor missing": {"op": "mask", "parts": [{"tensor": "mask0"}]},
    "no kind": {"op": "begin", "config": {}},
    "no config": {"op": "begin", "kind": "growing"},
    "unknown size": {"op": "begin", "kind": "growing", "config": {"heads": 3}},
    "size no number": {"op": "begin", "kind": "growing", "config": {"batch": "3"}},
    "dtype no text": {"op": "begin", "kind": "growing", "config": {"dtype": 16}},
    "observe unknown": {**BEGIN, "observe": ["thoughts"]},
    "unknown field": {**BEGIN, "expect": "ok"},
    "open without name": {"op": "open", "kind": "growing", "config": {}},
    "open named wrongly": {"op": "open", "cache": "b", "kind": "growing", "config": {}},
    "open with a size": {"op": "open", "cache": "B", "kind": "ring", "config": {}, "window": 3},
    "protocol of the future": {"op": "describe", "protocol": 2},
}


@pytest.mark.parametrize("question", BAD_QUESTIONS.values(), ids=BAD_QUESTIONS)
def test_a_bad_question_is_answered_with_an_error_of_one_line(honest: Worker, question: dict[str, Any]) -> None:
    honest.ask(BEGIN)
    answer, _ = honest.ask(question)
    assert answer["result"] == "error" and answer["message"] and "\n" not in answer["message"]
    assert honest.ask({"op": "free"})[0]["result"] == "ok"


def served(data: bytes, *argv: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "kvadapters.serve", *argv]
    return subprocess.run(command, input=data, capture_output=True, env=fakes.environment(), timeout=20)


@pytest.mark.parametrize("question", [b'{"op": "free"}\n', b'{"id": true, "op": "free"}\n', b'{"id": "a"}\n'])
def test_a_question_without_a_number_is_answered_too(question: bytes) -> None:
    done = served(question, "support.fakes.lies:Honest")
    assert json.loads(done.stdout)["result"] == "error"
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_is_no_question_is_answered_before_the_worker_leaves() -> None:
    done = served(b"hello?\n", "support.fakes.lies:Honest")
    assert json.loads(done.stdout)["message"].startswith("not a question: not a JSON header: b'hello?'")
    assert (done.returncode, done.stderr) == (2, b"")


def test_the_end_of_the_questions_ends_the_worker_quietly() -> None:
    for data in (b"", framing.encode({"id": 1, **BEGIN}), b'{"id": 1, "op"'):
        done = served(data, "support.fakes.lies:Honest", "--")
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_parent_that_goes_away_ends_the_worker_quietly() -> None:
    command = [*fakes.adapter("Honest")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=fakes.environment()) as child:
        assert child.stdin and child.stdout and child.stderr
        child.stdout.close()
        child.stdin.write(framing.encode({"id": 1, **BEGIN}))
        child.stdin.flush()
        assert (child.wait(20), child.stderr.read()) == (0, b"")


def test_ctrl_c_ends_the_worker_quietly() -> None:
    pipe = subprocess.PIPE
    # Whoever runs these tests in the background may have Ctrl-C ignored, and children inherit that.
    source = (
        "import signal as s; s.signal(s.SIGINT, s.default_int_handler); from kvadapters.serve import main; main()"
    )
    command = [sys.executable, "-c", source, "support.fakes.lies:Honest"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=fakes.environment()) as child:
        assert child.stdin and child.stdout and child.stderr
        child.stdin.write(framing.encode({"id": 1, **BEGIN}))
        child.stdin.flush()
        child.stdout.readline()
        time.sleep(0.05)
        child.send_signal(2)
        assert (child.wait(20), child.stderr.read()) == (0, b"")


@pytest.mark.parametrize("argv", [[], ["a", "b"]])
def test_the_command_line_takes_one_name(argv: list[str]) -> None:
    done = served(b"", *argv)
    assert done.returncode == 2 and done.stderr.startswith(b"usage: ") and done.stdout == b""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, which does not stay on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    return tmp_path


def test_a_built_in_and_a_class_and_a_factory_and_an_instance_are_found() -> None:
    assert load("reference").describe()["name"] == "reference"
    assert load("support.fakes.lies:Honest").describe()["name"] == "Honest"
    for kind in ("Honest", "made", "Inner.thing"):
        assert load(f"{__name__}:{kind}").describe()["name"] == "Honest"


Honest = lies.Honest


def made() -> lies.Honest:
    return lies.Honest()


class Inner:
    thing = lies.Honest()


def test_a_file_in_the_current_folder_is_found(here: Path) -> None:
    (here / "my_own_cache.py").write_text("from support.fakes.lies import Honest as Mine\n")
    assert load("my_own_cache:Mine").describe()["name"] == "Honest"


def test_entry_points_are_found_and_built_ins_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [metadata.EntryPoint(n, "support.fakes.lies:Honest", find.GROUP) for n in ("mine", "reference")]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == find.GROUP else [])
    assert load("mine").describe()["name"] == "Honest"
    assert load("reference").describe()["name"] == "reference"
    assert names() == find.BUILT_IN | find.ENGINES | {"mine": "support.fakes.lies:Honest"}


FAILING = {
    "raises": ("1 / 0", "failing_raises:A: cannot be imported: ZeroDivisionError: division by zero (failing_ra"),
    "exits": ("import sys; sys.exit(3)", "failing_exits:A: cannot be imported: SystemExit: 3 (failing_exits.py:1)"),
    "syntax": ("def f(:", "cannot be imported: SyntaxError: invalid syntax"),
    "missing": ("import no_such_module", "No module named 'no_such_module' (failing_missing.py:1)"),
    "empty": ("", "failing_empty:A: module 'failing_empty' has no attribute 'A'"),
    "number": ("A = 3", "failing_number:A: neither an adapter nor a class or function that makes one, but 3"),
    "none": ("def A(): pass", "failing_none:A: not an adapter, it has no describe()"),
    "closed": ("class A:\n    def describe(self): ...", "failing_closed:A: not an adapter, it has no open()"),
    "arguments": ("class A:\n    def __init__(self, device): ...", "cannot be made: TypeError: "),
    "broken": ("class A:\n    def __init__(self): raise OSError('a\\nb')", "cannot be made: OSError: a b ("),
}  # fmt: skip


@pytest.mark.parametrize(("name", "source", "says"), [(n, *v) for n, v in FAILING.items()], ids=FAILING)
def test_an_adapter_that_fails_to_load_says_so_in_a_line(here: Path, name: str, source: str, says: str) -> None:
    (here / f"failing_{name}.py").write_text(source + "\n")
    with pytest.raises(BadInput) as e:
        load(f"failing_{name}:A")
    assert says in str(e.value) and "\n" not in str(e.value)


def test_a_description_that_fails_says_so_in_a_line(here: Path) -> None:
    source = "class A:\n    def open(self): ...\n    def describe(self): raise KeyError('a\\nb')\n"
    (here / "failing_describe.py").write_text(source)
    with Worker(python_worker("failing_describe:A"), env=fakes.environment()) as worker:
        with pytest.raises(BadInput) as e:
            worker.describe()
        assert str(e.value).startswith(
            "failing_describe:A: describe fails: KeyError: 'a\\nb' (failing_describe.py:3)"
        )


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(BadInput) as e:
        load("opencv")
    assert str(e.value) == "unknown adapter 'opencv'; did you mean opencl or openvino?"
    with pytest.raises(BadInput, match="unknown adapter 'xyz'; `kvconform list adapters` names all"):
        load("xyz")


def test_a_file_is_answered_with_how_to_name_what_is_in_it(here: Path) -> None:
    with pytest.raises(BadInput, match=r"name module:Class, such as engine:Adapter in the folder a/b$"):
        load("a/b/engine.py")
    with pytest.raises(BadInput, match=r"such as engine:Adapter$"):
        load("engine.py")
    (here / "engine").write_text("#!/bin/sh")
    with pytest.raises(BadInput, match=r"put its command after --, such as -- ./engine$"):
        load("./engine")


def test_a_module_that_is_not_there_is_told_from_one_that_fails(here: Path) -> None:
    (here / "imports_nothing.py").write_text("import no_such_thing\n")
    with pytest.raises(
        BadInput, match="cannot be imported: No module named 'no_such_engine'; run in the folder that holds it"
    ):
        load("no_such_engine.cache:Ring")
    with pytest.raises(BadInput, match=r"cannot be imported: ModuleNotFoundError: .*\(imports_nothing.py:1\)"):
        load("imports_nothing:Ring")


def test_a_misspelt_attribute_is_answered_with_near_ones() -> None:
    with pytest.raises(BadInput, match="has no attribute 'DescribesNothng'; did you mean DescribesNothing"):
        load("support.fakes.lies:DescribesNothng")


def test_an_adapter_may_say_that_it_cannot_run_here() -> None:
    with pytest.raises(CannotRun, match="no such device"):
        load("support.fakes.lies:NeedsADevice")
