"""Bugs of the catalogue that are bugs of copies and casts, planted in the reference's buffer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kvconform.mutants.planting import planted
from kvref.copy import Buffer
from kvspec.contract import Pair
from kvspec.geometry import Array


class Placed(Buffer):
    """Rows go to the slots that `slot` says, in the order of `order`; everything else is as it should be."""

    def slot(self, position: int) -> int:
        return position % self.capacity

    def order(self, n: int) -> Iterable[int]:
        return range(n)

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        self.later = list[tuple[Pair, int]]()
        super().copy(keys, values, n, at, sliding)
        for i in self.order(len(self.later)):
            rows, row = self.later[i]
            super()._write(self.slot(at + row), rows, row)

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        self.later.append((rows, i))


@planted(
    "RING-01",
    breaks="COPY-5",
    anomaly="overwritten-rows",
    seen="google/gemma.cpp/commit/f6abbab3a4f8edcb91de063951b7920925359bbb",
)
class WrapsOneLate(Placed):
    """A position equal to the capacity does not wrap: its row is written behind the end."""

    def slot(self, position: int) -> int:
        return position if position <= self.capacity else super().slot(position)


@planted("RING-10", breaks="COPY-5", anomaly="overwritten-rows", seen="huggingface/transformers/pull/38046")
class RollsWhenFull(Placed):
    """At the moment the buffer becomes full, its rows are rolled one slot too far."""

    def slot(self, position: int) -> int:
        return super().slot(position + (position == self.capacity))


@planted("RING-12", breaks="COPY-6", anomaly="overwritten-rows", seen="Lightning-AI/litgpt/pull/2215")
class FirstRowsRemain(Placed):
    """The early rows of a chunk longer than the ring end up in the slots of later rows."""

    def order(self, n: int) -> Iterable[int]:
        return reversed(range(n))


@planted(
    "GROW-03",
    breaks="COPY-5",
    anomaly="overwritten-rows",
    seen="EricLBuehler/mistral.rs/commit/aaafc2efc6305c1a79eee632b177d76586df1646",
)
class WrapsElsewhere(Placed):
    """The ring wraps at its capacity rounded up to a whole step, and writes rows beyond it into the last
    slot."""

    def slot(self, position: int) -> int:
        return min(position % (-(-self.capacity // 4) * 4), self.capacity - 1)


@planted("GROW-07", breaks="COPY-4", seen="oxiglade/mlx-rs/pull/338")
class LastRowMissing(Buffer):
    """The newest row of a copy is missing from what is read."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        if i + 1 < len(rows.keys):
            super()._write(slot, rows, i)


@planted(
    "BOUND-02",
    breaks="COPY-22",
    anomaly="lost-rows",
    seen="ollama/ollama/commit/bf24498b1ea2728ef735030f186d1c970c38eaa6",
)
class AsManyAsFit(Buffer):
    """The check for room assumes one row, so a larger group is cut off at the end."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        fits = self.capacity - at if not sliding and 0 <= at < self.capacity else n
        super().copy(keys, values, min(n, fits), at, sliding)


@planted("BOUND-06", breaks="COPY-5", anomaly="overwritten-rows", seen="vllm-project/vllm/pull/1514")
class In32Bits(Placed):
    """Positions are 32 bits wide."""

    def slot(self, position: int) -> int:
        return super().slot(int(np.int64(position).astype(np.int32)))


@planted("BOUND-06", breaks="COPY-22", seen="vllm-project/vllm/pull/1514")
class SumIn32Bits(Buffer):
    """The check against the capacity computes at + n in 32 bits."""

    def _demand_place(self, n: int, at: int, sliding: bool) -> None:
        if at < 0 or (at + n) % (1 << 32) > self.capacity:
            super()._demand_place(n, at, sliding)


@planted("BOUND-07", breaks="COPY-20", seen="flashinfer-ai/flashinfer/issues/320")
class AsManyAsThereAre(Buffer):
    """A length beyond the source is accepted silently."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, min(n, len(keys)), at, sliding)


@planted("DTYPE-03", breaks="COPY-12", seen="google/gemma.cpp/commit/7f62c2606ef34c8b4aec29e4188df3f57eedb2fd")
class RoundedTwice(Buffer):
    """Rows are rounded to 13 binary digits first, and again when they are stored."""

    def _cast(self, array: Array) -> Array:
        if array.dtype != np.float32 or self.config.dtype != "f16":
            return super()._cast(array)
        bits, step = array.view(np.uint32), np.uint32(1 << 11)
        return super()._cast(((bits + step // 2 - 1 + (bits // step & 1)) // step * step).view(np.float32))


@planted("GQA-01", breaks="COPY-2 COPY-3", seen="tinygrad/tinygrad/commit/880e693207500713bf4bc8e896fd30657a6a46a9")
class QueryHeads(Buffer):
    """The strides are those of twice as many heads, so the rows of two heads overlap."""

    def _write(self, slot: int, rows: Pair, i: int) -> None:
        for mine, new in zip(self.slots, rows, strict=True):
            for head in range(self.config.kv_heads):
                mine[slot, head // 2] = new[i, head]


@planted(
    "GQA-03",
    breaks="COPY-17",
    anomaly="missing-refusal",
    seen="microsoft/onnxruntime-genai/commit/7389590b5f3cc74f6afcc1994fe7935990997ea8",
)
class OtherHeads(Buffer):
    """A source with other heads is accepted if the number of elements is right."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        heads, dims = self.config.kv_heads, (self.config.k_dim, self.config.v_dim)
        if [a.size for a in (keys, values)] == [len(keys) * heads * dim for dim in dims]:
            keys, values = (a.reshape(len(a), heads, -1) for a in (keys, values))
        super().copy(keys, values, n, at, sliding)


@planted("ASYNC-04", breaks="COPY-10", anomaly="aliased-array", seen="NVIDIA/TensorRT-LLM/issues/8813")
class NotWaitedFor(Buffer):
    """A copy continues after the call returns, reading memory that the caller already reuses."""

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        self.under_way = keys, values, n, at, sliding

    def read(self, what: Any) -> Pair:
        if hasattr(self, "under_way"):
            super().copy(*self.under_way)
        return super().read(what)


@planted("ASYNC-07", breaks="COPY-1 COPY-4", anomaly="lost-rows", seen="kekzl/imp/pull/1709")
class ClearedLate(Buffer):
    """New memory is cleared after the first write to it."""

    cleared = False

    def copy(self, keys: Array, values: Array, n: int, at: int, sliding: bool) -> None:
        super().copy(keys, values, n, at, sliding)
        if n and not self.cleared:
            self.keys[...], self.values[...], self.cleared = 0, 0, True
