"""What the engines do otherwise, as classes over the list model: `kvconform.toml` names them. This is code that a
run with that file executes.

Each says what the engine does where it deviates, and nothing else. Where an engine took or half did something that
the spec refuses, what its cache holds then is not said: `may` and `Unsaid` (see `kvref.list_model.unsaid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvref.list_model import ListModel
from kvref.list_model.bounded import BoundedModel
from kvref.list_model.caches import CacheModel, Scores
from kvref.list_model.masks import ALL
from kvref.list_model.ragged import RaggedModel
from kvref.list_model.ring import RingModel
from kvref.list_model.rows import Rows, fit
from kvref.list_model.sink import SinkModel
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.unsaid import Unsaid, may
from kvref.list_model.views import View
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.masks import Logical

GEOMETRY = ("CACHE-2",)
"""The clauses that refuse rows of another geometry."""


class TakesSenselessSizes(ListModel):
    """A config that must be refused is taken: a window, a length or a step of 0, a batch of none."""

    def open(self, kind: str, config: Config) -> Any:
        with may("ok"):
            return super().open(kind, config)


class TakesOtherRows(CacheModel):
    """Rows of another geometry are taken: broadcast, cast, cut, or as they are."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        with may("ok", *GEOMETRY):
            super().demand_rows(keys, values)


class CountsRefusedRows(CacheModel):
    """An update that raises counts its rows."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        with may("refused", *GEOMETRY):
            super().demand_rows(keys, values)

    def _demand_chunk(self, n: int) -> None:
        with may("refused", "BOUNDED-2", "BOUNDED-19"):
            super()._demand_chunk(n)


class HalfWritten(CacheModel):
    """An update whose values do not fit has written its keys before it raises."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        try:
            super().demand_rows(keys, values)
        except (Refused, Unsaid) as e:
            refused = e.unless if isinstance(e, Unsaid) else e
            if refused is not None and refused.clause in GEOMETRY and not _values_fit(self, keys, values):
                raise Unsaid("refused ok") from None
            raise


class RingHalfWritten(HalfWritten, RingModel):
    """The same of rings alone."""


def _values_fit(cache: CacheModel, keys: Rows, values: Rows) -> bool:
    config = cache.config
    return fit(keys._replace(shape=(*values.shape[:3], config.k_dim)), values, config, *keys.shape[:3])


class GrowsBySteps(CacheModel):
    """mlx-lm: a buffer that grows by steps. How long it is in a cache that was restored is not said."""

    buffer: int | None = 0

    def take(self, serials: list[int]) -> None:
        if self.buffer is not None and self._grows(len(serials)):
            step, there = self.config.step, self.buffer if self.offset % self.config.step == 0 else self.offset
            self.buffer = there + -(-len(serials) // step) * step
        super().take(serials)

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to)
        self.buffer = None if snapshot is not None else self.buffer

    def _grows(self, n: int) -> bool:
        return self.buffer is None or self.offset + n > self.buffer


class LendsItsFullBuffer(GrowsBySteps):
    """mlx-lm: an update that fills its buffer returns the buffer itself, which it later writes on."""

    lent = False

    def take(self, serials: list[int]) -> None:
        super().take(serials)
        self.lent = self.lent or self.buffer in (None, self.offset)

    def overwritten(self) -> None:
        """Nothing is said of a cache whose buffer is overwritten."""
        if self.lent:
            raise Unsaid


class LendsItsArrays(CacheModel):
    """An update keeps the arrays that it takes, or returns those that it keeps: what one does to them is done to
    the cache, and the cache writes on them."""

    lent = False

    def take(self, serials: list[int]) -> None:
        super().take(serials)
        self.lent = self.lent or bool(serials)

    def overwritten(self) -> None:
        """Nothing is said of a cache whose arrays are overwritten."""
        if self.lent:
            raise Unsaid


