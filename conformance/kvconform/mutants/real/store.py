"""Bugs of lengths, positions, bounds and host snapshots, planted in the reference's store."""

from __future__ import annotations

from collections.abc import Sequence

from kvconform.mutants.planting import planted
from kvref.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


@planted(
    "POS-10",
    breaks="STORE-3 STORE-4",
    anomaly="overwritten-rows",
    seen="pytorch/executorch/commit/8946d8085d338cc05b763fbcfa599c3265a3f41f",
)
class OnlyPromptsCount(Store):
    """Once there is a prompt, appending a single row does not increase the length."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        before = list(self.lengths_)
        super().append(keys, values, layer)
        if keys.shape[2] == 1 and min(before) > 0:
            self.lengths_ = before


@planted(
    "TRIM-05",
    breaks="STORE-3",
    anomaly="desynchronised-layers",
    seen="lmstudio-ai/mlx-engine/commit/89f9a9a1a6bd6e5b50c3ab869e177a17c5c4fcc8",
)
class LengthOfLayer0(Store):
    """Every layer is assumed to be as long as the first."""

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        if layer is None and keys.shape[2]:
            self.lengths_ = [self.lengths_[0]] * len(self.lengths_)
        super().append(keys, values, layer)


@planted("GROW-08", breaks="STORE-5", anomaly="padding-seen", seen="ROCm/hip-ep/pull/989")
class ExtentAsLength(Store):
    """A read returns the whole buffer instead of the live rows."""

    def read(self, layer: int) -> Pair:
        lengths = self.lengths_
        self.lengths_ = [n and self.max_len for n in lengths]
        found = super().read(layer)
        self.lengths_ = lengths
        return found


@planted(
    "POS-06",
    breaks="STORE-8",
    anomaly="missing-refusal",
    seen="tinygrad/tinygrad/commit/91ccf1c343ad250e93cfe4b2c1f7a5e97897b8b2",
)
class OnePastTheEnd(Store):
    """The bound of a position is inclusive: a row at max_len is accepted but not stored."""

    def _demand_room(self, layers: Sequence[int], n: int) -> None:
        super()._demand_room(layers, n - 1)

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        super()._write(layer, at, Pair(*(a[:, : self.max_len - at] for a in rows)))


@planted("BOUND-02", breaks="STORE-8", seen="ollama/ollama/commit/bf24498b1ea2728ef735030f186d1c970c38eaa6")
class RoomForOne(Store):
    """The check for room assumes one row, however many are appended."""

    def _demand_room(self, layers: Sequence[int], n: int) -> None:
        super()._demand_room(layers, min(n, 1))

    def _write(self, layer: int, at: int, rows: Pair) -> None:
        super()._write(layer, at, Pair(*(a[:, : self.max_len - at] for a in rows)))


@planted(
    "SNAP-02",
    breaks="STORE-13",
    anomaly="stale-tail",
    seen="google/gemma.cpp/commit/e54d9cbdddf98b79c698cbb4d08dd3c0c88325fc",
)
class NotCleared(Store):
    """Clearing sets the lengths to 0 but leaves the rows."""

    def zero(self) -> None:
        rows = [a.copy() for a in (*self.keys, *self.values)]
        super().zero()
        for array, row in zip((*self.keys, *self.values), rows, strict=True):
            array[...] = row


@planted("TRIM-08", breaks="STORE-14", anomaly="silent-no-op", seen="microsoft/onnxruntime-genai/issues/2140")
class DeafToRollback(Store):
    """A rollback reports success and changes nothing."""

    def rollback(self, to: int) -> None:
        before = self.lengths_
        super().rollback(to)
        self.lengths_ = before


@planted(
    "TRIM-01",
    breaks="STORE-14",
    anomaly="stale-tail",
    seen="mlc-ai/mlc-llm/commit/ad3a6b998dab3df2d3a0a0f97ffb3da914b1e67c",
)
class OneTooMany(Store):
    """A rollback leaves one row too many."""

    def rollback(self, to: int) -> None:
        before = self.lengths_
        super().rollback(to)
        self.lengths_ = [min(n, to + 1) for n in before]


@planted("TRIM-10", breaks="STORE-15", seen="huggingface/transformers/issues/47433")
class FromTheEnd(Store):
    """A negative length counts from the end."""

    def rollback(self, to: int) -> None:
        super().rollback(to if to >= 0 else max(0, max(self.lengths_) + to))


@planted("BOUND-06", breaks="STORE-17", seen="vllm-project/vllm/pull/1514")
class Narrow(Store):
    """Lengths are truncated to their lower 31 bits."""

    def set_length(self, layer: int, n: int) -> None:
        super().set_length(layer, n & 0x7FFFFFFF)


@planted(
    "SNAP-06",
    breaks="STORE-18",
    anomaly="desynchronised-layers",
    seen="ml-explore/mlx-lm/commit/23af85703e426031a927e91a907ebe7caf64e092",
)
class LastLayerSaved(Store):
    """A save stores the last layer in the place of every layer."""

    def save(self) -> list[Pair]:
        saved = super().save()
        return [saved[-1]] * len(saved)


@planted(
    "MEM-04",
    breaks="STORE-11 STORE-19",
    anomaly="aliased-snapshot",
    seen="ollama/ollama/commit/d1151e18a1a689e47d2c1c27538213ae412d0297",
)
class SavedByReference(Store):
    """A save returns a view of the live rows."""

    def save(self) -> list[Pair]:
        super().save()
        return [Pair(k[:, :n], v[:, :n]) for k, v, n in zip(self.keys, self.values, self.lengths_, strict=True)]


@planted(
    "SNAP-01", breaks="STORE-20", seen="turboderp-org/exllamav2/commit/e6bb29f06b62651d2edc8467d63d19912b551bc5"
)
class RowsWithoutLengths(Store):
    """A load brings back the rows but sets all lengths to 0."""

    def load(self, saved: Sequence[Pair]) -> None:
        super().load(saved)
        self.lengths_ = [0] * len(self.lengths_)


@planted(
    "LAYER-01", breaks="STORE-20", seen="EricLBuehler/mistral.rs/commit/86190f8b7b473d0161134aa62d097db5ef121300"
)
class Layer0AsTemplate(Store):
    """A load gives every layer the length of the first."""

    def load(self, saved: Sequence[Pair]) -> None:
        super().load(saved)
        self.lengths_ = [self.lengths_[0]] * len(self.lengths_)


@planted("REUSE-10", breaks="STORE-20", anomaly="padding-seen", seen="sgl-project/sglang/pull/31108")
class LongestLoaded(Store):
    """A load gives every layer the longest length, though some layers had fewer rows."""

    def load(self, saved: Sequence[Pair]) -> None:
        super().load(saved)
        self.lengths_ = [max(self.lengths_)] * len(self.lengths_)


@planted("SNAP-14", breaks="STORE-20", anomaly="keys-without-values", seen="unslothai/llama.cpp/pull/143")
class KeysWithoutValues(Store):
    """A load brings back the keys but not the values."""

    def load(self, saved: Sequence[Pair]) -> None:
        before = [a.copy() for a in self.values]
        super().load(saved)
        self.values = before


@planted(
    "GQA-01",
    breaks="STORE-26 STORE-10",
    anomaly="missing-refusal",
    seen="tinygrad/tinygrad/commit/880e693207500713bf4bc8e896fd30657a6a46a9",
)
class HeadsIgnored(Store):
    """A geometry with another number of kv heads counts as the same geometry."""

    def init(self, config: Config) -> None:
        super().init(config if config.kv_heads < 1 else config.changed(kv_heads=self.config.kv_heads))
