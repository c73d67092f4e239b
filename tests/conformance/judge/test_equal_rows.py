"""Rows of equal bytes are interchangeable, and all else is compared; at both levels, in every chapter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs import trace_sources
from kvconform.generate.amounts import QUICK_TRACES
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.variations import alike, blind
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvref.caches.page import Pages
from kvspec.contract import description
from kvspec.geometry import Config
from kvspec.notation import from_sentence, sentence
from kvspec.operations.arguments import ALIKE, IN_RUNS
from kvspec.operations.table import takes_rows
from kvspec.rows.fills import MAKE
from kvspec.session.driver import Session
from kvspec.trace import Trace
from kvworkshop.correct_variants.shares_pages import PagesShared
from support.engines import sharing_pools
from support.engines.sharing_pools import AskedFirst, ByPrefix, Remembers, pool
from support.slow import one_in

LEVELS = ("visible", "storage")
REPLAY = (
    "page kv_heads=1 page_size=2 pages=6: admit; append 4 fill=alike; truncate 0 0; admit; append 4 sequence=1; "
    "append 2 sequence=0 fill=alike"
)
"""Appends to two sequences whose first page is equal, one of which was truncated before."""


def judged(trace: Trace, adapter: Any, level: str | None = None) -> TrialResult:
    return trial.on(trace, lambda seen: Session(adapter, seen), description(adapter.describe()), level)


def drawn(chapter: str, count: int) -> list[Trace]:
    """The first of what each exploration of a chapter draws, with rows that are alike."""
    return [alike(t) for e in explorations()[chapter] for t in sample.some(e.strategy(), count, seed=0)]


def test_a_page_that_is_found_again_after_it_was_given_back_fails_at_level_visible() -> None:
    trace = from_sentence(REPLAY)
    assert not judged(trace, pool(Pages)).failed
    seen = judged(trace, pool(Remembers))
    assert seen.failed and seen.differences[0].field == "state", seen.differences


@pytest.mark.parametrize("chapter", one_in(10, explorations()))
def test_the_reference_holds_on_equal_rows_at_both_levels(chapter: str) -> None:
    for trace in drawn(chapter, 5):
        for level in LEVELS:
            seen = judged(trace, Reference(), level)
            assert not seen.failed, (level, seen.differences[0].message, sentence(trace))


WRONG = (
    *(Remembers, sharing_pools.ByKeys, sharing_pools.ByValues, sharing_pools.ByFirstHead, sharing_pools.ByLastHead),
    *(sharing_pools.AllButOneValue, sharing_pools.AllButOneKey, sharing_pools.Uncounted),
)


def failing(adapter: Any) -> Iterator[TrialResult]:
    """What fails of the traces that a run judges: those of equal pages, and a share of the others in this form."""
    return (seen for trace in equal_pages() if (seen := judged(trace, adapter)).failed)


@cache
def equal_pages() -> list[Trace]:
    (exploration,) = (e for e in explorations()["page"] if e.name == "equal")
    return sample.some(exploration.strategy(), 60, seed=0)


@pytest.mark.parametrize("pages", WRONG)
def test_a_pool_that_shares_pages_that_are_not_equal_is_found_at_level_visible(pages: type[Any]) -> None:
    seen = next(failing(pool(pages, declares=True)), None)
    assert seen is not None
    assert {d.field for d in seen.differences} & {"state", "result", "free"}


@pytest.mark.parametrize("pages", WRONG)
def test_and_at_level_storage(pages: type[Any]) -> None:
    assert next(failing(pool(pages, level="storage")), None) is not None


@pytest.mark.parametrize("pages", one_in(4, [PagesShared, AskedFirst, ByPrefix, Pages]))
def test_a_pool_that_shares_equal_pages_and_says_so_is_right(pages: type[Any]) -> None:
    for trace in (*drawn("page", 30), *equal_pages()):
        seen = judged(trace, pool(pages, declares=True))
        assert not seen.failed, (seen.differences[0].message, sentence(trace))


@pytest.mark.parametrize("pages", [PagesShared, AskedFirst])
def test_it_is_right_while_nobody_looks_too(pages: type[Any]) -> None:
    for trace in equal_pages()[::4]:
        seen = judged(blind(trace), pool(pages, declares=True))
        assert not seen.failed, (seen.differences[0].message, sentence(trace))


def test_a_pool_that_shares_equal_pages_and_does_not_say_so_is_not() -> None:
    assert next(failing(pool(PagesShared)), None) is not None


def test_room_that_is_found_by_sharing_is_taken_as_the_adapter_says() -> None:
    trace = from_sentence(
        "page page_size=2 pages=2: admit; append 2 fill=alike; admit; append 2 sequence=1; append 2 fill=alike"
    )
    full = judged(trace, pool(AskedFirst, declares=True))
    assert not full.failed and full.steps[-1][1].result == "ok"
    refused = judged(trace, pool(PagesShared, declares=True))
    assert not refused.failed and refused.steps[-1][1].result == "refused"


@pytest.mark.parametrize("fill", ALIKE)
def test_rows_are_alike_in_the_parts_that_the_fill_names(fill: str) -> None:
    config = Config(kv_heads=3, k_dim=8, v_dim=8)
    found = {k: MAKE[fill](config, k, 100, 8) for k in "kv"}
    same = {(k, h) for k, rows in found.items() for h in range(3) if (rows[0, h, :4] == rows[0, h, 4:]).all()}
    every = {(k, h) for k in "kv" for h in range(3)}
    parts = {
        "alike": every,
        "keys_alike": {x for x in every if x[0] == "k"},
        "values_alike": {x for x in every if x[0] == "v"},
        "first_alike": {("k", 0), ("v", 0)},
        "last_alike": {("k", 2), ("v", 2)},
        "but_key_alike": every - {("k", 2)},
        "but_value_alike": every - {("v", 2)},
    }
    assert same == parts[fill]


@pytest.mark.parametrize("fill", IN_RUNS)
def test_neighbours_are_equal_in_the_parts_that_the_fill_names(fill: str) -> None:
    config = Config(batch=2, kv_heads=3, k_dim=8, v_dim=8)
    found = {k: MAKE[fill](config, k, 100, 9) for k in "kv"}
    each = {(k, b, h): found[k][b, h] for k in "kv" for b in range(2) for h in range(3)}
    runs = (0, 0, 0, 1, 1, 2, 3, 3, 0)
    named = {at: [[*map(bytes, rows)].index(bytes(row)) for row in rows] for at, rows in each.items()}
    in_runs = {at for at, first in named.items() if first == [runs.index(n) for n in runs]}
    assert all(first == [*range(9)] for at, first in named.items() if at not in in_runs)
    parts = {
        "in_runs": {*each},
        "keys_in_runs": {at for at in each if at[0] == "k"},
        "values_in_runs": {at for at in each if at[0] == "v"},
        "first_in_runs": {at for at in each if at[2] == 0},
        "last_in_runs": {at for at in each if at[2] == 2},
        "sequence_in_runs": {at for at in each if at[1] == 0},
    }
    assert in_runs == parts[fill]


GIVEN_ROWS = [chapter for chapter in explorations() if chapter != "keyed"]
"""The chapters whose traces say what rows hold; those of KEY follow from tokens."""


@pytest.mark.parametrize("chapter", GIVEN_ROWS)
def test_even_the_fewest_traces_have_equal_neighbours_over_several_calls(chapter: str) -> None:
    """Those of `--quick`: one trace of each exploration, but for those whose rows are numbers alone."""
    few = [sample.some(e.strategy(), QUICK_TRACES, seed=0)[-1] for e in explorations()[chapter]]
    taken = [ops for trace in few if (ops := [op for op in alike(trace).ops if takes_rows(op)])]
    found = [ops for ops in taken if any(equal(ops[i : i + 3]) for i in range(len(ops)))]
    assert found and len(found) >= 0.5 * len(taken), [ops for ops in taken if ops not in found]


def equal(ops: list[Any]) -> bool:
    """Whether these are three calls of equal rows on the same cache."""
    return len(ops) == 3 and ops[0] == ops[1] == ops[2] and ops[0].get("fill") == "in_runs"


@pytest.mark.parametrize("chapter", one_in(3, GIVEN_ROWS))
def test_neighbours_are_equal_in_a_head_or_a_sequence_where_there_are_several(chapter: str) -> None:
    """In what a run judges of each chapter."""
    found = [
        trace for traces in trace_sources.drawn(chapter) for trace in trace_sources.FORMS["alike"].some(traces)
    ]
    met = {fill for trace in found for fill in neighbours(trace)}
    several = any(trace.config.batch > 1 for trace in found)
    wanted = {*IN_RUNS} - (set() if several else {"sequence_in_runs"})
    assert wanted <= met, wanted - met


def neighbours(trace: Trace) -> Iterator[str]:
    """The fills of a trace that make neighbours equal in a part, and no more."""
    whole = {"first_in_runs", "last_in_runs"} if trace.config.kv_heads == 1 else set[str]()
    whole |= {"sequence_in_runs"} if trace.config.batch == 1 else set()
    ops = [op for op in trace.ops if takes_rows(op)]
    for i, op in enumerate(ops):
        if (op.get("n") or 0) > 1 or op in ops[i + 1 : i + 2]:
            yield from {op.get("fill")} - whole


@pytest.mark.parametrize("chapter", one_in(10, GIVEN_ROWS))
def test_every_sort_of_equal_rows_is_drawn_in_every_chapter(chapter: str) -> None:
    fills = {op.get("fill") for trace in drawn(chapter, 30) for op in trace.ops}
    wanted = {*ALIKE, *IN_RUNS}
    assert wanted <= fills, wanted - fills
