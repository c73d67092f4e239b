"""Frozen covers are judged by what the reference is known to answer: what is told is what the reference tells."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.generate import frozen_covers
from kvconform.generate.amounts import SEED
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.given_walks import given
from kvconform.generate.large.boundaries import Size, sizes
from kvconform.generate.strategies.walk_moves import SCALES
from kvconform.judge import lockstep, trial
from kvconform.judge.kept_arrays import KeptArrays
from kvconform.judge.levels import frozen_answers, storage_trial, visible_trial
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.reference import claims
from kvref.caches.growing import Growing
from kvref.caches.store import Store
from kvspec.contract import CHAPTERS, Pair, description
from kvspec.registry import KINDS
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

EVERY = 12
"""One known bug in this many is judged twice."""

FEW = 12
"""Traces of each chapter that it is judged on."""


def traces(chapters: Any = CHAPTERS) -> Iterator[Trace]:
    """A few traces of each chapter's covers, spread over all."""
    for chapter in chapters:
        every = [t for cover in frozen_covers.load(chapter) for t in cover.traces()]
        yield from every[:: max(1, len(every) // FEW)]


def judged(adapter: Any, trace: Trace) -> TrialResult:
    return trial.on(trace, partial(Session, adapter), description(adapter.describe()))


def told(seen: TrialResult) -> Any:
    """All that a trial says, and that a record takes from it."""
    says = seen.verdict, seen.blamed, seen.implicated, seen.wrote, [d.message for d in seen.differences]
    steps = [(want.result, want.clause, want.cites, got.result) for want, got in seen.steps]
    return says, seen.trace.ops, steps, seen.spent, sorted(seen.with_rows()), sorted(seen.suspected())


def without_an_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave trials of both levels no reference to ask."""
    for level in (storage_trial, visible_trial):
        monkeypatch.setattr(level, "CitingReference", None)


def test_the_reference_is_judged_without_an_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [told(judged(Reference(), replace(t, frozen=None))) for t in traces()]
    without_an_oracle(monkeypatch)
    assert [told(judged(Reference(), t)) for t in traces()] == expected


@pytest.mark.parametrize("kind", one_in(9, KINDS))
def test_walks_are_judged_without_an_oracle_and_tell_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = [t for scale in SCALES for t in given(kind, frozenset(CHAPTERS), scale, few=True)]
    expected = [told(judged(Reference(), replace(t, frozen=None))) for t in walks]
    without_an_oracle(monkeypatch)
    assert [told(judged(Reference(), t)) for t in walks] == expected


@pytest.mark.parametrize("size", one_in(9, sizes()), ids=lambda size: f"{size.chapter} {size.name}")
def test_large_traces_are_judged_without_an_oracle_and_tell_the_same(
    size: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [t for boundary, t in size.traces(SEED) if boundary <= 130][::3]
    expected = [told(judged(adapter, replace(t, frozen=None))) for adapter in (Reference(), Wrong()) for t in large]
    assert [told(judged(adapter, t)) for adapter in (Reference(), Wrong()) for t in large] == expected
    without_an_oracle(monkeypatch)
    assert [told(judged(Reference(), t)) for t in large] == expected[: len(large)]


def test_a_run_whose_operations_are_partly_refused_is_judged_without_an_oracle() -> None:
    every = (t for scale in SCALES for t in given("store", frozenset(CHAPTERS), scale))
    walks = [t for t in every if t.frozen and any(outcome.failed for outcome in t.frozen.outcomes)]
    assert walks and not judged(Reference(), walks[0]).failed
    wrong = judged(Forgets(), walks[0])
    assert told(wrong) == told(judged(Forgets(), replace(walks[0], frozen=None))) and wrong.failed


@pytest.mark.parametrize("bug", list(known_bugs())[::EVERY])
def test_a_bug_is_told_as_the_reference_tells_it(bug: str) -> None:
    mutant = known_bugs()[bug]
    adapter = mutant.adapter()
    about = description(adapter.describe())
    for trace in fitted(traces(mutant.chapters), about):
        found = [told(judged(adapter, t)) for t in (trace, replace(trace, frozen=None))]
        assert found[0] == found[1], trace


class Short(Store):
    """Each rollback goes one row further back."""

    def rollback(self, to: int) -> None:
        super().rollback(max(0, to - 1))


class Forgets(Reference):
    """Such a store."""

    caches = {**Reference.caches, "store": Short}  # noqa: RUF012


class OneBit(Growing):
    """One bit of the newest row is wrong in long caches."""

    def read(self, what: Any) -> Any:
        pair = super().read(what)
        if pair is not None and self.offset == 7:
            pair = Pair(pair.keys.copy(), pair.values)
            pair.keys.view("u2")[..., -1, -1] ^= 1
        return pair


class Wrong(Reference):
    """Such a growing cache."""

    caches = {**Reference.caches, "growing": OneBit}  # noqa: RUF012


def test_one_bit_in_one_row_is_a_difference() -> None:
    *_, longest = (t for t in traces(["growing"]) if judged(Wrong(), replace(t, frozen=None)).failed)
    assert longest.frozen and told(judged(Wrong(), longest)) == told(judged(Wrong(), replace(longest, frozen=None)))


def test_answers_that_were_too_large_to_keep_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, longest = (t for t in traces(["growing"]) if judged(Wrong(), replace(t, frozen=None)).failed)
    expected = told(judged(Wrong(), replace(longest, frozen=None)))
    monkeypatch.setattr(lockstep, "KeptArrays", partial(KeptArrays, 0))
    assert told(judged(Wrong(), longest)) == expected


@pytest.mark.parametrize(
    "changed",
    [
        lambda claims: claims.at_most("visible"),
        lambda claims: replace(claims, chapters={c: k for c, k in claims.chapters.items() if c != "mem"}),
        lambda claims: replace(claims, chapters={c: replace(k, grows="free") for c, k in claims.chapters.items()}),
    ],
)
def test_where_less_is_compared_the_oracle_is_asked(changed: Any) -> None:
    trace, less = next(traces(["growing"])), changed(claims())
    assert frozen_answers.suffice(trace, claims(), trial.level_of(trace, claims()))
    assert not frozen_answers.suffice(trace, less, trial.level_of(trace, less))


def test_what_is_frozen_of_a_trace_holds_for_that_trace_alone() -> None:
    trace = next(t for t in traces(["growing"]) if len(t.ops) > 3)
    assert next(fitted([trace], claims())).frozen == trace.frozen
    narrow = replace(claims(), largest_append=1)
    assert trace.cut(2).frozen is None and next(fitted([trace], narrow)).frozen is None


def arrays() -> Iterator[dict[str, np.ndarray | None]]:
    keys = np.arange(24, dtype=np.float16).reshape(1, 2, 3, 4)
    yield {"state.k": keys, "state.v": None}
    yield {"state.k": keys[:, :, ::-1], "state.v": None}
    yield {"state.k": keys.reshape(2, 1, 3, 4), "state.v": None}
    yield {"state.k": keys.astype(np.float32), "state.v": None}
    yield {"state.k": None, "state.v": keys}
    yield {"state.k": keys}
    yield {"state.k": keys[:, :, :0], "state.v": None}
    yield {}


def test_a_hash_is_of_names_dtypes_shapes_and_bytes() -> None:
    assert len({frozen_answers.array_hash(each) for each in arrays()}) == len(list(arrays()))
    first = next(arrays())
    keys = np.arange(24, dtype="<f2").tobytes()
    told_ = zlib.crc32(b"state.k f16[1, 2, 3, 4];" + keys + b"state.v none;")
    assert frozen_answers.array_hash(dict(reversed(first.items()))) == frozen_answers.array_hash(first)
    assert frozen_answers.array_hash(first) == f"{told_:08x}"
