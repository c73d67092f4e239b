"""`kvconform check`: a log is judged as its adapter would be, and one that tells too little is refused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs import known_bugs
from kvconform.judge import trial
from kvconform.log import judge, log_file
from kvconform.vectors import files
from kvreports import json_file
from kvspec import notation
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.records.run import Record
from kvspec.registry import CACHES
from support.running.command_line import kvconform
from support.running.local_adapter import LocalAdapter
from support.samples import logs

TOLD = ("growing", "ring", "mask", "snapshot", "draft", "mem")
STEP = {"level": "storage", "grows": "step"}
CLAIMS: dict[str, dict[str, Any]] = {
    "storage": {c: STEP if c in CACHES else "storage" for c in TOLD},
    "visible": dict.fromkeys(TOLD, "visible"),
}


def lives(chapter: str, level: str) -> Iterator[list[logs.Line]]:
    """The frozen examples of a chapter as a log holds them, but for those with tensors: no name tells these."""
    for vector in files.read(files.FROZEN / files.name("examples", chapter))["vectors"]:
        if set(vector["needs"]) <= set(TOLD) and '"tensor"' not in json.dumps(vector["steps"]):
            yield [logs.head(vector["kind"], vector["config"], chapters=CLAIMS[level]), *vector["steps"][1:]]


def judged(file: Path, *options: str) -> tuple[int, Record]:
    done = kvconform("check", file, "--format", "json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json_file.loads(done.stdout, Record)


@pytest.mark.parametrize("level", CLAIMS)
@pytest.mark.parametrize("chapter", TOLD)
def test_the_frozen_examples_are_a_log_that_conforms(chapter: str, level: str, tmp_path: Path) -> None:
    lines = [line for life in lives(chapter, level) for line in life]
    assert len(lines) > 20
    status, record = judged(logs.write(tmp_path / "log.jsonl", *lines))
    assert (status, record.failures, record.problems) == (0, [], [])
    assert set(record.summary) == {"PASS"} and {c.judged_at for c in record.clauses} == {level}


BUGS = list(known_bugs.known_bugs().values())[::4]

SENTENCES = (
    "growing step=2: append 3; append 1; rewind 2; view; append 2; free; append 1",
    "ring window=3 step=1: append 2; append 1; append 1; append 2; ask 3; rewind 3; append 1; free; append 4",
    "ring window=4: append 3; rewind 1; append 1; append 5; append 1; mask window=2; view; append 3",
    "growing: append 4; snapshot s 1; rewind 1; restore s 3; append 1; view",
)


def test_a_log_is_judged_as_the_adapter_that_wrote_it(tmp_path: Path) -> None:
    """By the same level: the same step differs, and the same clauses are blamed."""
    claims = description({"name": "logger", "chapters": CLAIMS["storage"]})
    failed = 0
    for bug in BUGS:
        under_test = LocalAdapter(bug.adapter())
        under_test.adapter = claims
        for trace in map(notation.from_sentence, SENTENCES):
            lines = logs.performed(bug.adapter(), trace, trial.observables(trace, claims, "storage"))
            head = logs.head(trace.kind, trace.config.to_json(), chapters=CLAIMS["storage"])
            (life,) = log_file.read(logs.write(tmp_path / "log.jsonl", head, *lines))
            seen, right = judge.judged(life, claims), under_test.run(trace)
            assert (seen.failed, len(seen.steps), seen.blamed) == (right.failed, len(right.steps), right.blamed)
            failed += seen.failed
    assert failed > 10


RING = {"batch": 1, "kv_heads": 1, "k_dim": 4, "v_dim": 4, "dtype": "f16", "step": 8, "window": 3}


def life(level: str, *steps: tuple[str, list[Any], dict[str, Any]], **changes: Any) -> list[logs.Line]:
    """A ring's life: operations in the notation, names given, and what is seen."""
    lines = [logs.head("ring", {**RING, **changes}, chapters={"ring": level})]
    for words, names, see in steps:
        given = {"given": {"rows": {"rows": names}}} if names else {}
        lines.append({"op": notation.operation(words), **given, "see": {"result": "ok", **see}})
    return lines


def rows(*names: Any) -> dict[str, Any]:
    return {"rows": list(names)}


