"""Bugs that need a longer life, more arrays, a second name, equal lengths, or a limit that nothing asked about."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.checks import honesty, large
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvref.abilities.attention_store import CapturedAttention
from kvref.caches.growing import Growing
from kvref.caches.ragged import Ragged
from kvref.caches.ring import Ring
from kvref.caches.store import Store
from kvref.memory import mem
from kvspec.contract import Pair, Readable, description
from kvspec.geometry import Array, Config
from kvspec.reading.clauses import index
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.running.judging import Wired


def having(**caches: Any) -> Reference:
    """The reference with these caches."""

    class Made(Reference):
        pass

    Made.caches = {**Reference.caches, **caches}
    return Made()


def failing(adapter: Any, traces: Iterable[Trace]) -> Iterator[TrialResult]:
    about = description(adapter.describe())
    found = (trial.on(trace, lambda seen: Session(adapter, seen), about) for trace in traces)
    return (seen for seen in found if seen.failed)


def sized(*names: str) -> list[Trace]:
    return [t for size in large.sizes() if size.name in names for _, t in size.traces(0)]


@cache
def explored(chapter: str, named: str = "") -> list[Trace]:
    found = (e for e in explorations()[chapter] if re.search(named, e.name))
    return [t for e in found for t in sample.some(e.strategy(), 60, seed=0)]


class Counts:
    """Loses the newest row of the append at which its counter of some bits is full."""

    bits = 12
    appends = 0

    def append(self, keys: Array, values: Array) -> None:
        super().append(keys, values)  # type: ignore[misc]
        self.appends += keys.ndim == 4 and keys.shape[2] == 1
        if self.appends == 1 << self.bits:
            self.rows.keys[:, :, -1:] = 0  # type: ignore[attr-defined]
            self.offset -= 1


class Counts12(Counts, Growing):
    """Of 12 bits."""


class Counts13(Counts, Growing):
    """Of 13 bits."""

    bits = 13


class RingCounts13(Counts, Ring):
    """Of 13 bits, in a ring."""

    bits = 13


@pytest.mark.parametrize(("kind", "cache"), [("growing", Counts12), ("growing", Counts13), ("ring", RingCounts13)])
def test_a_counter_that_is_full_after_thousands_of_appends_is_found(kind: str, cache: type[Any]) -> None:
    lives = [t for t in sized("rows one by one, 4097 at least", "rows one by one, 8193 at least") if t.kind == kind]
    assert len(lives) == 2
    assert any(failing(having(**{kind: cache}), lives))


class InTurn(Growing):
    """Views lie in 48 buffers, which are handed out in turn."""

    def read(self, what: Readable) -> Pair | None:
        found = super().read(what)
        if what != "view" or found is None:
            return found
        turn: deque[Pair] = self.__dict__.setdefault("turn", deque(maxlen=48))
        if len(turn) == 48 and turn[0].keys.shape == found.keys.shape:
            for old, new in zip(turn[0], found, strict=True):
                old[...] = new + 1
        turn.append(found)
        return found


def test_a_buffer_that_is_written_again_long_after_it_was_handed_out_is_found() -> None:
    seen = failing(having(growing=InTurn), [t for t in sized("times read") if t.kind == "growing"])
    assert {d.field for each in seen for d in each.differences} == {"intact"}


class OneCapture(Store):
    """Of several captured attends it knows the layer of the newest alone."""

    def capture_attend(self, layer: int, heads: int, splits: int = 1) -> CapturedAttention:
        made = super().capture_attend(layer, heads, splits)
        for old in self.__dict__.setdefault("made", []):
            old.layer = layer
        self.__dict__["made"].append(made)
        return made


def test_captured_attends_of_two_names_are_told_apart() -> None:
    traces = [t for t in explored("attention", "/?store$") if t.kind == "store"]
    names = [{op["name"] for op in t.ops if op["op"] == "captureattend"} for t in traces]
    assert sum(len(each) > 1 for each in names) >= 5
    assert any(failing(having(store=OneCapture), traces))


class AsOneBlock(Ragged):
    """A block of equal lengths is laid down at once, which turns the rows of a longer sequence around."""

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        uneven = len(set(self.lengths)) > 1
        super().feed(keys, values, lengths)
        if uneven and len(set(lengths)) == 1 and lengths[0] > 1:
            for block in self.block:
                block[0] = block[0][:, ::-1]


def test_blocks_of_equal_lengths_are_fed_as_often_as_others() -> None:
    traces = explored("ragged")
    fed = [
        set(op["lengths"].split(",")) for t in traces for op in t.ops if op["op"] == "feed" and "," in op["lengths"]
    ]
    equal = sum(len(lengths) == 1 for lengths in fed) / len(fed)
    assert 0.35 <= equal <= 0.75
    assert any(failing(having(ragged=AsOneBlock), traces))


class Limited(Reference):
    """It says that a cache is given five rows at most, and takes any number."""

    most: ClassVar[int] = 1 << 20

    def describe(self) -> dict[str, Any]:
        return {"name": "limited", "chapters": {"growing": "storage", "ring": "storage"}, "limits": {"rows": 5}}

    def open(self, kind: str, config: Config) -> Any:
        cache, most = super().open(kind, config), self.most

        class Given(type(cache)):  # type: ignore[misc]
            given = 0

            def append(self, keys: Array, values: Array) -> None:
                if self.given + keys.shape[2] > most:
                    raise ValueError("no room for a context as long as that")
                super().append(keys, values)
                self.given += keys.shape[2]

        cache.__class__ = Given
        return cache


class KeepsItsLimit(Limited):
    """It refuses the sixth."""

    most = 5


def test_the_limit_of_rows_is_tried() -> None:
    said = {}
    for adapter in (Limited, KeepsItsLimit):
        worker: Any = Wired(f"{__name__}:{adapter.__name__}")
        said[adapter] = [text for text in honesty.undeclared(worker.describe(), worker) if "rows at most" in text]
    assert said[KeepsItsLimit] == []
    assert [text.partition(",")[0] for text in said[Limited]] == [
        "it declares that a cache is given 5 rows at most"
    ] * 2


LEFT_OUT = {"growing": ["batch", "free", "bits"], "mask": ["window"], "attention": ["softcap", "finite"]}
"""What a config, an operation, a mask and an argument ask for; and contents of rows, which nobody refuses."""


class DoesWhatItLeavesOut(Reference):
    """It says that it lacks some abilities, and has them."""

    def describe(self) -> dict[str, Any]:
        claims = {chapter: {"level": "visible", "without": names} for chapter, names in LEFT_OUT.items()}
        return {"name": "more than it says", "chapters": claims}


def test_each_ability_that_is_left_out_is_tried() -> None:
    worker: Any = Wired(f"{__name__}:DoesWhatItLeavesOut")
    told = [text.partition(", yet")[0] for text in honesty.undeclared(worker.describe(), worker)]
    said = [text.removeprefix("it leaves out ") for text in told if "leaves out" in text]
    assert said == ["growing.batch", "growing.free", "mask.window", "attention.softcap"]


class Broadcasts(Store):
    """Rows for one layer are taken for all of them."""

    def demand_rows(self, new: Pair, layer: int | None) -> Sequence[int]:
        if layer is None and new.keys.ndim == 4 and len(new.keys) == 1 < len(self.lengths_):
            super().demand_rows(Pair(*(a.repeat(len(self.lengths_), 0) for a in new)), layer)
            return [0]
        return super().demand_rows(new, layer)


def test_rows_for_fewer_layers_are_found_to_be_taken() -> None:
    worked = [e.trace for e in index()["CACHE-2"].examples]
    assert any(failing(having(store=Broadcasts), worked))
    assert any(failing(having(store=Broadcasts), explored("store")))


class FitsBounded(Reference):
    """It says how many bounded caches fit."""

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        bounded = config.changed(layers=1) if kind == "bounded" else config
        return mem.fit("store" if kind == "bounded" else kind, bounded, free, reserve, most)


def test_a_bounded_cache_that_says_how_many_fit_is_found() -> None:
    assert any(failing(FitsBounded(), [e.trace for e in index()["MEM-17"].examples]))
