"""Layers of unlike views in the list model: a list of tokens, and for each layer the rows that a query sees and
those that the layer still has.

A token is the serials of its rows, layer by layer. The rows of an encoder are of no token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.layer_parcels import PackingLayers
from kvref.list_model.rows import Rows, fit, geometry
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.tokens import clamped
from kvref.list_model.unsaid import Unsaid
from kvref.list_model.views import Chunk, Conv, Full, Sinks, State, View, Window
from kvspec.contract import Claim, Lengths
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import common
from kvspec.refusals import layers as refusals_layers
from kvspec.rows.serials import BEFORE

SHOWN: dict[str, tuple[Callable[..., View], str]] = {
    "full": (Full, "LAYER-4"),
    "window": (Window, "LAYER-5"),
    "chunk": (Chunk, "LAYER-6"),
    "sinks": (Sinks, "LAYER-7"),
    "state": (State, "LAYER-36"),
    "conv": (Conv, "LAYER-38"),
}
"""The views by their words in a config, each with its clause."""

OTHERS = {"share": "LAYER-9", "cross": "LAYER-40"}
"""The clauses on layers that appends give no rows."""


@dataclass(eq=False)
class SavedLayers(SavedTokens):
    """A snapshot: the rows of each token, and the positions of those that each layer had."""

    saved: Sequence[tuple[int, ...]] = ()
    has: Sequence[frozenset[int]] = ()
    encoded: Sequence[Sequence[int]] = ()


class LayersModel(PackingLayers):
    """`reads[l]`: the layer whose rows layer l shows. `has[i]`: the positions of the rows that own layer i has.
    `encoded` are the rows of an encoder, for each layer of `crossing`; none of any layer before they are there."""

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        words = [text.split(":") for text in (config.of or "").split(",") if text]
        own = [layer for layer, (kind, *_) in enumerate(words) if kind not in ("share", "cross")]
        self.crossing = [layer for layer, (kind, *_) in enumerate(words) if kind == "cross"]
        sizes = {int(size) for layer in own for size in words[layer][1:]}
        self.shares = [layer for layer in own if words[layer][0] not in ("state", "conv")]
        plain = config.form is None or not any(words[layer][0] == "state" for layer in own)
        if not common.valid(config) or config.batch != 1 or not own or config.layers != len(own) or 0 in sizes:
            raise refusals_layers.config("LAYER-1", config)
        if not plain:
            raise refusals_layers.config("LAYER-1", config)
        self.reads = [int(sizes[0]) if kind == "share" else layer for layer, (kind, *sizes) in enumerate(words)]
        for layer, owner in enumerate(self.reads):
            if words[layer][0] == "share" and (owner >= layer or owner not in self.shares):
                raise refusals_layers.share("LAYER-2", layer, owner)
        self.own, self.config, self.claim = own, config, claim
        self.views = [SHOWN[words[layer][0]][0](*map(int, words[layer][1:])) for layer in own]
        self.shown_by = tuple(SHOWN[kind][1] if kind in SHOWN else OTHERS[kind] for kind, *_ in words)
        self.follows, self.took = claim.dialect("spare") == "any", False
        self.opened, self.shaped = config, claim.dialect("shape") == "opened"
        self._clear()
        cite(*self._emptied(0))

    def _clear(self) -> None:
        self.tokens: list[tuple[int, ...]] = []
        self.has: list[set[int]] = [set() for _ in self.own]
        self.encoded: Sequence[Sequence[int]] = ()
        self.queries = 0
        self._drop()
        self.refused = ""
        """The clause on what was refused last, which the next append shows."""

    @property
    def offset(self) -> int:
        """The next position."""
        return len(self.tokens)

    def key(self) -> tuple[object, ...]:
        """The state up to renaming rows."""
        return self.offset, *(tuple(sorted(has)) for has in self.has), *map(len, self.encoded), (*self.hung,)

    def append(self, keys: Rows, values: Rows) -> None:
        """Tokens behind the others; drafts are dropped."""
        if not keys.n:
            cite("CACHE-1")
            self.queries = 0
            return
        self.demand_rows(keys, values, len(self.own), "LAYER-12")
        cite(*self._owed(keys.n))
        self.fix_shape(keys, values)
        self.refused = ""
        self.lose_drafts()
        self.extend([*zip(*keys.serials, strict=True)])
        self.queries = keys.n

    def fix_shape(self, keys: Rows, values: Rows) -> None:
        """Have the geometry of these rows, where the first ones fix it."""
        self.config, self.shaped = self._shape(keys, values), True

    def extend(self, new: Sequence[tuple[int, ...]]) -> None:
        """More tokens; then each layer keeps what it needs, and what else it is declared to keep."""
        added = range(self.offset, self.offset + len(new))
        self.tokens = [*self.tokens, *new]
        if new:
            self.has = [self._kept(view, has | {*added}) for view, has in zip(self.views, self.has, strict=True)]

    def encode(self, keys: Rows, values: Rows) -> None:
        """The rows of an encoder; where there are some, what is declared becomes of them."""
        cite("LAYER-41")
        if keys.n:
            self.demand_rows(keys, values, len(self.crossing), "LAYER-44")
            found = self._again(keys.serials) if self.encoded else keys.serials
            self.fix_shape(keys, values)
            self.encoded = found
            self.lose_drafts()
        self.queries = 0

    def _again(self, new: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
        """The rows that there are after a second encode. Raises Refused."""
        again = self.claim.dialect("again")
        if again == "refused":
            self.refused = "LAYER-44"
            raise refusals_layers.again("LAYER-43", len(self.encoded[0]))
        cite("LAYER-43")
        joined = [[*old, *more] for old, more in zip(self.encoded, new, strict=True)]
        found: dict[int | str, Sequence[Sequence[int]]] = {"replaced": new, "joined": joined}
        return found.get(again, self.encoded)

    def demand_rows(self, keys: Rows, values: Rows, layers: int, unchanged: str) -> None:
        """Refuse rows of another geometry, or of other layers than so many."""
        config = self._shape(keys, values)
        right = fit(keys, values, config, layers, config.kv_heads, keys.n) and common.valid(config)
        if not layers or not right:
            self.refused = unchanged
            raise Refused("CACHE-2", "rows of another geometry, or of other layers")

    def _shape(self, keys: Rows, values: Rows) -> Config:
        """The geometry of rows; that of these rows, where they are the first and fix it."""
        return self.config if self.shaped else self.config.changed(**geometry(keys, values))

    def _owed(self, n: int) -> Iterator[str]:
        """The clauses that an append of n rows exercises."""
        yield from ("LAYER-3", *(self.shown_by[layer] for layer in self.own))
        if n > 1:
            yield "LAYER-8"
        if self.refused:
            yield self.refused
        if "LAYER-9" in self.shown_by:
            yield from ("LAYER-9", "LAYER-10")
        if self.crossing:
            yield from ("LAYER-40", "LAYER-42")

    def _kept(self, view: View, has: set[int]) -> set[int]:
        """Give what a layer has after an append: what it needs, and the newest `spare` of the rows before
        these."""
        spare, edge = self.claim.dialect("spare"), self.offset
        if isinstance(view, State):
            return {*view.needs(self.offset)}
        if spare == "all":
            return has
        needs = {*view.needs(self.offset)}
        while edge - 1 in needs:
            edge -= 1
        more = spare if isinstance(spare, int) else 0
        return {row for row in has if row in needs or row >= edge - more}

    def lengths(self) -> Lengths:
        """The offset."""
        return Lengths(self.offset)

    def mask(self) -> list[list[list[dict[int, float]]]]:
        """What each query of the last append or branch sees in each layer, in one head."""
        asked = self.asked()
        return [[[self._sees(owner, *query) for query in asked]] for owner in self.reads]

    def _sees(self, owner: int, query: int, tokens: Sequence[tuple[int, ...]]) -> dict[int, float]:
        """What a query sees of the rows of a layer of the model."""
        if owner in self.crossing:
            return dict.fromkeys(self.encoded[self.crossing.index(owner)] if self.encoded else (), 0.0)
        layer = self.own.index(owner)
        rows = self.views[layer].sees(query, query + 1)
        return {tokens[row][layer] if row >= 0 else BEFORE + 1 + row: 0.0 for row in rows}

    def states(self) -> dict[int, list[int]]:
        """The tokens that each layer `state` was made of, by the serials of its rows, in their order."""
        folds = ((i, layer) for i, layer in enumerate(self.own) if isinstance(self.views[i], State))
        return {layer: [token[i] for token in self.tokens] for i, layer in folds}

    def can_rewind(self, to: int) -> bool | None:
        """Whether a rewind would be accepted; None where that is the engine's choice."""
        cite("CACHE-9")
        return self._may_go(to)

    def _may_go(self, to: int) -> bool | None:
        """Whether it can go back to a target."""
        to = clamped(self.claim, to, self.offset)
        if not 0 <= to <= self.offset or self._goes(to, self.offset, self.has):
            return 0 <= to <= self.offset
        return None if self.follows else False

    def can_append(self, n: int) -> bool:
        """Whether an append of so many rows would be accepted: every layer drops what it must."""
        cite("ASK-1", "ASK-4")
        return True

    def can_restore(self, snapshot: SavedLayers | None, to: int) -> bool | None:
        """Whether a restore would be accepted, by all layers; None where that is the engine's choice."""
        cite("ASK-2", "ASK-4")
        if snapshot is None:
            return None if self.either(to) else self._may_go(to)
        try:
            self._demand_saved(snapshot, to)
        except Refused:
            return False
        return self._goes(to, snapshot.stop, snapshot.has) or (None if self.follows else False)

    def _demand_saved(self, snapshot: SavedLayers, to: int) -> None:
        snapshot.usable("restore", "layers", self.config, "SNAP-10")
        if not 0 <= to <= snapshot.stop:
            raise common.restore_range("SNAP-8", to, snapshot.stop)

    def _goes(self, to: int, offset: int, has: Sequence[set[int] | frozenset[int]]) -> bool:
        """Whether every layer of a cache at an offset has what a query at `to` and later sees."""
        if to == offset:
            return True
        if self.claim.dialect("resumes") == "whole" and self._dropped(offset, has):
            return False
        return all(each.issuperset(view.needs(to)) for view, each in zip(self.views, has, strict=True))

    def _dropped(self, offset: int, has: Sequence[set[int] | frozenset[int]]) -> bool:
        """Whether a layer is no longer the whole sequence, as one that folds it never is."""
        folds = any(isinstance(view, State | Conv) for view in self.views)
        return folds or any(len(each) < offset for each in has)

    def either(self, to: int) -> bool:
        """Whether it is right to take and to refuse a rewind: one of no rows, where none to less succeeds."""
        none = clamped(self.claim, to, self.offset) == self.offset
        return none and self.claim.dialect("resumes") == "whole" and self._dropped(self.offset, self.has)

    def _follow(self, clause: str, unchanged: str) -> None:
        """Do as the engine did, which may have kept enough to go where no layer needs to have kept it: go on, or
        refuse. Raises Unsaid where nobody saw what it did."""
        if self.follows and self.took is None:
            raise Unsaid("ok refused")
        if not (self.follows and self.took):
            self.refused = unchanged
            raise Refused(clause, "a layer has not the rows that a query there sees")

    def rewind(self, to: int) -> None:
        """Fewer tokens, in all layers. Raises Unsaid where an engine chose, and nobody saw what."""
        to = clamped(self.claim, to, self.offset)
        if not 0 <= to <= self.offset:
            raise common.rewind_range("CACHE-7", to, self.offset)
        if not self._goes(to, self.offset, self.has):
            self._follow("LAYER-15", "LAYER-16")
        cite("LAYER-17", *self._reached(to), *self._emptied(to))
        self.lose_drafts()
        self._cut(to)

    def _cut(self, to: int) -> None:
        """Keep this many tokens, and of each layer what it has of them."""
        if to < self.offset:
            had = zip(self.views, self.has, strict=True)
            self.has = [{row for row in has if row < to} | {*view.needs(to)} for view, has in had]
        self.tokens, self.queries = self.tokens[:to], 0

    def _emptied(self, to: int) -> list[str]:
        """The clause on states of no tokens, where there are some."""
        return ["LAYER-37"] * (to == 0 and bool(self.states()))

    def _reached(self, to: int) -> Iterator[str]:
        """The clauses that a rewind to less exercises."""
        if to < self.offset:
            yield "CACHE-8"
            if any(isinstance(view, Chunk) and to % view.size == 0 for view in self.views):
                yield "LAYER-18"

    def snapshot(self, start: int) -> SavedLayers | None:
        """What there is, in all layers."""
        cite("SNAP-5")
        if max(0, start) >= self.offset:
            cite("SNAP-2")
            return None
        cite("LAYER-30", *["LAYER-45"] * bool(self.crossing))
        has = tuple(map(frozenset, self.has))
        return SavedLayers(
            "layers", self.config, 0, self.offset, [], saved=(*self.tokens,), has=has, encoded=self.encoded
        )

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        if snapshot is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self._demand_saved(snapshot, to)
        if not self._goes(to, snapshot.stop, snapshot.has):
            self._follow("LAYER-32", "LAYER-34")
        cite("SNAP-3", "SNAP-4", "LAYER-31" if to == snapshot.stop else "LAYER-33")
        cite(*["LAYER-45"] * bool(self.crossing))
        self.tokens, self.has = [*snapshot.saved], [set(has) for has in snapshot.has]
        self.encoded = snapshot.encoded
        self.refused, self.shaped = "", True
        self.lose_drafts()
        self._cut(to)

    def free(self) -> None:
        """Forget everything, in all layers."""
        cite("CACHE-6", *self._emptied(0))
        self.lose_drafts()
        self._clear()
        if self.claim.dialect("shape") == "first append":
            self.config, self.shaped = self.opened, False


model = LayersModel