def test_at_level_visible_the_history_and_the_offset_are_enough(tmp_path: Path) -> None:
    steps = life(
        "visible",
        ("append 2", ["x", "y"], {"offset": 2, "history": rows("y", "x")}),
        ("append 2", ["z", 7], {"offset": 4, "history": rows("x", "y", "z", 7)}),
        ("view", [], {"offset": 4, "view": rows("z", 7)}),
    )
    status, record = judged(logs.write(tmp_path / "log", *steps))
    assert status == 0 and {c.id for c in record.clauses} >= {"RING-1", "RING-3", "RING-5"}


@pytest.mark.parametrize("found", ["q", None], ids=["a row that nobody appended", "a row of zeros"])
def test_a_row_that_is_not_the_one_is_a_failure_of_its_clause(found: Any, tmp_path: Path) -> None:
    steps = life(
        "visible",
        ("append 2", ["x", "y"], {"offset": 2, "history": rows("x", "y")}),
        ("view", [], {"offset": 2, "view": rows("x", found)}),
        ("append 1", ["z"], {"offset": 3, "history": rows("x", "y", "z")}),
    )
    file = logs.write(tmp_path / "log", *steps)
    status, record = judged(file)
    assert status == 1 and [f.clauses for f in record.failures] == [["RING-5"]]
    done = kvconform("check", file, "--report", tmp_path / "report")
    assert "line 3: view: expected a b, found" in done.stderr and "the 1 operations after it" in done.stderr
    assert "Look first at RING-5: FAIL, wrong row" in done.stdout
    assert {f.name for f in (tmp_path / "report").iterdir()} >= {"record.json", "report.html", "junit.xml"}


@pytest.mark.parametrize("options", [[], ["--visible"]])
def test_the_last_command_judges_the_log_again(options: list[str], tmp_path: Path) -> None:
    """No adapter has the name that the log gives, so that nothing can be replayed."""
    steps = life("visible", ("append 2", ["x", "y"], {"offset": 1, "history": rows("x", "y")}))
    logs.write(tmp_path / "a log", *steps)
    done = kvconform("check", "a log", *options, cwd=tmp_path)
    said = done.stdout.splitlines()[-1]
    assert shlex.split(said) == ["kvconform", "check", "a log", *options], done.stdout
    again = kvconform(*shlex.split(said)[1:], cwd=tmp_path)
    assert (again.returncode, again.stdout) == (1, done.stdout)


KNOWN = """[[known]]
clause = "RING-5"
trace = "ring kv_heads=1 k_dim=4 v_dim=4 step=8 window=3: append 2; view"
shows = "view: expected a b, found a ?"
reason = "its view is torn"
"""


@pytest.mark.parametrize(
    ("shows", "found", "status", "verdicts"),
    [
        ("view: expected", "q", 0, {"XFAIL"}),
        ("view: expected", "y", 0, {"PASS"}),
        ("another text", "q", 1, {"FAIL"}),
    ],
    ids=["shown", "not shown, which proves nothing", "another failure of the clause"],
)
def test_a_known_deviation_is_expected(
    shows: str, found: Any, status: int, verdicts: set[str], tmp_path: Path
) -> None:
    steps = life(
        "visible",
        ("append 2", ["x", "y"], {"offset": 2, "history": rows("x", "y")}),
        ("view", [], {"offset": 2, "view": rows("x", found)}),
    )
    known = tmp_path / "known.toml"
    known.write_text(KNOWN.replace("view: expected", shows))
    file = logs.write(tmp_path / "log", *steps)
    got, record = judged(file, "--known", str(known))
    assert (got, {c.verdict for c in record.clauses if c.id == "RING-5"}) == (status, verdicts)
    assert kvconform("check", file, "--known", known, "--report", tmp_path / "report").returncode == status


AGAIN = (
    ("append 3", ["x", "y", "z"], {"offset": 3, "history": rows("x", "y", "z")}),
    ("rewind 1", [], {"offset": 1, "can": True}),
    ("append 1", ["y"], {"offset": 2, "history": rows("x", "y")}),
    ("append 2", ["z", "w"], {"offset": 4, "history": rows("x", "y", "z", "w")}),
)


def test_a_row_that_is_appended_again_has_its_name_again(tmp_path: Path) -> None:
    """As where a token is rejected, and then chosen after all: the same bytes."""
    assert judged(logs.write(tmp_path / "log", *life("visible", *AGAIN)))[0] == 0


TWINS = (
    (
        "append 2",
        ["x", "x"],
        {"offset": 2, "retained": 2, "buffered": 2, "capacity": 2}
        | dict.fromkeys(("history", "state"), rows("x", "x")),
    ),
)


