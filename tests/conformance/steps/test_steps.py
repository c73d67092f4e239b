"""`kvconform check` of a log of steps: each clause is found broken, what is right is not, odd logs are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvconform import cli
from kvconform.steps.verdict import judged
from kvspec.errors import BadInput
from kvspec.steps import clauses
from kvspec.steps.clauses import chapter_text, index
from kvspec.steps.view import view
from support.samples import steps
from support.samples.steps import HEADER, WHOLE

EXAMPLES = [(clause.id, example) for clause in index().values() for example in clause.examples]
TWO = {**HEADER, "groups": [{"block": 4, "view": "full"}, {"block": 2, "view": "window 3"}]}


@pytest.mark.parametrize(("clause", "example"), EXAMPLES, ids=lambda given: getattr(given, "id", ""))
def test_an_example_breaks_its_clause_in_its_last_line(
    clause: str, example: clauses.Example, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(example.log, encoding="utf-8")
    broken = judged(log).broken
    assert broken is not None
    assert (broken.clause, broken.message) == (clause, example.says)
    assert broken.line == example.log.count("\n")


def test_a_log_in_which_nothing_is_wrong_breaks_nothing(tmp_path: Path) -> None:
    seen = steps.verdict(tmp_path / "log.jsonl", *WHOLE)
    assert (seen.broken, seen.exit_status) == (None, 0)
    counts = ("steps", "hits", "reused", "accepted", "rejected", "copies", "preemptions", "evictions")
    assert [seen.counts[name] for name in counts] == [5, 2, 8, 1, 1, 1, 1, 2]
    assert seen.not_judged == [f"STEP-{n}" for n in (7, 10, 11, 14, 15, 28, 29)]


def test_a_request_that_begins_within_a_step_finds_what_the_step_writes(tmp_path: Path) -> None:
    a, b = ({"add": name, "tokens": [1, 2, 3, 4, 5]} for name in "ab")
    parts = {"a": {"start": 0, "n": 5, "tables": [[1, 2]]}, "b": {"start": 4, "n": 1, "tables": [[1, 3]]}}
    assert steps.verdict(tmp_path / "log.jsonl", a, b, {"step": parts}).exit_status == 0


def test_what_a_window_shows_no_more_may_be_anything(tmp_path: Path) -> None:
    """Pages behind a window are given to another request while the first goes on."""
    a, b = ({"add": name, "tokens": [number, *range(2, 9)]} for number, name in enumerate("ab"))
    events = [
        *(a, {"step": {"a": {"start": 0, "n": 8, "tables": [[1, 2], [3, 4, 5, 6]]}}}, {"sampled": {"a": [9]}}, b),
        {"step": {"b": {"start": 0, "n": 2, "tables": [[7], [3]]}, "a": {"start": 8, "n": 1, "more": [[4], [8]]}}},
    ]
    header = {**TWO, "pages": 10}
    assert steps.verdict(tmp_path / "log.jsonl", *events, header=header).broken is None
    late = json.loads(json.dumps(events).replace('"tables": [[7], [3]]', '"tables": [[7], [6]]'))
    broken = steps.verdict(tmp_path / "log.jsonl", *late, header=header).broken
    assert broken is not None
    assert broken.clause == "STEP-17"


@pytest.mark.parametrize(
    ("text", "firsts"),
    [("full", [0, 0]), ("window 3", [3, 4]), ("chunk 4", [4, 4]), ("state", [4, 5])],
)
def test_a_view_says_what_is_seen(text: str, firsts: list[int]) -> None:
    assert str(view(text)) == text
    assert [view(text).first(at) for at in (5, 6)] == firsts
    assert view(text).first(0) == 0


def test_a_state_is_the_row_before_the_query(tmp_path: Path) -> None:
    header = {**HEADER, "groups": [{"block": 4, "view": "state"}]}
    a = {"add": "a", "tokens": [1, 2, 3, 4, 5, 6]}
    b = {"add": "b", "tokens": [1, 2, 3, 4, 5, 7]}
    first = {"step": {"a": {"start": 0, "n": 4, "tables": [[1]]}}}
    then = {"step": {"a": {"start": 4, "n": 1, "more": [[2]]}}}
    found = {"step": {"b": {"start": 4, "n": 2, "tables": [[1, 3]]}}}
    assert steps.verdict(tmp_path / "log.jsonl", a, first, then, b, found, header=header).exit_status == 0
    beyond = {"step": {"b": {"start": 3, "n": 2, "tables": [[1, 3]]}}}
    broken = steps.verdict(tmp_path / "log.jsonl", a, first, then, b, beyond, header=header).broken
    assert broken is not None
    assert (broken.clause, "position 3 of a" in broken.message) == ("STEP-8", True)


def test_a_long_log_is_cut_to_what_breaks_it(tmp_path: Path) -> None:
    """Forty requests come and go; one finds a page of another's text."""
    header, events = {**HEADER, "pages": 200}, list[Any]()
    for n in range(40):
        name = f"r{n}"
        events += [{"add": name, "tokens": [n, 2, 3, 4, 5]}]
        events += [{"step": {name: {"start": 0, "n": 5, "tables": [[2 * n + 1, 2 * n + 2]]}}}]
        events += [{"sampled": {name: [6]}}, {"step": {name: {"start": 5, "n": 1}}}]
    events += [{"add": "x", "tokens": [0, 2, 3, 4, 9]}]
    events += [{"step": {"x": {"start": 4, "n": 1, "tables": [[15, 100]]}, "r1": {"start": 0, "n": 1}}}]
    seen = steps.verdict(tmp_path / "log.jsonl", *events, header=header)
    assert seen.broken is not None
    assert (seen.broken.clause, seen.broken.requests) == ("STEP-8", ("x", "r7"))
    assert [line.verb for line in seen.shortest] == ["add", "step", "add", "step"]
    assert [*seen.shortest[-1].event["step"]] == ["x"]


