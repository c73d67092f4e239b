"""The laws hold on the reference and on the list model, and a fault that breaks one of them is found by it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvadapters.reference import Reference
from kvconform.checks import laws
from kvconform.judge import trial
from kvconform.laws.law import Law, Sides
from kvconform.laws.registry import LAWS
from kvconform.oracle.reference import CitingReference
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Pair, description
from kvspec.trace import Trace, used_chapters
from support import slow
from support.running.local_adapter import LocalAdapter, fails

REFERENCE = description(Reference().describe())
FEW = settings(max_examples=25, deadline=None)


def name(law: Law) -> str:
    return f"{law.clause}-{law.kind}"


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("count", slow.counts(2, 40))
def test_a_law_holds_on_the_reference_and_the_list_model(law: Law, count: int) -> None:
    @settings(FEW, max_examples=count)
    @given(law.strategy())
    def holds(sides: Sides) -> None:
        for level in ("storage", "visible"):
            left, right = (trial.run(s, CitingReference(), REFERENCE, level) for s in sides)
            assert not left.failed and not right.failed
            assert law.compare(sides, (left, right)) == ""

    holds()


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_sides_of_a_law_end_alike_and_are_not_the_same(law: Law) -> None:
    different = []

    @FEW
    @given(law.strategy())
    def drawn(sides: Sides) -> None:
        for side in sides:
            assert isinstance(side, Trace) and used_chapters(side) <= {*law.needs}
        different.append((sides.left.ops, sides.left.config) != (sides.right.ops, sides.right.config))

    drawn()
    assert sum(different) > len(different) // 8


class SplitDiffers(Growing):
    """Several rows at once lose their first."""

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys, values)
        if keys.shape[2] > 2:
            self.rows.keys[:, :, self.offset - keys.shape[2]] = self.rows.keys[:, :, self.offset - 1]


class RewindLeavesAMark(Growing):
    """After a rewind the next row is written over the last."""

    def rewind(self, to: int) -> None:
        super().rewind(to)
        if to:
            self.rows.keys[:, :, to - 1] = 0


class SecondRewind(Growing):
    """Every second rewind in a row forgets a row."""

    rewound = False

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys, values)
        self.rewound = False

    def rewind(self, to: int) -> None:
        super().rewind(to)
        if self.rewound and to:
            self.rows.keys[:, :, 0] = 0
        self.rewound = True


class StepShows(Growing):
    """A growth step of 1 loses the first row."""

    def read(self, what: Any) -> Pair | None:
        pair = super().read(what)
        if pair is not None and self.config.step == 1 and self.offset:
            pair.keys[:, :, 0] = 0
        return pair


class BatchShows(Growing):
    """All sequences hold what the first holds."""

    def read(self, what: Any) -> Pair | None:
        pair = super().read(what)
        return pair and Pair(*(a[:1].repeat(a.shape[0], 0) for a in pair))


class Together(Growing):
    """All caches have one offset."""

    all: ClassVar[list[Growing]] = []

    def free(self) -> None:
        for cache in self.all:
            Growing.free(cache)

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.all[:] = [*self.all[-1:], self]


class RestoreForgets(Growing):
    """A restore brings back one row less."""

    def restore(self, saved: Any, to: int) -> None:
        super().restore(saved, to)
        if saved is not None and self.offset:
            self.rows.keys[:, :, self.offset - 1] = 0


class MergeForgets(Growing):
    """A merged snapshot has lost its last row."""

    def merge(self, parent: Any, child: Any) -> Any:
        made = super().merge(parent, child)
        if made is not None:
            made.rows.keys[:, :, -1] = 0
        return made


class ChunkOverWindow(Ring):
    """A chunk longer than the window loses its last row."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        if new.keys.shape[2] > self.window:
            self.rows.keys[:, :, -1] = 0


BROKEN = (
    ("CACHE-10", SplitDiffers),
    ("CACHE-11", RewindLeavesAMark),
    ("CACHE-12", SecondRewind),
    ("GROW-22", StepShows),
    ("CACHE-13", BatchShows),
    ("CACHE-14", Together),
    ("CACHE-10", ChunkOverWindow),
    ("SNAP-30", MergeForgets),
    ("SNAP-31", RestoreForgets),
)


@pytest.mark.parametrize(("clause", "cache"), BROKEN, ids=[cache.__name__ for _, cache in BROKEN])
def test_a_fault_that_breaks_a_law_is_found_by_it(clause: str, cache: type[Any]) -> None:
    law = next(x for x in LAWS if x.clause == clause and x.kind == cache.kind)

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, cache.kind: cache}

    under_test = LocalAdapter(Faulty(), traces=100)
    with under_test.judging("law") as tally:
        laws.judge(under_test, law)
    assert fails(clause, tally)


def test_a_law_is_broken_by_ends_that_differ_though_each_side_is_right_by_itself() -> None:
    """A row that is wrong in the same way on both sides breaks no law; one that is wrong on one side does."""
    law = next(x for x in LAWS if x.clause == "CACHE-10")
    sides = _first(law)
    left, right = (trial.run(s, CitingReference(), REFERENCE) for s in sides)
    assert law.compare(sides, (left, right)) == ""
    del right.steps[-1]
    assert "nothing: it failed at step" in law.compare(sides, (left, right))


def _first(law: Law) -> Sides:
    found: list[Sides] = []

    @settings(max_examples=1, database=None)
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found.append(data.draw(law.strategy()))

    draw()
    return found[0]
