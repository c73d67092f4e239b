"""Layers of unlike views over one offset: each keeps the rows that its next query needs, and all go back or none.

A layer's rows lie in position order; `places` are their positions. What an append pushes out stays until the next
operation, because the append's own queries see it; `kept` says from which position on a layer still has its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvref import snapshot
from kvref.cite import cite
from kvref.layer_rows import Kept, SavedLayers
from kvref.memory.rows import Rows, joined
from kvspec.contract import Lengths, Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals
from kvspec.refusals import layers as refusals_layers

SEEN_BY = {"full": "LAYER-4", "window": "LAYER-5", "chunk": "LAYER-6", "sinks": "LAYER-7"}
"""The clause on what a query of each view sees."""


class View(NamedTuple):
    """What a layer shows. `sinks`: rows at the beginning that it never drops; `owner`: whose rows it shows."""

    kind: str
    size: int
    sinks: int
    owner: int


def views(of: str) -> list[View]:
    """Read what `of` says of each layer."""
    return [_view(layer, *text.split(":")) for layer, text in enumerate(of.split(","))]


def _view(layer: int, kind: str, *sizes: str) -> View:
    numbers = [int(size) for size in sizes]
    if kind == "share":
        return View(kind, 1, 0, numbers[0])
    return View(kind, numbers[-1] if numbers else 1, numbers[0] if kind == "sinks" else 0, layer)


class Layers:
    """`of[l]` is the view of layer l; `stored[l]` are its rows, unless it shows another's. `refused` is the clause
    on what was refused last: the next append shows whether that left every layer as it was."""

    kind = "layers"

    def __init__(self, config: Config) -> None:
        self.of = views(config.of) if config.of else []
        own = [view for view in self.of if view.kind != "share"]
        sizes = [size for view in own for size in (view.size, view.sinks + (view.kind != "sinks"))]
        if (
            not refusals.valid(config)
            or config.batch > 1
            or len(own) != (config.layers or 0)
            or min(sizes, default=0) < 1
        ):
            raise refusals_layers.config("LAYER-1", config)
        for layer, view in enumerate(self.of):
            if view.kind == "share" and not self._shares(layer, view.owner):
                raise refusals_layers.share("LAYER-2", layer, view.owner)
        self.config, self.one = config, config.changed(layers=None, of=None)
        self._clear()

    def _shares(self, layer: int, owner: int) -> bool:
        """Whether a layer may show the rows of this one."""
        return owner < layer and self.of[owner].kind != "share"

    def _clear(self) -> None:
        self.stored = {layer: Kept(Rows(self.one)) for layer, view in enumerate(self.of) if view.owner == layer}
        self.offset = self.queries = 0
        self.refused = ""

    def free(self) -> None:
        """Return to never written, in all layers."""
        cite("CACHE-6")
        self._clear()

    def key(self) -> tuple[int, ...]:
        """The state up to renaming rows."""
        return self.offset, *(kept.kept for kept in self.stored.values())

    def first(self, view: View, p: int) -> int:
        """The first position after the sinks that a query at p sees."""
        if view.kind == "full":
            return 0
        return p - p % view.size if view.kind == "chunk" else max(0, p - view.size + 1)

    def can_append(self, n: int) -> bool:
        """Whether an append of n rows to every layer would be accepted."""
        cite("ASK-1", "ASK-4")
        return True

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows `[layers, kv_heads, n, dim]` at positions offset..offset+n-1 of every layer."""
        n = keys.shape[2] if keys.ndim == 4 else -1
        if n == 0:
            cite("CACHE-1")
            self.queries = 0
            return
        if not self._fits(keys, values, n):
            self.refused = "LAYER-12"
            raise refusals_layers.rows("CACHE-2", len(self.stored), self.config.kv_heads, keys.shape)
        self._cite_seen(n)
        self.refused = ""
        for block, layer in enumerate(self.stored):
            self._join(layer, Pair(keys[block : block + 1], values[block : block + 1]))
        self.offset += n
        self.queries = n
        for layer, kept in self.stored.items():
            kept.kept = max(kept.kept, self.first(self.of[layer], self.offset))

    def _fits(self, keys: Array, values: Array, n: int) -> bool:
        """Whether there are n keys and n values for each layer that has rows, in the cache's geometry."""
        blocks = self.config.changed(batch=len(self.stored))
        right = keys.shape == blocks.shape("k", n) and values.shape == blocks.shape("v", n)
        return right and {keys.dtype, values.dtype} == {DTYPES[self.config.dtype]}

    def _cite_seen(self, n: int) -> None:
        """Cite the clauses that an append of n rows exercises."""
        cite("LAYER-3", *(SEEN_BY[self.of[layer].kind] for layer in self.stored))
        cite(
            *[self.refused] * bool(self.refused),
            *["LAYER-8"] * (n > 1),
            *["LAYER-9", "LAYER-10"] * (len(self.stored) < len(self.of)),
        )

    def _join(self, layer: int, new: Pair) -> None:
        """Drop what no query needs any more, and put rows behind the others."""
        kept = self.stored[layer]
        kept.keep(self._needed(layer))
        kept.join(new, self.offset)

    def _needed(self, layer: int) -> list[int]:
        """The indices of the sinks, and of the other rows that the layer has kept."""
        kept, sinks = self.stored[layer], self.of[layer].sinks
        return [i for i, p in enumerate(kept.places) if p < sinks or p >= kept.kept]

    def histories(self) -> list[Pair]:
        """The rows that the queries of the last append attend to, of each layer."""
        each = (self.stored[view.owner] for view in self.of)
        return [kept.rows.read(0, len(kept.places)) for kept in each]

    def mask(self) -> Array:
        """What each query of the last append sees of each layer: `[layers of the model, 1, n, widest history]`."""
        widest = max(len(kept.places) for kept in self.stored.values())
        found = np.zeros((len(self.of), 1, self.queries, widest), bool)
        for layer, view in enumerate(self.of):
            seen = self._seen(view.owner)
            found[layer, 0, :, : seen.shape[1]] = seen
        return found

    def _seen(self, layer: int) -> Array:
        """`[n, K]`: what each query sees of the rows of a layer."""
        view, place = self.of[layer], np.array(self.stored[layer].places)[None, :]
        query = np.arange(self.offset - self.queries, self.offset)[:, None]
        first = np.array([self.first(view, int(p)) for p in query[:, 0]])[:, None]
        return np.asarray((place <= query) & ((place < view.sinks) | (place >= first)))

    def held(self) -> int:
        """Bytes of all rows: those of a layer that others share count once."""
        return sum(kept.rows.nbytes for kept in self.stored.values())

    def lengths(self) -> Lengths:
        """The offset; how many rows a layer has is its own matter."""
        return Lengths(self.offset)

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind to this target would be accepted."""
        cite("CACHE-9")
        return 0 <= to <= self.offset and self._lacking(to) is None

    def _lacking(self, to: int) -> int | None:
        """The first layer that lacks rows which a query at `to` sees; None if every layer can go there."""
        if to == self.offset:
            return None
        return next((layer for layer in self.stored if not self._goes(layer, to, self.stored[layer].kept)), None)

    def _goes(self, layer: int, to: int, kept: int) -> bool:
        """Whether a layer that has its rows from position `kept` on has all that a query at `to` sees."""
        view = self.of[layer]
        first = max(self.first(view, to), view.sinks)
        return first >= kept or first >= to

    def rewind(self, to: int) -> None:
        """Make `to` the offset of all layers. Refused, for all of them, if one lacks a row."""
        if not 0 <= to <= self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        if (lacking := self._lacking(to)) is not None:
            self.refused = "LAYER-16"
            raise refusals_layers.dropped("LAYER-15", to, lacking)
        self._cite_reached(to)
        self.queries = 0
        for layer in self.stored:
            self._cut(layer, to)
        self.offset = to

    def _cite_reached(self, to: int) -> None:
        """Cite the clauses that a rewind to `to` exercises."""
        cite("LAYER-17", *["CACHE-8"] * (to < self.offset))
        chunks = [self.of[layer].size for layer in self.stored if self.of[layer].kind == "chunk"]
        cite(*["LAYER-18"] * any(to < self.offset and to % size == 0 for size in chunks))

    def _cut(self, layer: int, to: int) -> None:
        """Drop the rows of a layer at `to` and beyond, and those that no query needs any more."""
        kept = self.stored[layer]
        if to == self.offset:
            return
        kept.keep([i for i in self._needed(layer) if kept.places[i] < to])
        kept.kept = min(kept.kept, to)

    def snapshot(self, start: int) -> SavedLayers | None:
        """Save what each layer with rows needs at the offset; none if `start` is not before it."""
        cite("SNAP-5")
        if max(0, start) >= self.offset:
            cite("SNAP-2")
            return None
        cite("LAYER-30", "SNAP-28")
        each = [(kept, self._needed(layer)) for layer, kept in self.stored.items()]
        rows = joined(*(kept.rows.chosen([kept.slots[i] for i in which]) for kept, which in each))
        layers = [([kept.places[i] for i in which], kept.kept) for kept, which in each]
        return SavedLayers(self.config, rows, self.offset, layers)

    def can_restore(self, saved: SavedLayers | None, to: int) -> bool:
        """Whether a restore of it to this target would be accepted, by all layers."""
        cite("ASK-2", "ASK-4")
        if saved is None:
            return 0 <= to <= self.offset and self._lacking(to) is None
        return snapshot.accepted(self._demand_saved, saved, to) and self._not_saved(saved, to) is None

    def _demand_saved(self, saved: SavedLayers, to: int) -> None:
        snapshot.check("restore", saved, self.kind, self.config)
        if not 0 <= to <= saved.stop:
            raise refusals.restore_range("SNAP-8", to, saved.stop)

    def restore(self, saved: SavedLayers | None, to: int) -> None:
        """Put the rows of all layers back, and make `to` the offset. Refused if one was saved without rows needed
        there."""
        if saved is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(saved, to)
        if (lacking := self._not_saved(saved, to)) is not None:
            self.refused = "LAYER-34"
            raise refusals_layers.not_saved("LAYER-32", to, lacking, saved.stop)
        cite("SNAP-3", "SNAP-4", "LAYER-31" if to == saved.stop else "LAYER-33")
        self.stored = {layer: saved.put_back(i, self.one) for i, layer in enumerate(self.stored)}
        self.offset = saved.stop
        for layer in self.stored:
            self._cut(layer, to)
        self.offset, self.queries, self.refused = to, 0, ""

    def _not_saved(self, saved: SavedLayers, to: int) -> int | None:
        """The first layer of which rows are not in a snapshot that a query at `to` sees; None if there is none."""
        if to == saved.stop:
            return None
        each = zip(self.stored, saved.layers, strict=True)
        return next((layer for layer, (_, kept) in each if not self._goes(layer, to, kept)), None)