def test_rows_of_one_name_side_by_side_are_told_apart_by_their_slots_alone(tmp_path: Path) -> None:
    assert judged(logs.write(tmp_path / "log", *life("storage", *TWINS)))[0] == 0
    done = kvconform("check", logs.write(tmp_path / "log", *life("visible", *TWINS)))
    assert done.returncode == 2 and "line 2: a query sees two rows of one name" in done.stderr


GOOD = ("append 1", ["x"], {"offset": 1, "history": rows("x")})
WRONG: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "an empty log"),
    "no head": (life("visible", GOOD)[1:], "line 1: a log begins with kvtrace, kind, config and adapter"),
    "another version": ([{**life("visible")[0], "kvtrace": 1}], "line 1: trace: version 1"),
    "no adapter": ([{**life("visible")[0], "adapter": {}}], "line 1: describe: name must be a text"),
    "a chapter that is not claimed": (
        life("visible", ("snapshot s", [], {})),
        "logger does not claim snapshot, which the log uses",
    ),
    "another adapter": (
        [*life("visible", GOOD), *life("storage")],
        "line 3: not the adapter of line 1",
    ),
    "a kind whose rows have no names": (
        [
            logs.head(
                "copy", {"capacity": 4, "layout": "head", **RING, "window": None}, chapters={"copy": "visible"}
            )
        ],
        "line 1: trace, config: window",
    ),
    "a text": (["append"], "line 1: expected an object, found '\"append\"'"),
    "no see": ([*life("visible", GOOD)[:1], {"op": {"op": "view"}}], "line 2: expected an object with op and see"),
    "an unknown operation": (
        [life("visible")[0], {"op": {"op": "apend"}, "see": {}}],
        "operation 1: unknown operation 'apend'; did you mean append",
    ),
    "no names": (life("visible", ("append 1", [], {})), 'append 1 needs "given": {"rows": {"rows": [...]}}'),
    "too few names": (life("visible", ("append 2", ["x"], {})), "line 2: append 2 needs"),
    "no offset": (life("visible", ("append 1", ["x"], {"history": rows("x")})), "line 2: `append` lacks offset"),
    "no history": (
        life("visible", ("append 1", ["x"], {"offset": 1})),
        "`append` lacks history, which level visible",
    ),
    "no state": (life("storage", GOOD), "`append` lacks retained, buffered, capacity, state, which level storage"),
    "an unknown value": (life("visible", ("view", [], {"offsett": 1})), "line 2: unknown value 'offsett'"),
    "no result": ([life("visible")[0], {"op": {"op": "view"}, "see": {}}], "line 2: result must be one of ok"),
    "rows that are none": (life("visible", ("view", [], {"view": "x"})), "line 2: write rows as"),
    "a mask that is none": (life("visible", ("view", [], {"mask": [1]})), "line 2: write a mask as"),
}


@pytest.mark.parametrize(("lines", "words"), WRONG.values(), ids=WRONG)
def test_a_log_that_cannot_be_judged_ends_with_2_and_says_where(
    lines: list[Any], words: str, tmp_path: Path
) -> None:
    done = kvconform("check", logs.write(tmp_path / "log", *lines))
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr, done.stderr


def test_a_log_of_numbers_is_refused(tmp_path: Path) -> None:
    steps = [{"op": notation.operation("attend 1"), "see": {"result": "ok"}}]
    head = logs.head("growing", {"dtype": "f32"}, chapters={"growing": "visible", "attention": "visible"})
    with pytest.raises(BadInput, match="it cannot hold attend, which gives numbers"):
        log_file.read(logs.write(tmp_path / "log", head, *steps))


def test_a_log_that_is_cut_off_or_not_there_is_said(tmp_path: Path) -> None:
    file = logs.write(tmp_path / "log", *life("visible", GOOD))
    file.write_text(file.read_text()[:-9])
    said = kvconform("check", file).stderr
    assert "line 2: not JSON: '{\"op" in said
    assert "it ends in the middle: remove this line, and the others are judged" in said
    assert "cannot be read" in kvconform("check", tmp_path / "no-log").stderr


def test_the_reference_is_logged_as_it_is(tmp_path: Path) -> None:
    trace = notation.from_sentence(
        "ring window=2 batch=2: append 3; append 1; rewind 0; view; append 1 k_dim=3; free"
    )
    lines = logs.performed(Reference(), trace, ("history", "state", "mask", "offset", "can"))
    head = logs.head(trace.kind, trace.config.to_json(), chapters={"ring": STEP, "mask": "storage"})
    assert judged(logs.write(tmp_path / "log", head, *lines))[0] == 0
