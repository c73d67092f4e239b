"""What one adapter packs another unpacks; where one names its axes wrongly, clauses on what was packed say so."""

from __future__ import annotations

import pytest

import kvconform
from support import fakes
from support.engines.interchange import name as named
from support.slow import one_in
from tools.interchange import ADAPTERS, crossed

PAIRS = [(a, b) for a in ADAPTERS for b in ADAPTERS]


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fakes.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("first", "second"), one_in(7, PAIRS))
def test_every_parcel_of_one_adapter_comes_to_the_other(first: str, second: str) -> None:
    conforms, passed = crossed(first, second)
    assert conforms, passed


def test_axes_that_lie_in_another_order_than_they_are_named_in_are_seen() -> None:
    seen = kvconform.run("support.engines.interchange:Mislabelled", chapters=["parcels"], quick=True, processes=1)
    broken = {clause.id for clause in seen.clauses if clause.verdict == "FAIL"}
    assert not seen.conforms and {"MOVE-1", "MOVE-2"} & broken


def test_a_pair_is_named_by_both() -> None:
    assert named("opencl-fast", "cuda-cpu") == "support.engines.interchange:opencl_fast__cuda_cpu"
