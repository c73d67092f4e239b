"""What engines do otherwise when a cache of one layer goes back, or becomes what was saved."""

from __future__ import annotations

from collections.abc import Sequence

from kvref.list_model.caches import CacheModel
from kvref.list_model.ring import RingModel
from kvref.list_model.rows import Rows
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.unsaid import Unsaid, may


class TrimmedRowsComeBack(CacheModel):
    """mlx-lm's ConcatenateKVCache: the next update joins its rows, or none, to all that there were, trimmed ones
    too."""

    joined: Sequence[int] = ()

    def take(self, serials: list[int]) -> None:
        self.tokens = list(self.joined)
        super().take(serials)
        self.joined = list(self.tokens)

    def snapshot(self, start: int) -> SavedTokens | None:
        """What is saved has them too, and one that is loaded counts them."""
        saved = super().snapshot(start)
        if saved is not None:
            vars(saved)["joined"] = list(self.joined)
        return saved

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        joined = self.joined if snapshot is None else vars(snapshot)["joined"]
        with may("ok"):
            super().restore(snapshot, to)
        self.joined = joined
        if snapshot is not None and len(joined) > snapshot.stop:
            raise Unsaid


class TrimsWhatItHas(RingModel):
    """mlx-vlm's BufferedRotatingKVCache: says of any trim that it can, and trims rows that it needs; or, for a
    negative number, lengthens the cache. One that is very long then has no room. An update with no rows, or
    one that raises, drops rows that a trim needs, which then trims fewer."""

    owed = "any"
    bare = False
    """Whether the newest update had no rows, or raised."""

    def append(self, keys: Rows, values: Rows) -> None:
        self.bare = True
        super().append(keys, values)
        self.bare = not keys.n

    def can_rewind(self, to: int) -> bool:
        super().can_rewind(to)
        return True

    def rewind(self, to: int) -> None:
        self.owed = "any oom" if to > self.offset else self.owed
        with may("ok", "RING-10", "CACHE-7"):
            super().rewind(self._reached(to, self.offset, self.bare))

    def snapshot(self, start: int) -> SavedTokens | None:
        saved = super().snapshot(start)
        if saved is not None:
            vars(saved)["bare"] = self.bare
        return saved

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        bare = self.bare if snapshot is None else vars(snapshot)["bare"]
        with may("ok", "RING-10", "SNAP-13", "SNAP-14"):
            super().restore(snapshot, to if snapshot is None else self._reached(to, snapshot.stop, bare))
        self.bare = bare

    def _reached(self, to: int, offset: int, bare: bool) -> int:
        if bare and 0 <= to < offset and offset > self.window:
            raise Unsaid
        return to


class CropsNothing(CacheModel):
    """transformers: cropping a layer that never had a row raises."""

    begun = False

    def take(self, serials: list[int]) -> None:
        super().take(serials)
        self.begun = True

    def free(self) -> None:
        super().free()
        self.begun = False

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to)
        self.begun = self.begun or snapshot is not None

    def can_rewind(self, to: int) -> bool:
        return super().can_rewind(to) and self.begun

    def rewind(self, to: int) -> None:
        super().rewind(to)
        if not self.begun:
            raise Unsaid("error", kept=True)


class CropsNoIndex(CropsNothing):
    """transformers: cropping rows of a layer of MiniMax-M3 that never had one raises."""

    def can_rewind(self, to: int) -> bool:
        return CacheModel.can_rewind(self, to) and (self.begun or to >= 0)

    def rewind(self, to: int) -> None:
        CacheModel.rewind(self, to)
        if not self.begun and to < 0:
            raise Unsaid("error", kept=True)


class CropsUnchecked(CacheModel):
    """transformers: a static layer is cropped to any length, whatever it has lost, and to less than none."""

    def can_rewind(self, to: int) -> bool:
        return to <= self.offset

    def rewind(self, to: int) -> None:
        with may("ok" if to <= self.offset else "refused"):
            super().rewind(to)


class StaysAsLong(CacheModel):
    """llama.cpp: a state put back stays as long as it was, if a longer one is asked for."""

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to if snapshot is None else min(to, snapshot.stop))


class LoadsHalf(CacheModel):
    """BatchRotatingKVCache: one that is loaded has no `_lengths`, so that each update raises."""

    half = False

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to)
        self.half = self.half or snapshot is not None

    def append(self, keys: Rows, values: Rows) -> None:
        if self.half:
            raise Unsaid("refused")
        super().append(keys, values)


class CountsWhatIsKept(RingModel):
    """transformers: a sliding cache that is made of what another iterated over counts the rows that it is given."""

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        if snapshot is None or snapshot.stop < self.window:
            return super().restore(snapshot, to)
        with may("ok"):
            super().restore(snapshot, to)
        raise Unsaid


class CropsPlainRowsAlone(CacheModel):
    """transformers: a quantised cache says of itself that it cannot be cropped; a crop raises, or cuts no row that
    is encoded, and the length stays."""

    def can_rewind(self, to: int) -> bool:
        if self.config.form is not None and self.offset:
            raise Unsaid("ok refused error")
        return super().can_rewind(to)

    def rewind(self, to: int) -> None:
        before = self.offset
        super().rewind(to)
        if self.config.form is not None and self.offset < before:
            raise Unsaid("ok error")
