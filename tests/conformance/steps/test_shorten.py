"""What a broken log is cut to: the fewest events, told as one where they follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.samples import steps
from support.samples.steps import HEADER

PAGES = {**HEADER, "pages": 200}
Event = dict[str, Any]


def lived(name: str, tokens: list[int], pages: list[int], new: int) -> list[Event]:
    """Give the events of a request that gets so many tokens, one in a step; a page has four rows."""
    events: list[Event] = [{"add": name, "tokens": tokens}]
    events += [{"step": {name: {"start": 0, "n": len(tokens), "tables": [pages[: -(-len(tokens) // 4)]]}}}]
    for at in range(len(tokens), len(tokens) + new):
        more = {} if at % 4 else {"more": [[pages[at // 4]]]}
        events += [{"sampled": {name: [at]}}, {"step": {name: {"start": at, "n": 1, **more}}}]
    return events


def shortest(log: Path, *events: Event, header: Event = PAGES) -> tuple[str, list[Event]]:
    """Give the clause that events break, and the fewest that do."""
    seen = steps.verdict(log, *events, header=header)
    assert seen.broken is not None and seen.shortest[-1].number == seen.broken.line
    return seen.broken.clause, [line.event for line in seen.shortest]


def test_tokens_that_were_chosen_stand_in_the_prompt_and_steps_are_one(tmp_path: Path) -> None:
    found = {"step": {"b": {"start": 12, "n": 1, "tables": [[1, 2, 3, 9]]}}}
    b = {"add": "b", "tokens": [1, 2, 3, 4, 5, *range(5, 12), 77]}
    events = [*lived("a", [1, 2, 3, 4, 5], [1, 2, 3, 4], 9), {"reset": True}, b, found]
    a = {"add": "a", "tokens": [1, 2, 3, 4, 5, *range(5, 14)]}
    step = {"step": {"a": {"start": 0, "n": 14, "tables": [[1, 2, 3, 4]]}}}
    assert shortest(tmp_path / "log.jsonl", *events) == ("STEP-15", [a, step, {"reset": True}, b, found])


def test_what_a_request_found_it_computes_where_that_does_not_matter(tmp_path: Path) -> None:
    """b goes on behind pages of a; what it breaks is that c gets a page of its own."""
    b = [{"add": "b", "tokens": [1, 2, 3, 4, 9]}, {"step": {"b": {"start": 4, "n": 1, "tables": [[1, 5]]}}}]
    c = [{"add": "c", "tokens": [7, 8, 9]}, {"step": {"c": {"start": 0, "n": 3, "tables": [[5]]}}}]
    gone = [*lived("a", [1, 2, 3, 4, 5], [1, 2], 2), {"free": "a"}]
    few = [
        *({"add": "b", "tokens": [1]}, {"step": {"b": {"start": 0, "n": 1, "tables": [[1, 5]]}}}),
        *({"add": "c", "tokens": [7]}, {"step": {"c": {"start": 0, "n": 1, "tables": [[5]]}}}),
    ]
    assert shortest(tmp_path / "log.jsonl", *gone, *b, *c) == ("STEP-17", few)


def test_what_a_request_has_beside_its_tokens_is_left_out_where_that_does_not_matter(tmp_path: Path) -> None:
    a = {"add": "a", "tokens": [1, 2, 3], "salt": "x", "adapter": "y", "media": [[1, "z"]]}
    step = {"step": {"a": {"start": 0, "n": 3, "tables": [[0]]}}}
    few = [{"add": "a", "tokens": [1]}, {"step": {"a": {"start": 0, "n": 1, "tables": [[0]]}}}]
    assert shortest(tmp_path / "log.jsonl", a, step) == ("STEP-20", few)


def test_drafts_stay_where_their_rows_are_seen(tmp_path: Path) -> None:
    drafts = {"step": {"a": {"start": 8, "n": 3, "drafts": [5, 6], "more": [[3]]}}}
    late = {"step": {"a": {"start": 10, "n": 1}}}
    events = [
        *lived("a", [1, 2, 3, 4, 5], [1, 2], 3),
        {"sampled": {"a": [8]}},
        drafts,
        {"sampled": {"a": [4]}},
        late,
    ]
    clause, told = shortest(tmp_path / "log.jsonl", *events)
    assert (clause, len(told)) == ("STEP-3", 3)
    assert told[1] == {"step": {"a": {"start": 0, "n": 11, "drafts": [5, 6], "tables": [[1, 2, 3]]}}}


def test_too_many_free_pages_are_shown_by_those_who_hold_some(tmp_path: Path) -> None:
    """Of three requests one has gone, and two hold three pages, while one too many is free."""
    gone = [*lived("a", [1, 2, 3, 4, 5], [1, 2], 2), {"finish": "a"}, {"free": "a"}]
    both = [*lived("b", [1, 2, 3, 4, 5], [3, 4], 0), *lived("c", [1], [5], 0)]
    clause, told = shortest(tmp_path / "log.jsonl", *gone, *both, {"left": 197})
    assert clause == "STEP-31" and told[-1] == {"left": 197}
    assert {name for event in told for name in event.get("step", {})} == {"b", "c"}
    assert len(told) == 5


def test_a_page_of_zeros_that_nobody_ever_wrote_is_told(tmp_path: Path) -> None:
    a = {"add": "a", "tokens": [1, 2, 3, 4, 5]}
    clause, told = shortest(
        tmp_path / "log.jsonl", {"zero": [1]}, a, {"step": {"a": {"start": 4, "n": 1, "tables": [[1, 2]]}}}
    )
    assert (clause, len(told)) == ("STEP-5", 2)


def test_steps_go_on_in_later_ones_where_others_need_their_pages_before(tmp_path: Path) -> None:
    """Between the two steps of a its pages are those of b, which has gone when a goes on."""
    a = {"add": "a", "tokens": [1, 2, 3, 4, 5, 6]}
    b = [{"add": "b", "tokens": [9]}, {"step": {"b": {"start": 0, "n": 1, "tables": [[2]]}}}, {"free": "b"}]
    events = [a, {"step": {"a": {"start": 0, "n": 4, "tables": [[1]]}}}, *b]
    events += [{"step": {"a": {"start": 4, "n": 2, "more": [[2]]}}}, {"step": {"a": {"start": 7, "n": 1}}}]
    clause, told = shortest(tmp_path / "log.jsonl", *events)
    assert clause == "STEP-22"
    assert told == [a, {"step": {"a": {"start": 0, "n": 6, "tables": [[1, 2]]}}}, events[-1]]


def test_an_odd_event_that_comes_last_is_no_hindrance(tmp_path: Path) -> None:
    for odd in ({}, {"start": 1}, {"start": 0, "n": True}, {"start": 0, "n": 2, "more": 3, "tables": [7]}):
        a = {"add": "a", "tokens": [1, 2, 3]}
        ended = [a, {"step": {"a": {"start": 0, "n": 3, "tables": [[1]]}}}, {"finish": "a"}, {"step": {"a": odd}}]
        assert shortest(tmp_path / "log.jsonl", *ended)[0] == "STEP-26"


def test_whoever_is_seen_needs_no_one_before(tmp_path: Path) -> None:
    """b has a page of a; what c sees of b is in a page of its own."""
    b = [{"add": "b", "tokens": [1, 2, 3, 4, 9]}, {"step": {"b": {"start": 4, "n": 1, "tables": [[1, 5]]}}}]
    c = [{"add": "c", "tokens": [7, 8, 9, 6, 5]}, {"step": {"c": {"start": 4, "n": 1, "tables": [[5, 6]]}}}]
    clause, told = shortest(tmp_path / "log.jsonl", *lived("a", [1, 2, 3, 4, 5], [1, 2], 0), *b, *c)
    assert clause == "STEP-8"
    assert [*told[0].values()] == ["b", [1, 2, 3, 4, 9]] and len(told) == 4
    assert told[1] == {"step": {"b": {"start": 0, "n": 5, "tables": [[1, 5]]}}}


def test_drafts_are_not_told_where_only_the_rows_of_the_right_ones_are_seen(tmp_path: Path) -> None:
    drafts = {"step": {"a": {"start": 3, "n": 3, "drafts": [5, 6], "tables": [[1, 2]]}}}
    events = [*lived("a", [1, 2, 3], [1], 0), {"sampled": {"a": [4]}}, drafts, {"sampled": {"a": [5, 7]}}]
    events += [{"step": {"a": {"start": 5, "n": 1}}}, {"free": "a"}, {"reset": True}]
    b = {"add": "b", "tokens": [1, 2, 3, 4, 5, 9]}
    found = {"step": {"b": {"start": 5, "n": 1, "tables": [[1, 2]]}}}
    clause, told = shortest(tmp_path / "log.jsonl", *events, b, found)
    assert clause == "STEP-15" and told[2:] == [{"free": "a"}, {"reset": True}, b, found]
    assert "drafts" not in told[1]["step"]["a"] and len(told[0]["tokens"]) >= 5