ODD: dict[str, tuple[str, str]] = {
    "nothing": ("", "an empty log|not JSON|begins with"),
    "another version": ('{"kvsteps": 2}', "begins with"),
    "a version that is no number": ('{"kvsteps": true, "pages": 1, "groups": []}', "begins with"),
    "a key twice": ('{"kvsteps": 1, "kvsteps": 1}', "stands twice"),
    "no groups": ('{"kvsteps": 1, "pages": 2, "groups": []}', "groups is a list"),
    "too many pages": (
        '{"kvsteps": 1, "pages": 99999999999, "groups": [{"block": 4, "view": "full"}]}',
        "pages is a whole number",
    ),
    "pages of more pools than there are": (
        '{"kvsteps": 1, "pages": [2, 2], "groups": [{"block": 4, "view": "full"}]}',
        "one for each pool",
    ),
    "a reserved page that one pool lacks": (
        '{"kvsteps": 1, "pages": [9, 2], "reserved": [2], "groups": [{"block": 4, "view": "full"}, '
        '{"block": 4, "view": "full", "pool": 1}]}',
        "reserved",
    ),
    "too many rows": (
        '{"kvsteps": 1, "pages": 16777216, "groups": [{"block": 65536, "view": "full"}]}',
        "make more than",
    ),
    "a view that there is not": (
        '{"kvsteps": 1, "pages": 2, "groups": [{"block": 4, "view": "some"}]}',
        "a view is",
    ),
    "a window of nothing": (
        '{"kvsteps": 1, "pages": 2, "groups": [{"block": 4, "view": "window 0"}]}',
        "from 1 to",
    ),
    "a pool without a number": (
        '{"kvsteps": 1, "pages": 2, "groups": [{"block": 4, "view": "full", "pool": 3}]}',
        "pools are numbered",
    ),
    "a strange key": ('{"kvsteps": 1, "pages": 2, "groups": [], "colour": 1}', "the header has no 'colour'"),
}


