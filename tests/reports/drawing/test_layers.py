"""Stores, batches, buffers, rounds and counts as they are drawn: a failing trace of each chapter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import pytest
from jsonschema import Draft202012Validator
from msgspec import to_builtins

from kvadapters.reference import Reference
from kvconform.runner.failure_entry import failure
from kvref.caches.copy import Buffer
from kvref.caches.growing import Growing
from kvref.caches.store import Store
from kvreports.drawing.frames import LAYERS, frames
from kvreports.drawing.svg import draw_svg
from kvreports.drawing.text import draw
from kvreports.run import html as run_html
from kvspec import notation
from kvspec.records.run import Failure
from reports.drawing.test_drawings import step
from reports.run.test_schema import SCHEMA
from support.running.local_adapter import LocalAdapter
from support.samples.record_samples import TEXTS, clause, record


class OneSlotOn(Buffer):
    """Writes one slot too far."""

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at + 1, True)


class FirstLayerOnly(Store):
    """Rolls back one layer of all."""

    def rollback(self, to: int) -> None:
        self.set_length(0, min(self.lengths_[0], to))


class ResetsTheFirst(Store):
    """Resets one sequence of all."""

    def reset_batch(self) -> None:
        self._batch("reset").lower(0, 0)


class PlansTooLittle(Growing):
    """Says one byte too little."""

    def plan(self, n: int) -> tuple[int, int]:
        held, most = super().plan(n)
        return held - 1, most


def having(kind: str, made: type[Any]) -> Callable[[], Reference]:
    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, kind: made}

    return Faulty


class KeepsOneLess(Reference):
    """Commits one draft less than it is told."""

    def speculate(self, caches: Any, isolated: bool) -> Any:
        round_ = super().speculate(caches, isolated)
        commit = round_.commit
        round_.commit = lambda n: commit(n - 1)  # type: ignore[method-assign]
        return round_


class CountsTooMuch(Reference):
    """Counts an allocation that never was, in every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def meter(self) -> Any:
        self.asked += 1
        counted = dict(super().meter())
        return counted | {"allocations": counted["allocations"] + 9 * self.asked}


FAILING: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "copy": (having("copy", OneSlotOn), "copy", "capacity=4 layout=token", "copy 2 0"),
    "store": (having("store", FirstLayerOnly), "store", "layers=2 max_len=4", "append 3; rollback 1"),
    "batch": (
        having("store", ResetsTheFirst),
        "store",
        "layers=2 max_len=4",
        "append 2; batch 2; scatter 0 2; scatter 1 1; resetbatch",
    ),
    "draft": (
        KeepsOneLess,
        "growing",
        "step=4",
        "append 2; open B kind=ring window=3; speculate r A-B; draft r 2; B: draft r 2; commit r 2",
    ),
    "mem": (having("growing", PlansTooLittle), "growing", "step=4", "append 2; plan 3"),
    "residency": (CountsTooMuch, "growing", "step=4", "append 2; append 1"),
}


@cache
def failed(chapter: str) -> Failure:
    adapter, kind, fields, ops = FAILING[chapter]
    under_test = LocalAdapter(adapter())
    seen = under_test.run(notation.trace(kind, fields, ops))
    assert seen.failed
    return failure(seen, "example", "")


def drawn(chapter: str) -> str:
    return draw(failed(chapter).steps)


SHOWN: dict[str, tuple[str, ...]] = {
    "copy": ("slots expected [a] [b] [.] .", "slots found [.] [a] [b] ."),
    "store": (
        "lengths [1, 1] [found [1, 3]]",
        "layer 0 a",
        "layer 1 expected d [_] [_]",
        "layer 1 found d [e] [f]",
    ),
    "batch": ("sequences [0, 0] [found [0, 1]]", "layer 0, seq 1 expected [_]", "layer 0, seq 1 found [a]"),
    "draft": ("cache A expected a b c [d]", "cache B found e [_]", "offset A 4 [found 3]", "history a b c d"),
    "mem": ("plan [336, 560] [found [335, 560]]",),
    "residency": ("meter host to device 112, allocations 2 [found host to device 112, allocations 11]",),
}


@pytest.mark.parametrize("chapter", SHOWN)
def test_what_differs_can_be_read(chapter: str) -> None:
    lines = [" ".join(line.split()) for line in drawn(chapter).splitlines()]
    assert [said for said in SHOWN[chapter] if not any(said in line for line in lines)] == [], drawn(chapter)


@pytest.mark.parametrize("chapter", FAILING)
def test_every_drawing_is_whole_and_of_the_schema(chapter: str) -> None:
    found = failed(chapter)
    of_a_step = {"$ref": "#/$defs/StepRecord", "$defs": SCHEMA["$defs"]}
    for each in found.steps:
        Draft202012Validator(of_a_step).validate(to_builtins(each))
    assert str(draw_svg(found.steps)).count("<g") >= len(found.steps)
    whole = record(chapter, [clause("GROW-1", "FAIL", "x")], [found])
    assert found.words in run_html.render([whole], TEXTS)


def test_a_store_of_many_layers_is_drawn_in_part_and_what_differs_always() -> None:
    rows = {f"layer {i}": ["a"] for i in range(LAYERS + 5)}
    last = f"layer {LAYERS + 4}"
    expected, found = ({"result": "ok", "layers": layers} for layers in (rows, rows | {last: ["?"]}))
    (frame,) = frames([step("append 1", "", expected, found, "layers")])
    assert [s.what for s in frame.strips if s.differs] == [last, last]
    assert frame.strips[-1].note == "4 more not drawn"


def test_rows_of_zeros_are_empty_slots_and_nothing_is_called_dead() -> None:
    kinds = {c.kind for f in frames(failed("copy").steps) for s in f.strips for c in s.cells}
    assert kinds == {"row", "empty"}
