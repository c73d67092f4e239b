"""Rounds on a device: everything that is drawn does what the reference does, and a commit allocates nothing.

What stands here the suite cannot see: it never runs out of memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from kvconform.generate.claims.fit_to_adapter import suits
from kvconform.generate.strategies import draft
from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvspec.masks import CAUSAL
from kvspec.notation import from_sentence, sentence
from kvspec.rows.legible import legible
from support import random_traces, slow
from support.device.devices import Scarce, adapter
from support.running.local_adapter import LocalAdapter

JUDGED = ("growing", "ring", "mask", "snapshot", "draft")
"""What is judged: not what it costs, which checking guard bands changes."""


class Rows(Caches):
    """Judged by its rows alone."""

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        return {**said, "chapters": {p: said["chapters"][p] for p in JUDGED}}


@cache
def under_test(wide: bool) -> LocalAdapter:
    return LocalAdapter(Rows("rows", adapter(wide).runtime, checks=True))


@pytest.mark.parametrize(
    "ends",
    ["commit r 0; draft r 0", "free; commit r 0", "free; abandon r"],
    ids=["its last operation", "one in the middle", "one before an abandon"],
)
def test_a_round_of_a_run_in_which_something_is_refused_may_have_made_room(ends: str) -> None:
    """A device keeps the room of drafts taken back; the reference, never asked to read them, made none."""
    seen = under_test(False).run(from_sentence(f"growing: run 1 {{speculate r A; draft r 1; {ends}}}"))
    assert not seen.failed, [d.message for d in seen.differences]


@pytest.mark.parametrize("wide", [False, True], ids=["on a CPU", "as on a GPU"])
@pytest.mark.parametrize("count", slow.counts(20, 150))
def test_what_is_drawn_does_what_the_reference_does(count: int, wide: bool) -> None:
    for trace in random_traces.drawn(draft.explored, draft.EVERYTHING, count=count):
        if suits(trace, under_test(wide).adapter):
            seen = under_test(wide).run(trace)
            assert not seen.failed, (sentence(seen.trace), [d.message for d in seen.differences])


CONFIG = Config(batch=2, window=3, step=4)
WHOLE = Callable[["Scene"], Any]


class Scene:
    """A growing cache and a ring on scarce memory, and a round over both with some drafts."""

    def __init__(self, appends: tuple[int, ...], drafts: int, isolated: bool = False) -> None:
        self.runtime = Scarce(adapter().runtime)
        self.caches = Caches("scarce", self.runtime, checks=True)
        self.live = [self.caches.open("growing", CONFIG.changed(window=None)), self.caches.open("ring", CONFIG)]
        self.next = 0
        for n in appends:
            for cache_ in self.live:
                cache_.append(*self.rows(n))
        self.round = self.caches.speculate(self.live, isolated) if drafts >= 0 else None
        for layer in (0, 1) if drafts > 0 else ():
            self.draft(layer, drafts)

    def rows(self, n: int) -> Pair:
        """New rows for either cache."""
        self.next += n
        return Pair(*(legible(CONFIG, kind, self.next - n, n) for kind in "kv"))

    def draft(self, layer: int, n: int) -> None:
        """More drafts on a layer."""
        assert self.round is not None
        self.round.draft(layer, *self.rows(n))

    def memory(self) -> int:
        """Bytes in use, scratch space apart."""
        gc.collect()
        used: int = self.runtime.meter.live_bytes
        return used - sum(b.nbytes for b in self.caches.space._blocks.values())

    def seen(self) -> Any:
        """All that can be told of caches and round, and the memory in use."""
        drafted = self.round and [_drafted(self.round, i) for i in (0, 1)]
        return self.memory(), [_told(c) for c in self.live], drafted


def _told(cache_: Any) -> Any:
    state = None if cache_.in_round else cache_.read("state")
    return cache_.lengths(), cache_.queries, cache_.in_round, _bytes(state)


def _drafted(round_: Any, layer: int) -> Any:
    if round_.ended:
        return round_.ended
    masked = round_.layers[layer].queries is not None
    mask: Array | None = round_.mask(layer, CAUSAL) if masked else None
    return round_.offset(layer), _bytes(round_.read(layer)), mask is not None and mask.tobytes()


def _bytes(pair: Pair | None) -> Any:
    return pair and [a.tobytes() for a in pair]


def _begin(scene: Scene) -> None:
    scene.round = scene.caches.speculate(scene.live, False)


def _begin_isolated(scene: Scene) -> None:
    scene.round = scene.caches.speculate(scene.live, True)


OPERATIONS: dict[str, tuple[int, WHOLE, int]] = {
    "speculate": (-1, _begin, 1),
    "speculate isolated": (-1, _begin_isolated, 2),
    "draft on a growing cache": (0, lambda s: s.draft(0, 40), 2),
    "draft on a ring": (0, lambda s: s.draft(1, 40), 2),
    "commit of some": (5, lambda s: s.round.commit(3), 0),
    "commit of one": (5, lambda s: s.round.commit(1), 0),
    "commit of all, beyond the buffer": (30, lambda s: s.round.commit(30), 0),
    "commit of none": (5, lambda s: s.round.commit(0), 0),
    "abandon": (5, lambda s: s.round.abandon(), 0),
}
"""Drafts before the operation (-1: no round), the operation, and how many allocations it makes, scratch too."""


@pytest.mark.parametrize("appends", [(4, 1, 1), (1,), ()], ids=["wrapped", "short", "never written"])
@pytest.mark.parametrize("name", slow.one_in(3, OPERATIONS))
def test_the_nth_allocation_fails(name: str, appends: tuple[int, ...]) -> None:
    drafts, operation, expected = OPERATIONS[name]
    assert [_fails(drafts, operation, nth, appends) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(drafts: int, operation: WHOLE, nth: int, appends: tuple[int, ...]) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed, and that it can be done again."""
    scene = Scene(appends, drafts)
    before = scene.seen()
    scene.runtime.left = nth
    try:
        operation(scene)
    except MemoryError:
        scene.runtime.left = 1 << 30
        assert scene.seen() == before
        operation(scene)
        return True
    return False


ENDS: dict[str, Callable[[Any], None]] = {
    "abandon": lambda r: r.abandon(),
    "commit of none": lambda r: r.commit(0),
    "commit of one": lambda r: r.commit(1),
    "commit of two, which fit": lambda r: r.commit(2),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_round_gives_all_its_memory_back(end: Callable[[Any], None]) -> None:
    scene = Scene((4, 1, 1), -1)
    before = scene.memory()
    round_ = scene.round = scene.caches.speculate([scene.live[1]], False)
    scene.draft(0, 5)
    assert scene.memory() > before
    end(round_)
    assert scene.memory() == before
