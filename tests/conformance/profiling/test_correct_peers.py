"""A peer is measured in the fastest form that is right, and not at all if none is."""

from __future__ import annotations

import ctypes
import sys
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kvprofile import peers
from kvprofile.case import Case
from kvprofile.model_shapes import GPT2, Model
from kvprofile.peers import correct
from kvprofile.peers.array_work import WORK, ArrayPeer
from kvprofile.peers.host_arrays import Rows, shared
from kvprofile.peers.numpy_peer import Arrays
from kvprofile.random_rows import noise
from kvspec.geometry import Array
from support.fakes.profiled import Broken, profiled

MODEL = Model("tiny", 4, 2, 8, 3, None, "")
SIXTEEN = Model("sixteen wide", 4, 2, 16, 3, None, "")
CASE = Case("attention", MODEL, 40, 3)
ASKED = [noise(shape, "f32", i) for i, shape in enumerate([(2, 4, 3, 8), (2, 2, 20, 8), (2, 2, 20, 8)])]


class Form(Arrays):
    """numpy, as one of several forms: slow, or wrong by some part of each output."""

    def __init__(self, form: str, seconds: float = 0.0, wrong: float = 0.0, entry: int | None = None) -> None:
        self.form, self.seconds, self.wrong, self.entry = form, seconds, wrong, entry

    def attend(self, queries: Array, keys: Array, values: Array, seen: int | None = None) -> Array:
        time.sleep(self.seconds)
        out = super().attend(queries, keys, values, seen)
        out[... if self.entry is None else self.entry] *= np.float32(1 + self.wrong)
        return out


class Refusing(Form):
    """As libraries refuse what they cannot do: with a warning, and an error of several lines."""

    def attend(self, queries: Array, keys: Array, values: Array, seen: int | None = None) -> Array:
        warnings.warn("not for these rows", stacklevel=1)
        raise RuntimeError("no such kernel\nin file x.cu")


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


def test_a_form_that_fails_takes_no_part_and_a_peer_without_a_form_says_why() -> None:
    job = Peer(Refusing("refusing"), Form("able", 0.001)).job(CASE, 1 << 16)
    assert job is not None and job.about["form"] == "able"
    with pytest.raises(correct.Wrong, match=r"^RuntimeError: no such kernel$"):
        Peer(Refusing("refusing")).job(CASE, 1 << 16)


def test_the_device_clock_chooses_where_there_is_one() -> None:
    spans = iter([5.0, 4.0, 5.0, 7.0, 3.0, 8.0])

    def elapsed(work: Any) -> float:
        work()
        return next(spans)

    peer = Peer(Form("first"), Form("second", 0.001))
    peer.elapsed = elapsed
    job = peer.job(CASE, 1 << 16)
    assert job is not None and job.about["form"] == "second", "slower by the host's clock, faster by the device's"


@pytest.mark.parametrize("entry", [0, 2, 4])
def test_of_a_large_batch_the_first_the_last_and_some_between_are_checked(
    monkeypatch: pytest.MonkeyPatch, entry: int
) -> None:
    monkeypatch.setattr(correct, "CHECKED", 3 * 2 * 42 * 8)
    case = Case("attention", MODEL, 40, 2, batch=5)
    with pytest.raises(correct.Wrong, match=f"of entry {entry} is"):
        Peer(Form("wrong", wrong=0.01, entry=entry)).job(case, 1 << 16)
    Peer(Form("right")).job(case, 1 << 16)


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


def test_a_peer_that_fails_does_not_end_the_case() -> None:
    class Full(Peer):
        def job(self, case: Case, memory: int) -> Any:
            raise MemoryError("no room for 3 GiB\nof rows")

    found = profiled(Broken(1 << 60, ValueError), Case("append", GPT2, 8), peers=(Full(Form("")),))
    assert len(found.measured) == 1
    (skipped,) = found.skipped
    assert (skipped.id, skipped.reason) == ("append/gpt-2-small/f16/8 by several", "MemoryError: no room for 3 GiB")


