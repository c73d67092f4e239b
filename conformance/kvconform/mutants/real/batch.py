"""Bugs of batches, slots and captured graphs, planted in the reference's batch."""

from __future__ import annotations

from kvconform.mutants.planting import planted
from kvref.batch import Batch, Captured
from kvref.store import Store
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.refusals import common


@planted("ASYNC-09", breaks="BATCH-4", seen="infinigence/ApxInf/pull/89")
class ResetAllocates(Store):
    """A reset of the batch allocates new buffers."""

    def reset_batch(self) -> None:
        super().reset_batch()
        assert self.batch_ is not None
        m = len(self.batch_.lengths)
        self.batch_ = Batch(self.config, self.batch_.places)
        self.batch_.begin(m)


@planted("ASYNC-06", breaks="BATCH-24", seen="spiritbuun/buun-llama-cpp/issues/116")
class ReplayRemembers(Store):
    """Captured work writes behind the lengths of the moment of capture, one further each time."""

    def capture(self) -> Captured:
        captured = super().capture()
        at = list(captured.batch.lengths)

        def replay(keys: Array, values: Array) -> None:
            now, captured.batch.lengths = captured.batch.lengths, list(at)
            try:
                Captured.replay(captured, keys, values)
            except Exception:
                captured.batch.lengths = now
                raise
            at[:] = captured.batch.lengths

        captured.replay = replay  # type: ignore[method-assign]
        return captured


@planted("SLOT-04", breaks="BATCH-13", seen="microsoft/onnxruntime/pull/20521")
class LengthOfTheFirst(Store):
    """A step writes every sequence's row at the length of the first sequence."""

    def step(self, keys: Array, values: Array) -> None:
        batch, before = self._batch("step"), list(self._batch("step").lengths)
        self._steppable(batch, Pair(keys, values))
        for s in range(len(before)):
            for layer in range(batch.layers):
                batch.write(s, layer, before[0], Pair(keys[layer, s, :, None], values[layer, s, :, None]))
                batch.held[s][layer] = before[s] + 1
        batch.lengths = [n + 1 for n in before]


@planted("SLOT-06", breaks="BATCH-19", seen="ggml-org/llama.cpp/pull/14742")
class ResetsTheFirst(Store):
    """A reset of the batch resets only the first sequence."""

    def reset_batch(self) -> None:
        self._batch("reset").lower(0, 0)


@planted(
    "SLOT-02",
    breaks="BATCH-1",
    anomaly="missing-refusal",
    seen="Dao-AILab/flash-attention/commit/cd9383f314b6bb81c79f56139da9c405f0e397dd",
)
class CountsPlaces(Store):
    """The batch has as many sequences as its buffers have room for."""

    def batch(self, m: int, most: int | None = None) -> None:
        super().batch(m, most)
        assert self.batch_ is not None
        self.batch_.begin(self.batch_.places)


@planted("BOUND-02", breaks="BATCH-15", seen="ollama/ollama/commit/bf24498b1ea2728ef735030f186d1c970c38eaa6")
class RoomForTheFirst(Store):
    """Only the first sequence is checked for room."""

    def step(self, keys: Array, values: Array) -> None:
        batch = self._batch("step")
        if batch.lengths[0] < self.max_len:
            real, batch.lengths = batch.lengths, [min(n, self.max_len - 1) for n in batch.lengths]
            try:
                super().step(keys, values)
            except Exception:
                batch.lengths = real
                raise
        else:
            super().step(keys, values)


@planted("BOUND-07", breaks="BATCH-10", seen="flashinfer-ai/flashinfer/issues/320")
class NoBounds(Store):
    """A scatter accepts any number of rows that fits the buffers."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        real, self.lengths_ = self.lengths_, [self.max_len] * len(self.lengths_)
        try:
            super().scatter(sequence, n, layer)
        finally:
            self.lengths_ = real


@planted(
    "PAD-01", breaks="BATCH-6", seen="AI-Hypercomputer/maxtext/commit/604d91aa4f6b96f635f84a21a45908bdd7185aee"
)
class LengthOfTheStore(Store):
    """A scatter sets the length of the store instead of the length it was asked for."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        whole = min(self.lengths_) if layer is None else self.lengths_[layer % len(self.lengths_)]
        super().scatter(sequence, whole if 0 < n < whole else n, layer)