@pytest.mark.parametrize(("text", "words"), ODD.values(), ids=ODD)
def test_an_odd_header_is_refused(text: str, words: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(text + "\n" if text else "", encoding="utf-8")
    with pytest.raises(BadInput, match=words):
        judged(log)


EVENTS: dict[str, tuple[str, str]] = {
    "no event": ("{}", "an event begins with"),
    "a strange event": ('{"steal": 1}', "an event begins with"),
    "a strange key": ('{"free": "a", "why": 1}', "free has no 'why'"),
    "a list": ("[1]", "expected an object"),
    "half a line": ('{"add": "c", "tok', "not JSON"),
    "no tokens": ('{"add": "c", "tokens": []}', "c has no tokens"),
    "a token that is no number": ('{"add": "c", "tokens": [1.5]}', "whole numbers"),
    "a name that is alive": ('{"add": "a", "tokens": [1]}', "named a is alive"),
    "media without names": ('{"add": "c", "tokens": [1], "media": [[1]]}', "a medium is"),
    "an unknown request": ('{"free": "z"}', "no request named z"),
    "a start beyond all": ('{"step": {"a": {"start": 99999999999, "n": 1}}}', "start of a"),
    "a start that is true": ('{"step": {"a": {"start": true, "n": 1}}}', "start of a"),
    "a list for a step": ('{"step": [1]}', "a step is"),
    "one table for two groups": ('{"step": {"a": {"start": 0, "n": 1, "tables": [[1], [2]]}}}', "1 groups"),
    "pages below none": ('{"step": {"a": {"start": 0, "n": 1, "tables": [[-2]]}}}', "a page is"),
    "more drafts than rows": ('{"step": {"a": {"start": 0, "n": 1, "drafts": [1], "tables": [[1]]}}}', "n counts"),
    "a pool that there is not": ('{"zero": [1], "pool": 1}', "1 pools"),
    "a copy of three": ('{"copy": [[1, 2, 3]]}', "a pair of pages"),
    "a reset of what": ('{"reset": 1}', "a reset is"),
    "left for two pools": ('{"left": [1, 2]}', "1 pools"),
}


@pytest.mark.parametrize(("event", "words"), EVENTS.values(), ids=EVENTS)
def test_an_odd_event_is_refused_with_its_line(event: str, words: str, tmp_path: Path) -> None:
    log = steps.write(tmp_path / "log.jsonl", {"add": "a", "tokens": [1, 2, 3]})
    log.write_text(log.read_text(encoding="utf-8") + event + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=rf"line 3: .*{words}"):
        judged(log)


def test_the_command_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = steps.write(tmp_path / "log.jsonl", *WHOLE)
    assert cli.main(["check", str(log)]) == 0
    assert "5 steps, 3 requests, 17 rows written, 8 tokens reused" in capsys.readouterr().out
    wrong = json.loads(json.dumps(WHOLE).replace('"salt": "x"', '"salt": "y"', 1))
    assert cli.main(["check", str(steps.write(log, *wrong))]) == 1
    said = capsys.readouterr().out
    assert "STEP-12 is broken, line 7: step 3, b, group 0 (full): the query at 4 would see" in said
    assert "line 6  add b: 5 tokens, salt x\n  line 7  step 3: b computes 4, pages 1 3" in said


def test_the_command_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = steps.write(tmp_path / "log.jsonl", *WHOLE[:1], WHOLE[0] | {"add": "b"}, {"step": {"c": {}}})
    assert cli.main(["check", str(log), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["broken"]["clause"], found["broken"]["line"], found["exit_status"]) == ("STEP-26", 4, 1)
    assert found["shortest"] == [{"line": 4, "step": {"c": {}}}]


def test_a_log_without_anything_that_can_go_wrong_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = steps.write(tmp_path / "log.jsonl", *WHOLE[:3])
    assert cli.main(["check", str(log)]) == 3
    assert "nothing was exercised" in capsys.readouterr().out
    assert cli.main(["check", str(steps.write(log))]) == 3
    assert cli.main(["check", str(log), "--level", "visible"]) == 2
    assert cli.main(["check", str(steps.write(log, {"steal": 1}))]) == 2


def test_a_clause_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "step-3"]) == 0
    said = capsys.readouterr().out
    assert "STEP-3, of logs that have this: drafts" in said and "goes on at position 6" in said
    assert cli.main(["explain", "STEP"]) == 0
    assert capsys.readouterr().out.count("STEP-") >= len(index())


MISTAKES: dict[str, tuple[str, str, str]] = {
    "a clause that is left out": ("STEP-3", "STEP-33", "numbered from STEP-1"),
    "something that no log has": ("(hits, salt)", "(hits, pepper)", "needs are"),
    "an example of another clause": ("Example STEP-4.1", "Example STEP-5.1", "is expected"),
    "an example that says nothing": ("\n\n> step 2, b has 4", "\n\nstep 2, b has 4", "worked example"),
}


@pytest.mark.parametrize(("was", "now", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_chapter_is_an_error(was: str, now: str, words: str) -> None:
    changed = chapter_text().replace(was, now)
    assert changed != chapter_text()
    with pytest.raises(BadInput, match=words):
        clauses.read(changed)


def test_a_state_is_written_over_where_it_lies(tmp_path: Path) -> None:
    """Tables that are told anew are looked at before the step writes, and what it writes is not found in it."""
    header = {**HEADER, "groups": [{"block": 4, "view": "state"}]}
    a, b = ({"add": name, "tokens": [1, 2, 3, 4, number]} for number, name in enumerate("ab"))
    first = {"step": {"a": {"start": 0, "n": 2, "tables": [[1]]}}}
    anew = {"step": {"a": {"start": 2, "n": 2, "tables": [[1, 2]]}}}
    assert steps.verdict(tmp_path / "log.jsonl", a, first, anew, header=header).broken is None
    both = {"step": {"a": {"start": 2, "n": 2}, "b": {"start": 4, "n": 1, "tables": [[1, 3]]}}}
    broken = steps.verdict(tmp_path / "log.jsonl", a, b, first, both, header=header).broken
    assert broken is not None
    assert broken.clause == "STEP-8"
