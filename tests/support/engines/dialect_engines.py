"""Engines that keep what they declare, and engines that break it; each judged through `from_update`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvadapters.update import UpdateAdapter, UpdateCache, from_update
from kvref.caches.copy import Buffer as Slots
from kvref.caches.page import Numbered, Pages
from kvref.caches.ring import Ring
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Config, Pair
from kvworkshop.correct_variants.shares_pages import PagesShared
from support.engines.dialect_rings import (
    Allocates,
    AllocatesLess,
    Chunks,
    Clamps,
    ClampsAtZero,
    ClampsHalf,
    Drafts,
    Empties,
    EmptiesItsRows,
    KeepsADraft,
    KeepsOneMore,
    Longer,
    LongerFromTheEnd,
    MasksAfter,
    NeverDrops,
    Recording,
    Strict,
    StrictlyBelow,
    TrimsOnce,
)
from support.engines.sharing_pools import ByKeys, pool
from support.engines.update_engines import BELOW, TooWide, WindowCache, adapter
from support.fakes import claims as fake_claims

ROWS = 2048


class Buffer:
    """Grows in a buffer of fixed length, at positions that its caller says; its kernel makes the causal mask."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.end = 0

    def place(self, at: int) -> int:
        return at

    def update(self, keys: Any, values: Any, at: int) -> tuple[Any, Any]:
        at, n = self.place(at), keys.shape[2]
        if not self.rows:
            self.rows = [np.zeros((*a.shape[:2], ROWS, a.shape[3]), a.dtype) for a in (keys, values)]
        pairs = zip(self.rows, (keys, values), strict=True)
        same = all(a.dtype == b.dtype and a.shape[:2] == b.shape[:2] for a, b in pairs)
        if not same or values.shape[2] != n or keys.shape[3] != self.rows[0].shape[3]:
            raise ValueError("rows of another geometry")
        for old, new in zip(self.rows, (keys, values), strict=True):
            old[:, :, at : at + n] = new
        self.end = at + n
        return self.rows[0][:, :, : self.end], self.rows[1][:, :, : self.end]


class GoesOn(Buffer):
    """Puts rows behind those there are, whatever its caller says."""

    def place(self, at: int) -> int:
        return self.end


class Viewed(fake_claims.Rows):
    """Has a view, of zero rows where there is none."""

    def read(self, what: str) -> Any:
        return (
            super().read("history") if self.rows is not None else Pair(*(np.empty((1, 2, 0, 8), np.float16),) * 2)
        )


class Views(fake_claims.Engine):
    """Declares that, or something else."""

    cache = Viewed
    empty = "zero rows"

    def describe(self) -> dict[str, Any]:
        claim = {"level": "visible", "with": ["history", "view", "offset"], "empty": self.empty}
        return {"name": "views", "chapters": {"growing": claim}}


class ViewsOtherwise(Views):
    empty = "none"


def chunk(value: int | str) -> dict[str, int | str]:
    return {"ring.chunk": value}


ALLOCATED: dict[str, Any] = {"capacity": lambda c: c.window + 2, "dialect": chunk("capacity")}
BARE: dict[str, Any] = {"mask": None, "trim": None}

