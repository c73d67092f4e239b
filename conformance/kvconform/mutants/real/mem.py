"""Bugs in what is held, planned and given back, planted in the reference."""

from __future__ import annotations

from typing import Any

from kvconform.mutants.planting import planted
from kvref import mem
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.store import Store


@planted(
    "GROW-02",
    breaks="MEM-2 MEM-6",
    anomaly="miscounted-memory",
    seen="EricLBuehler/mistral.rs/commit/32ec1fb5816150708d9dcbef34ebbddaed1ce8b7",
)
class OneBlock(Growing):
    """The plan covers one more step, however many rows are to come."""

    def plan(self, n: int) -> mem.Plan:
        return super().plan(min(n, self.config.step))


@planted(
    "GROW-03",
    breaks="MEM-3 MEM-6",
    anomaly="miscounted-memory",
    seen="EricLBuehler/mistral.rs/commit/aaafc2efc6305c1a79eee632b177d76586df1646",
)
class PastTheWindow(Ring):
    """The plan grows by whole steps, even past the window."""

    def plan(self, n: int) -> mem.Plan:
        held, most = super().plan(n)
        now = self.rows.nbytes
        if n == 1 and held > now:
            held = now + self.config.step * self.config.row_bytes
        return held, max(most, held)


@planted("MEM-01", breaks="MEM-1 MEM-10", seen="mlc-ai/mlc-llm/commit/97df6979dee543f1d65649262aeaea9ea74ab70d")
class Stale(Growing):
    """The bytes held are updated when the cache grows, but not when it is freed."""

    counted = 0

    def append(self, *rows: Any) -> None:
        super().append(*rows)
        self.counted = self.rows.nbytes

    def held(self) -> int:
        super().held()
        return self.counted


@planted("MEM-04", breaks="MEM-1 MEM-6", seen="ollama/ollama/commit/d1151e18a1a689e47d2c1c27538213ae412d0297")
class Pinned(Ring):
    """A long prefill is cut down to a view, so that all of its memory stays allocated."""

    whole = 0

    def _prefill(self, new: Any) -> None:
        super()._prefill(new)
        self.whole = self.rows.nbytes

    def held(self) -> int:
        return max(super().held(), self.whole)

    def free(self) -> None:
        super().free()
        self.whole = 0


@planted("MEM-05", breaks="MEM-1", seen="sgl-project/sglang/pull/10637")
class KeysTwice(Growing):
    """The bytes of values are counted with the width of keys."""

    def held(self) -> int:
        return super().held() - self.rows.values.nbytes + self.rows.keys.nbytes


@planted("MEM-06", breaks="MEM-19", seen="sgl-project/sglang/pull/17630")
class SmallPool(Store):
    """The bytes that a store holds do not include its batch."""

    def batch_bytes(self) -> int:
        return 0


@planted(
    "MEM-09",
    breaks="MEM-9",
    anomaly="changed-though-refused",
    seen="EricLBuehler/mistral.rs/commit/b95c8ecb7253a60f5b7bba845a133be02bd921c5",
)
class Leaking(Growing):
    """A refused append does not give back what it had already allocated."""

    lost = 0

    def append(self, keys: Any, values: Any) -> None:
        self.lost += keys.nbytes + values.nbytes
        super().append(keys, values)
        self.lost = 0

    def held(self) -> int:
        return super().held() + self.lost
