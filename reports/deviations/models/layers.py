"""What engines do otherwise with layers of unlike views."""

from __future__ import annotations

from collections.abc import Sequence

from kvref.list_model.layers import LayersModel, SavedLayers
from kvref.list_model.rows import Rows
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

    def demand_rows(self, keys: Rows, values: Rows, layers: int, unchanged: str) -> None:
        if keys.shape[0] != layers or values.shape[0] != layers:
            return super().demand_rows(keys, values, layers, unchanged)
        try:
            return super().demand_rows(keys, values, layers, unchanged)
        except Refused:
            raise Unsaid("refused ok") from None


class WindowOfOne(LayersModel):
    """transformers: with a window of one a layer never drops a row, and masks are too narrow for several."""

    def append(self, keys: Rows, values: Rows) -> None:
        before = self.offset
        super().append(keys, values)
        if before and keys.n > 1 and any(size(view) == 1 for view in self.views):
            raise Unsaid

    def _sees(self, owner: int, query: int, tokens: Sequence[tuple[int, ...]]) -> dict[int, float]:
        layer = self.own.index(owner) if owner in self.own else None
        if layer is not None and self.queries == 1 and size(self.views[layer]) == 1:
            return {self.tokens[row][layer]: 0.0 for row in range(query + 1)}
        return super()._sees(owner, query, tokens)


class MasksFromTheTop(LayersModel):
    """whisper: tokens of one step see as many rows as stand above them in it, whatever was there before."""

    def _sees(self, owner: int, query: int, tokens: Sequence[tuple[int, ...]]) -> dict[int, float]:
        if owner in self.own and self.queries > 1:
            layer, before = self.own.index(owner), self.offset - self.queries
            return {self.tokens[row][layer]: 0.0 for row in range(query + 1 - before)}
        return super()._sees(owner, query, tokens)


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


class CropsTheEncoder(LayersModel):
    """transformers: a crop cuts the rows of an image in a layer of the same cache as it cuts those of tokens."""

    def rewind(self, to: int) -> None:
        cuts = to < self.offset and bool(self.encoded)
        super().rewind(to)
        if cuts:
            raise Unsaid

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        super().restore(snapshot, to)
        if snapshot is not None and snapshot.encoded and to < snapshot.stop:
            raise Unsaid


class KeptRowsHidden(LayersModel):
    """mlx-lm: the mask for several rows is that of a window over all columns, the kept ones too."""

    def _sees(self, owner: int, query: int, tokens: Sequence[tuple[int, ...]]) -> dict[int, float]:
        layer = self.own.index(owner)
        view = self.views[layer]
        if self.queries < 2 or not isinstance(view, Sinks):
            return super()._sees(owner, query, tokens)
        before = self.offset - self.queries
        recent = max(0, min(size(view) - 1, before) - view.first)
        columns = [*range(min(before, view.first)), *range(before - recent, query + 1)]
        return {self.tokens[row][layer]: 0.0 for row in columns[-size(view) :]}


def stays(views: Sequence[View], offset: int) -> bool:
    """Whether mlx-lm trims nothing of a list: a ring is full, or arrays are in it."""
    rings = (size(view) for view in views if not isinstance(view, Chunk))
    return any(map(folds, views)) or any(0 < n <= offset for n in rings)


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

    def snapshot(self, start: int) -> SavedLayers | None:
        saved = super().snapshot(start)
        if saved is not None:
            vars(saved)["starts"] = self.starts
        return saved

    def rewind(self, to: int) -> None:
        self._trim(to, self.starts, self.offset)
        super().rewind(to)

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        if snapshot is not None:
            self._demand_saved(snapshot, to)
            self._trim(to, vars(snapshot)["starts"], snapshot.stop)
        super().restore(snapshot, to)
        self.starts = self.starts if snapshot is None else vars(snapshot)["starts"]

    def _trim(self, to: int, starts: tuple[int, ...], offset: int) -> None:
        chunks = (s for s, view in zip(starts, self.views, strict=False) if isinstance(view, Chunk))
        if max(0, to) < max(chunks, default=0) and not stays(self.views, offset):
            raise Unsaid


class CountsTheFirstLayer(LayersModel):
    """transformers' MiniMaxCache: its length is that of the first layer, which is 0 if that folds its tokens."""

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        if isinstance(self.views[0], State) and not all(map(folds, self.views)):
            raise Unsaid


class FreeKeepsStates(LayersModel):
    """transformers' MiniMaxCache: a reset leaves its states as they are."""

    def free(self) -> None:
        some = self.offset > 0 and any(map(folds, self.views))
        super().free()
        if some:
            raise Unsaid


def mixed(cache: LayersModel) -> bool:
    """Whether some layers fold their tokens, and others have rows."""
    return len({folds(view) for view in cache.views}) == 2


class MakesNoMask(LayersModel):
    """transformers: a static cache with layers that record their past makes no mask for a single query, which then
    sees the slots that are empty."""

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        if keys.n == 1 and mixed(self):
            raise Unsaid


class CropsConvolutionAlone(LayersModel):
    """transformers: of a static layer with rows and a convolution a crop cuts the convolution alone."""

    def can_rewind(self, to: int) -> bool | None:
        return None if mixed(self) else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        if mixed(self):
            raise Unsaid("ok refused error")
        super().rewind(to)

    def restore(self, snapshot: SavedLayers | None, to: int) -> None:
        if snapshot is not None and mixed(self) and to != snapshot.stop:
            raise Unsaid("ok refused error")
        super().restore(snapshot, to)
