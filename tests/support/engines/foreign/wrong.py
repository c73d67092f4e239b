"""The same implementations, each wrong in one thing."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.masks import Causal
from support.engines.foreign import (
    brought,
    bucketing,
    copying,
    counting,
    drafting,
    layering,
    padding,
    paging,
    planning,
    remembering,
    rotating,
    storing,
)
from support.engines.foreign.wrong_attention import having


def opening(engine: Any, kind: str, cache: type) -> Any:
    """The engine with these caches of one kind."""

    class Opening(engine):  # type: ignore[misc]
        def open(self, opened: str, config: Any) -> Any:
            return cache(config) if opened == kind else super().open(opened, config)

    return Opening


class CutBits(copying.Side):
    """Casts to bf16 cut the low bits off."""

    def write(self, row: Any, slot: int) -> None:
        cut = self.name == "bf16" and row.dtype == np.float32
        super().write((row.view(np.uint32) & 0xFFFF0000).view(np.float32) if cut else row, slot)


class CuttingBuffer(copying.Buffer):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.sides = CutBits(config, config.k_dim), CutBits(config, config.v_dim)


Cutting = opening(copying.Bytes, "copy", CuttingBuffer)


class KeepsOneMore(drafting.Round):
    """A commit keeps one draft more."""

    def commit(self, n: int) -> None:
        super().commit(n + 1 if n > 0 else n)


class KeepingOneMore(drafting.DeepCopies):
    def speculate(self, caches: Any, isolated: bool) -> Any:
        return KeepsOneMore(caches, isolated)


class LengthOfLayer0(storing.Store):
    """Rows go behind those of layer 0, whatever layer they are of."""

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        own = list(self.length)
        if keys.shape[2] and layer is None:
            self.length = [self.length[0]] * len(own)
        super().append(keys, values, layer)


class LostLayer(storing.Store):
    """A scatter of one layer forgets what the others hold."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        super().scatter(sequence, n, layer)
        for x in range(self.config.layers if layer is not None else 0):
            self.there()[sequence][x] = self.there()[sequence][x] if x == layer else []


FirstLength = opening(storing.Dictionaries, "store", LengthOfLayer0)
Forgetting = opening(storing.Dictionaries, "store", LostLayer)


class WritesToShared(paging.Pool):
    """Rows are written to a page that another sequence has too."""

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        of = self.all.get(sequence)
        page = of.table[-1] if of is not None and of.table else None
        super().append(keys, values, sequence)
        if page is not None and of is not None:
            used = of.table[(of.length - keys.shape[2] - 1) // self.config.page_size]
            page[:] = used


Writing = opening(paging.Lists, "page", WritesToShared)


class OtherSide(padding.Batch):
    """Blocks that are padded on the left are read from the right."""

    def owned(self, length: int, n: int) -> range:
        return range(length)


Left = opening(padding.Padded, "ragged", OtherSide)


class FromTheLongest(padding.Batch):
    """The window of every sequence ends where the longest one does."""

    def mask(self) -> Any:
        shown, window = super().mask(), self.config.window
        if window is None:
            return shown
        ages = [max(map(len, self.all)) - len(rows) for rows in self.all]
        place = np.arange(self.width()) - np.array(self.starts())[:, None]
        newest = self.positions()[:, :, None] + np.array(ages)[:, None, None]
        return shown & (place[:, None] > newest - window)[:, None]


Longest = opening(padding.Padded, "ragged", FromTheLongest)


class StaleHost(bucketing.Bucket):
    """A prefill over handles is not noticed."""

    def prefill(self, keys: Any, values: Any) -> None:
        super().prefill(keys, values)
        self.host_is_newer = False


Stale = opening(bucketing.Closures, "bucket", StaleHost)


class FromSlotOne(rotating.Complex):
    """Positions begin at 1."""

    def rotate(self, rows: Any, positions: Any, rope: Any) -> Any:
        return super().rotate(rows, positions + 1, rope)


class ForgetsOldBuffer(planning.Doubling):
    """A plan counts the new buffer and not the old one beside it; where there is room it says too little."""

    def plan(self, n: int) -> tuple[int, int]:
        after, _ = super().plan(n)
        return after, after // 2


Forgetful = opening(planning.Counting, "growing", ForgetsOldBuffer)


class CopiesAll(counting.Cache):
    """Each append brings its rows back to the host."""

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys, values)
        if keys.shape[2]:
            self.device.download(self.sides[0])


class Crossing(counting.Counted):
    def open(self, kind: str, config: Any) -> Any:
        return CopiesAll(self.device, config) if kind == "growing" else super().open(kind, config)


class OneTooWide(remembering.Remembering):
    """A window has one row more."""

    def __init__(self, kind: str, config: Any) -> None:
        super().__init__(kind, config)
        self.newest = None if self.newest is None else self.newest + 1


class SplitsLater(remembering.Remembering):
    """A snapshot is split one row further on."""

    def split(self, saved: Any, at: int) -> Any:
        return super().split(saved, at + 1)


class SeesTheNext(remembering.Remembering):
    """Causal shows a query the row behind its own, if there is one."""

    def part(self, part: Any, n: int) -> Any:
        shown = super().part(part, n)
        if isinstance(part, Causal):
            shown[..., 1:] |= shown[..., :-1].copy()
        return shown


