"""Bugs of padding, bounds, blocks and cross-attention, planted in the reference's bucketed cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvadapters.reference import Reference
from kvconform.mutants.planting import having, planted
from kvref.bucket import Bucket
from kvref.compiled_graph import Graph, Handles, over
from kvspec.contract import Pair
from kvspec.geometry import Array


def running(graph: type[Graph]) -> Callable[[], Reference]:
    """Makes the reference with these graphs."""
    return having(bucket=type(graph.__name__, (Bucket,), {"graph": graph}))


def padded(rows: Array, slots: int) -> Array:
    """Rows of all layers with zeros behind them."""
    return np.pad(rows, [(0, 0)] * 3 + [(0, slots - rows.shape[3]), (0, 0)])


@planted("DTYPE-09", breaks="BUCKET-19", anomaly="stale-tail", seen="huggingface/transformers/pull/45510")
class CutMissesTheNewest(Bucket):
    """A cut reaches only the installed rows; the newest row, which stands apart behind the padding, stays."""

    def cut(self, to: int) -> None:
        newest = self.pending
        super().cut(to)
        self.pending = newest and to > 0


@planted("DTYPE-10", breaks="BUCKET-18 BUCKET-21", anomaly="lost-rows", seen="NVIDIA/kvpress/issues/27")
class NewestNotCounted(Bucket):
    """A read of all rows leaves out the one that stands behind the padding."""

    def _newest(self) -> Pair:
        found = super()._newest()
        behind = self.handles is not None and not self.stale and self.pending
        return Pair(*(a[..., : a.shape[3] - behind, :] for a in found))


@planted(
    "PAD-01", breaks="BUCKET-2", seen="AI-Hypercomputer/maxtext/commit/604d91aa4f6b96f635f84a21a45908bdd7185aee"
)
class PaddedLength(Bucket):
    """The length of a prefill is that of the bucket it was padded to."""

    def prefill(self, keys: Array, values: Array) -> None:
        n = keys.shape[3] if keys.ndim == 5 else 0
        bound = next((b for b in self.bounds if b >= n), n)
        super().prefill(keys, values)
        self.rows = Pair(*(padded(a, bound) for a in self.rows))
        self.past_ = bound


@planted(
    "POS-16",
    breaks="BUCKET-4",
    anomaly="hole",
    seen="microsoft/onnxruntime-genai/commit/1cae16873b3d744a527b23bf85db343cdefc0f29",
)
class BehindItsSlot(Bucket):
    """The row of the previous step is moved to the slot behind its own."""

    def _compact(self, handles: Handles) -> None:
        if self.pending and self.past_ < handles.bound:
            handles.write(self.past_, handles.part(handles.bound, handles.bound + 1))
            self.pending = False
        super()._compact(handles)


@planted("MASK-21", breaks="BUCKET-4", into=running, seen="google/flax/issues/5591")
class OnlyTheFirst(Graph):
    """A decode uses the mask of the very first query, and sees one row."""

    def run(self, handles: Handles, queries: Array, new: Pair, past: int, splits: int) -> Array:
        found = super().run(handles, queries, new, past, splits)
        if past == 0 or queries.shape[3] > 1:
            return found
        keys, values = (a[..., :1, :] for a in (handles.keys, handles.values))
        return over(queries, keys, values, splits, causal=True)


@planted("PAD-09", breaks="BUCKET-5", into=running, seen="meta-pytorch/gpt-fast/issues/233")
class ZerosSeen(Graph):
    """Attention covers every slot of the handles."""

    def run(self, handles: Handles, queries: Array, new: Pair, past: int, splits: int) -> Array:
        return super().run(handles, queries, new, self.bound, splits)


@planted(
    "PAD-03",
    breaks="BUCKET-5",
    into=running,
    seen="flashinfer-ai/flashinfer/commit/7f33b20840d00f5521400d23e3a75c62056e94dc",
)
class TailInTheDenominator(Graph):
    """Slots beyond the rows are counted in the denominator of the softmax."""

    def run(self, handles: Handles, queries: Array, new: Pair, past: int, splits: int) -> Array:
        found = super().run(handles, queries, new, past, splits)
        behind = handles.behind
        return found * np.float32((past + behind) / (self.bound + behind))


@planted(
    "SNAP-05",
    breaks="BUCKET-10",
    anomaly="stale-capture",
    seen="pytorch/executorch/commit/f11e4d37dbb491166ca495280a4e84d06e02b793",
)
class OldHandles(Bucket):
    """The graph keeps its first handles after a refresh."""

    def _ready(self, refresh: bool, room: int = 1) -> tuple[Graph, Handles]:
        old = self.handles
        graph, made = super()._ready(refresh, room)
        kept = refresh and old is not None and old.bound == graph.bound
        return graph, old if kept and old is not None else made


@planted("GROW-07", breaks="BUCKET-12", seen="oxiglade/mlx-rs/pull/338")
class NewestLeftBehind(Bucket):
    """The row behind the padding is not carried over: zeros take its place."""

    def _carried(self, handles: Handles) -> list[tuple[int, Pair]]:
        return super()._carried(handles)[:1]


@planted(
    "TRIM-05",
    breaks="BUCKET-12",
    anomaly="desynchronised-layers",
    seen="lmstudio-ai/mlx-engine/commit/89f9a9a1a6bd6e5b50c3ab869e177a17c5c4fcc8",
)
class Layer0Alone(Bucket):
    """Only layer 0 is carried over."""

    def _carried(self, handles: Handles) -> list[tuple[int, Pair]]:
        whole = super()._carried(handles)
        for _, part in whole:
            for rows in part:
                rows[1:] = 0
        return whole


@planted("POS-05", breaks="BUCKET-14", seen="ollama/ollama/commit/c3ff9164317940ec09534fd2370ec604a0de32ad")
class CountedWhenAsked(Bucket):
    """The rows of a block are counted before they are committed."""

    def block(self, queries: Array, keys: Array, values: Array, splits: int, past: Any, out: Any = None) -> Array:
        found = super().block(queries, keys, values, splits, past, out)
        self.past_ += keys.shape[3]
        return found


@planted("SPEC-02", breaks="BUCKET-16", seen="mlc-ai/mlc-llm/commit/9336b4a3451a3b714bd7613dc6641a7ff873109e")
class NeverReset(Bucket):
    """Steps continue on the rows that a block left."""

    def _demand_current(self) -> None:
        self.blocked = False
        super()._demand_current()


@planted("SNAP-12", breaks="BUCKET-18", anomaly="padding-seen", seen="ml-explore/mlx-lm/pull/1746")
class FillerSynced(Bucket):
    """A sync copies rows to the host before they are compacted."""

    def sync(self) -> None:
        super().sync()
        if self.handles is not None and not self.stale:
            self.rows = self.handles.fetched(list(range(self.past_)))


@planted("SPEC-02", breaks="BUCKET-19", seen="mlc-ai/mlc-llm/commit/9336b4a3451a3b714bd7613dc6641a7ff873109e")
class RejectedOnTheHost(Bucket):
    """A cut reaches the rows on the device, but not those on the host."""

    def cut(self, to: int) -> None:
        rows = self.rows
        super().cut(to)
        self.rows = rows


@planted("GROW-08", breaks="BUCKET-21", anomaly="padding-seen", seen="ROCm/hip-ep/pull/989")
class BoundAsLength(Bucket):
    """A layer is read up to its bound instead of its length."""

    def read(self, layer: int) -> Pair:
        found = super().read(layer)
        if self.handles is None or self.stale or self.past_ > self.handles.bound:
            return found
        whole = self.handles.fetched(list(range(self.handles.bound)))
        return Pair(*(a[layer] for a in whole))


@planted("XATTN-02", breaks="BUCKET-22", seen="vllm-project/vllm/pull/38321")
class EncodingAsOwnRows(Bucket):
    """The encoder's rows are treated as the decoder's own, and hidden from earlier queries."""

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        found = super().cross(queries, splits, out)
        if self.encoded is None or queries.shape[3] == 0:
            return found
        hidden = over(queries, *self.encoded, splits, causal=True)
        return hidden if out is None else found


@planted(
    "XATTN-01",
    breaks="BUCKET-23",
    anomaly="doubled-rows",
    seen="huggingface/candle/commit/2e5fb0b2518aa7f7c666967fe4160462578cf8d0",
)
class GrowingEncoding(Bucket):
    """The last row of the encoder is appended again at every step."""

    steps = 0

    def decode(
        self, queries: Array, keys: Array, values: Array, splits: int, refresh: bool, past: Any, out: Any = None
    ) -> Array:
        found = super().decode(queries, keys, values, splits, refresh, past, out)
        self.steps += self.encoded is not None
        return found

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        whole = self.encoded
        if whole is not None:
            self.encoded = Pair(*(np.concatenate([a, *[a[..., -1:, :]] * self.steps], axis=3) for a in whole))
        try:
            return super().cross(queries, splits, out)
        finally:
            self.encoded = whole


@planted("XATTN-03", breaks="BUCKET-23", seen="huggingface/transformers/pull/46111")
class WindowedEncoding(Bucket):
    """Only as many of the encoder's rows are seen as a decoder keeps."""

    def cross(self, queries: Array, splits: int = 1, out: Array | None = None) -> Array:
        whole = self.encoded
        if whole is not None:
            self.encoded = Pair(*(a[..., -self.bounds[-1] :, :] for a in whole))
        try:
            return super().cross(queries, splits, out)
        finally:
            self.encoded = whole


@planted(
    "PAD-02",
    breaks="BUCKET-31",
    anomaly="wrong-position",
    seen="microsoft/onnxruntime-genai/commit/81a7aca47fe02ac94a07f16aed6d004029a9af54",
)
class PaddingFirst(Bucket):
    """Rows are installed at the end of their handles, behind the padding."""

    def _install(self, rows: list[tuple[int, Pair]], bound: int, room: int) -> Handles:
        handles = super()._install(rows, bound, room)
        for array in (handles.keys, handles.values):
            array[..., :bound, :] = np.roll(array[..., :bound, :], bound - self.past_, axis=3)
        return handles
