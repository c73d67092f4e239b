"""JAX's peer on a CPU: XLA compiles the same calls there, but cuDNN's attention is not tried."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed; `nox -s peers` installs it")

from kvprofile import peers
from kvprofile.case import Case
from kvprofile.model_shapes import Model
from kvprofile.peers import correct
from kvprofile.peers.gpu import jax_peer
from kvprofile.peers.gpu.jax_peer import Arrays, Jax
from kvprofile.peers.host_arrays import Rows, shared
from kvspec.geometry import Array

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
MEMORY = 1 << 14


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    shared.cache_clear()


def batched(operation: str) -> int:
    return 3 if operation in ("batch attention", "ragged attention", "batch step", "captured step") else 1


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("operation", jax_peer.WORK)
def test_the_peer_does_its_work(operation: str, dtype: str) -> None:
    peer = Jax()
    job = peer.job(Case(operation, MODEL, 40, batch=batched(operation), dtype=dtype), MEMORY)
    assert job is not None and job.about.get("form") in (None, "xla")
    for i in range(5):
        job.do(i)
    peer.wait()


def test_several_queries_see_what_they_may() -> None:
    assert Jax().job(Case("attention", MODEL, 40, 3, dtype="f32"), MEMORY) is not None
    assert Jax().job(Case("ring append", MODEL, 40, 3), MEMORY) is None


class Seeing(Arrays):
    """Notes the caches after each write."""

    def __init__(self) -> None:
        super().__init__()
        self.caches: list[list[Array]] = []

    def write(self, state: Any, *more: Any) -> Any:
        where = [array.unsafe_buffer_pointer() for array in state[:2]]
        found = super().write(state, *more)
        assert [array.unsafe_buffer_pointer() for array in found[:2]] == where, "in the same memory"
        self.caches.append([self.host(array).copy() for array in found[:2]])
        return found


@pytest.mark.parametrize(
    ("operation", "axis", "places"),
    [
        ("append", 1, [8, 11, 8]),
        ("ring append", 1, [0, 1, 2]),
        ("store append", 2, [0, 3, 0]),
        ("batch step", 3, [0, 1]),
    ],
)
def test_rows_are_written_one_behind_the_other_in_the_same_memory(
    operation: str, axis: int, places: list[int]
) -> None:
    n = 3 if operation in ("append", "store append") else 1
    case, library = Case(operation, MODEL, 8, n, batch=batched(operation)), Seeing()
    rows = Rows(library, case, 1)
    job, sources = jax_peer.WORK[operation](rows), written(rows, operation)
    for i, at in enumerate(places):
        job.do(i)
        for part, new in zip(library.caches[-1], sources[i % len(sources)], strict=True):
            assert np.array_equal(np.take(part, range(at, at + n), axis), new)


def written(rows: Rows, operation: str) -> list[list[Array]]:
    """What is written, in the layout of the caches."""
    case, model = rows.case, rows.case.model
    if operation in ("append", "ring append"):
        return [[np.asarray(a).swapaxes(1, 2) for a in pair] for pair in rows.caches(case.rows, 64, 1)]
    shape = (model.layers, *([case.batch] if operation == "batch step" else []), model.kv_heads, case.rows)
    return [[np.asarray(a) for a in pair] for pair in rows.pairs(shape, kind=int(operation == "store append"))]


class Planted(Arrays):
    """Attends wrongly in one of several ways."""

    def __init__(self, bug: str) -> None:
        super().__init__()
        self.bug = bug

    def _attend(self, queries: Any, keys: Any, values: Any, seen: Any = None) -> Any:
        if self.bug == "heads in another order":
            return super()._attend(queries[:, :, ::-1], keys, values, seen)
        if self.bug == "a row too few":
            keys, values = keys[:, :-1], values[:, :-1]
        if self.bug == "lengths ignored":
            seen = None
        return super()._attend(queries, keys, values, seen)


@pytest.mark.parametrize(
    ("operation", "bug"),
    [
        ("attention", "heads in another order"),
        ("batch attention", "a row too few"),
        ("ragged attention", "lengths ignored"),
    ],
)
def test_planted_bugs_get_no_time(operation: str, bug: str) -> None:
    peer = Jax()
    peer.forms = (Planted(bug),)  # type: ignore[assignment]
    with pytest.raises(correct.Wrong, match="times its bound away"):
        peer.job(Case(operation, MODEL, 40, batch=batched(operation), dtype="f32"), MEMORY)


def test_what_jax_does_not_compute_here_gets_no_time() -> None:
    """f16 on a CPU."""
    with pytest.raises(correct.Wrong, match="F16_F16_F32"):
        Jax().job(Case("attention", MODEL, 40), MEMORY)


def test_memory_is_not_taken_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    Arrays()
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_cudnn_is_a_form_on_a_gpu_that_takes_no_part_where_it_refuses() -> None:
    """As it refuses everything on a CPU."""
    peer = Jax()
    peer.forms = Arrays("cudnn"), Arrays()  # type: ignore[assignment]
    job = peer.job(Case("attention", MODEL, 40, dtype="bf16"), MEMORY)
    assert job is not None and job.about["form"] == "xla"


@pytest.mark.filterwarnings("ignore")  # of torch, where it is first imported here
def test_beside_a_gpu_jax_without_one_takes_no_part_unless_asked_for() -> None:
    assert peers.find(["jax"], gpu=True).records[0].missing == ""
    (record,) = (r for r in peers.find(gpu=True).records if r.name == "jax")
    assert record.missing == "it cannot run here (it finds no GPU, and the adapter has one)"


def test_without_jax_the_record_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    (record,) = peers.find(["jax"]).records
    assert "it cannot be imported" in record.missing