class NoRowsGiveGeometry(CacheModel):
    """An update with no rows fixes heads, widths and dtype as others do, or raises where they are fixed."""

    fixed = False
    """Whether there was an update with no rows."""

    def append(self, keys: Rows, values: Rows) -> None:
        config = self.config
        if not keys.n or self.fixed:
            if not fit(keys, values, config, config.batch, config.kv_heads, keys.n):
                raise Unsaid("ok refused")
            self.fixed = True
        super().append(keys, values)


class NoRowsLeaveRoom(CacheModel):
    """mlx-lm: a full ring takes an update with no rows for a chunk, and drops a row for it; the next single row is
    written over another one, or raises."""

    short = False

    def append(self, keys: Rows, values: Rows) -> None:
        if self.short and keys.n == 1:
            raise Unsaid("ok refused")
        super().append(keys, values)
        self.short = not keys.n and (self.short or self.offset >= (self.config.window or self.offset + 1))


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


class TrimsWhatItHas(RingModel):
    """mlx-vlm's BufferedRotatingKVCache: says of any trim that it can, and trims rows that it needs; or, for a
    negative number, lengthens the cache."""

    def can_rewind(self, to: int) -> bool:
        super().can_rewind(to)
        return True

    def rewind(self, to: int) -> None:
        with may("ok", "RING-10", "CACHE-7"):
            super().rewind(to)

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        with may("ok", "RING-10", "SNAP-13", "SNAP-14"):
            super().restore(snapshot, to)


class KeysGrowAlone(GrowsBySteps):
    """mlx-lm: where its buffers grow by steps, an update whose values have another width raises when the buffer of
    the keys has grown and that of the values has not. Nothing shows it until the next update."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        try:
            super().demand_rows(keys, values)
        except (Refused, Unsaid):
            if keys.n and self.buffer != 0 and self._grows(keys.n) and _keys_alone_fit(self, keys, values):
                raise Unsaid("refused") from None
            raise


def _keys_alone_fit(cache: CacheModel, keys: Rows, values: Rows) -> bool:
    """Whether rows would fit if the values were as wide as those of the cache."""
    as_wide = values._replace(shape=(*values.shape[:3], cache.config.v_dim))
    return as_wide != values and fit(keys, as_wide, cache.config, cache.config.batch, cache.config.kv_heads, keys.n)


class TrimsNegative(CacheModel):
    """Trimming a negative number lengthens a cache that can be trimmed."""

    def can_rewind(self, to: int) -> bool:
        return True if self._lengthened(to) else super().can_rewind(to)

    def rewind(self, to: int) -> None:
        with may("ok" if self._lengthened(to) else "refused"):
            super().rewind(to)

    def _lengthened(self, to: int) -> bool:
        full = self.config.window if self.config.window is not None else to
        return to > self.offset and (self.kind == "growing" or self.offset < full)


class KeptRowsHidden(SinkModel):
    """mlx-lm: the mask for several rows is that of a window over all columns, the kept ones too."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees = super().mask(logical)
        n, size = self.queries or 0, self.config.window or 0
        if n < 2:
            return sees
        first = self.offset - n
        recent = max(0, min(size - 1, first) - self.sinks)
        columns = self.tokens[: min(first, self.sinks)] + self.tokens[first - recent :]
        old = len(columns) - n
        shown = [dict.fromkeys(columns[max(0, old + i + 1 - size) : old + i + 1], 0.0) for i in range(n)]
        return [[list(shown) for _ in heads] for heads in sees]


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


class WindowOfOne(RingModel):
    """transformers: with a window of one a layer never drops a row, and masks are too narrow for several."""

    def take(self, serials: list[int]) -> None:
        if self.config.window == 1 and len(serials) > 1 and self.offset:
            raise Unsaid
        super().take(serials)

    def visible(self) -> View:
        return ALL if self.config.window == 1 and self.queries == 1 else super().visible()

    def _kept(self, held: list[int]) -> list[int]:
        return held if self.config.window == 1 else super()._kept(held)


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


