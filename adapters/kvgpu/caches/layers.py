"""Layers of unlike views on a device. They have one offset, one block of rows, and one launch an append. Layers
that fold their tokens into states add another block and another launch. Rows of an encoder are a block apart.

A layer has at any offset what it needs there and no more, so what was dropped follows from the offset alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvgpu.caches import snapshot
from kvgpu.caches.layer_branches import Drafts
from kvgpu.caches.layer_parcels import PackingLayers
from kvgpu.caches.snapshot import Snapshot
from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import acceptable, fitting, rows_in
from kvgpu.memory.encoder_rows import EncoderRows, Shared
from kvgpu.memory.layer_rows import LayerRows, View
from kvgpu.memory.layout import Place
from kvgpu.memory.states import States
from kvgpu.runtime import Block
from kvspec.contract import Lengths, Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.refusals import common as refusals
from kvspec.refusals import layers as refusals_layers


class SavedLayers(Snapshot):
    """The rows that layers need at an offset, and their states there; and the rows of the encoder."""

    states: Block | None = None
    encoded: Shared | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of rows and states in device memory; 0 after it was closed."""
        return 0 if self.gone else super().nbytes + sum(each.nbytes for each in self._beside())

    def close(self) -> None:
        """Give the memory back."""
        super().close()
        for each in self._beside():
            each.release()

    def _beside(self) -> list[Block | Shared]:
        """What there is beside rows by positions."""
        return [each for each in (self.states, self.encoded) if each is not None]


