"""Layers of unlike views over one offset: each keeps the rows that its next query needs, and all go back or none.

A layer's rows lie in position order; `places` are their positions. What an append pushes out stays until the next
operation, because the append's own queries see it. `kept` says from which position on a layer still has its rows.
A layer `state` has no rows: it has the sum that its tokens were folded into. The rows of an encoder stand apart:
they have no positions, and nothing drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvref.abilities import snapshot
from kvref.arithmetic import fold
from kvref.caches.layer_parcels import PackingLayers
from kvref.caches.layer_rows import Kept, SavedLayers
from kvref.cite import cite
from kvref.memory.rows import Rows, joined
from kvspec.contract import Lengths, Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals
from kvspec.refusals import layers as refusals_layers

SEEN_BY = {"full": "LAYER-4", "window": "LAYER-5", "chunk": "LAYER-6", "sinks": "LAYER-7"} | {
    "state": "LAYER-36",
    "conv": "LAYER-38",
}
"""The clause on what a query of each view sees, and on what is folded."""


class View(NamedTuple):
    """What a layer shows. `sinks` are rows at the beginning that it never drops. `owner` says whose rows it
    shows."""

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


class Layers(PackingLayers):
    """`of[l]` is the view of layer l. `stored[l]` are its rows, unless it shows another layer's. `folds[l]` is its
    state, if it has one instead. `own` are the layers that appends give rows, and `crossing` those that see an
    encoder's: `encoded` has these, a batch of layers. `refused` is the clause on what was refused last: the next
    append shows whether that left every layer as it was."""

    kind = "layers"

    def __init__(self, config: Config) -> None:
        self.of = views(config.of) if config.of else []
        self.own = [layer for layer, view in enumerate(self.of) if view.kind not in ("share", "cross")]
        self.crossing = [layer for layer, view in enumerate(self.of) if view.kind == "cross"]
        if not refusals.valid(config) or config.batch > 1 or not self._proper(config):
            raise refusals_layers.config("LAYER-1", config)
        for layer, view in enumerate(self.of):
            if view.kind == "share" and not self._shares(layer, view.owner):
                raise refusals_layers.share("LAYER-2", layer, view.owner)
        self.config, self.one = config, config.changed(layers=None, of=None)
        self._clear()
        cite(*["LAYER-37"] * bool(self.folds))

    def _proper(self, config: Config) -> bool:
        """Whether `of` has proper sizes, and `layers` counts them; and no layer folds rows in a form."""
        own = [self.of[layer] for layer in self.own]
        sizes = [size for view in own for size in (view.size, view.sinks + (view.kind != "sinks"))]
        plain = config.form is None or all(view.kind != "state" for view in own)
        return len(own) == (config.layers or 0) and min(sizes, default=0) >= 1 and plain

    def _shares(self, layer: int, owner: int) -> bool:
        """Whether a layer may show the rows of this one."""
        return owner < layer and self.of[owner].kind not in ("share", "state", "conv", "cross")

    def _clear(self) -> None:
        self.stored = {layer: Kept(Rows(self.one)) for layer in self.own if self.of[layer].kind != "state"}
        self.folds = {layer: fold.zeros(self.one) for layer in self.own if layer not in self.stored}
        self.encoded: Rows | None = None
        self.offset = self.queries = 0
        self.refused = ""
        self._drop()

    def free(self) -> None:
        """Return to never written, in all layers."""
        cite("CACHE-6", *["LAYER-37"] * bool(self.folds))
        self.lose_drafts()
        self._clear()

    def key(self) -> tuple[int, ...]:
        """The state up to renaming rows."""
        encoded = -1 if self.encoded is None else len(self.encoded)
        return self.offset, encoded, *(kept.kept for kept in self.stored.values()), *self.drafts.tree.on

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
        if not self._fits(keys, values, n, len(self.own)):
            self.refused = "LAYER-12"
            raise refusals_layers.rows("CACHE-2", len(self.own), self.config.kv_heads, keys.shape)
        self._cite_seen(n)
        self.refused = ""
        self.extend(Pair(keys, values), n)
        self.lose_drafts()
        self.queries = n

    def extend(self, new: Pair, n: int) -> None:
        """Put n rows of each layer behind the others, and drop what no query needs any more."""
        for block, layer in enumerate(self.own):
            self._take(layer, Pair(*(rows[block : block + 1] for rows in new)))
        self.offset += n
        for layer, kept in self.stored.items():
            kept.kept = max(kept.kept, self.first(self.of[layer], self.offset))

    def encode(self, keys: Array, values: Array) -> None:
        """Take n rows of an encoder, `[layers that see them, kv_heads, n, dim]`. Refused if there are some."""
        n = keys.shape[2] if keys.ndim == 4 else -1
        cite("LAYER-41")
        if n != 0:
            self._demand_encoder(keys, values, n)
            self.encoded = self._written(Pair(keys, values))
            self.lose_drafts()
        self.queries = 0

    def _demand_encoder(self, keys: Array, values: Array, n: int) -> None:
        """Refuse rows of an encoder that do not fit, or that come where there are some."""
        if not self._fits(keys, values, n, len(self.crossing)):
            self.refused = "LAYER-44"
            raise refusals_layers.encoded("CACHE-2", len(self.crossing), self.config.kv_heads, keys.shape)
        if self.encoded is not None:
            self.refused = "LAYER-44"
            raise refusals_layers.again("LAYER-43", len(self.encoded))

    def _written(self, rows: Pair) -> Rows:
        """Put rows of an encoder into memory of their own."""
        made = Rows(self.one.changed(batch=len(self.crossing)))
        made.join(rows)
        return made

    def _fits(self, keys: Array, values: Array, n: int, layers: int) -> bool:
        """Whether there are n keys and values for each of so many layers, at least one, in the cache's geometry."""
        blocks = self.config.changed(batch=layers)
        right = keys.shape == blocks.shape("k", n) and values.shape == blocks.shape("v", n)
        return layers > 0 and right and {keys.dtype, values.dtype} == {DTYPES[self.config.dtype]}

    def _cite_seen(self, n: int) -> None:
        """Cite the clauses that an append of n rows exercises."""
        cite("LAYER-3", *(SEEN_BY[self.of[layer].kind] for layer in self.own))
        cite(
            *[self.refused] * bool(self.refused),
            *["LAYER-8"] * (n > 1),
            *["LAYER-9", "LAYER-10"] * any(view.kind == "share" for view in self.of),
            *["LAYER-40", "LAYER-42"] * bool(self.crossing),
        )

    def _take(self, layer: int, new: Pair) -> None:
        """Put rows into a layer, or fold them into its state."""
        if layer in self.folds:
            self.folds[layer] = fold.folded(self.folds[layer], new.keys[0], new.values[0])
        else:
            self._join(layer, new)

    def _join(self, layer: int, new: Pair) -> None:
        """Drop what no query needs any more, and put rows behind the others."""
        kept = self.stored[layer]
        kept.keep(self._needed(layer))
        kept.join(new, self.offset)

    def _needed(self, layer: int) -> list[int]:
        """The indices of the sinks, and of the other rows that the layer has kept."""
        kept, sinks = self.stored[layer], self.of[layer].sinks
        return [i for i, p in enumerate(kept.places) if p < sinks or p >= kept.kept]

    def needed_at(self, layer: int, offset: int) -> list[int]:
        """The positions of the rows that a layer needs at an offset."""
        view = self.of[layer]
        return [*range(min(view.sinks, offset)), *range(max(view.sinks, self.first(view, offset)), offset)]

    def kept_at(self, layer: int, positions: Sequence[int]) -> Pair:
        """The rows of a layer at these positions, as they are kept."""
        kept = self.stored[layer]
        slot_at = dict(zip(kept.places, kept.slots, strict=True))
        return kept.rows.chosen([slot_at[p] for p in positions])

    def hold(self, layer: int, rows: Pair, offset: int) -> None:
        """Have in a layer these rows, those that it needs at an offset, and no others."""
        made, places = Rows(self.one), self.needed_at(layer, offset)
        made.join(rows)
        self.stored[layer] = Kept(made, list(range(len(places))), places, self.first(self.of[layer], offset))

    def histories(self) -> list[Pair]:
        """The rows that the queries of the last append attend to, of each layer; none of a state."""
        return [self._history(view.owner) for view in self.of]

    def _history(self, layer: int) -> Pair:
        if layer in self.crossing and self.encoded is not None:
            which, whole = self.crossing.index(layer), self.encoded.read(0, len(self.encoded))
            return Pair(*(rows[which : which + 1] for rows in whole))
        if layer not in self.stored:
            return Pair(*(np.empty(self.one.shape(kind, 0), DTYPES[self.one.dtype]) for kind in "kv"))
        kept, before = self.stored[layer].rows.read(0, len(self.stored[layer].places)), self._before(layer)
        if len(self.drafts):
            drafts = self.drafts.read(self.own.index(layer))
            kept = Pair(*(np.concatenate(both, axis=2) for both in zip(kept, drafts, strict=True)))
        if not before:
            return kept
        return Pair(*(np.pad(rows, [(0, 0), (0, 0), (before, 0), (0, 0)]) for rows in kept))

    def _before(self, layer: int) -> int:
        """How many rows of zeros stand before position 0 in the history of a layer."""
        view = self.of[layer]
        return max(0, view.size - 1 - min(self.positions())) if view.kind == "conv" else 0

    def states(self) -> dict[int, Array]:
        """The state of each layer that has one, `[kv_heads, k_dim, v_dim]` in f32; copies."""
        return {layer: state.copy() for layer, state in self.folds.items()}

    def mask(self) -> Array:
        """What each query of the last append sees of each layer: `[layers of the model, 1, n, widest history]`."""
        seen = [self._seen(view.owner) for view in self.of]
        found = np.zeros((len(self.of), 1, self.queries, max(each.shape[1] for each in seen)), bool)
        for layer, each in enumerate(seen):
            found[layer, 0, :, : each.shape[1]] = each
        return found

    def _seen(self, layer: int) -> Array:
        """`[n, K]`: what each query sees of the rows of a layer."""
        if layer not in self.stored:
            crosses = layer in self.crossing and self.encoded is not None
            return np.ones((self.queries, len(self.encoded or ()) if crosses else 0), bool)
        places = [*range(-self._before(layer), 0), *self.stored[layer].places]
        shown = self._in_view(self.of[layer], [*places, *(self.offset + depth for depth in self.drafts.depths())])
        if len(self.drafts):
            shown[:, len(places) :] &= self.seen_drafts()
        return shown

    def _in_view(self, view: View, places: Sequence[int]) -> Array:
        """`[n, places]`: whether each query's view shows a row at these positions."""
        place, query = np.array(places)[None, :], np.array(self.positions())[:, None]
        first = np.array([self.first(view, int(p)) for p in query[:, 0]])[:, None]
        if view.kind == "conv":
            return np.asarray((place <= query) & (place > query - view.size))
        return np.asarray((place <= query) & ((place < view.sinks) | (place >= first)))

    def held(self) -> int:
        """Bytes of all rows and states: those of a layer that others share count once."""
        cite(*["LAYER-39"] * bool(self.folds))
        states = sum(state.nbytes for state in self.folds.values())
        encoded = 0 if self.encoded is None else self.encoded.nbytes
        rows = sum(kept.rows.nbytes for kept in self.stored.values())
        return rows + states + encoded + self.drafts.nbytes

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
        return next((layer for layer in self.own if not self._goes(layer, to, self._kept_from(layer))), None)

    def _kept_from(self, layer: int) -> int:
        """From which position on a layer has its rows; of a state its offset, which is where it stands."""
        return self.offset if layer in self.folds else self.stored[layer].kept

    def _goes(self, layer: int, to: int, kept: int) -> bool:
        """Whether a layer that has its rows from position `kept` on has all that a query at `to` sees."""
        view = self.of[layer]
        if view.kind == "state":
            return to in (0, kept)
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
        self.lose_drafts()
        self.queries = 0
        for layer in self.own:
            self._cut(layer, to)
        self.offset = to

    def _cite_reached(self, to: int) -> None:
        """Cite the clauses that a rewind to `to` exercises."""
        cite("LAYER-17", *["CACHE-8"] * (to < self.offset), *["LAYER-37"] * (to == 0 and bool(self.folds)))
        chunks = [self.of[layer].size for layer in self.stored if self.of[layer].kind == "chunk"]
        cite(*["LAYER-18"] * any(to < self.offset and to % size == 0 for size in chunks))

    def _cut(self, layer: int, to: int) -> None:
        """Drop the rows of a layer at `to` and beyond, and those that no query needs any more. A state that is not
        left as it is begins anew."""
        if to == self.offset:
            return
        if layer in self.folds:
            self.folds[layer] = fold.zeros(self.one)
            return
        kept = self.stored[layer]
        kept.keep([i for i in self._needed(layer) if kept.places[i] < to])
        kept.kept = min(kept.kept, to)

    def snapshot(self, start: int) -> SavedLayers | None:
        """Save what each layer needs at the offset, rows or a state; none if `start` is not before it."""
        cite("SNAP-5")
        if max(0, start) >= self.offset:
            cite("SNAP-2")
            return None
        cite("LAYER-30", "SNAP-28")
        each = [(kept, self._needed(layer)) for layer, kept in self.stored.items()]
        none = Rows(self.one).part(0, 0)
        rows = joined(none, *(kept.rows.chosen([kept.slots[i] for i in which]) for kept, which in each))
        layers = [([kept.places[i] for i in which], kept.kept) for kept, which in each]
        encoded = None if self.encoded is None else self.encoded.copy(0, len(self.encoded))
        cite(*["LAYER-45"] * bool(self.crossing))
        return SavedLayers(self.config, rows, self.offset, layers, self.states(), encoded)

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
        self.folds = {layer: state.copy() for layer, state in saved.states.items()}
        self.encoded = None if saved.encoded is None else self._written(saved.encoded)
        cite(*["LAYER-45"] * bool(self.crossing))
        self.offset = saved.stop
        for layer in self.own:
            self._cut(layer, to)
        self.offset, self.queries, self.refused = to, 0, ""
        self.lose_drafts()

    def _not_saved(self, saved: SavedLayers, to: int) -> int | None:
        """The first layer of which a snapshot lacks what is needed at `to`; None if there is none."""
        if to == saved.stop:
            return None
        kept = {layer: kept for layer, (_, kept) in zip(self.stored, saved.layers, strict=True)}
        return next((layer for layer in self.own if not self._goes(layer, to, kept.get(layer, saved.stop))), None)
