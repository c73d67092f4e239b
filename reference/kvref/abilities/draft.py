"""Speculation: in a round, drafts stand behind the rows of caches until a commit says how many are kept.

Here drafts lie beside their cache, never in it. So nothing has to be undone, and a commit is one append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from kvref.abilities import attention, masks
from kvref.abilities.tree import Tree
from kvref.cite import cite
from kvref.memory.rows import Rows, count
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.masks import Logical, Window
from kvspec.refusals import common as refusals

Kind = TypeVar("Kind", bound=type)

REFUSED = (
    *("append", "attend", "read", "mask", "rewind", "free", "snapshot", "restore", "merge", "split", "plan"),
    *("pack", "unpack"),
)
"""What a cache refuses while a round is open on it."""

ANSWERED_NO: dict[str, tuple[str, tuple[int, ...]]] = {
    "can_rewind": ("DRAFT-13", ()),
    "can_append": ("ASK-3", (0,)),
    "can_restore": ("ASK-3", ()),
}
"""The questions that are then answered by no, each with its clause, and what is accepted all the same."""

NOTHING: dict[str, Callable[..., bool]] = {
    "append": lambda keys, values: count(Pair(keys, values)) == 0,
    "attend": attention.nothing,
}
"""When such an operation has nothing to do, so that it is not refused. Each test takes the first argument."""


def speculative(kind: Kind) -> Kind:
    """Make a cache class that can enter rounds. During a round the cache refuses every operation that would change
    it."""
    for name in (n for n in REFUSED if hasattr(kind, n)):
        setattr(kind, name, _refusing(name, getattr(kind, name)))
    for name in (n for n in ANSWERED_NO if hasattr(kind, n)):
        setattr(kind, name, _no(getattr(kind, name), *ANSWERED_NO[name]))
    return kind


def _refusing(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operation)
    def guarded(cache: Any, *arguments: Any) -> Any:
        if cache.in_round and not (name in NOTHING and NOTHING[name](*arguments[:2])):
            raise refusals.in_round("DRAFT-12", name)
        return operation(cache, *arguments)

    return guarded


def _no(asked: Callable[..., bool], clause: str, what: tuple[int, ...]) -> Callable[..., bool]:
    @wraps(asked)
    def guarded(cache: Any, *about: Any) -> bool:
        if cache.in_round and about != what:
            cite(clause)
            return False
        return asked(cache, *about)

    return guarded


class Layer:
    """One cache of a round: what its first draft sees beside itself, in position order, and the drafts behind."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.start = cache, cache.offset
        self.rows: Rows = cache.aside()
        self.before = len(self.rows)
        self.tree = Tree()
        self.queries: int | None = None

    @property
    def drafts(self) -> int:
        """How many there are."""
        return len(self.rows) - self.before

    def draft(self, new: Pair, on: Sequence[int] | None = None) -> None:
        """Put n drafts behind those there are, each hanging on the one before it or on what `on` says."""
        if count(new) and not refusals.fits(self.cache.config, new):
            raise refusals.rows("DRAFT-8", self.cache.config, *new)
        self.tree.hang(count(new), on)
        if count(new) == 0:
            cite("DRAFT-7")
        else:
            cite(*self._drafted(on is not None), "DRAFT-9")
            self.rows.join(new)
        self.queries = count(new)

    def _drafted(self, hung: bool) -> list[str]:
        """The clauses on where drafts stand and what they see."""
        if not self.tree.branched:
            return [*(["DRAFT-33"] if hung else []), "DRAFT-1", "DRAFT-3" if self.window else "DRAFT-2", "DRAFT-4"]
        stands = "DRAFT-33" if hung else "DRAFT-39"
        return [stands, "DRAFT-35" if self.window else "DRAFT-34", "DRAFT-36"]

    @property
    def end(self) -> int:
        """The position behind the newest draft."""
        return int(self.start + (self.tree.depths()[-1] + 1 if self.drafts else 0))

    def positions(self) -> list[int]:
        """Those of the last drafts."""
        return [self.start + depth for depth in self.tree.depths()[self.drafts - (self.queries or 0) :]]

    @property
    def window(self) -> int | None:
        """The window of a ring."""
        window: int | None = self.cache.config.window
        return window

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the last drafts. Rows are in position order, so one query needs the window as well."""
        if self.queries is None:
            raise refusals.no_history("MASK-1")
        cite("DRAFT-6")
        if self.tree.branched:
            return self._branched(logical, self.queries)
        if self.window:
            cite("DRAFT-5")
            logical = (*logical, Window(self.window))
        return masks.in_position_order(logical, self.cache.config.batch, self.queries, len(self.rows))

    def _branched(self, logical: Logical, queries: int) -> Array | None:
        """The mask where there are branches: windows count positions, and a draft sees those on the way to it."""
        standing = self.start + np.array([*range(-self.before, 0), *self.tree.depths()])
        mask = masks.in_position_order(logical, self.cache.config.batch, queries, len(self.rows), standing)
        if queries == 0:
            return mask
        cite("DRAFT-37")
        age = standing[len(self.rows) - queries :, None] - standing
        own = np.pad(self.tree.seen(queries), ((0, 0), (self.before, 0)), constant_values=True)
        own &= age < (self.window or len(self.rows))
        return own[None, None] if mask is None else masks.intersected(mask, own[None, None])

    def keep(self, n: int) -> None:
        """Append the first n drafts to the cache: nothing if there are none, decode if it is one, else prefill."""
        cite("DRAFT-18", "DRAFT-19", "DRAFT-22", "DRAFT-25")
        self.cache.append(*self.rows.part(self.before, self.before + n))

    def choose(self, draft: int) -> None:
        """Append the drafts on the way to one, and itself."""
        cite("DRAFT-40", "DRAFT-41", "DRAFT-42")
        self.cache.append(*self.rows.chosen([self.before + i for i in self.tree.way(draft)]))


class Round:
    """A round over at most one cache a layer; `layers` holds the caches by the number of their layer."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        given = {i: cache for i, cache in enumerate(caches) if cache is not None}
        demand(given)
        cite("DRAFT-10", *(["DRAFT-17"] if len(given) < len(caches) else []))
        self.layers = {i: Layer(cache) for i, cache in given.items()}
        self.isolated, self.over = isolated, ""
        if not isolated:
            self._hold(True)

    def _hold(self, held: bool) -> None:
        """Let the caches enter or leave the round; both end the history of the append before."""
        cite("DRAFT-11", "DRAFT-14")
        for layer in self.layers.values():
            layer.cache.in_round, layer.cache.queries = held, None

    def draft(self, layer: int, keys: Array, values: Array, on: Sequence[int] | None = None) -> None:
        """Append n drafts on one layer; `on` says for each which draft it hangs on."""
        self._demand_open("draft")
        self.layers[layer].draft(Pair(keys, values), on)
        cite(*(("DRAFT-26", "DRAFT-27") if self.isolated else ("DRAFT-11",)))

    def read(self, layer: int) -> Pair:
        """The history of the drafts just before."""
        rows = self.layers[layer].rows
        return rows.read(0, len(rows))

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask for that history."""
        self._demand_open("mask")
        return self.layers[layer].mask(logical)

    def offset(self, layer: int) -> int:
        """The position after the last draft."""
        return self.layers[layer].end

    def positions(self, layer: int) -> list[int]:
        """The positions of the drafts just before."""
        return self.layers[layer].positions()

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, and end the round."""
        self._demand_open("commit")
        if self.isolated:
            raise refusals.isolated("DRAFT-28")
        kept = [min(max(0, n), layer.drafts) for layer in self.layers.values()]
        if len(set(kept)) > 1:
            raise refusals.uneven("DRAFT-23", n, kept)
        if not all(layer.tree.straight(n) for layer, n in zip(self.layers.values(), kept, strict=True)):
            raise refusals.branches("DRAFT-45", n)
        self._end("committed")
        cite(*(["DRAFT-20"] if {n} != set(kept) else []), *(["DRAFT-21"] if not any(kept) else []))
        for layer, n in zip(self.layers.values(), kept, strict=True):
            layer.keep(n)
            layer.cache.queries = None

    def choose(self, draft: int) -> None:
        """Keep the way to a draft on every layer, and end the round."""
        self._demand_open("choose", "DRAFT-46")
        if self.isolated:
            raise refusals.isolated("DRAFT-46")
        for layer in self.layers.values():
            if not 0 <= draft < layer.drafts:
                raise refusals.no_draft("DRAFT-43", draft, layer.drafts)
        if len({tuple(layer.tree.way(draft)) for layer in self.layers.values()}) > 1:
            raise refusals.ways("DRAFT-44", draft)
        self._end("chosen")
        cite("DRAFT-46")
        for layer in self.layers.values():
            layer.choose(draft)
            layer.cache.queries = None

    def abandon(self) -> None:
        """End the round and keep nothing."""
        self._demand_open("abandon")
        cite("DRAFT-21", "DRAFT-22")
        self._end("abandoned")

    def _end(self, how: str) -> None:
        self.over = how
        if not self.isolated:
            self._hold(False)

    def _demand_open(self, what: str, clause: str = "DRAFT-24") -> None:
        if self.over:
            raise refusals.round_over(clause, what, self.over)


def demand(given: dict[int, Any]) -> None:
    """Refuse what cannot enter a round, before anything is made."""
    layers = {id(cache): i for i, cache in reversed(given.items())}
    for i, cache in given.items():
        if not hasattr(cache, "in_round"):
            raise refusals.cannot_speculate("DRAFT-16", i, cache.kind)
        if layers[id(cache)] != i:
            raise refusals.twice("DRAFT-15", layers[id(cache)], i)
        if cache.in_round:
            raise refusals.in_round("DRAFT-15", "speculate")