class OneMoreFits(remembering.Remembering):
    """A bounded cache has room for one row more."""

    def append(self, keys: Any, values: Any) -> None:
        own, most = self.config, self.config.max_len
        self.config = own.changed(max_len=most and most + 1)
        try:
            super().append(keys, values)
        finally:
            self.config = own


class RewindsToTheNext(remembering.Remembering):
    """A rewind keeps one row more."""

    def rewind(self, to: int) -> None:
        super().rewind(to + (0 < to < len(self.rows)))


class HasRoom(remembering.Remembering):
    """A cache says that it has room for one row more than it has."""

    def can_append(self, n: int) -> bool:
        return super().can_append(max(0, n - 1))


class SinksByPosition(remembering.Remembering):
    """After a choice the sinks are still rows of the first positions."""

    def sink(self, p: int) -> bool:
        return p < self.kept


class CutsChosen(remembering.Remembering):
    """A rewind goes back past a choice, to what is left."""

    def can_rewind(self, to: int) -> bool:
        return 0 <= to <= len(self.rows) and self.all_there(len(self.rows), self.hidden)


class Splitting(remembering.Everything):
    CACHE: Any = SplitsLater

    def open(self, kind: str, config: Any) -> Any:
        return self.CACHE(kind, config) if kind in remembering.KINDS else super().open(kind, config)


TooWide = having(Splitting, OneTooWide)
ForgettingSinks = having(Splitting, SinksByPosition)
CuttingChosen = having(Splitting, CutsChosen)
Peeking = having(Splitting, SeesTheNext)
Promising = having(Splitting, HasRoom)
Overfull = having(Splitting, OneMoreFits)
Rewinding = having(Splitting, RewindsToTheNext)


class AsksTheFirst(layering.Tokens):
    """A rewind asks the first layer alone."""

    def can_rewind(self, to: int) -> bool:
        end, first = len(self.tokens), self.own[0]
        return to == end or (0 <= to < end and self.views[first].needed(to) <= self.has[first])


FirstAsked = having(layering.Remembered, AsksTheFirst)


class FoldsSeveralAnew(layering.Tokens):
    """An append of several tokens folds them, and nothing that was there before."""

    def states(self) -> dict[int, Any]:
        tokens = self.tokens
        self.tokens = tokens[-self.queries :] if self.queries > 1 else tokens
        found = super().states()
        self.tokens = tokens
        return found


FoldedAnew = having(layering.Remembered, FoldsSeveralAnew)


class CutsTheEncoder(layering.Tokens):
    """A rewind cuts all rows to the target, the encoder's too."""

    def rewind(self, to: int) -> None:
        super().rewind(to)
        self.source = self.source and Pair(*(a[:, :, -to:] if to else a[:, :, :0] for a in self.source))


EncoderCut = having(layering.Remembered, CutsTheEncoder)


WRONG = {
    "wrong_attention:Float64TopLeft": ["ATTN-4"],
    "wrong_attention:Float64WiderWindow": ["ATTN-5"],
    "wrong_attention:Float32ScaledByValues": ["ATTN-3"],
    "wrong_attention:Float32TopLeft": ["ATTN-4"],
    "wrong_torch:IsCausal": ["ATTN-4"],
    "wrong_attention:Float32SinkForgotten": ["ATTN-53"],
    "wrong_attention:Float32BaseTwo": ["ATTN-62"],
    "wrong_attention:Float32PartsAlike": ["ATTN-62"],
    "wrong_attention:Float32EmptyPartsCount": ["ATTN-63"],
    "wrong_attention:Float32SinkOfKvHeads": ["ATTN-55"],
    "wrong_attention:HardwareTanhUndeclared": ["ATTN-39"],
    "wrong_attention:HardwareTanhCoarse": ["ATTN-39"],
    "wrong:TooWide": ["RING-1", "SINK-1"],
    "wrong:ForgettingSinks": ["SINK-37"],
    "wrong:CuttingChosen": ["SINK-42"],
    "wrong:Splitting": ["SNAP-22"],
    "wrong:Peeking": ["MASK-2"],
    "wrong:Overfull": ["BOUNDED-2"],
    "wrong:Promising": ["ASK-1"],
    "wrong:Rewinding": ["GROW-5"],
    "wrong:Cutting": ["COPY-12"],
    "wrong:KeepingOneMore": ["DRAFT-18"],
    "branching:TakesPrefix": ["DRAFT-40"],
    "wrong:FirstLength": ["STORE-3"],
    "wrong:Forgetting": ["BATCH-8"],
    "wrong:Writing": ["PAGE-18"],
    "wrong:Left": ["RAGGED-3"],
    "wrong:Longest": ["RAGGED-31"],
    "wrong:FirstAsked": ["LAYER-15"],
    "wrong:FoldedAnew": ["LAYER-36"],
    "wrong:EncoderCut": ["LAYER-42"],
    "wrong:Stale": ["BUCKET-2"],
    "wrong:FromSlotOne": ["ROPE-3"],
    "wrong:Forgetful": ["MEM-7"],
    "wrong:Crossing": ["RESIDENCY-2"],
    **{wrong: clauses for listed in brought("WRONG") for wrong, clauses in dict(listed).items()},
}
"""Each with clauses that it breaks; a module that is named like a chapter lists its own."""