chunk_kept = adapter(Chunks, dialect=chunk("window + 1"))
chunk_refuses_less = adapter(Chunks, dialect=chunk("2 * window"))
chunk_takes_more = adapter(Chunks, dialect=chunk("window"))
capacity_kept, capacity_broken = adapter(Allocates, **ALLOCATED), adapter(AllocatesLess, **ALLOCATED)
strictly_below = adapter(StrictlyBelow, dialect=BELOW)
rows_kept, rows_broken = (adapter(c, dialect={"ring.rewind": 2}) for c in (Longer, LongerFromTheEnd))
since_append_kept, since_append_broken = (
    adapter(c, dialect={"ring.rewind": "since append"}) for c in (Recording, TrimsOnce)
)
clamped_kept, clamped_broken = (adapter(c, dialect={"ring.range": "clamped"}) for c in (Clamps, ClampsHalf))
at_zero_kept, at_zero_broken = (adapter(c, dialect={"ring.range": "clamped at 0"}) for c in (ClampsAtZero, Clamps))
keeps_less_one, keeps_too_much = (
    adapter(c, dialect={"ring.keeps": "window - 1"}, **BARE) for c in (WindowCache, KeepsOneMore)
)
keeps_window, keeps_too_few = (
    adapter(c, dialect={"ring.keeps": "window"}, **BARE) for c in (KeepsOneMore, WindowCache)
)
FEWER: dict[str, Any] = {"retained": lambda c: min(c.offset, c.window - 1), **BARE}
retains_less_one = adapter(WindowCache, dialect={"ring.keeps": "window - 1"}, **FEWER)
retains_too_few = adapter(WindowCache, **FEWER)
keeps_all = adapter(NeverDrops, dialect={"ring.keeps": "all"}, **BARE)
keeps_more = adapter(Longer, dialect={"ring.rewind": 2, "ring.keeps": 1})

ROUNDS: dict[str, Any] = {
    "begin": lambda c: c.begin(),
    "commit": lambda c, n: c.end(n),
    "dialect": {"ring.rewind": 0},
}
rounds_kept, rounds_broken = (adapter(c, **ROUNDS) for c in (Drafts, KeepsADraft))

LEFT = {"ring.counts": "left only"}
left_kept = adapter(WindowCache, dialect=LEFT, make=lambda config: WindowCache(config.window + 1))
left_broken = adapter(WindowCache, dialect=LEFT)
made_after_kept, made_after_broken = (adapter(c, dialect={"mask.made": "after"}) for c in (MasksAfter, WindowCache))
made_before_broken = adapter(MasksAfter)

FIRST: dict[str, Any] = {"ring.shape": "first append"}
GOOD: dict[str, Any] = {"ring.shape": "first append, for good"}
RESET: dict[str, Any] = {"reset": lambda c: c.reset()}
first_kept, for_good_broken = (adapter(Empties, dialect=d, **RESET) for d in (FIRST, GOOD))
for_good_kept, first_broken = (adapter(EmptiesItsRows, dialect=d, **RESET) for d in (GOOD, FIRST))
opened_declared_first = adapter(WindowCache, dialect=FIRST, make=Strict)


class OneLap(Slots):
    """Refuses a sliding copy of more rows than there are slots."""

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        before = self.keys.copy(), self.values.copy()
        super().copy(keys, values, n, at, sliding)
        if n > self.capacity and keys.size:
            self.keys[:], self.values[:] = before
            raise Refused("COPY-6", "more rows than slots")


class CopiesAtOnce(Pages):
    """Copies a part of a page as soon as it is shared."""

    def fork(self, sequence: int, n: int) -> int:
        number = super().fork(sequence, n)
        try:
            self._alone(self.in_use[number])
        except Refused:
            super().drop(number)
            raise
        return number

    def truncate(self, sequence: int, to: int) -> None:
        if to in range(self._of(sequence).length + 1) and to % self.pool.size:
            self._demand_copy(self._of(sequence), to)
        super().truncate(sequence, to)
        self._alone(self._of(sequence))

    def _demand_copy(self, one: Numbered, to: int) -> None:
        kept = self.pool.entries(to)
        given = sum(self.pool.counts[page] == 1 for page in one.table[kept:])
        if self.pool.counts[one.table[kept - 1]] > 1 and not self.pool.free + given:
            raise Refused("PAGE-21", "no page for the copy")

    def _alone(self, one: Numbered) -> None:
        if self._shared(one):
            if not self.pool.free:
                raise Refused("PAGE-21", "no page for the copy")
            one.table[-1] = self.pool.copied(one.table[-1], one.length % self.pool.size)


