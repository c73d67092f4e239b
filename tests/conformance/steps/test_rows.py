"""What the judge of a log knows of rows: of drafts that were not known, of pages that were taken several times, and
of a request that goes on the short way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvspec.errors import BadInput
from support.samples import steps
from support.samples.steps import HEADER

A: list[Any] = [
    {"add": "a", "tokens": [1, 2]},
    {"step": {"a": {"start": 0, "n": 2, "tables": [[1]]}}},
    {"sampled": {"a": [3]}},
]


def test_an_unknown_draft_that_was_right_is_the_row_of_its_token(tmp_path: Path) -> None:
    drafted = [{"step": {"a": {"start": 2, "n": 3, "drafts": [-1, -1], "more": [[2]]}}}, {"sampled": {"a": [4, 9]}}]
    found = [{"add": "b", "tokens": [1, 2, 3, 4, 5]}, {"step": {"b": {"start": 4, "n": 1, "tables": [[1, 3]]}}}]
    seen = steps.verdict(tmp_path / "log.jsonl", *A, *drafted, *found)
    assert (seen.broken, seen.counts["accepted"], seen.counts["rejected"]) == (None, 1, 1)
    other = [{"add": "b", "tokens": [1, 2, 3, 7, 5]}, found[1]]
    broken = steps.verdict(tmp_path / "log.jsonl", *A, *drafted, *other).broken
    assert broken is not None
    assert broken.clause == "STEP-8"


@pytest.mark.parametrize("others", [1, 2, 5])
def test_a_page_is_remembered_for_what_it_held(others: int, tmp_path: Path) -> None:
    """The page goes through the hands of others before it is found by its first key."""
    events = [
        *A,
        {"step": {"a": {"start": 2, "n": 1}}},
        {"sampled": {"a": [4]}},
        {"step": {"a": {"start": 3, "n": 1}}},
    ]
    events += [{"finish": "a"}, {"free": "a"}]
    for n in range(others):
        events += [
            {"add": f"x{n}", "tokens": [7 + n, 7, 7, 7]},
            {"step": {f"x{n}": {"start": 0, "n": 4, "tables": [[1]]}}},
        ]
        events += [{"finish": f"x{n}"}, {"free": f"x{n}"}]
    events += [{"add": "b", "tokens": [1, 2, 3, 4, 5]}, {"step": {"b": {"start": 4, "n": 1, "tables": [[1, 2]]}}}]
    broken = steps.verdict(tmp_path / "log.jsonl", *events).broken
    assert broken is not None
    assert broken.clause == "STEP-9"


TWO = {**HEADER, "groups": [{"block": 2, "view": "full"}]}


def test_pages_are_swapped_for_those_with_the_same_rows(tmp_path: Path) -> None:
    """An engine that finds that two have computed the same keeps one page for both."""
    b = [{"add": "b", "tokens": [1, 2, 8]}, {"step": {"b": {"start": 0, "n": 3, "tables": [[2, 3]]}}}]
    b += [{"sampled": {"b": [9]}}]
    swap = [{"swap": "b", "tables": [[1, 3]]}]
    after = [{"step": {"a": {"start": 2, "n": 1, "more": [[2]]}, "b": {"start": 3, "n": 1}}}]
    seen = steps.verdict(tmp_path / "log.jsonl", *A, *b, *swap, *after, header=TWO)
    assert (seen.broken, seen.counts["swaps"]) == (None, 1)
    wrong = [{"swap": "b", "tables": [[3, 1]]}]
    kept = [*A, *b, *after]  # page 2 was given to another, and nothing was swapped
    for events, clause in (([*A, *b, *wrong], "STEP-1"), (kept, "STEP-17")):
        broken = steps.verdict(tmp_path / "log.jsonl", *events, header=TWO).broken
        assert broken is not None
        assert (broken.clause, broken.requests[0]) == (clause, "b" if events is not kept else "a")
    with pytest.raises(BadInput, match="no tables to be swapped"):
        steps.verdict(tmp_path / "log.jsonl", A[0], {"swap": "a", "tables": [[1]]}, header=TWO)


def test_of_two_that_go_on_the_one_on_a_page_of_both_is_named(tmp_path: Path) -> None:
    fork = [{"fork": "a", "as": "b"}, {"sampled": {"a": [4], "b": [5]}}]
    events = [*A[:2], *fork, {"step": {"b": {"start": 2, "n": 1, "tables": [[2]]}, "a": {"start": 2, "n": 1}}}]
    broken = steps.verdict(tmp_path / "log.jsonl", *events).broken
    assert broken is not None
    assert (broken.clause, broken.requests[0]) == ("STEP-2", "b")  # nothing was copied to its new page
    shared = [*A[:2], *fork, {"step": {"b": {"start": 2, "n": 1}}}]
    broken = steps.verdict(tmp_path / "log.jsonl", *shared).broken
    assert broken is not None
    assert (broken.clause, broken.requests) == ("STEP-16", ("b", "a"))


def test_a_page_of_a_state_may_stand_for_many_positions(tmp_path: Path) -> None:
    """It has room for one state, however many tokens it stands for."""
    header = {**HEADER, "pages": 1 << 20, "groups": [{"block": 1 << 20, "view": "state"}]}
    a = {"add": "a", "tokens": [1, 2, 3]}
    first, then = ({"step": {"a": {"start": at, "n": 1, **more}}} for at, more in ((0, {"tables": [[9]]}), (1, {})))
    assert steps.verdict(tmp_path / "log.jsonl", a, first, then, header=header).broken is None


@pytest.mark.parametrize("part", ['"start": 2, "n": true', '"start": 2.0, "n": 1', '"start": 2, "n": 1.0'])
def test_numbers_of_a_request_that_goes_on_are_whole(part: str, tmp_path: Path) -> None:
    log = steps.write(tmp_path / "log.jsonl", *A)
    log.write_text(log.read_text(encoding="utf-8") + '{"step": {"a": {' + part + "}}}\n", encoding="utf-8")
    with pytest.raises(BadInput, match="whole number"):
        steps.judged(log)
