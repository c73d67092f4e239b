"""`kvconform strict`: one hash on every runtime here; what differs is named to the element."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.vectors import strict_hash
from kvconform.vectors.strict_hash import Output
from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.device.devices import adapter
from support.fakes import attention as fake_attention
from support.fakes import fake_cupy
from support.running.command_line import kvconform

ADAPTERS: dict[str, Callable[[], Any]] = {
    "opencl": adapter,
    "cuda-cpu": CudaCPU,
    "cupy": lambda: Caches("cupy", fake_cupy.runtime()),
}


def driven(adapter_: Any, traces: tuple[Trace, ...]) -> list[Output]:
    """What an adapter in this process gives."""
    return [o for trace in traces for o in strict_hash.outputs(Session(adapter_, ()), trace)]


@cache
def right() -> list[Output]:
    """What the reference gives."""
    return driven(Reference(), strict_hash.traces())


FEW = strict_hash.traces()[: len(strict_hash.driven())]
"""One trace of each kind of cache."""


def test_every_operation_of_every_trace_is_done() -> None:
    assert [(o.trace, o.trouble) for o in right() if o.trouble] == []
    assert {id(o.trace) for o in right()} == {id(trace) for trace in strict_hash.traces()}


def test_all_sorts_of_numbers_come_out() -> None:
    numbers = np.concatenate([o.array.ravel() for o in right() if o.array is not None])
    finite = numbers[np.isfinite(numbers)]
    assert np.isnan(numbers).any() and (finite == 0).any() and (finite < 0).any() and (np.abs(finite) > 100).any()
    assert finite.size > 0.8 * numbers.size and np.unique(finite).size > finite.size / 4


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_hash_is_that_of_numpy(name: str) -> None:
    found = driven(ADAPTERS[name](), strict_hash.traces())
    assert strict_hash.difference(right(), found) == ""
    assert strict_hash.digest(found) == strict_hash.digest(right())


@pytest.mark.parametrize("name", ["OffByABit", "RefusesBlocks"])
def test_what_differs_changes_the_hash_and_is_named(name: str) -> None:
    wanted, found = driven(Reference(), FEW), driven(getattr(fake_attention, name)(), FEW)
    said = strict_hash.difference(wanted, found)
    assert strict_hash.digest(found) != strict_hash.digest(wanted)
    assert {"OffByABit": "element [0, 1, 0, 2]: expected ", "RefusesBlocks": "found refused ATTN-24"}[name] in said


@pytest.fixture
def few_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_hash, "traces", lambda: FEW)


@pytest.mark.usefixtures("few_traces")
def test_the_command_prints_a_line_for_each_adapter_and_names_the_first_that_differs() -> None:
    done = kvconform("strict", "reference", "support.fakes.attention:OffByABit")
    lines = done.stdout.splitlines()
    hashes = [line.split()[0] for line in lines[:3]]
    assert (done.returncode, len(lines)) == (1, 5), done
    assert hashes[0] == hashes[1] != hashes[2] and lines[1].endswith("the same") and lines[2].endswith("DIFFERS")
    assert (
        lines[3].startswith("  first at growing ") and "splits=3" in lines[3] and "element [0, 1, 0, 2]" in lines[4]
    )


@pytest.mark.usefixtures("few_traces")
def test_who_does_not_claim_it_cannot_run() -> None:
    done = kvconform("strict", "support.fakes.attention:ClaimsLess")
    assert done.returncode == 4 and "it does not claim attention at level storage" in done.stderr