class NoRowsFixGeometry(CacheModel):
    """transformers: an update of no rows fixes the geometry of those that come after it."""

    empty = False

    def append(self, keys: Rows, values: Rows) -> None:
        if self._other(keys, values) and (not keys.n or (self.empty and not self.shaped)):
            raise Unsaid("ok refused error")
        super().append(keys, values)
        self.empty = True

    def _other(self, keys: Rows, values: Rows) -> bool:
        return not fit(keys, values, self.config, self.config.batch, self.config.kv_heads, keys.n)


class NoRowsRaise(RingModel):
    """transformers: a full static layer joins all rows but its oldest to none, and has too few for its buffer. One
    row fits a buffer of two."""

    def take(self, serials: list[int]) -> None:
        if not serials and self.offset >= self.window:
            raise Unsaid("ok") if self.window == 2 else Unsaid("error", kept=True)
        super().take(serials)


class CropsUnchecked(CacheModel):
    """transformers: a static layer is cropped to any length, whatever it has lost, and to less than none."""

    def can_rewind(self, to: int) -> bool:
        return to <= self.offset

    def rewind(self, to: int) -> None:
        with may("ok" if to <= self.offset else "refused"):
            super().rewind(to)


class CountsWhatIsKept(RingModel):
    """transformers: a sliding cache that is made of what another iterated over counts the rows that it is given."""

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        if snapshot is None or snapshot.stop < self.window:
            return super().restore(snapshot, to)
        with may("ok"):
            super().restore(snapshot, to)
        raise Unsaid


class WritesByPosition(CacheModel):
    """litgpt: a chunk is written into its slots before its first queries have seen what was there, and each query
    sees the slots up to its own position."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees, size = super().mask(logical), self.config.window or 0
        slots = {p % size: token for p, token in enumerate(self.tokens)} if size else {}
        first = self.offset - (self.queries or 0)
        shown = [{t: 0.0 for s, t in slots.items() if s <= first + i} for i in range(self.queries or 0)]
        return [[list(shown) for _ in heads] for heads in sees]


class ChunkWritesOver(CacheModel):
    """executorch: a ring of 2 W slots takes 2 W rows at once, over rows that its first queries need."""

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        sees = super().mask(logical)
        there = set(self.tokens[max(0, self.offset - 2 * (self.config.window or 0)) :])
        return [[[{s: x for s, x in q.items() if s in there} for q in qs] for qs in heads] for heads in sees]


class TakesMoreThanItHolds(BoundedModel):
    """flax: past its length the newest row takes the place of the last one."""

    def _demand_chunk(self, n: int) -> None:
        with may("ok", "BOUNDED-2"):
            super()._demand_chunk(n)


class QuietsNaN(BoundedModel):
    """flax: a signalling NaN in bfloat16 comes back as a quiet one, on a CPU."""

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        if keys.fill == "bits" and self.config.dtype == "bf16":
            raise Unsaid


class StaysAsLong(CacheModel):
    """llama.cpp: a state put back stays as long as it was, if a longer one is asked for."""

    def restore(self, snapshot: SavedTokens | None, to: int) -> None:
        super().restore(snapshot, to if snapshot is None else min(to, snapshot.stop))


class ChecksNothing(RaggedModel):
    """mlx-lm's BatchKVCache: other rows, lengths, numbers of sequences and caches are taken, or raise midway."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        with may("ok refused"):
            super().feed(keys, values, lengths)

    def extend(self, other: Any) -> None:
        with may("ok refused"):
            super().extend(other)

    def join(self, others: Sequence[Any]) -> None:
        with may("ok refused"):
            super().join(others)


class FiltersAnything(RaggedModel):
    """mlx-lm's BatchKVCache: a number of a sequence that there is not is taken, or reads out of bounds."""

    owed = "any crash"
    """What operations end with once nothing is said of the cache: how many sequences there are is not known."""

    def filter(self, order: Sequence[int]) -> None:
        with may("ok refused crash"):
            super().filter(order)

    def extract(self, sequence: int, into: Any) -> None:
        with may("ok refused crash"):
            super().extract(sequence, into)


