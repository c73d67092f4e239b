"""Rates, and the limits that they are shares of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvprofile import profile_run
from kvprofile.case import Case
from kvprofile.model_shapes import GPT2
from kvspec.contract import timing
from kvspec.contract.timing import Streams
from support.fakes.profiled import Clocked, profiled


def test_the_rate_is_bytes_over_device_time_and_the_share_is_of_the_limit() -> None:
    """GPT-2 small has rows of 3,072 B in f16; 4 of them read and written in 2 ms are 12.288 MB/s. A copy of 10^8
    bytes reads and writes them in 50 ms: 4 GB/s."""
    session_ = profiled(Clocked(), Case("append", GPT2, 8, 4))
    (found,) = session_.measured
    assert found.device_ms is not None and found.rate is not None and found.fraction is not None
    assert found.device_ms.median == pytest.approx(2) and found.rate.median == pytest.approx(0.012288)
    assert found.limit == "copy" and found.fraction.median == pytest.approx(0.012288 / 4)
    limits = {limit.name: limit for limit in session_.limits()}
    assert {name: limit.rate.median for name, limit in limits.items()} == pytest.approx(
        {"read": 2, "write": 2, "copy": 4}
    )
    assert [limits[n].rounds for n in ("read", "copy")] == [2, 4], "its limit took part in the rounds of the case"


@pytest.mark.parametrize(("cache", "marked"), [(0, False), (10_000, False), (1 << 16, True)])
def test_what_a_cache_may_hold_has_no_share_of_a_limit_of_one_size(cache: int, marked: bool) -> None:
    adapter: Any = Clocked()
    adapter.cache_bytes = cache
    (found,) = profiled(adapter, Case("append", GPT2, 8, 4)).measured
    assert (found.get("in_cache") is True) == (found.fraction is None) == (found.limit is None) == marked
    assert profile_run.told(found).endswith("in cache") == marked and found.rate is not None


class Footprints(Clocked):
    """Its limits stream over as many bytes as they are asked to, at 1 GB/s in its cache and 0.1 GB/s beyond."""

    cache_bytes = 1 << 20

    def streams(self, most: int) -> Streams:
        return self._over(1 << 24)

    def _over(self, nbytes: int) -> Streams:
        def stream() -> None:
            self.busy += nbytes / (1e9 if nbytes <= self.cache_bytes else 1e8)

        return Streams(stream, stream, stream, nbytes, "told", over=self._over)


@pytest.mark.parametrize("whole", [1 << 16, 1 << 25])
def test_a_limit_has_the_footprint_of_its_case(whole: int) -> None:
    """A copy of n bytes reads and writes them: its footprint is 2 n. The cases rotate through about 73 KB."""
    adapter = Footprints()
    adapter.streams = lambda most: adapter._over(whole)  # type: ignore[method-assign]
    session_ = profiled(adapter, Case("append", GPT2, 8, 4))
    (found,), rotated = session_.measured, 1 << 18
    assert found.get("in_cache") is True and found.limit == "copy" and found.fraction is not None
    assert found.get("limit_bytes") == min(rotated, 2 * whole)
    assert found.fraction.median == pytest.approx(0.012288 / 2), "the limit at hand lies in the cache too"
    limits = {limit.name: (limit.bytes, limit.rounds) for limit in session_.limits()}
    assert limits["copy"] == (2 * whole, 4 if 2 * whole < rotated else 2), (
        "limits of other footprints are not summed up"
    )


def test_linux_tells_of_the_last_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "CACHES", tmp_path)
    assert timing.host_cache() == 0
    for i, size in enumerate(("32K", "32768K", "1024K")):
        (tmp_path / f"index{i}").mkdir()
        (tmp_path / f"index{i}" / "size").write_text(size + "\n")
    assert timing.host_cache() == 32 << 20
