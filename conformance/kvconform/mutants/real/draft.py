"""Bugs of speculation, planted in the reference's rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvadapters.reference import Reference
from kvconform.mutants.planting import planted
from kvref.draft import Layer, Round
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.rows import count
from kvspec.contract import Pair
from kvspec.errors import Refused


@planted(
    "SPEC-01",
    breaks="DRAFT-18",
    anomaly="lost-rows",
    seen="mlc-ai/mlc-llm/commit/44b56753a602df40195f67063951e37959c0ff6e",
)
class LosesTheLast(Layer):
    """When all drafts are accepted, the last one is missing from the cache."""

    def keep(self, n: int) -> None:
        super().keep(n - 1 if n == self.drafts else n)


@planted(
    "SPEC-02",
    breaks="DRAFT-22",
    anomaly="desynchronised-layers",
    seen="mlc-ai/mlc-llm/commit/9336b4a3451a3b714bd7613dc6641a7ff873109e",
)
class OneForgets(Round):
    """Rejected drafts are dropped from the first cache but stay in the others."""

    def commit(self, n: int) -> None:
        for layer in list(self.layers.values())[1:]:
            layer.keep = lambda _, layer=layer: Layer.keep(layer, layer.drafts)  # type: ignore
        super().commit(n)


@planted("SPEC-06", breaks="DRAFT-1 DRAFT-18", anomaly="wrong-position", seen="vllm-project/vllm/pull/9730")
class KeepsAnother(Layer):
    """The rows kept are those of the next drafts, one further on."""

    def keep(self, n: int) -> None:
        self.before += n < self.drafts
        super().keep(n)


@planted("SPEC-07", breaks="DRAFT-16", anomaly="missing-refusal", seen="ml-explore/mlx-lm/pull/1109")
class NobodyAsks(Reference):
    """A cache that cannot drop drafts is treated as a layer without a cache."""

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        return Round([c if isinstance(c, Growing | Ring) else None for c in caches], isolated)


@planted("SPEC-08", breaks="DRAFT-3", anomaly="lost-rows", seen="huggingface/transformers/pull/47447")
class EvictsAtOnce(Layer):
    """Drafts evict rows from the window that earlier drafts still need."""

    def draft(self, new: Pair) -> None:
        super().draft(new)
        old = max(0, len(self.rows) - (self.window or len(self.rows)))
        self.start, self.before = self.start + min(old, self.before) - old, self.before - old
        self.rows.keep(old, len(self.rows))


@planted("SPEC-09", breaks="DRAFT-18", anomaly="lost-rows", seen="lablup/mlxcel/issues/994")
class GoesOneTooFar(Layer):
    """When some drafts are rejected, one accepted draft is dropped too."""

    def keep(self, n: int) -> None:
        super().keep(n - 1 if n < self.drafts else n)


@planted("SPEC-13", breaks="DRAFT-22", seen="ggml-org/llama.cpp/issues/28049")
class IgnoresTheStop(Layer):
    """A commit keeps all drafts, even if it should keep only some."""

    def keep(self, n: int) -> None:
        super().keep(self.drafts if n > 0 else 0)


@planted(
    "TRIM-05",
    breaks="DRAFT-17 DRAFT-18",
    anomaly="desynchronised-layers",
    seen="lmstudio-ai/mlx-engine/commit/89f9a9a1a6bd6e5b50c3ab869e177a17c5c4fcc8",
)
class AsksLayerZero(Round):
    """The number of drafts to keep is taken from layer 0."""

    def commit(self, n: int) -> None:
        super().commit(n if 0 in self.layers else 0)


@planted("TRIM-09", breaks="DRAFT-22", anomaly="stale-tail", seen="ml-explore/mlx-swift-lm/pull/584")
class GivesUp(Round):
    """Once one layer has wrapped, a commit silently drops nothing from any layer."""

    def commit(self, n: int) -> None:
        wrapped = any(layer.window and layer.start > layer.window for layer in self.layers.values())
        super().commit(n if not wrapped else max(layer.drafts for layer in self.layers.values()))


@planted(
    "RING-05",
    breaks="DRAFT-4 DRAFT-5",
    seen="EricLBuehler/mistral.rs/commit/3b129ca9114b5aae78b822252606b26d63b23848",
)
class InSlotOrder(Layer):
    """A draft sees rows in slot order through a mask in position order."""

    def draft(self, new: Pair) -> None:
        if self.window and not self.drafts:
            slots, kept = self.cache.rows, self.before
            self.rows.keep(0, 0)
            self.rows.join(slots.copy(self.cache.buffered - kept, self.cache.buffered))
        super().draft(new)


@planted(
    "POS-05",
    breaks="DRAFT-1 DRAFT-21",
    anomaly="changed-though-refused",
    seen="ollama/ollama/commit/c3ff9164317940ec09534fd2370ec604a0de32ad",
)
class CountsWhatFailed(Layer):
    """Refused drafts are counted."""

    def draft(self, new: Pair) -> None:
        try:
            super().draft(new)
        except Refused:
            self.start += count(new)
            raise


@planted(
    "POS-09",
    breaks="DRAFT-8 DRAFT-21",
    anomaly="stale-tail",
    seen="ml-explore/mlx-lm/commit/d17184063a191b5906d7ce32220803db0a279089",
)
class StaysLonger(Round):
    """An abandoned round leaves its drafts in the cache."""

    def abandon(self) -> None:
        super().abandon()
        for layer in () if self.isolated else self.layers.values():
            layer.keep(layer.drafts)


@planted("SNAP-12", breaks="DRAFT-12", anomaly="missing-refusal", seen="ml-explore/mlx-lm/pull/1746")
class SavesInBetween(Growing):
    """A snapshot can be taken while a round is open."""

    def snapshot(self, start: int) -> Any:
        return Growing.snapshot.__wrapped__(self, start)  # type: ignore[attr-defined]