@pytest.mark.filterwarnings("ignore")  # of torch, where it is first imported here
def test_a_gpu_has_the_peers_that_compute_on_one_and_others_where_asked() -> None:
    theirs = {"torch", "index_copy_", "flex_attention", "triton", "jax", "flashinfer"}
    assert {r.name for r in peers.find(gpu=True).records} == theirs
    assert {r.name for r in peers.find().records} == {*peers.PEERS} - theirs | {"torch", "index_copy_"}
    assert [r.name for r in peers.find(["numpy"], gpu=True).records] == ["numpy"]


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("seen", [None, 13])
def test_both_forms_of_torch_are_right(folded: bool, seen: int | None) -> None:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers.torch_peer import Tensors

    library = Tensors(folded)
    out = library.attend(*map(library.wrap, ASKED), seen)
    correct.demand("f32", library.host(out), *ASKED, seen)


@pytest.fixture
def backend() -> Any:
    """The class of torch's backends; what a test enables is for the process, so all are enabled behind it."""
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers.torch_peer import Backend

    yield Backend
    Backend().enable()


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("seen", [None, 13])
@pytest.mark.parametrize("name", ["flash", "math", ""])
def test_the_backends_that_a_cpu_has_are_right(
    backend: Any, name: str, seen: int | None, n: int, folded: bool
) -> None:
    library, asked = backend(name, folded), (ASKED[0][:, :, :n], *ASKED[1:])
    out = library.attend(*map(library.wrap, asked), seen)
    correct.demand("f32", library.host(out), *asked, seen)


def test_a_backend_that_refuses_a_shape_is_a_form_that_takes_no_part(backend: Any) -> None:
    """cuDNN and the efficient kernels refuse all on a CPU, as on a GPU they refuse some."""
    from kvprofile.peers.torch_peer import Torch

    refused = backend("cudnn"), backend("efficient", folded=True)
    job = Torch(*refused, backend("flash", folded=True)).job(CASE, 1 << 16)
    assert job is not None and job.about["form"] == "flash, folded"
    job.do(1)
    with pytest.raises(correct.Wrong, match=r"^RuntimeError: No viable backend"):
        Torch(*refused).job(CASE, 1 << 16)


