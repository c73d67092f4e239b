"""Bugs of windows, wraps and rewinds, planted in the reference's ring."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import planted
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.contract import Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.refusals import common


def zeros_behind(rows: Array, n: int) -> Array:
    """So many rows of zeros behind these."""
    return np.pad(np.asarray(rows), [(0, 0), (0, 0), (0, n), (0, 0)])


@planted(
    "RING-07",
    breaks="RING-26",
    anomaly="padding-seen",
    seen="ollama/ollama/commit/55fa80d07a9f2e9c51632328665d00f2cbdf7b02",
)
class CutAtTheOffset(Ring):
    """The state ends at the offset, even where the offset is behind the last slot."""

    def read(self, what: Readable) -> Pair | None:
        found = super().read(what)
        if what != "state" or found is None:
            return found
        return Pair(*(zeros_behind(a, self.offset - self.buffered) for a in found))


@planted("WIN-04", breaks="RING-1", seen="microsoft/onnxruntime/pull/25927")
class OwnRowNotCounted(Ring):
    """The window counts only the rows before a query, not the query's own row."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.window += 1


@planted(
    "TRIM-02",
    breaks="RING-6",
    anomaly="stale-cursor",
    seen="EricLBuehler/mistral.rs/commit/a20357cf8540e292f0891d520b740e20b0c3ad24",
)
class OffsetInTheRing(Ring):
    """A rewind sets the offset to the target's slot in the ring instead of its position."""

    def rewind(self, to: int) -> None:
        super().rewind(to)
        self.offset %= self.window


@planted("TRIM-03", breaks="RING-10", seen="ollama/ollama/commit/b42970063d8f05c47dd6d9a6b71f1e14cc4805c9")
class Unasked(Ring):
    """A rewind past the window does not check whether the rows it needs are still there."""

    def rewind(self, to: int) -> None:
        if not 0 <= to < self.offset or self.offset <= self.window:
            super().rewind(to)
            return
        self.index = (self.index - (self.offset - to)) % self.buffered
        self.offset, self.queries = to, None


@planted("TRIM-12", breaks="RING-10", seen="ml-explore/mlx-lm/issues/1776")
class IndexGoesBack(Ring):
    """A rewind past the window moves the index back as far as the offset, without wrapping."""

    def rewind(self, to: int) -> None:
        if not 0 <= to < self.offset or self.offset <= self.window:
            super().rewind(to)
            return
        self.index, self.offset, self.queries = max(0, self.index - (self.offset - to)), to, None


@planted("TRIM-06", breaks="RING-11", seen="ollama/ollama/commit/1fc35f1260a525aca8b63fcc9ed953b54c5eaace")
class AWindowBack(Ring):
    """`can_rewind` looks only at the length of the window, not at the rows there are, nor at the end."""

    def can_rewind(self, to: int) -> bool:
        super().can_rewind(to)
        return to >= max(0, self.offset - self.window)


@planted("POS-18", breaks="RING-11", anomaly="missing-refusal", seen="lmstudio-ai/mlx-engine/pull/188")
class LedgerKeepsAll(Ring):
    """`can_rewind` counts tokens and ignores the window, so that any earlier position seems possible."""

    def can_rewind(self, to: int) -> bool:
        super().can_rewind(to)
        return 0 <= to <= self.offset


@planted(
    "REUSE-05", breaks="RING-10 RING-11", anomaly="desynchronised-layers", seen="NVIDIA/TensorRT-LLM/pull/2983"
)
class AskedOfTheWidest(Ring):
    """Whether the rows of a prefix are still there is decided by a layer whose window is one row wider."""

    def can_rewind(self, to: int) -> bool:
        return super().can_rewind(to) or 0 <= to < self.offset == self.window + 1

    def rewind(self, to: int) -> None:
        if 0 <= to < self.offset == self.window + 1:
            self.offset = self.index = to
            self.queries = None
        else:
            super().rewind(to)


@planted("TRIM-14", breaks="RING-27 RING-30", anomaly="stale-cursor", seen="ggml-org/llama.cpp/issues/22746")
class RebasedOnce(Ring):
    """After a second rewind the index is still counted from where it stood at the last append."""

    base: tuple[int, int] | None = None

    def rewind(self, to: int) -> None:
        offset, index = self.offset, self.index
        super().rewind(to)
        if to < offset:
            self.base = self.base or (offset, index)
            self.index = max(0, self.base[1] - (offset - to))

    def append(self, keys: Array, values: Array) -> None:
        self.base = None
        super().append(keys, values)


@planted("PAD-10", breaks="RING-3 RING-25", anomaly="window-off-by-one", seen="ml-explore/mlx-lm/issues/439")
class PaddingInTheWindow(Ring):
    """A chunk is padded to an even number of rows, and the padding counts in the window."""

    def _prefill(self, new: Pair) -> None:
        real, self.window = self.window, max(1, self.window - new.keys.shape[2] % 2)
        full, self.window = self.window, real
        if self.offset <= self.window:
            super()._prefill(new)
            return
        self._straighten()
        self.rows.join(new, max(0, len(self.rows) - (full - 1)))
        self.index = len(self.rows)


@planted(
    "GROW-05",
    breaks="RING-3 RING-18",
    anomaly="window-off-by-one",
    seen="pytorch/executorch/commit/ed07a9d8572ea64162fc8a722906530729884f88",
)
class CapOfTheWindow(Ring):
    """The ring never holds more rows than the window: only the newest rows of a longer chunk are kept."""

    def _prefill(self, new: Pair) -> None:
        super()._prefill(new)
        self.rows.keep(max(0, len(self.rows) - self.window), len(self.rows))
        self.index = len(self.rows)

    @property
    def buffered(self) -> int:
        return len(self.rows) if self.offset > len(self.rows) else self.offset


@planted(
    "LAYER-03",
    breaks="RING-1",
    anomaly="wrong-mask",
    seen="ml-explore/mlx-swift-lm/commit/c97539da0e8554d2fad90cc79692381eab1c7906",
)
class FullLayer(Growing):
    """A layer with a window gets an ordinary growing cache, because the code that makes rings is never
    called."""

    kind = "ring"

    def __init__(self, config: Config) -> None:
        if config.window is None:
            raise common.config("RING-14", self.kind, config)
        super().__init__(config)
