"""FlashInfer's peer beside a stand-in with its parameters, which demands the shapes, layouts and lengths it wants.

The stand-in computes by torch. FlashInfer itself needs a GPU, and was never called here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from kvprofile import peers
from kvprofile.case import Case
from kvprofile.model_shapes import Model
from kvprofile.peers import correct
from kvprofile.peers.gpu import flashinfer_peer, paged
from kvprofile.peers.gpu.flashinfer_peer import FlashInfer
from kvprofile.peers.host_arrays import shared

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
MEMORY = 1 << 14


def test_a_batch_is_laid_out_by_the_ends_of_its_sequences() -> None:
    tables = np.array([[7, 3, 9], [5, 1, 0], [2, 8, 4]], np.int32)
    found = flashinfer_peer.layout(paged.Batch(tables, np.array([33, 4, 32], np.int32), 2), 16)
    assert found.indptr.tolist() == [0, 3, 4, 6]
    assert found.indices.tolist() == [7, 3, 9, 5, 2, 8]
    assert found.last.tolist() == [1, 4, 16]
    assert found.sequences.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.positions.tolist() == [31, 32, 2, 3, 30, 31]
    assert {array.dtype for array in found} == {np.dtype(np.int32)}


def test_without_flashinfer_the_record_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    (record,) = peers.find(["flashinfer"]).records
    assert "it cannot be imported" in record.missing


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from support.fakes import fake_flashinfer

    monkeypatch.setitem(sys.modules, "flashinfer", fake_flashinfer)
    monkeypatch.setattr(flashinfer_peer, "WORKSPACE", 1 << 16)
    yield fake_flashinfer
    shared.cache_clear()


def case_of(operation: str, dtype: str = "f16", batch: int = 0, rows: int = 1) -> Case:
    several = operation in ("batch attention", "ragged attention", "ragged paged attention")
    page = 16 if "paged" in operation else None
    return Case(operation, MODEL, 56, rows, batch or (3 if several else 1), dtype, page=page)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("operation", FlashInfer.work)
def test_the_peer_does_its_work(fake: Any, operation: str, dtype: str) -> None:
    job = FlashInfer().job(case_of(operation, dtype), MEMORY)
    assert job is not None and job.about["form"] in ("tensor cores", "CUDA cores")
    for i in range(4):
        job.do(i)


@pytest.mark.parametrize(("batch", "rows"), [(3, 1), (1, 4)])
def test_a_batch_goes_through_pages_and_several_queries_through_a_prefill(fake: Any, batch: int, rows: int) -> None:
    job = FlashInfer().job(case_of("attention", batch=batch, rows=rows), MEMORY)
    assert job is not None and (rows == 1 or job.about["form"] == "tensor cores")
    job.do(1)


def test_what_it_does_not_compute_is_left_out(fake: Any) -> None:
    peer = FlashInfer()
    for case in (
        case_of("attention", "f32"),
        case_of("append"),
        case_of("attention", batch=2, rows=3),
        case_of("paged attention", rows=3),
    ):
        assert peer.job(case, MEMORY) is None


@pytest.mark.parametrize("operation", ["paged attention", "ragged paged attention", "batch attention"])
def test_new_rows_are_the_last_of_their_sequences(
    fake: Any, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended is what the next attention sees there; a batch that appends nothing calls nothing."""
    seen: list[Any] = []
    append = fake.append_paged_kv_cache

    def noted(new_keys: Any, *rest: Any, **more: Any) -> None:
        append(new_keys, *rest, **more)
        seen.append((new_keys, *rest))

    monkeypatch.setattr(fake, "append_paged_kv_cache", noted)
    case = case_of(operation)
    job = FlashInfer().job(case, MEMORY)
    assert job is not None
    seen.clear()
    job.do(0)
    if operation == "batch attention":
        assert seen == []
        return
    new_keys, _, sequences, positions, pool, indices, indptr, last = seen[0]
    lengths = case.lengths if case.batch > 1 else [case.context]
    assert positions.tolist() == [n - 1 for n in lengths] and sequences.tolist() == list(range(case.batch))
    assert (last + (indptr.diff() - 1) * 16).tolist() == lengths
    for b, n in enumerate(lengths):
        page = int(indices[indptr[b] + (n - 1) // 16])
        assert (pool[0][page, :, (n - 1) % 16] == new_keys[b]).all()


PLANTED = {
    "rows of another layout": ("kv_layout", "NHD"),
    "a row too few": ("last", -1),
    "tables in another order": ("indices", 1),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_get_no_time(fake: Any, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, by = PLANTED[bug]
    if name == "kv_layout":
        single = fake.single_decode_with_kv_cache
        broken = lambda q, k, v, kv_layout, **more: single(q, k, v, kv_layout=by, **more)  # noqa: E731
        monkeypatch.setattr(fake, "single_decode_with_kv_cache", broken)
        case = Case("attention", Model("square", 8, 4, 8, 1, None, ""), 3)  # 4 heads and 4 rows
    else:
        right = flashinfer_peer.layout

        def wrong(batch: paged.Batch, size: int) -> Any:
            found = right(batch, size)
            changed = found.last + by if name == "last" else np.roll(found.indices, by)
            return found._replace(**{name: changed})

        monkeypatch.setattr(flashinfer_peer, "layout", wrong)
        case = case_of("batch attention")
    with pytest.raises(correct.Wrong, match="times its bound away"):
        FlashInfer().job(case, MEMORY)
