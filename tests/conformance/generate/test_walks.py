"""The census of walks: each pair of moves, many calls of each, each content, each scale; bugs that need this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.checks.suite import selected
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.frozen_traces import LIVES
from kvconform.generate.given_walks import given
from kvconform.generate.strategies.walk_moves import PROMPTS, SCALES, SMALL
from kvconform.generate.walks import FILLS, LONGEST_OF_FEW, LOOKS, OF_MANY_MOVES, Walks, moves
from kvconform.judge import trial
from kvconform.runner.settings import Settings
from kvspec.contract import CHAPTERS, Description, description
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.notation import words
from kvspec.operations.table import OF_KIND, each_of, parts_of
from kvspec.registry import KINDS
from kvspec.session.driver import Session
from kvspec.trace import Trace, replayable
from support.slow import one_in

ALL = frozenset(CHAPTERS)


def alone(kind: str) -> frozenset[str]:
    """A claim of a kind and no other chapter."""
    return frozenset({kind})


@cache
def walked(kind: str, chapters: frozenset[str], few: bool = False) -> tuple[Trace, ...]:
    """The walks of a run, at all scales."""
    return tuple(t for scale in SCALES for t in Walks(kind, chapters, scale, few=few).all())


def names(trace: Trace) -> list[str]:
    return [part["op"] for op in trace.ops for part in each_of(op)]


def wanted(kind: str, chapters: frozenset[str]) -> set[tuple[str, str]]:
    """Pairs of a last and a first operation of moves, but for two looks."""
    each = [m.text.split("; ") for m in moves(kind, chapters)]
    firsts, lasts = ([_name(parts[i]) for parts in each] for i in (0, -1))
    return {(a, b) for a in lasts for b in firsts if not {a, b} <= LOOKS and "open" not in (a, b)}


def _name(text: str) -> str:
    return text.split(": ")[-1].split()[0].partition("{")[0]


@pytest.mark.parametrize("kind", one_in(9, KINDS))
def test_each_operation_follows_each_other_one(kind: str) -> None:
    for chapters in (alone(kind), ALL):
        met = {pair for trace in walked(kind, chapters) for pair in pairwise(names(trace))}
        assert wanted(kind, chapters) <= met


def has_many_moves(kind: str) -> bool:
    """Whether a run of few traces cannot meet all pairs of the moves of a kind that is claimed alone."""
    return len(moves(kind, alone(kind))) ** 2 > LONGEST_OF_FEW


def test_few_kinds_have_too_many_moves_for_all_pairs() -> None:
    assert [kind for kind in KINDS if has_many_moves(kind)] == ["keyed"]


@pytest.mark.parametrize("kind", one_in(4, (kind for kind in KINDS if not has_many_moves(kind))))
def test_a_run_of_few_traces_meets_all_pairs_of_a_kind_that_is_claimed_alone(kind: str) -> None:
    met = {pair for trace in walked(kind, alone(kind), True) for pair in pairwise(names(trace))}
    assert wanted(kind, alone(kind)) <= met


@pytest.mark.parametrize("kind", one_in(4, KINDS))
def test_each_operation_happens_often_to_one_cache(kind: str) -> None:
    """In a walk that is looked at after each operation, of a run of any length."""
    first = walked(kind, alone(kind), True)[0]
    done = Counter(op["op"] for op in first.ops if op.get("cache", "A") == "A")
    about = {_name(m.text.split("; ")[-1]) for m in moves(kind, alone(kind))}
    about -= {"encode"} if first.config.of and "cross" not in first.config.of else set()  # in the second walk
    often = OF_MANY_MOVES // len(moves(kind, alone(kind))) if has_many_moves(kind) else 17
    assert min(done[name] for name in about) >= often


@pytest.mark.parametrize("kind", one_in(4, (kind for kind in KINDS if kind != "keyed")))  # its rows follow tokens
def test_each_move_that_takes_rows_is_given_each_content(kind: str) -> None:
    given = Counter(op.get("fill", "") for t in walked(kind, alone(kind)) for o in t.ops for op in parts_of(o))
    assert set(FILLS) <= {*given}


@pytest.mark.parametrize("kind", one_in(4, KINDS))
def test_walks_can_be_replayed_and_are_the_same_each_time(kind: str) -> None:
    assert all(map(replayable, walked(kind, alone(kind))))
    assert [*Walks(kind, alone(kind), SMALL).all()] == [*Walks(kind, alone(kind), SMALL).all()]
    assert [*Walks(kind, alone(kind), SMALL).all()] != [*Walks(kind, alone(kind), SMALL, seed=1).all()]


@pytest.mark.parametrize("kind", one_in(4, KINDS))
def test_moves_of_all_chapters_name_operations_of_the_kind(kind: str) -> None:
    parts = (part for m in moves(kind, ALL) for part in m.text.split("; "))
    assert {_name(part) for part in parts if ": " not in part} <= OF_KIND[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_are_the_walks_of_a_run(kind: str) -> None:
    """Else `python -m tools.freeze_vectors walks --write` makes them anew."""
    for scale in SCALES:
        frozen, made = given(kind, ALL, scale, few=True), Walks(kind, ALL, scale, few=True).all()
        assert [*map(_text, frozen)] == [*map(_text, made)]
    made_whole = next(Walks(kind, ALL, SMALL).all())
    assert _text(given(kind, ALL, SMALL)[0]) == _text(made_whole)


def _text(trace: Trace) -> tuple[Config, str]:
    return trace.config, "; ".join(map(words, trace.ops))


def test_frozen_walks_are_given_to_a_claim_of_all_by_the_default_seed_alone() -> None:
    assert all(t.frozen for t in given("ring", ALL, SMALL, few=True))
    assert not any(t.frozen for t in given("ring", ALL, SMALL, seed=1, few=True))
    assert not any(t.frozen for t in given("ring", alone("ring"), SMALL, few=True))


def test_every_run_judges_walks_and_a_quick_one_all_but_those_of_many_rows_at_once() -> None:
    about = description(Reference().describe())
    for quick, left_out in ((False, set()), (True, {PROMPTS})):
        checks = {check.id for check in selected(Settings("reference", quick=quick), about)}
        walks = {f"{kind}/walk/{scale.name}" for kind in KINDS for scale in SCALES if scale not in left_out}
        assert {id_ for id_ in checks if "/walk/" in id_ and not id_.endswith(f"/{LIVES}")} == walks


def found(kind: str, adapter: Any) -> bool:
    """Whether the walks of a run of few traces show that an adapter is wrong."""
    about, chapters = description(adapter.describe()), alone(kind) | {"batch"}
    return any(_fails(trace, adapter, about) for trace in fitted(walked(kind, chapters, True), about))


def _fails(trace: Trace, adapter: Any, about: Description) -> bool:
    level = trial.level_of(trace, about)
    return trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level).failed


def wrong(kind: str, method: str, spoiled: Callable[..., Any]) -> Any:
    """The reference, but for a method of a kind: `spoiled` is handed what does it rightly."""
    right = getattr(Reference.caches[kind], method)

    def instead(self: Any, *given: Any, **options: Any) -> Any:
        return spoiled(self, lambda *other, **more: right(self, *other, **more), *given, **options)

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {method: instead})})()


def free_17_does_nothing(self: Any, do: Callable[[], None]) -> None:
    self.calls = getattr(self, "calls", 0) + 1
    if self.calls != 17:
        do()


def zero_keys_swap(self: Any, do: Any, keys: Array, values: Array, *more: Any, **options: Any) -> Any:
    zero = keys.size > 0 and not np.any(keys)
    return do(keys, values[..., ::-1, :].copy() if zero else values, *more, **options)


def long_append_of_heads_repeats(self: Any, do: Any, keys: Array, values: Array, *more: Any) -> Any:
    if keys.shape[-2] >= 33 and keys.shape[-3] >= 4:
        values = values.copy()
        values[..., 1:, :, :] = values[..., :1, :, :]
    return do(keys, values, *more)


def zero_keeps_rows_beside_a_batch(self: Any, do: Callable[[], None]) -> None:
    if self.batch_ is None:
        do()


def refused_step_appends(self: Any, do: Any, *given: Any) -> Any:
    try:
        return do(*given)
    except Refused:
        if self.config.layers >= 9 and self.config.k_dim >= 64 and self.batch_ is not None:
            self.lengths_[0] = max(0, self.lengths_[0] - 1)
        raise


def rewind_of_a_long_cache_takes_anything(self: Any, do: Any, to: int) -> None:
    do(min(to, self.offset) if self.offset > 1024 else to)


PLANTED: dict[str, tuple[str, str, Callable[..., Any]]] = {
    **{f"{kind}: the 17th free": (kind, "free", free_17_does_nothing) for kind in ("growing", "ring")},
    **{f"{kind}: keys of zeros": (kind, "append", zero_keys_swap) for kind in ("sink", "bounded", "ring")},
    "sink: 33 rows of 4 heads": ("sink", "append", long_append_of_heads_repeats),
    "growing: 33 rows of 4 heads": ("growing", "append", long_append_of_heads_repeats),
    "store: zero beside a batch": ("store", "zero", zero_keeps_rows_beside_a_batch),
    "store: a step that is refused, at two sizes": ("store", "step", refused_step_appends),
    "growing: a rewind beyond 1,024 rows": ("growing", "rewind", rewind_of_a_long_cache_takes_anything),
    "bounded: a rewind beyond 1,024 rows": ("bounded", "rewind", rewind_of_a_long_cache_takes_anything),
}


@pytest.mark.parametrize("name", one_in(6, PLANTED))
def test_a_bug_of_an_order_a_count_a_content_or_two_sizes_is_found(name: str) -> None:
    kind, method, spoiled = PLANTED[name]
    assert found(kind, wrong(kind, method, spoiled))


def test_a_correct_cache_is_not_accused() -> None:
    checked: Iterator[bool] = (found(kind, Reference()) for kind in ("bounded", "copy"))
    assert not any(checked)
