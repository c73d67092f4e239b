"""Inputs in other forms: the same elements, lying otherwise in memory; what an adapter declares of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvadapters.serve import Server
from kvconform.generate.claims.fit_to_adapter import fitted
from kvgpu.adapters import CudaCPU
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array
from kvspec.notation import from_sentence, sentence
from kvspec.operations.input_forms import INPUT_FORMS, INPUTS
from kvspec.session.driver import Session
from kvspec.session.step import Inputs, Pair, Step

TRACE = "growing: append 2; append 1 input=readonly; run 2 {append 1 input=fortran}"
MINIMAL = {"name": "mine", "chapters": {"growing": "visible"}}


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1, 0, 3), (0, 2, 2, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_form_has_the_same_elements(dtype: str, shape: tuple[int, ...]) -> None:
    plain = np.arange(np.prod(shape)).reshape(shape).astype(DTYPES[dtype])
    for form in INPUT_FORMS.values():
        array = form(plain)
        assert (array.dtype, array.shape, array.tobytes()) == (plain.dtype, shape, plain.tobytes())


def test_each_form_is_what_its_name_says() -> None:
    made = {name: form(np.ones((2, 3, 4, 5), np.float32)) for name, form in INPUT_FORMS.items()}
    assert INPUTS[0] == "plain", "the others are those that an adapter must claim"
    assert {name for name, a in made.items() if not a.flags.c_contiguous} == {"strided", "transposed", "fortran"}
    assert {name for name, a in made.items() if not a.flags.aligned} == {"unaligned"}
    assert {name for name, a in made.items() if not a.flags.writeable} == {"readonly"}
    assert made["fortran"].flags.f_contiguous
    assert made["strided"].strides[-1] == 8
    assert made["transposed"].strides == (240, 20, 60, 4)


def test_an_adapter_is_asked_only_for_the_forms_that_it_declares() -> None:
    for declared, wanted in (
        (INPUTS[1:], TRACE),
        (["fortran"], "growing: append 2; append 1; run 2 {append 1 input=fortran}"),
        ([], "growing: append 2; append 1; run 2 {append 1}"),
    ):
        adapter = description({**MINIMAL, "inputs": list(declared)})
        assert [sentence(t) for t in fitted([from_sentence(TRACE)], adapter)] == [wanted]


@pytest.mark.parametrize("wrong", ["strided", ["plain"], ["sideways"]])
def test_what_is_no_form_is_an_error_that_lists_the_forms(wrong: Any) -> None:
    with pytest.raises(
        BadInput, match="inputs must list some of strided, transposed, readonly, unaligned, fortran"
    ):
        description({**MINIMAL, "inputs": wrong})


def test_our_adapters_of_host_arrays_declare_every_form() -> None:
    for adapter in (Reference(), CudaCPU()):
        assert description(adapter.describe()).inputs == INPUTS[1:]


class Keeping(Reference):
    """Keeps what an append is handed, and counts no rows."""

    taken: Array | None = None

    def open(self, kind: str, config: Any) -> Any:
        self.config = config
        return self

    def append(self, keys: Array, values: Array) -> None:
        self.taken = keys


def test_the_caller_overwrites_what_it_handed_in_read_only() -> None:
    adapter = Keeping()
    session = Session(adapter, ())
    rows = np.ones((1, 1, 2, 4), np.float16)
    session.do({"op": "open", "cache": "A"}, Inputs(opening=("growing", from_sentence(TRACE).config)))
    assert session.do({"op": "append", "n": 2, "input": "readonly"}, Inputs(Pair(rows, rows))).result == "ok"
    assert adapter.taken is not None
    assert not adapter.taken.flags.writeable
    intact: Step = session.do({"op": "scribble"})
    assert intact.values["intact"]
    assert np.isnan(adapter.taken).all()
    assert (rows == 1).all()


def test_a_worker_makes_the_form_of_what_comes_over_the_wire() -> None:
    server, rows = Server("reference"), np.ones((1, 1, 2, 4), np.float16)
    server.adapter = adapter = Keeping()
    config = from_sentence(TRACE).config.to_json()
    server.answer({"id": 1, "op": "begin", "kind": "growing", "config": config, "observe": []}, {})
    question = {"id": 2, "op": "append", "n": 2, "input": "unaligned"}
    assert b'"result":"ok"' in server.answer(question, {"keys": rows, "values": rows}).replace(b" ", b"")
    assert adapter.taken is not None
    assert not adapter.taken.flags.aligned