def declaring(kind: str, cache: type[Any], **dialect: str) -> Any:
    """The reference with this cache, which declares something of its kind."""

    class Made(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, kind: cache}

        def describe(self) -> dict[str, Any]:
            return super().describe() | {"chapters": {kind: {"level": "visible", **dialect}}}

    return Made()


laps_kept, laps_broken = (declaring("copy", c, laps="refused") for c in (OneLap, Slots))
part_kept, part_broken = (declaring("page", c, part="copied") for c in (CopiesAtOnce, Pages))
shares_kept, shares_broken = (pool(pages, declares=True) for pages in (PagesShared, ByKeys))


def buffered(cache: type[Buffer]) -> Any:
    return from_update(
        cache.__name__,
        kind="growing",
        make=lambda config: cache(),
        update=lambda c, keys, values, at: c.update(keys, values, at),
        mask=lambda c, n: "causal",
        also=("batch", "rewind"),
        dialect={"growing.positions": "caller", "growing.shape": "first append", "mask.owner": "kernel"},
        said={"limits": {"rows": ROWS}},
    )


caller_kept, caller_broken = buffered(Buffer), buffered(GoesOn)
kernel_broken = adapter(WindowCache, dialect={"mask.owner": "kernel"})


def limited(limits: dict[str, Any], opens: Callable[[Config], bool] = lambda config: True) -> Any:
    def make(config: Config) -> WindowCache:
        if not opens(config):
            raise ValueError("cannot be opened")
        return Strict(config)

    return adapter(WindowCache, make=make, said={"limits": limits})


def _wide(window: int) -> WindowCache:
    if window < 2:
        raise ValueError("cannot be opened")
    return TooWide(window)


WIDE, EVEN = {"window": {"least": 2}}, {"dims": {"multiple": 4, "equal": True}}


def even(config: Config) -> bool:
    return config.k_dim == config.v_dim and config.k_dim % 4 == 0


class OpensWhatItExcludes(UpdateAdapter):
    """Looks at no limit that it declares."""

    def open(self, kind: str, config: Config) -> UpdateCache:
        if kind != self.kind:
            raise Unsupported(f"no kind {kind}")
        return UpdateCache(self, config)


def unlimited(limits: dict[str, Any], opens: Callable[[Config], bool] = lambda config: True) -> Any:
    return OpensWhatItExcludes(**vars(limited(limits, opens)))


wide_kept, wide_broken = limited(WIDE, lambda config: (config.window or 0) > 1), unlimited(WIDE)
even_kept, even_broken = limited(EVEN, even), unlimited(EVEN, lambda config: config.k_dim % 4 == 0)
few_kept, few_broken = limited({"heads": 1}, lambda config: config.kv_heads == 1), unlimited({"heads": 1})
wide_and_too_wide = adapter(TooWide, make=lambda config: _wide(config.window), said={"limits": WIDE})
wide_not_declared = limited({}, lambda config: (config.window or 0) > 1)


class NeverRing(Ring):
    """The reference's ring, which goes back to the offset alone."""

    def can_rewind(self, to: int) -> bool:
        return to == self.offset

    def rewind(self, to: int) -> None:
        if 0 <= to < self.offset and not self.can_rewind(to):
            raise Refused("RING-10", "it goes no further back")
        super().rewind(to)


class BelowRing(NeverRing):
    """The same, which goes back while it is not full."""

    def can_rewind(self, to: int) -> bool:
        return to == self.offset or (0 <= to <= self.offset < self.window)


class WithViews:
    """Opens rings that have views, so that laws are judged on them."""

    ring: type[NeverRing] = NeverRing
    rewind = "never"

    def describe(self) -> dict[str, Any]:
        claim = {"level": "visible", "rewind": self.rewind}
        return {"name": "views", "chapters": {"ring": claim}, "refusals": "cited"}

    def open(self, kind: str, config: Config) -> Ring:
        if kind != "ring":
            raise Unsupported(f"no {kind}")
        return self.ring(config)


class BelowWithViews(WithViews):
    ring = BelowRing
    rewind = "below"