def test_the_forms_on_a_gpu_are_every_backend_folded_or_not(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvprofile.peers import torch_peer

    on_a_cpu = ["folded", "enable_gqa", "products of matrices"]
    assert [form.form for form in torch_peer.every_form()] == on_a_cpu
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    forms = {form.form for form in torch_peer.every_form()}
    ways = ("flash", "cudnn", "efficient", "any backend")
    assert forms == {f"{name}, {how}" for name in ways for how in ("folded", "enable_gqa")}


@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_flex_attention_is_right_or_says_why_it_cannot_be() -> None:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers import flex_peer

    peer = flex_peer.Flex()
    assert peer.job(Case("append", MODEL, 40), 1 << 16) is None
    for n in (1, 3):
        job = peer.job(Case("attention", MODEL, 40, n), 1 << 16)
        assert job is not None and job.about == {"form": "flex_attention"}
        job.do(1)

    def fails(*_: Any, **__: Any) -> Any:
        raise peer.tensors.torch._dynamo.exc.TorchDynamoException("no compiler\nat all")

    peer.tensors._attend = fails
    with pytest.raises(correct.Wrong, match=r"^TorchDynamoException: no compiler$"):
        peer.job(Case("attention", MODEL, 40), 1 << 16)


@pytest.mark.parametrize(("rows", "batch"), [(1, 1), (3, 1), (1, 2)])
def test_onnxruntime_is_right(rows: int, batch: int) -> None:
    pytest.importorskip("onnxruntime")
    from kvprofile.peers.onnxruntime_peer import GroupQueryAttention

    for operation in ("attention", "captured attention"):
        job = GroupQueryAttention().job(Case(operation, MODEL, 40, rows, batch), 1 << 16)
        assert job is not None
        job.do(1)


@pytest.mark.parametrize(("rows", "batch", "dtype"), [(1, 1, "f32"), (3, 1, "f32"), (1, 2, "bf16"), (1, 1, "f16")])
def test_ggml_is_right(rows: int, batch: int, dtype: str) -> None:
    pytest.importorskip("llama_cpp")
    from kvprofile.peers import ggml_peer

    peer = ggml_peer.FlashAttention()
    assert peer.job(Case("append", MODEL, 40), 1 << 16) is None
    for operation in ("attention", "ring attention", "captured attention", "batch attention"):
        job = peer.job(Case(operation, MODEL, 40, rows, batch, dtype), 1 << 16)
        assert job is not None
        job.do(1)


OPENVINO = "openvino is not installed; `pip install 'kvconform[openvino]'` brings it"


@pytest.mark.parametrize(
    ("rows", "batch", "dtype", "form"),
    [(1, 1, "f32", None), (3, 1, "f32", None), (1, 2, "f16", None), (1, 1, "f16", "int8/1"), (3, 2, "f32", None)],
)
def test_openvino_is_right(rows: int, batch: int, dtype: str, form: str | None) -> None:
    pytest.importorskip("openvino", reason=OPENVINO)
    from kvprofile.peers.openvino_peer import Attention

    peer = Attention()
    assert peer.job(Case("append", MODEL, 40), 1 << 16) is None
    assert peer.job(Case("attention", MODEL, 40, dtype="bf16"), 1 << 16) is None
    job = peer.job(Case("attention", MODEL, 40, rows, batch, dtype, form=form), 1 << 16)
    assert job is not None and job.most % 16 == 0 and job.about["form"].startswith("states of")
    for i in range(job.most):
        job.do(i)
    job.reset()
    job.do(0)


@pytest.mark.parametrize("masked", [True, False], ids=["causal", "all rows"])
def test_openvino_that_sees_other_rows_gets_no_time(masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outputs are compared, with the rows that its states have."""
    pytest.importorskip("openvino", reason=OPENVINO)
    from kvprofile.peers import openvino_peer

    case, make = Case("attention", MODEL, 40, 3, dtype="f32"), openvino_peer._mask
    if not masked:
        monkeypatch.setattr(openvino_peer, "_mask", lambda n, rows: np.zeros_like(make(n, rows)))
        with pytest.raises(correct.Wrong, match="times its bound away"):
            openvino_peer.Attention().job(case, 1 << 16)
    else:
        assert openvino_peer.Attention().job(case, 1 << 16) is not None


def test_openvino_that_would_copy_rows_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino", reason=OPENVINO)
    from kvprofile.peers import openvino_peer

    monkeypatch.setattr(openvino_peer, "FUSED", "a layer that there is not")
    with pytest.raises(RuntimeError, match="copy rows"):
        openvino_peer.Attention().job(Case("attention", MODEL, 40), 1 << 16)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("rows", "batch"), [(1, 1), (3, 1), (1, 2)])
def test_products_of_matrices_are_right(rows: int, batch: int, dtype: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers import torch_peer

    library = correct.Checked(torch_peer.Products(), correct.Checks(dtype))
    WORK["attention"](Rows(library, Case("attention", MODEL, 40, rows, batch, dtype), 1 << 16)).do(0)
    keys, values = (library.wrap(noise((2, 2, 20, 8), dtype, i)) for i in (0, 1))
    library.attend(library.queries(noise((2, 4, 1, 8), "f32", 3), dtype), keys, values, 13)


@pytest.mark.parametrize("batch", [1, 2])
def test_products_by_int8_are_right(batch: int) -> None:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers.int8_peer import Int8Products

    peer, case = Int8Products(), Case("attention", SIXTEEN, 40, 1, batch, "bf16", form="int8/1")
    others = [replace(case, dtype="f16"), replace(case, form="q8_0"), replace(case, rows=2)]
    for other in (*others, replace(case, operation="append"), replace(case, model=MODEL)):
        assert peer.job(other, 1 << 16) is None
    job = peer.job(case, 1 << 16)
    assert job is not None
    job.do(1)


def test_products_by_int8_that_lose_a_scale_get_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed; `nox -s peers` installs it")
    from kvprofile.peers.int8_peer import Int8Products

    peer = Int8Products()
    attend: Any = peer._attend
    monkeypatch.setattr(peer, "_attend", lambda q, k, v: attend(q, (k[0], k[1] * 0 + 1), v))
    with pytest.raises(correct.Wrong, match="times its bound away"):
        peer.job(Case("attention", SIXTEEN, 40, dtype="bf16", form="int8/1"), 1 << 16)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_ggml_copies_the_newest_rows_behind_the_others(dtype: str) -> None:
    pytest.importorskip("llama_cpp")
    from kvprofile.peers.ggml import Graph, Library, aligned

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
