"""The census: each kind of cache does each of its operations beyond each boundary of geometry, for any seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.checks.suite import selected
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.geometry_traces import called, calls, met, options_of
from kvconform.generate.given_walks import left_over
from kvconform.generate.real_geometry import (
    BOUNDARIES,
    GEOMETRIES,
    MOST_WORK,
    Boundaries,
    beyond,
    options,
    within,
    work,
)
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.walk_moves import BESIDE, LATENT, MANY
from kvconform.generate.variations import geometry
from kvconform.generate.walks import Walks
from kvconform.judge import trial
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.runner.settings import Settings
from kvspec.contract import CHAPTERS, Pair, description
from kvspec.geometry import Array, Config
from kvspec.operations.table import OF_KIND, RUN, Operation, cache_of, chapters_of, each_of
from kvspec.registry import CACHES, KINDS, RECORDS, fields_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.slow import one_in

PAIRED: Boundaries = {"kv_heads": (9,), "k_dim": (64,), "v_dim": (64,), "batch": (2,)}
"""Sizes of which a kernel may meet two at once: each pair of them is a class, too."""

BATCHED = {*(operation.name for operation in RECORDS["batch"].operations), "attendbatch"}
"""What a store does to its batch."""


REFUSED = {kind: {"fit"} for kind in KINDS if kind != "store"}
"""What caches refuse whatever their geometry (MEM-17)."""


AT_ONE_SIZE = {
    *((kind, f"with {op} scaling=longrope") for kind in KINDS for op in ("attend", "rotate")),
    ("bucket", "with block splits"),
    *((kind, "with carry layers") for kind in ("bounded", "sink")),
}
"""Options whose worked examples hold at few sizes: LongRoPE has a factor for each pair of a width, an example of
ninety rows costs too much with many heads, and a parcel of one part has no layers to choose from."""


def sizes(kind: str, operation: str) -> set[str]:
    """The sizes that caches of a kind have when they do an operation."""
    batch = kind in (*CACHES, "ragged", "bucket") or operation in BATCHED
    return (
        {"kv_heads", "k_dim", "v_dim"}
        | ({"batch"} if batch else set())
        | ({"layers"} if "layers" in fields_of(kind) else set())
    )


Done = tuple[str, Operation, Config, int]
"""A kind, an operation, the config of its cache, and the sequences of its batch."""


def done(trace: Trace) -> Iterator[Done]:
    """Perform a trace; give each operation that is not refused, and where it was done."""
    session, inputs, sequences = Session(Reference(), observe=("history",)), TraceInputs(trace), dict[str, int]()
    session.begin(trace.kind, trace.config)
    for op in trace.ops:
        result = session.do(op, inputs.make(op)).result
        inputs.done(op, result)
        for part in (*each_of(op), *([op] if op["op"] == RUN.name else ())):
            if result == "ok":
                yield _met(part, inputs, sequences)


def _met(op: Operation, inputs: TraceInputs, sequences: dict[str, int]) -> Done:
    name = cache_of(op["ops"][-1] if op["op"] == RUN.name else op)
    sequences[name] = op.get("m", sequences.get(name, 0))
    kind, config = inputs.opened[name]
    return kind, op, config, sequences[name]


def judged(kind: str) -> Iterator[Trace]:
    """The traces at real geometry that a run of any length judges: what walks leave over, and walks."""
    yield from (trace for each in GEOMETRIES for trace in left_over(kind, each))
    yield from (
        t for scale in (LATENT, MANY, BESIDE) for t in Walks(kind, frozenset(CHAPTERS), scale, few=True).all()
    )


@cache
def everything() -> tuple[Done, ...]:
    """All operations that a run of any length judges at real geometry."""
    return tuple(each for kind in KINDS for trace in judged(kind) for each in done(trace))


@cache
def census() -> dict[tuple[str, str], set[tuple[str, int]]]:
    """The boundaries that each kind of cache lay beyond in each of its operations."""
    found: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for kind, op, config, sequences in everything():
        found.setdefault((kind, op["op"]), set()).update(beyond(config, sequences))
    return found


@cache
def paired() -> dict[tuple[str, str], set[frozenset[str]]]:
    """The pairs of sizes that were large at once, by operation, by calls on the first sequence or another, and by
    option."""
    found: dict[tuple[str, str], set[frozenset[str]]] = {}
    for kind, op, config, sequences in everything():
        large = (name for name, _ in beyond(config, sequences, PAIRED))
        pairs = {*map(frozenset, combinations(large, 2))}
        for name in (op["op"], called(op), *options(kind, config), *options_of(op)):
            found.setdefault((kind, name), set()).update(pairs)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_of_each_kind_meets_each_class_of_geometry(kind: str) -> None:
    for operation in {*OF_KIND[kind]} - REFUSED.get(kind, set()):
        wanted = {(size, least) for size in sizes(kind, operation) for least in BOUNDARIES[size]}
        assert wanted <= census().get((kind, operation), set()), (kind, operation)


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_of_each_kind_meets_each_pair_of_sizes(kind: str) -> None:
    """Many heads, wide rows, several sequences, two at once: on all sequences, on the first, and on another; and
    with each option, as a layer that is a state, or a softcap."""
    for name in {*OF_KIND[kind], *calls(kind)} - REFUSED.get(kind, set()):
        wanted = {*map(frozenset, combinations(sizes(kind, name.split()[0]) & PAIRED.keys(), 2))}
        assert wanted <= paired().get((kind, name), set()) or (kind, name) in AT_ONE_SIZE, (kind, name)


Spoil = Callable[[Array], None]


def first_for_last(axis: int) -> Spoil:
    """The first head, sequence or layer in the place of the last."""

    def spoil(rows: Array) -> None:
        along = np.moveaxis(rows, axis, 0)
        along[-1] = along[0]

    return spoil


def last_element(rows: Array) -> None:
    """Rows whose last element is lost."""
    rows[..., -1] = 0


def taking_wrong_rows(kind: str, method: str, where: dict[str, int], spoil: Spoil) -> Any:
    """The reference, but that a method spoils the rows it takes where a cache is at least so large."""
    right = getattr(Reference.caches[kind], method)

    def wrong(self: Any, keys: Array, values: Array, *more: Any, **options: Any) -> Any:
        if all((getattr(self.config, name) or 0) >= least for name, least in where.items()):
            keys, values = keys.copy(), values.copy()
            spoil(keys)
        return right(self, keys, values, *more, **options)

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {method: wrong})})()


def spoiling_in(kind: str, method: str, where: dict[str, int]) -> Any:
    """The reference, but that a method loses the first key where a cache is at least so large."""
    right = getattr(Reference.caches[kind], method)

    def wrong(self: Any, *arguments: Any) -> Any:
        done = right(self, *arguments)
        if len(self.rows) and all((getattr(self.config, name) or 0) >= least for name, least in where.items()):
            rows = self.rows.read(0, 1)
            self.rows.write(0, Pair(-rows.keys, rows.values))
        return done

    return having(**{kind: type("Wrong", (Reference.caches[kind],), {method: wrong})})()


HEAD, SEQUENCE = -3, -4
TAKES = {
    **dict.fromkeys(("growing", "ring", "bounded", "sink", "page", "store"), "append"),
    "ragged": "feed",
    "bucket": "prefill",
}
SEVERAL = ("growing", "ring", "bounded", "sink", "ragged", "bucket")
PLANTED = {
    **{f"{k}: wide keys": (k, m, {"k_dim": 17}, last_element) for k, m in TAKES.items()},
    **{f"{k}: head 9": (k, m, {"kv_heads": 9}, first_for_last(HEAD)) for k, m in TAKES.items()},
    **{f"{k}: head 33": (k, m, {"kv_heads": 33}, first_for_last(HEAD)) for k, m in TAKES.items()},
    **{f"{k}: sequence 17": (k, TAKES[k], {"batch": 17}, first_for_last(SEQUENCE)) for k in SEVERAL},
    **{f"{k}: layer 33": (k, TAKES[k], {"layers": 33}, last_element) for k in ("store", "bucket")},
    **{f"{k}: two sizes": (k, m, {"k_dim": 128, "kv_heads": 9}, last_element) for k, m in TAKES.items()},
}


def found(kind: str, adapter: Any) -> bool:
    """Whether the traces that a run of any length judges at real geometry show that an adapter is wrong."""
    about = description(adapter.describe())
    for trace in fitted(judged(kind), about):
        level = trial.level_of(trace, about)
        if trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level).failed:
            return True
    return False


@pytest.mark.parametrize("name", one_in(4, PLANTED))
def test_a_bug_that_begins_at_a_size_is_found(name: str) -> None:
    kind, method, where, spoil = PLANTED[name]
    assert found(kind, taking_wrong_rows(kind, method, where, spoil))


@pytest.mark.parametrize("kind", ["growing", "ring", "bounded"])
@pytest.mark.parametrize("where", [{"k_dim": 17}, {"kv_heads": 9, "k_dim": 17}, {"batch": 17}], ids=str)
def test_a_rewind_that_spoils_rows_from_a_size_on_is_found(kind: str, where: dict[str, int]) -> None:
    assert found(kind, spoiling_in(kind, "rewind", where))


@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_a_correct_cache_is_not_accused(kind: str) -> None:
    assert not found(kind, Reference())


def test_every_run_judges_them() -> None:
    checks = {
        check.id for check in selected(Settings("reference", quick=True), description(Reference().describe()))
    }
    assert {f"{kind}/geometry/examples" for kind in KINDS} <= checks


def _within_a_batch(trace: Trace) -> bool:
    """Whether a trace says nothing of how many sequences a batch may have: limits shut out what is about 33."""
    return all(op.get("most") is None for op in trace.ops if op["op"] == "batch")


@pytest.mark.parametrize("kind", KINDS)
def test_limits_shrink_a_geometry_and_lose_no_trace(kind: str) -> None:
    limits = {"heads": 4, "batch": 4, "dims": {"multiple": 32, "equal": True}}
    adapter = description({**Reference().describe(), "limits": limits})
    each = [[*filter(_within_a_batch, left_over(kind, within(geometry, adapter)))] for geometry in GEOMETRIES]
    judged = [list(fitted(given, adapter)) for given in each]
    assert all(len(some) == len(given) for some, given in zip(judged, each, strict=True))
    reached = met([trace for some in judged for trace in some], kind)
    assert {("k_dim", 256), ("v_dim", 256)} <= reached
    assert not {("kv_heads", 5), ("batch", 9)} & reached


@pytest.mark.parametrize(
    "exploration", [e for each in explorations().values() for e in each][::4], ids=lambda e: e.name
)
def test_a_drawn_trace_at_a_real_geometry_takes_no_more_work_than_is_bounded(exploration: Any) -> None:
    drawn = sample.some(exploration.strategy(), 9, 0)
    for trace in map(geometry, drawn):
        assert trace in drawn or (beyond(trace.config) and work(trace) <= MOST_WORK)


@pytest.mark.parametrize(
    ("kind", "beside", "operation"),
    [
        ("ring", {"snapshot", "questions"}, "askrestore"),
        ("growing", {"attention"}, "attend"),
        ("layers", set(), "append"),
    ],
)
def test_what_an_adapter_claims_is_asked_in_traces_that_take_no_more(
    kind: str, beside: set[str], operation: str
) -> None:
    claimed = frozenset({kind, *beside})
    given = [trace for geometry in GEOMETRIES[:3] for trace in left_over(kind, geometry, claimed)]
    assert all({trace.kind, *(c for op in trace.ops for c in chapters_of(op))} <= claimed for trace in given)
    assert any(op["op"] == operation for trace in given for op in trace.ops)