@planted(
    "POS-16",
    breaks="BATCH-13",
    anomaly="hole",
    seen="microsoft/onnxruntime-genai/commit/1cae16873b3d744a527b23bf85db343cdefc0f29",
)
class StepLeavesASlotOut(Store):
    """A step skips a slot."""

    def step(self, keys: Array, values: Array) -> None:
        batch = self._batch("step")
        self._steppable(batch, Pair(keys, values))
        batch.lengths = [min(n + 1, self.max_len - 1) for n in batch.lengths]
        batch.held = [[n] * batch.layers for n in batch.lengths]
        super().step(keys, values)


@planted(
    "TRIM-05",
    breaks="BATCH-10",
    anomaly="desynchronised-layers",
    seen="lmstudio-ai/mlx-engine/commit/89f9a9a1a6bd6e5b50c3ab869e177a17c5c4fcc8",
)
class FirstLayerSpeaks(Store):
    """The number of rows that can be scattered is taken from layer 0."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        real, self.lengths_ = self.lengths_, [self.lengths_[0]] * len(self.lengths_)
        try:
            super().scatter(sequence, n, layer)
        finally:
            self.lengths_ = real


@planted("SNAP-14", breaks="BATCH-6", anomaly="keys-without-values", seen="unslothai/llama.cpp/pull/143")
class KeysOnly(Store):
    """A scatter copies the keys but not the values."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        before = [] if self.batch_ is None else [a.copy() for a in self.batch_.values]
        super().scatter(sequence, n, layer)
        assert self.batch_ is not None
        self.batch_.values = before


@planted("MEM-01", breaks="BATCH-20", seen="mlc-ai/mlc-llm/commit/97df6979dee543f1d65649262aeaea9ea74ab70d")
class StaleCount(Store):
    """A freed batch is still reported, though it can no longer be used."""

    freed = False

    def free_batch(self) -> None:
        self.freed = True

    def batch(self, m: int, most: int | None = None) -> None:
        super().batch(m, most)
        self.freed = False

    def _batch(self, what: str) -> Batch:
        if self.freed and what != "read":
            raise common.no_batch("BATCH-3", what)
        return super()._batch(what)


@planted(
    "POS-06",
    breaks="BATCH-15",
    anomaly="silent-no-op",
    seen="tinygrad/tinygrad/commit/91ccf1c343ad250e93cfe4b2c1f7a5e97897b8b2",
)
class IgnoresTheFull(Store):
    """A sequence at max_len silently gets no row."""

    def step(self, keys: Array, values: Array) -> None:
        batch = self._batch("step")
        full = [n == self.max_len for n in batch.lengths]
        for s, n in enumerate(batch.lengths):
            batch.lower(s, n - full[s])
        kept = [a.copy() for a in (*batch.keys, *batch.values)]
        super().step(keys, values)
        for new, old in zip((*batch.keys, *batch.values), kept, strict=True):
            new[full] = old[full]


@planted("SLOT-10", breaks="BATCH-12", seen="ggml-org/llama.cpp/pull/27752")
class PositionAlone(Store):
    """A scatter writes its rows into the slots of all sequences."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        super().scatter(sequence, n, layer)
        assert self.batch_ is not None
        for array in (*self.batch_.keys, *self.batch_.values):
            array[:, :, :n] = array[sequence, :, :n]


@planted("SLOT-05", breaks="BATCH-14", anomaly="padding-seen", seen="vllm-project/vllm/pull/13922")
class PaddedRows(Store):
    """A step accepts more rows than the batch has sequences."""

    def step(self, keys: Array, values: Array) -> None:
        m = len(self._batch("step").lengths)
        super().step(keys[:, :m], values[:, :m])
