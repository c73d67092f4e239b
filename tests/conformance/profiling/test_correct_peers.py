"""A peer is measured in the fastest form that is right, and not at all if none is."""

from __future__ import annotations

import ctypes
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.profiling.test_measure import Broken, profiled
from kvconform.profiling import peers
from kvconform.profiling.case import Case
from kvconform.profiling.model_shapes import GPT2, Model
from kvconform.profiling.peers import correct
from kvconform.profiling.peers.array_work import ArrayPeer
from kvconform.profiling.peers.host_arrays import shared
from kvconform.profiling.peers.numpy_peer import Arrays
from kvconform.profiling.random_rows import noise
from kvspec.geometry import Array

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
CASE = Case("attention", MODEL, 40, 3)
ASKED = [noise(shape, "f32", i) for i, shape in enumerate([(2, 4, 3, 8), (2, 2, 20, 8), (2, 2, 20, 8)])]


class Form(Arrays):
    """numpy, as one of several forms: slow, or wrong by some part of each output."""

    def __init__(self, form: str, seconds: float = 0.0, wrong: float = 0.0) -> None:
        self.form, self.seconds, self.wrong = form, seconds, wrong

    def attend(self, queries: Array, keys: Array, values: Array, seen: int | None = None) -> Array:
        time.sleep(self.seconds)
        return super().attend(queries, keys, values, seen) * np.float32(1 + self.wrong)


class Peer(ArrayPeer):
    name = "several"


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    shared.cache_clear()


@pytest.mark.parametrize("seen", [None, 13])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_numpy_is_within_the_bound(dtype: str, seen: int | None) -> None:
    correct.demand(dtype, Arrays().attend(*ASKED, seen), *ASKED, seen)


@pytest.mark.parametrize("seen", [None, 13])
def test_a_row_too_many_a_head_for_another_and_nan_are_wrong(seen: int | None) -> None:
    right = Arrays().attend(*ASKED, seen)
    unmasked = np.stack([Arrays().attend(ASKED[0][:, :, i : i + 1], *ASKED[1:]) for i in range(3)], 2)[:, :, :, 0]
    broken = right.copy()
    broken[1, 3, 2, 7] = np.nan
    for out in (unmasked, right[:, ::-1], broken, right * np.float32(1.001)):
        with pytest.raises(correct.Wrong, match="times its bound away"):
            correct.demand("f32", out, *ASKED, seen)


def test_the_fastest_of_the_right_forms_is_measured() -> None:
    forms = Form("slow", 0.01), Form("quick", 0.002), Form("wrong", wrong=0.01)
    job = Peer(*forms).job(CASE, 1 << 16)
    assert job is not None and job.about["form"] == "quick"


def test_a_peer_that_is_wrong_gets_no_time_and_the_record_says_so() -> None:
    class Attends(Broken):
        def describe(self) -> dict[str, Any]:
            return {"name": "attends", "chapters": {"growing": "visible", "attention": "visible"}}

        def attend(self, *args: Any) -> None:
            pass

    found = profiled(
        Attends(1 << 60, ValueError), Case("attention", GPT2, 8), peers=(Peer(Form("", wrong=0.01)), Peer(Form("")))
    )
    assert [p.peer for p in found.measured[0].peers] == ["several"]
    assert [s.id for s in found.skipped] == ["attention/gpt-2-small/f16/8 by several"]


def test_a_gpu_has_the_peers_that_compute_on_one_and_others_where_asked() -> None:
    assert {r.name for r in peers.find(gpu=True).records} == {"torch", "index_copy_"}
    assert {r.name for r in peers.find().records} == {*peers.PEERS} - {"flex_attention"}
    assert [r.name for r in peers.find(["numpy"], gpu=True).records] == ["numpy"]


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("seen", [None, 13])
def test_both_forms_of_torch_are_right(folded: bool, seen: int | None) -> None:
    pytest.importorskip("torch")
    from kvconform.profiling.peers.torch_peer import Tensors

    library = Tensors(folded)
    out = library.attend(*map(library.wrap, ASKED), seen)
    correct.demand("f32", library.host(out), *ASKED, seen)


@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_flex_attention_is_right_or_says_why_it_cannot_be() -> None:
    pytest.importorskip("torch")
    from kvconform.profiling.peers import flex_peer

    peer = flex_peer.Flex()
    assert (
        peer.job(Case("attention", MODEL, 40, 2), 1 << 16) is peer.job(Case("append", MODEL, 40), 1 << 16) is None
    )
    job = peer.job(Case("attention", MODEL, 40), 1 << 16)
    assert job is not None and job.about == {"form": "flex_attention"}
    job.do(1)

    def fails(*_: Any, **__: Any) -> Any:
        raise peer.tensors.torch._dynamo.exc.TorchDynamoException("no compiler\nat all")

    peer.tensors._attend = fails
    with pytest.raises(correct.Wrong, match=r"does not compile here: no compiler$"):
        peer.job(Case("attention", MODEL, 40), 1 << 16)


@pytest.mark.parametrize(("rows", "batch"), [(1, 1), (3, 1), (1, 2)])
def test_onnxruntime_is_right(rows: int, batch: int) -> None:
    pytest.importorskip("onnxruntime")
    from kvconform.profiling.peers.onnxruntime_peer import GroupQueryAttention

    for operation in ("attention", "captured attention"):
        job = GroupQueryAttention().job(Case(operation, MODEL, 40, rows, batch), 1 << 16)
        assert job is not None
        job.do(1)


@pytest.mark.parametrize(("rows", "batch", "dtype"), [(1, 1, "f32"), (3, 1, "f32"), (1, 2, "bf16"), (1, 1, "f16")])
def test_ggml_is_right(rows: int, batch: int, dtype: str) -> None:
    pytest.importorskip("llama_cpp")
    from kvconform.profiling.peers import ggml_peer

    peer = ggml_peer.FlashAttention()
    assert peer.job(Case("append", MODEL, 40), 1 << 16) is None
    for operation in ("attention", "ring attention", "captured attention", "batch attention"):
        job = peer.job(Case(operation, MODEL, 40, rows, batch, dtype), 1 << 16)
        assert job is not None
        job.do(1)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_ggml_copies_the_newest_rows_behind_the_others(dtype: str) -> None:
    pytest.importorskip("llama_cpp")
    from kvconform.profiling.peers.ggml import Graph, Library, aligned

    keys, new = (aligned(noise((2, 3, n, 8), dtype, n)) for n in (5, 2))
    wanted, graph = np.concatenate((keys[:, :, :3], new), 2), Graph(Library())
    graph.copy(new, graph.tensor(keys), 3, 5)
    graph.run()
    assert keys.tobytes() == wanted.tobytes()


def test_another_ggml_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp._ggml", SimpleNamespace(libggml=ctypes.CDLL(None)))
    found = peers.find(["ggml", "numpy"])
    assert [peer.name for peer in found.peers] == ["numpy"]
    missing = found.records[0].missing
    assert "no ggml that this peer can call" in missing and "ggml_version" in missing
