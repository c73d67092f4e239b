"""DRAFT with branches by cells that say which drafts they are for, as the cells of llama.cpp say of sequences.

Written from the text of the chapters alone. There are no parents: a draft is added to the cells on its way. What it
sees, where it stands and what is kept of it are the cells that have its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.masks import Causal, Explicit, Window
from support.engines.foreign.demands import want, want_rows
from support.engines.foreign.remembering import Remembering, Row, Saved


class Branching(Remembering):
    """A growing cache or a ring that can be in a round."""

    def __init__(self, kind: str, config: Any) -> None:
        self.busy = False
        super().__init__(kind, config)

    def idle(self) -> None:
        """Refuse what is done while drafts are open."""
        want(not self.busy, "the cache is in an open round")

    def free(self) -> None:
        self.idle()
        super().free()

    def append(self, keys: Any, values: Any) -> None:
        if keys.shape[2] or not self.busy:
            self.idle()
            super().append(keys, values)

    def read(self, what: str) -> Pair | None:
        self.idle()
        return super().read(what)

    def mask(self, logical: Any) -> Any:
        self.idle()
        return super().mask(logical)

    def can_append(self, n: int) -> bool:
        return n == 0 or (not self.busy and super().can_append(n))

    def can_rewind(self, to: int) -> bool:
        return not self.busy and super().can_rewind(to)

    def can_restore(self, saved: Saved | None, to: int) -> bool:
        return not self.busy and super().can_restore(saved, to)

    def snapshot(self, start: int) -> Saved | None:
        self.idle()
        return super().snapshot(start)

    def restore(self, saved: Saved | None, to: int) -> None:
        self.idle()
        super().restore(saved, to)

    def merge(self, parent: Saved | None, child: Saved | None) -> Saved | None:
        self.idle()
        return super().merge(parent, child)

    def split(self, saved: Saved | None, at: int) -> tuple[Saved | None, Saved | None]:
        self.idle()
        return super().split(saved, at)


class Layer:
    """The cells of one cache in a round."""

    def __init__(self, cache: Branching) -> None:
        self.cache, self.start = cache, len(cache.rows)
        self.before = [p for p in range(self.start) if cache.newest is None or p > self.start - cache.newest]
        self.rows = list(cache.rows)
        """As they were: an isolated round does not see what is appended meanwhile."""
        self.cells = list[tuple[Row, set[int]]]()
        self.branched, self.asked = False, False
        self.queries = 0

    def draft(self, keys: Any, values: Any, on: Sequence[int] | None) -> None:
        """Add cells, and their numbers to the cells on their way."""
        n, there = keys.shape[2], len(self.cells)
        if n:
            want_rows(self.cache.config, keys, values, self.cache.config.batch)
        each = [there + i - 1 for i in range(n)] if on is None else list(on)
        want(len(each) == n and all(-1 <= other < there + i for i, other in enumerate(each)), f"on {on}")
        for i, other in enumerate(each):
            if not self.branched and other != there + i - 1:
                self.branched = True
                for j, (_, numbers) in enumerate(self.cells):
                    numbers.update(range(j, there + i))
            for _, numbers in self.cells if self.branched else ():
                if other in numbers:
                    numbers.add(there + i)
            self.cells.append(((keys[:, :, i].copy(), values[:, :, i].copy()), {there + i}))
        self.queries, self.asked = n, True

    def way(self, number: int) -> list[int]:
        """The cells that have this number; all up to its own, where there are no branches and nobody counts."""
        if not self.branched:
            return [*range(number + 1)]
        return [i for i, (_, numbers) in enumerate(self.cells) if number in numbers]

    def stands(self, number: int) -> int:
        """The position of a draft."""
        return self.start + (len(self.way(number)) - 1 if self.branched else number)

    def chain(self) -> Remembering:
        """A cache with these drafts appended, where there are no branches."""
        cache = Remembering(self.cache.kind, self.cache.config)
        cache.rows = [*self.rows, *(row for row, _ in self.cells)]
        cache.queries = len(self.cells)  # so that all of them are in its history
        return cache

    def read(self) -> Pair:
        """The rows that drafts see, and all drafts."""
        return self.chain().stacked([*self.before, *range(self.start, self.start + len(self.cells))])

    def mask(self, logical: Any) -> Any:
        """What the last drafts see."""
        want(self.asked, "no drafts yet")
        n, columns = self.queries, [*self.before, *(self.stands(i) for i in range(len(self.cells)))]
        arrays = [part.array for part in logical if isinstance(part, Explicit)]
        self.cache.want_arrays(arrays, n, len(columns))
        want(all(part.size >= 1 for part in logical if isinstance(part, Window)), "a window below 1")
        if n == 0:
            return arrays[0] if arrays else None
        shown = np.ones((1, 1, n, len(columns)), bool)
        for i, query in enumerate(range(len(self.cells) - n, len(self.cells))):
            shown[0, 0, i] &= [self.shows(query, j, p, logical) for j, p in enumerate(columns)]
        for a in (a for a in arrays if a.dtype == bool):
            shown = shown & a
        added = [a for a in arrays if a.dtype != bool]
        if not added:
            return shown
        with np.errstate(over="ignore", invalid="ignore"):
            total = sum(added, np.float32(0))
            hidden = ~shown | np.any(np.stack(np.broadcast_arrays(*(a == -np.inf for a in added))), 0)
            return np.where(hidden, np.float32(-np.inf), total)

    def shows(self, query: int, column: int, position: int, logical: Any) -> bool:
        """Whether a draft sees a column, as far as no array is asked."""
        cell, own = column - len(self.before), self.stands(query)
        windows = [part.size for part in logical if isinstance(part, Window)]
        if self.cache.newest is not None:
            windows.append(self.cache.newest)
        if any(position <= own - size for size in windows):
            return False
        if self.branched:
            return cell < 0 or query in self.cells[cell][1]
        return position <= own or not any(isinstance(part, Causal) for part in logical)


class Round:
    """A round over such caches."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        there = [cache for cache in caches if cache is not None]
        want(
            all(isinstance(cache, Branching) and not cache.busy for cache in there), "not a cache outside of rounds"
        )
        want(len({id(cache) for cache in there}) == len(there), "a cache for two layers")
        self.layers = [None if cache is None else Layer(cache) for cache in caches]
        self.isolated, self.open = isolated, True
        for cache in there if not isolated else ():
            cache.busy, cache.queries = True, None

    def at(self, layer: int) -> Layer:
        """A layer of an open round."""
        want(self.open, "the round has ended")
        found = self.layers[layer]
        if found is None:
            raise ValueError(f"layer {layer} has no cache")
        return found

    def there(self) -> list[Layer]:
        """The layers that have a cache."""
        return [layer for layer in self.layers if layer is not None]

    def draft(self, layer: int, keys: Any, values: Any, on: Sequence[int] | None = None) -> None:
        """Add drafts to a layer."""
        self.at(layer).draft(keys, values, on)

    def read(self, layer: int) -> Pair:
        """The history of the last drafts."""
        return self.at(layer).read()

    def mask(self, layer: int, logical: Any) -> Any:
        """What they see of it."""
        return self.at(layer).mask(logical)

    def offset(self, layer: int) -> int:
        """The position behind the last draft."""
        found = self.at(layer)
        return found.stands(len(found.cells) - 1) + 1 if found.cells else found.start

    def positions(self, layer: int) -> list[int]:
        """Those of the last drafts."""
        found = self.at(layer)
        return [found.stands(i) for i in range(len(found.cells) - found.queries, len(found.cells))]

    def commit(self, n: int) -> None:
        """Keep the first drafts of every layer."""
        want(self.open and not self.isolated, "not open, or isolated")
        counts = {min(max(0, n), len(layer.cells)) for layer in self.there()}
        want(len(counts) < 2, "layers would keep different numbers")
        kept = counts.pop() if counts else 0
        straight = all(layer.way(kept - 1) == [*range(kept)] for layer in self.there() if kept)
        want(straight, "drafts of several branches")
        self.end({id(layer): range(kept) for layer in self.there()})

    def choose(self, draft: int) -> None:
        """Keep the cells of one draft on every layer."""
        want(self.open and not self.isolated, "not open, or isolated")
        want(all(0 <= draft < len(layer.cells) for layer in self.there()), f"no draft {draft}")
        want(len({tuple(layer.way(draft)) for layer in self.there()}) < 2, "another way on another layer")
        self.end({id(layer): self.way(layer, draft) for layer in self.there()})

    def way(self, layer: Layer, draft: int) -> Sequence[int]:
        """The cells that are kept."""
        return layer.way(draft)

    def abandon(self) -> None:
        """Keep nothing."""
        want(self.open, "the round has ended")
        self.end({})

    def end(self, kept: dict[int, Sequence[int]]) -> None:
        """Let the caches go, with the rows that are kept."""
        self.open = False
        for layer in self.there() if not self.isolated else ():
            rows = [copy(layer.cells[i][0]) for i in kept.get(id(layer), ())]
            layer.cache.busy = False
            layer.cache.rows += rows
            layer.cache.written = layer.cache.written or bool(rows)
            layer.cache.queries = None


class Cells:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        chapters = ("growing", "ring", "mask", "snapshot", "questions", "draft")
        return {"name": "cells", "chapters": dict.fromkeys(chapters, "visible")}

    def open(self, kind: str, config: Any) -> Branching:
        """A fresh cache."""
        if kind not in ("growing", "ring"):
            raise Unsupported(f"no kind {kind}")
        return Branching(kind, config)

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round over caches."""
        return Round(caches, isolated)


class Prefix(Round):
    """The chosen drafts are taken to be the first ones."""

    def way(self, layer: Layer, draft: int) -> Sequence[int]:
        return range(len(layer.way(draft)))


class TakesPrefix(Cells):
    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        return Prefix(caches, isolated)