class Layered(PackingLayers, snapshot.Restoring):
    """`shown` has for each layer of the model which of the layers with rows it shows, by number. `crossing` has the
    layers that show the rows of an encoder; they have no such number."""

    kind = "layers"

    def __init__(self, config: Config, space: Workspace) -> None:
        texts = config.of.split(",") if config.of else []
        own = [layer for layer, text in enumerate(texts) if not text.startswith(("share", "cross"))]
        self.crossing = [layer for layer, text in enumerate(texts) if text == "cross"]
        views = [View.of(texts[layer]) for layer in own]
        if not acceptable(config) or config.batch != 1 or config.layers != len(own) or not all(map(_proper, views)):
            raise refusals_layers.config("LAYER-1", config)
        row_forms.demand(config)
        folds = [number for number, view in enumerate(views) if view.kind == "state"]
        if folds and config.form is not None:
            raise refusals_layers.config("LAYER-1", config)
        self.shown = [self._shown(own, texts, layer) for layer in range(len(texts))]
        self.config, self.space, self.own = config, space, own
        self.rows = LayerRows(space, config, views)
        self.states_of = {own[number]: i for i, number in enumerate(folds)}
        self.folded = States(space, self.rows.one, folds)
        self.encoder = EncoderRows(space, self.rows.one, len(self.crossing))
        self.drafts = Drafts(space, self.rows.one, len(own))
        self.offset = self.queries = 0

    def _shown(self, own: list[int], texts: list[str], layer: int) -> int | None:
        """Give the number of the layer whose rows this one shows; None for rows of an encoder."""
        if layer in own:
            return own.index(layer)
        if layer in self.crossing:
            return None
        owner = int(texts[layer].removeprefix("share:"))
        if owner >= layer or owner not in own or texts[owner].startswith(("state", "conv")):
            raise refusals_layers.share("LAYER-2", layer, owner)
        return own.index(owner)

    def can_append(self, n: int) -> bool:
        """Whether n rows can be appended: storage grows, or is used again."""
        return True

    def append(self, keys: Any, values: Any) -> None:
        """Write n rows of each layer that has some, `[layers, kv_heads, n, k_dim]` and as many values, at positions
        offset..offset+n-1; those from the host by upload."""
        n = rows_in(keys)
        if n != 0:
            self._demand(keys, values)
            self.folded.ready()
            self._extend(self.rows.codecs.staged(keys, values))
            self.drafts.release()
        self.queries = n

    def _demand(self, keys: Any, values: Any) -> None:
        """Refuse rows of another geometry, or of other layers."""
        together = self.rows.together
        if not fitting(together, keys, values):
            raise refusals_layers.rows("CACHE-2", together.batch, together.kv_heads, keys.shape)

    def _extend(self, source: Place) -> None:
        """Write packed rows of each layer at the offset, and fold them into states, for which there is a block."""
        self.rows.append(source, self.offset)
        self.folded.append(source, self.offset)
        self.offset += source.slots

    def branch(self, keys: Any, values: Any, on: Sequence[int] | None = None) -> None:
        """Take n drafts of each layer, as `append` takes rows; `on` says for each which one it hangs on."""
        n = rows_in(keys)
        if n != 0:
            self._demand(keys, values)
        parents = self.drafts.ways.hung(n, on)
        if parents is None:
            raise refusals_layers.hangs("LAYER-52", n, on or (), len(self.drafts))
        if n != 0:
            self.drafts.put(self.rows.codecs.staged(keys, values), parents)
        self.queries = n

    def settle(self, draft: int) -> None:
        """Append the drafts on the way to one, and itself, or none; drop the others. Nothing is uploaded."""
        if not -1 <= draft < len(self.drafts):
            raise refusals_layers.no_draft("LAYER-52", draft, len(self.drafts))
        if draft >= 0:
            self.folded.ready()
            kept = self.drafts.gathered(self.drafts.ways.way(draft))
            try:
                self._extend(kept.place)
            finally:
                kept.release()
        self.drafts.release()
        self.queries = 0

    def encode(self, keys: Any, values: Any) -> None:
        """Write n rows of an encoder for each layer that shows them, `[layers, kv_heads, n, k_dim]` and as many
        values; those from the host by upload."""
        if rows_in(keys) != 0:
            if not self.encoder.fit(keys, values):
                raise refusals_layers.encoded("CACHE-2", self.encoder.layers, self.config.kv_heads, keys.shape)
            if self.encoder.count:
                raise refusals_layers.again("LAYER-43", self.encoder.count)
            self.encoder.take(keys, values)
            self.drafts.release()
        self.queries = 0

    def free(self) -> None:
        """Return to never written, and give the memory back."""
        self.rows.release()
        self.folded.release()
        self.encoder.adopt(None)
        self.drafts.release()
        self.offset = self.queries = 0

    def lengths(self) -> Lengths:
        """The offset."""
        return Lengths(self.offset)

    def held(self) -> int:
        """Bytes of rows and states allocated."""
        return self.rows.nbytes + self.folded.held + self.encoder.nbytes + self.drafts.nbytes

    def states(self) -> dict[int, Array]:
        """The state of each layer that has one, `[kv_heads, k_dim, v_dim]` in f32."""
        found = self.folded.read(self.offset)
        return {layer: found[i] for layer, i in self.states_of.items()}

    def _asked(self) -> list[int]:
        """The positions of the queries of the last append or branch."""
        if len(self.drafts):
            return self.drafts.stand(self.queries, self.offset)
        return list(range(self.offset - self.queries, self.offset))

    def _first(self, view: View) -> int:
        """The first position, sinks not counted, that these see."""
        return view.first(min(self._asked()))

    def histories(self) -> list[Pair]:
        """For each layer the rows that the last queries see, in the order of positions, sinks first; those
        of a convolution behind zeros. None of a state."""
        return [self._encoded(layer) if i is None else self._history(i) for layer, i in enumerate(self.shown)]

    def _encoded(self, layer: int) -> Pair:
        """The rows of an encoder that a layer shows."""
        return self.encoder.read(self.crossing.index(layer)) if self.encoder.count else self._none()

    def _none(self) -> Pair:
        return Pair(*(np.empty(self.rows.one.shape(kind, 0), DTYPES[self.config.dtype]) for kind in "kv"))

    def _history(self, i: int) -> Pair:
        view = self.rows.views[i]
        if view.kind == "state":
            return self._none()
        there = self.offset > 0 and (view.sinks > 0 or self._first(view) < self.offset)
        found = self.rows.read(i, self._first(view), self.offset) if there else self._none()
        if len(self.drafts):
            found = Pair(*(np.concatenate(both, 2) for both in zip(found, self.drafts.read(i), strict=True)))
        before = self._before(view)
        return Pair(*(np.pad(a, ((0, 0), (0, 0), (before, 0), (0, 0))) for a in found)) if before else found

    def _before(self, view: View) -> int:
        """How many rows of zeros a convolution sees before position 0."""
        return max(0, view.newest - 1 - min(self._asked())) if view.kind == "conv" else 0

    def mask(self) -> Array:
        """What each query of the last append or branch sees of each history: `[layers of the model, 1, n, K]`. K is
        that of the widest."""
        own = [self._seen(view) for view in self.rows.views]
        encoded = np.ones((self.queries, self.encoder.count), bool)
        seen = [encoded if i is None else own[i] for i in self.shown]
        found = np.zeros((len(seen), 1, self.queries, max(one.shape[1] for one in seen)), bool)
        for layer, one in enumerate(seen):
            found[layer, 0, :, : one.shape[1]] = one
        return found

    def _seen(self, view: View) -> Array:
        """What each query sees of a layer's history, `[n, K]`."""
        if view.kind == "state":
            return np.zeros((self.queries, 0), bool)
        sinks = range(min(view.sinks, self.offset))
        places = [*sinks, *range(max(view.sinks, self._first(view)), self.offset)]
        if view.kind == "conv":
            places = [*range(-self._before(view), 0), *places]
        shown = self._in_view(view, [*places, *self.drafts.stand(len(self.drafts), self.offset)])
        if len(self.drafts):
            shown[:, len(places) :] &= self.drafts.seen(self.queries)
        return shown

    def _in_view(self, view: View, places: Sequence[int]) -> Array:
        """Whether each query's view shows a row at these positions, `[n, K]`."""
        place, query = np.array(places, int), np.array(self._asked(), int)
        if view.kind == "conv":
            return np.asarray((place <= query[:, None]) & (place > query[:, None] - view.newest))
        first = np.array([view.first(int(p)) for p in query])
        shown: Array = (place < view.sinks) | (place >= first[:, None])
        return shown & (place <= query[:, None])

    def can_rewind(self, to: int) -> bool:
        """Whether every layer has what it needs there."""
        return 0 <= to <= self.offset and self._lacking(to, self.offset) is None

    def _lacking(self, to: int, offset: int) -> int | None:
        """Give the first layer that at an offset has dropped a row which a query at `to` sees; None if there is
        none."""
        if to == offset:
            return None
        each = enumerate(self.rows.views)
        return next((self.shown.index(i) for i, view in each if _dropped(view, to, offset)), None)

    def rewind(self, to: int) -> None:
        """Make `to` the offset of all layers; nothing on the device changes."""
        if not 0 <= to <= self.offset:
            raise refusals.rewind_range("CACHE-7", to, self.offset)
        lacking = self._lacking(to, self.offset)
        if lacking is not None:
            raise refusals_layers.dropped("LAYER-15", to, lacking)
        self.drafts.release()
        self.offset, self.queries = to, 0

    def snapshot(self, start: int) -> Snapshot | None:
        """Copy what each layer needs at the offset, on the device; none if `start` is not before it."""
        if max(start, 0) >= self.offset:
            return None
        states = self.folded.save()
        saved = SavedLayers(self.kind, self.config, self.rows.save(self.offset), 0, self.offset)
        saved.states = states
        saved.encoded = self.encoder.shared and self.encoder.shared.share()
        return saved

    def _demand_within(self, saved: Snapshot, to: int) -> None:
        """Every layer was saved with the rows that are needed there."""
        lacking = self._lacking(to, saved.stop)
        if lacking is not None:
            raise refusals_layers.not_saved("LAYER-32", to, lacking, saved.stop)

    def _put_back(self, saved: Snapshot, to: int) -> None:
        """Become what was saved, in all layers, then make `to` the offset."""
        assert isinstance(saved, SavedLayers)
        self.folded.ready()
        self.rows.put_back(saved.rows.place, saved.stop)
        self.folded.put_back(saved.states)
        self.encoder.adopt(saved.encoded and saved.encoded.share())
        self.drafts.release()
        self.offset, self.queries = to, 0


def _dropped(view: View, to: int, offset: int) -> bool:
    """Whether a layer has dropped a row below `to` that queries there see, or has another state than that at `to`.
    What it has beside sinks begins where the view of a query at the offset does."""
    if view.kind == "state":
        return to > 0
    return max(view.first(to), view.sinks) < min(view.first(offset), to)


def _proper(view: View) -> bool:
    """Whether every size of a view is 1 or more."""
    return view.kind == "full" or (view.newest >= 1 and (view.sinks >= 1 or view.kind != "sinks"))