class TrimsBeyond(RaggedModel):
    """mlx-lm's BatchKVCache: more rows are trimmed than the shortest sequence has."""

    def trim(self, counts: Sequence[int]) -> None:
        with may("ok"):
            super().trim(counts)


class ExtractsNothing(RaggedModel):
    """mlx-lm's BatchKVCache: a batch that never had a block cannot give a sequence out."""

    fed = False

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        super().feed(keys, values, lengths)
        self.fed = True

    def extend(self, other: Any) -> None:
        super().extend(other)
        self.fed = self.fed or getattr(other, "fed", False)

    def join(self, others: Sequence[Any]) -> None:
        super().join(others)
        self.fed = any(other.tokens for other in others)

    def extract(self, sequence: int, into: Any) -> None:
        if not self.fed and sequence in range(len(self.all)):
            raise Unsaid("error", kept=True)
        super().extract(sequence, into)


class BatchHalfWritten(RaggedModel):
    """mlx-lm's BatchRotatingKVCache: a block whose values do not fit has changed the keys before it raises."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        try:
            super().feed(keys, values, lengths)
        except (Refused, Unsaid):
            if self.window is not None:
                raise Unsaid("refused ok") from None
            raise


class HidesTheOldest(RaggedModel):
    """mlx-lm's BatchRotatingKVCache: behind columns that were written round, the mask of a block of several hides
    the first row of each sequence that is shorter than the window."""

    width = index = 0
    """The columns that are kept; and where the next one goes if they were written round, else 0."""
    hides: Sequence[bool] = ()

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        before, columns = self.sequences(), keys.shape[2]
        super().feed(keys, values, lengths)
        window = self.window or 0
        alone = columns == 1 and min(lengths) > 0
        self.hides = [not alone and 0 < self.index < window and n < window for n in before]
        if alone:
            self.index = self.index % window + 1 if window and (self.index or self.width >= window) else 0
            self.width = min(window, self.width + 1)
        else:
            self.width, self.index = min(self.width, max(0, window - 1)) + max(2, columns), 0

    def extend(self, other: Any) -> None:
        super().extend(other)
        if self.index != other.index:
            self.index = other.index = 0
        self.width = max(self.width, other.width)

    def join(self, others: Sequence[Any]) -> None:
        super().join(others)
        self.width, self.index = max(min(n, self.window or n) for n in self.sequences()), 0

    def mask(self) -> Any:
        shown = super().mask()
        for rows, hides, heads in zip(self.all, self.hides, shown, strict=True):
            for query in heads[0] if hides else ():
                if query is not None:
                    query.pop(rows[0], None)
        return shown


class SelectsAnything(RaggedModel):
    """transformers: a cache takes any order, one of nothing too, and looks at no number while it holds no rows."""

    def filter(self, order: Sequence[int]) -> None:
        with may("ok refused"):
            super().filter(order)

    def reorder(self, order: Sequence[int]) -> None:
        with may("ok refused"):
            super().reorder(order)

    def repeat(self, times: int) -> None:
        with may("ok refused"):
            super().repeat(times)


class EmptiedKeepsItsBatch(RaggedModel):
    """transformers: a cache of which all rows were cropped is left out when sequences are chosen, and then takes no
    rows of so many."""

    holds = 0
    """The sequences of the tensors that it was left with; 0 for none."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        if self.holds not in (0, len(self.all)) and not any(self.sequences()):
            raise Unsaid("error refused")
        super().feed(keys, values, lengths)
        self.holds = len(self.all)

    def filter(self, order: Sequence[int]) -> None:
        super().filter(order)
        self._chosen()

    def repeat(self, times: int) -> None:
        super().repeat(times)
        self._chosen()

    def _chosen(self) -> None:
        self.holds = len(self.all) if any(self.sequences()) else self.holds
