"""What the engines do otherwise with layers of unlike views, as classes over the list model: see `models.py`."""

from __future__ import annotations

from kvref.list_model.layers import LayersModel, SavedLayers
from kvref.list_model.rows import Rows, fit
from kvref.list_model.unsaid import Unsaid, may
from kvref.list_model.views import Chunk, Conv, Sinks, State, View, Window
from kvspec.errors import Refused


def size(view: View) -> int:
    """The rows that the engine's cache of a layer is made for; 0 if it grows."""
    if isinstance(view, Sinks):
        return view.first + view.newest
    return view.size if isinstance(view, Window | Chunk) and not folds(view) else 0


def folds(view: View) -> bool:
    """Whether a layer has no rows to attend to."""
    return isinstance(view, State | Conv)


def passed(cache: LayersModel) -> bool:
    """Whether the cache is as long as the rows that a layer is made for; one that folds tokens is made for none."""
    return any((size(view) > 0 or folds(view)) and max(1, size(view)) <= cache.offset for view in cache.views)


class TakesOtherRows(LayersModel):
    """Rows of another geometry are taken, or raise in one layer after others have taken theirs."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        if keys.shape[0] != len(self.own) or values.shape[0] != len(self.own):
            return super().demand_rows(keys, values)
        try:
            return super().demand_rows(keys, values)
        except Refused:
            raise Unsaid("refused ok") from None


class WindowOfOne(LayersModel):
    """transformers: with a window of one a layer never drops a row, and masks are too narrow for several."""

    def append(self, keys: Rows, values: Rows) -> None:
        before = self.offset
        super().append(keys, values)
        if before and keys.n > 1 and any(size(view) == 1 for view in self.views):
            raise Unsaid

    def _sees(self, layer: int, query: int) -> dict[int, float]:
        if self.queries == 1 and size(self.views[layer]) == 1:
            return {self.tokens[row][layer]: 0.0 for row in range(query + 1)}
        return super()._sees(layer, query)


class CropsNothing(LayersModel):
    """transformers: cropping a sliding layer that holds nothing raises; so does one that folds tokens and never had
    one, where it records its past. Else it may be refused."""

    begun = used = False

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        self.begun = self.used = True

    def free(self) -> None:
        super().free()
        self.begun = False

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        super().restore(snapshot, to)
        self.begun = self.begun or snapshot is not None
        self.used = self.used or self.begun

    def can_rewind(self, to: int) -> bool | None:
        return False if self._bare() else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        super().rewind(to)
        if self._bare():
            raise Unsaid("error", kept=True)

    def _bare(self) -> bool:
        some = any(map(folds, self.views))
        if self.follows:
            return not self.begun and (any(map(size, self.views)) or (some and not self.used))
        return not self.begun and not some and any(map(size, self.views))


class NoRowsFixGeometry(LayersModel):
    """transformers: an update of no rows fixes the geometry of those that come after it."""

    empty = False

    def append(self, keys: Rows, values: Rows) -> None:
        if self._other(keys, values) and (not keys.n or (self.empty and not self.shaped)):
            raise Unsaid("ok refused error")
        super().append(keys, values)
        self.empty = True

    def _other(self, keys: Rows, values: Rows) -> bool:
        return not fit(keys, values, self.config, len(self.own), self.config.kv_heads, keys.n)


class NoRowsRaise(LayersModel):
    """transformers: a full static layer joins all rows but its oldest to none, and has too few for its buffer. One
    row fits a buffer of two."""

    def append(self, keys: Rows, values: Rows) -> None:
        sizes = [n for n in map(size, self.views) if 0 < n <= self.offset]
        if not keys.n and sizes:
            raise Unsaid("ok error") if 2 in sizes else Unsaid("error", kept=True)
        super().append(keys, values)


class CropsUnchecked(LayersModel):
    """transformers: static layers are cropped to any length, whatever they have lost, and to less than none."""

    def can_rewind(self, to: int) -> bool | None:
        plain = not any(map(folds, self.views))
        return to <= self.offset if plain else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        with may("ok refused" if to <= self.offset else "refused"):
            super().rewind(to)

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        with may("ok refused", "LAYER-32", "LAYER-15"):
            super().restore(snapshot, to)


class KeepsFolded(LayersModel):
    """transformers, recording its past: a crop cuts rows, and leaves a state as it is."""

    def can_rewind(self, to: int) -> bool | None:
        return True if self._folds(to, self.offset) else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        if self._folds(to, self.offset):
            raise Unsaid
        super().rewind(to)

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        if snapshot is not None and to >= 0 and self._folds(to, snapshot.stop):
            raise Unsaid
        super().restore(snapshot, to)

    def _folds(self, to: int, offset: int) -> bool:
        return max(0, to) < offset and bool(self.states())


class CropsOneByOne(LayersModel):
    """transformers: a crop that a sliding layer refuses has cut the layers before it."""

    def rewind(self, to: int) -> None:
        try:
            super().rewind(to)
        except Refused as e:
            raise Unsaid("refused", e if e.clause == "CACHE-7" else None) from None


class CropsBeyond(LayersModel):
    """transformers, recording its past: cropping more than there is makes the length of a layer less than 0."""

    def rewind(self, to: int) -> None:
        past = passed(self)
        super().rewind(to)
        if to < 0 and past:
            raise Unsaid


class CropsTwice(LayersModel):
    """transformers, recording its past: a second crop with no update between leaves the window short."""

    cropped = False

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        self.cropped = self.cropped and not keys.n

    def rewind(self, to: int) -> None:
        if self.cropped and 0 <= to < self.offset and passed(self):
            raise Unsaid
        super().rewind(to)
        self.cropped = True


class TrimsNegative(LayersModel):
    """mlx-lm: trimming a negative number lengthens all layers, while no ring is full."""

    def can_rewind(self, to: int) -> bool | None:
        return True if self._lengthened(to) else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        with may("ok" if self._lengthened(to) else "refused", "CACHE-7"):
            super().rewind(to)

    def _lengthened(self, to: int) -> bool:
        return to > self.offset and not full(self)


def full(cache: LayersModel) -> bool:
    """Whether a ring of the list is full, or arrays are in it, so that mlx-lm trims none of it."""
    if any(map(folds, cache.views)):
        return True
    rings = (size(view) for view in cache.views if not isinstance(view, Chunk))
    return any(0 < n <= cache.offset for n in rings)


class KeptRowsHidden(LayersModel):
    """mlx-lm: the mask for several rows is that of a window over all columns, the kept ones too."""

    def _sees(self, layer: int, query: int) -> dict[int, float]:
        view = self.views[layer]
        if self.queries < 2 or not isinstance(view, Sinks):
            return super()._sees(layer, query)
        before = self.offset - self.queries
        recent = max(0, min(size(view) - 1, before) - view.first)
        columns = [*range(min(before, view.first)), *range(before - recent, query + 1)]
        return {self.tokens[row][layer]: 0.0 for row in columns[-size(view) :]}


class TrimsChunksLess(LayersModel):
    """mlx-lm: a chunked cache is trimmed to the rows that it still has, and the others to the target."""

    starts: tuple[int, ...] = ()

    def append(self, keys: Rows, values: Rows) -> None:
        before = self.offset
        super().append(keys, values)
        starts = self.starts or (0,) * len(self.views)
        self.starts = tuple(max(start, before - n) for start, n in zip(starts, map(size, self.views), strict=True))

    def free(self) -> None:
        super().free()
        self.starts = ()

    def rewind(self, to: int) -> None:
        chunks = (s for s, view in zip(self.starts, self.views, strict=False) if isinstance(view, Chunk))
        if max(0, to) < max(chunks, default=0) and not full(self):
            raise Unsaid
        super().rewind(to)


class LendsItsArrays(LayersModel):
    """Updates return the arrays that the layers keep: what one does to them is done to the cache."""

    lent = False

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        self.lent = self.lent or keys.n > 0

    def overwritten(self) -> None:
        """Nothing is said of a cache whose arrays are overwritten."""
        if self.lent:
            raise Unsaid


class NoRowsGiveGeometry(LayersModel):
    """An update with no rows fixes heads, widths and dtype as others do, or raises where they are fixed."""

    fixed = False

    def append(self, keys: Rows, values: Rows) -> None:
        if not keys.n or self.fixed:
            if not fit(keys, values, self.config, len(self.own), self.config.kv_heads, keys.n):
                raise Unsaid("ok refused")
            self.fixed = True
        super().append(keys, values)


class NoRowsLeaveRoom(LayersModel):
    """mlx-lm: a full ring takes an update with no rows for a chunk, and drops a row for it; the next single row is
    written over another one, or raises."""

    short = False

    def append(self, keys: Rows, values: Rows) -> None:
        if self.short and keys.n == 1:
            raise Unsaid("ok refused")
        super().append(keys, values)
        rings = (size(view) for view in self.views if isinstance(view, Window | Sinks))
        self.short = not keys.n and (self.short or any(0 < n <= self.offset for n in rings))
