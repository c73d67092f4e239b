"""Attention at length: what goes wrong only beyond a size lies outside the bound, and the large traces show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import reference_with
from kvconform.generate.large.boundaries import BOUNDARIES, Size, sizes, too_large
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvref.abilities.attention import Answering, Seen
from kvspec.contract import Pair, description
from kvspec.geometry import DTYPES, Array
from kvspec.notation import from_sentence, sentence
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

VISIBLE = description(Reference().describe()).at_most("visible")
SIZES = {size.name: size for size in sizes() if size.chapter == "attention"}
ROWS = [name for name in SIZES if SIZES[name].boundaries == BOUNDARIES]
"""Sizes that are rows which queries are asked about."""


def judged(trace: Trace, adapter: object) -> TrialResult:
    """A trial at level visible: only bounds hold its outputs."""
    return trial.run(trace, Session(adapter, trial.observables(trace, VISIBLE, "visible")), VISIBLE, "visible")


def traces(size: Size, low: int, high: int) -> Iterator[tuple[int, Trace]]:
    return ((b, trace) for b, trace in size.traces(0) if low <= b <= high)


def test_rows_are_met_to_the_last_boundary_on_each_kind_of_cache_that_attends() -> None:
    assert len(ROWS) >= 12 and BOUNDARIES[-1] == 65537
    needs = {chapter for name in ROWS for chapter in SIZES[name].needs}
    assert needs >= {"growing", "ring", "page", "store", "batch", "bucket", "rope"}


@pytest.mark.parametrize("name", one_in(3, ROWS))
def test_right_outputs_are_shown_to_be_right(name: str) -> None:
    for boundary, trace in traces(SIZES[name], 127, 1025):
        for dtype in DTYPES if boundary in (129, 1025) else (trace.config.dtype,):
            seen = judged(Trace(trace.kind, trace.config.changed(dtype=dtype), trace.ops), Reference())
            assert not seen.failed, sentence(trace)
            assert seen.shows("ATTN-44") and seen.bounded, sentence(trace)


def test_the_largest_are_judged_at_level_visible_too() -> None:
    trace = dict(SIZES["rows on a store"].traces(0))[65537]
    assert not too_large(65537, trace, VISIBLE)
    seen = judged(trace, Reference())
    assert not seen.failed and seen.shows("ATTN-44")


class Planted(Answering):
    """Attention that is wrong from a number of rows on."""

    begin = 1024

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        right = super().attended(queries, held, seen, splits)
        return right if seen.rows < self.begin else self.wrong(queries, held, seen, right)

    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        raise NotImplementedError

    def without(self, queries: Array, held: Pair, seen: Seen, *lost: int) -> Array:
        """The output over rows some of which have lost their values."""
        values = np.array(held.values)
        values[:, :, list(lost)] = 0
        return super().attended(queries, Pair(held.keys, values), seen, 1)


class Zeros(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return 0 * right


class Twice(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return 2 * right


class TheOldest(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return self.without(queries, held, seen, 0)


class TheNewest(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return self.without(queries, held, seen, -1)


class TheLastTile(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return self.without(queries, held, seen, *range(seen.rows - 1 - (seen.rows - 1) % 32, seen.rows))


class OneInTheMiddle(Planted):
    def wrong(self, queries: Array, held: Pair, seen: Seen, right: Array) -> Array:
        return self.without(queries, held, seen, self.begin - 1)


LOST = (Zeros, Twice, TheOldest, TheNewest, TheLastTile, OneInTheMiddle)
KINDS = {"rows on a growing": "growing", "rows on a store": "store", "window of a ring": "ring"}


@pytest.mark.parametrize("begin", one_in(3, [4095, 128, 1024]))
@pytest.mark.parametrize("bug", LOST, ids=lambda bug: bug.__name__)
def test_what_is_wrong_from_a_number_of_rows_on_is_found_on_every_kind(bug: type[Planted], begin: int) -> None:
    adapter = reference_with(type(bug.__name__, (bug,), {"begin": begin}))
    for name in KINDS:
        near = [trace for _, trace in traces(SIZES[name], begin, 4097 if begin > 4000 else 2 * begin + 1)]
        assert any(judged(trace, adapter()).failed for trace in near), name


@pytest.mark.parametrize("bug", LOST, ids=lambda bug: bug.__name__)
def test_what_is_wrong_from_32768_rows_on_is_found(bug: type[Planted]) -> None:
    adapter = reference_with(type(bug.__name__, (bug,), {"begin": 32768}))
    trace = dict(SIZES["rows on a growing"].traces(0))[32769]
    assert judged(trace, adapter()).failed


def cut(dtype: str) -> Callable[[Array], Array]:
    """Cut f32 numbers to bf16, or to the ten binary digits of TF32."""
    if dtype == "bf16":
        return lambda a: np.asarray(a, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    return lambda a: (np.asarray(a, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("part", one_in(3, ["queries", "keys", "values"]))
@pytest.mark.parametrize("dtype", ["bf16", "tf32"])
def test_arithmetic_of_fewer_digits_is_found_by_random_rows(dtype: str, part: str) -> None:
    class Coarse(Answering):
        def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
            whole = {"queries": queries, "keys": held.keys, "values": held.values}
            whole[part] = cut(dtype)(whole[part]) if held.keys.dtype == np.float32 else whole[part]
            return super().attended(whole["queries"], Pair(whole["keys"], whole["values"]), seen, splits)

    exploration = next(e for e in explorations()["attention"] if e.name == "growing")
    drawn = [t for t in sample.some(exploration.strategy(), 60, 0) if "edges" not in sentence(t)]
    assert any(judged(trace, reference_with(Coarse)()).failed for trace in drawn)


def test_a_step_whose_bound_is_empty_exercises_no_clause_of_outputs() -> None:
    start = (
        "growing kv_heads=1 k_dim=8 v_dim=8 dtype=bf16: run 1 {append 16382 fill=random; append 1 fill=random}; "
    )
    empty = judged(from_sentence(f"{start}attend 1 queries=zero"), Reference())
    assert not empty.failed and not empty.shows("ATTN-44")
    assert not {"ATTN-44", "ATTN-2", "ATTN-3"} & set(empty.exercised()) and "ATTN-1" in empty.exercised()
    shown = judged(from_sentence(start.replace("random", "needle") + "attend 1 fill=needle"), Reference())
    assert shown.shows("ATTN-44") and "ATTN-44" in shown.exercised()
