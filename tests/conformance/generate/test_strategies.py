"""Harness for whole systems: exploration mixes all features, shortening lowers what it should, limits are kept."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.checks import honesty
from kvconform.generate.claims.fit_to_adapter import suits, within
from kvconform.generate.registry import explorations
from kvconform.generate.shrink.shrink import shrink
from kvconform.generate.strategies import sample, whole_system
from kvconform.generate.variations import VARIATIONS
from kvref.caches.store import Store
from kvspec import notation
from kvspec.contract import CHAPTERS, description
from kvspec.operations.table import OPERATIONS
from kvspec.registry import BROUGHT
from kvspec.trace import Trace, from_json
from support import slow
from support.running.judging import Wired
from support.running.local_adapter import LocalAdapter

DRAWN = 240


def of(*chapters: str, count: int = 60) -> list[Trace]:
    return sample.some(whole_system.explored(chapters), count, seed=3)


@cache
def of_all() -> list[Trace]:
    return of(*CHAPTERS, count=DRAWN)


def test_a_whole_system_does_all_there_is() -> None:
    asked = {op["op"] for t in of_all() for op in t.ops}
    own = {
        *("split", "merge", "close", "init", "run", "askappend", "askrestore", "keep"),
        *("pack", "carry", "collect", "unpack"),
        *("send", "sent", "expect", "arrive", "lose"),
    }
    assert set(OPERATIONS) - asked <= own, "what is left has sources of its own"
    mixed = [t for t in of_all() if {"speculate", "copy", "append"} <= {op["op"] for op in t.ops}]
    assert len(mixed) > DRAWN // 10


@pytest.mark.parametrize("chapters", [("growing",), ("ring", "snapshot"), ("growing", "ring", "store", "mem")])
def test_a_system_has_no_more_than_is_declared(chapters: tuple[str, ...]) -> None:
    adapter = description({"name": "x", "chapters": dict.fromkeys(chapters, "visible")})
    assert all(suits(t, adapter) for t in of(*chapters))


@pytest.mark.parametrize("count", slow.counts(15, DRAWN))
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_is_explored_may_be_read_from_a_file_in_every_form(chapter: str, count: int) -> None:
    """In this process nobody looks at bounds and names that the wire and files of traces hold operations to."""
    for each in explorations((chapter,))[chapter]:
        for t in () if each.over else sample.some(each.drawn(CHAPTERS), count, seed=1):
            for form in (t, *(variation.of(t) for variation in VARIATIONS)):
                assert from_json(form.to_json()) == form


class SharesItsRounds(Reference):
    """A round that is begun ends the batch of every store: two features that have nothing to do with each other."""

    stores: ClassVar[list[Store]] = []

    def open(self, kind: str, config: Any) -> Any:
        cache = super().open(kind, config)
        self.stores += [cache] if isinstance(cache, Store) else []
        return cache

    def speculate(self, caches: Any, isolated: bool) -> Any:
        for store in self.stores:
            if store.batch_ is not None:
                store.reset_batch()
        return super().speculate(caches, isolated)


def test_a_bug_between_two_features_is_found_and_made_short() -> None:
    under_test = LocalAdapter(SharesItsRounds(), seed=3)

    def fails(trace: Trace) -> int:
        SharesItsRounds.stores.clear()
        seen = under_test.run(trace)
        return len(seen.steps) if seen.failed else 0

    found = next(t for t in of_all() if fails(t))
    short = shrink(found.cut(fails(found)), fails)
    assert [op["op"] for op in short.ops if op["op"] in ("batch", "speculate")] == ["batch", "speculate"]
    assert len(short.ops) <= 6


SHORTENED = {
    "layers are dropped with what is done on them": (
        ("store", "layers=4 max_len=3", "append 1 layer=2; append 1 layer=3; append 9 layer=1"),
        "append 9 layer",
        ("store layers=1", 1),
    ),
    "a capacity and what reaches it": (
        ("copy", "capacity=12 layout=head", "copy 2 3; copy 13 0"),
        "copy",
        ("copy kv_heads=1 capacity=1 layout=token", 1),
    ),
    "layers of a round": (
        ("growing", "", "open B; open C; append 2; speculate r A-BC; draft r 1; commit r 1"),
        "speculate",
        ("growing kv_heads=1: speculate r A", 1),
    ),
}


@pytest.mark.parametrize(("start", "keeps", "wanted"), SHORTENED.values(), ids=SHORTENED)
def test_what_is_made_short(start: tuple[str, str, str], keeps: str, wanted: tuple[str, int]) -> None:
    name = keeps.split()[0]

    def fails(trace: Trace) -> int:
        return max((i + 1 for i, op in enumerate(trace.ops) if op["op"] == name), default=0)

    short = shrink(notation.trace(*start), fails)
    assert notation.sentence(short).startswith(wanted[0].partition(" layers")[0]) and len(short.ops) == wanted[1]
    assert short.config.layers in (None, 1)


def _limited(**limits: int) -> Any:
    chapters = dict.fromkeys(("growing", "ring", "draft", "store", "batch", "copy"), "visible")
    return description({"name": "x", "chapters": chapters, "limits": limits, "dtypes": ["f16"]})


def test_drafts_and_appends_to_stores_come_in_pieces() -> None:
    one = _limited(append=1)
    rounds = within(notation.trace("growing", "", "speculate r A; draft r 3; commit r 2"), one)
    assert [notation.words(op) for op in rounds.ops] == ["speculate r A", *["draft r 1"] * 3, "commit r 2"]
    stored = within(notation.trace("store", "layers=1 max_len=4", "append 2 layer=0; setlength 0 2"), one)
    assert [notation.words(op) for op in stored.ops] == [*["append 1 layer=0"] * 2, "setlength 0 2"]
    assert suits(rounds, one) and suits(stored, one)


def test_of_more_rows_than_each_ring_takes_only_appends_are_tried() -> None:
    rings = {"ring": {"level": "visible", "chunk": "window"}, "draft": "visible"}
    one = description({"name": "x", "chapters": rings})
    words = "open B window=3; append 2; B: append 3; B: append 4; speculate r AB; draft r 2; B: draft r 4"
    fit = within(notation.trace("ring", "window=1", words), one)
    drafts = ["draft r 1", "draft r 1", "B: draft r 3", "B: draft r 1"]
    assert [notation.words(op) for op in fit.ops] == [*words.split("; ")[:5], *drafts]


def test_what_lies_beyond_a_limit_does_not_suit() -> None:
    assert not suits(notation.trace("store", "layers=1 max_len=4", "batch 3"), _limited(batch=2))
    assert suits(notation.trace("store", "layers=1 max_len=4", "batch 2"), _limited(batch=2))
    assert not suits(notation.trace("copy", "capacity=4 layout=token", "copy 1 0 dtype=f32"), _limited())


class SaysLess(Reference):
    """Does all that the reference does, and declares some of it."""

    said: ClassVar[tuple[str, ...]] = ("growing", "store")

    def describe(self) -> dict[str, Any]:
        whole = super().describe()
        return whole | {"chapters": {p: c for p, c in whole["chapters"].items() if p in self.said}}


def test_whatever_is_done_and_not_declared_is_told() -> None:
    worker: Any = Wired(f"{__name__}:{SaysLess.__name__}")
    told = " ".join(honesty.undeclared(worker.describe(), worker))
    asked = [p for p in CHAPTERS if p not in BROUGHT.values()]  # a field that is not declared is never handed over
    missing = [p for p in asked if p not in SaysLess.said]
    assert [p for p in missing if f"does not declare the chapter {p}," not in told] == []
    assert not [p for p in SaysLess.said if f"chapter {p}," in told]
