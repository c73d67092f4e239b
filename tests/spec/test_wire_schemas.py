"""The published schemas are the protocol: what is really sent and answered follows them, and nothing else does."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from adapters.test_serve import BAD_QUESTIONS, BEGIN
from kvadapters.serve import Server
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.worker.client import python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec import geometry, notation
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.geometry import Config
from kvspec.operations.table import OPERATIONS
from kvspec.registry import VALUES
from kvspec.wire import framing, messages
from spec.test_wire import BAD_ANSWERS
from support import fakes
from tools.schemas.trace import argument_schema

NAMES = ("question", "answer", "describe")
"""The schemas of the wire; that of traces is held in test_spec_traces."""

CACHE = """append 3; append 2 fill=bits; mask none; mask causal & 11111/01111; mask [0 / 1.5] & window=2
append 1 batch=2; append 2 values=1; append 1 dtype=f32; append 0; view; scribble
snapshot s; append 2; restore s 4; rewind 3; ask 2; askappend 2; askrestore s 9; rewind 99; snapshot t 1
split t 2 p q; merge p q u; close u
close u; open B kind=ring window=2
open C kind=ring window=0; C: view
B: append 1; B: append 3; B: view; B: mask causal; B: rewind 0; B: free; B: restore u 1; free; view
run 2 {append 1; ask 3; rewind 9; append 1 fill=bits}; view
pack x; carry x y axes=PNBHD page=2 cut=1; unpack y; carry x z axes=BHDPN flip=3 version=2; unpack x
collect x x w; unpack w; open D rank=0/4; D: append 1; D: pack v"""

ROUNDS = """append 2; open B kind=ring window=2; B: append 3; speculate r A-B; draft r 2; mask round=r causal
B: draft r 1; commit r 1; commit r 1; speculate q A; draft q 2 on=-1,-1; choose q 1
speculate i A isolated=1; draft i 1; abandon i; plan 3; fit 100000 most=4
append 1 resident=1"""

STORE = """append 2; append 1 layer=0; setlength 1 3; fingerprint 0; save s; reset; load s; load s layers=3
rollback 1; zero; append 2; batch 2; scatter 0 2; scatter 1 1 layer=0; step; capture c; replay c
rollback 1 sequence=0; batch 2; fit 100000 most=4; resetbatch; step values=2; plan 1
freebatch; scribble; init layers=1; init"""

ATTENTION = """attend 2 heads=4 splits=2; attend 1 into=1 through causal & 110; attend 1 through [0 1 2 -1]
attend 1 q_dtype=f16 through window=2; attend 1 into=1 out_dtype=bf16 out_dim=3; attend 1 q_dim=5 q_rows=2 q_batch=3
attend 1 into=1 out_readonly=1; attend 1 through causal & window=0; mask window=-1
attend 0; attend 1 rope=norm; rotate 3 7; rotate 1 2 dims=4 by=-2; rotate 1 0 base=0; scribble"""

LAYERS = """append 2; attend 1 layer=0 queries=huge; attend 1 layer=9; batch 2; scatter 0 2
attendbatch 0 heads=4 into=1
captureattend w 1 heads=4 splits=2; replayattend w; replayattend w heads=2; replayattend w kv_heads=1; init layers=1
replayattend w"""

COPY = "copy 2 0; copy 3 3 sliding=1; copy 2 9; copy 2 0 dtype=f32; copy 2 0 rows=1; alias 1 0 2; plan 0; scribble"

BUCKET = """prefill 2; bind; decode resident=1 refresh=1; cut 2; sync; decode heads=4 splits=2 into=1 past=2
cut 1; block 2 past=1; unbind; encode 3; cross 2; cross 2 into=1 out_readonly=1; decode k_dim=5
open B kind=bucket bounds=2-1"""

PAGE = """admit; append 3; fork 0 3; append 1 sequence=1; attend 1 sequence=1 through causal & window=2
truncate 0 1; gather 0,2 2; gather empty 1; gather 0 -1; peek 1; peek 9
drop 0; drop 0; admit; append 1; send 0; sent 0 p; expect 1; arrive 0 p; send 0; lose 0; lose 0
append 9 sequence=1; scribble"""

RAGGED = """feed 2,1; feed 0,2 n=3; feed 1,3 n=2; feed 1,1 resident=1; trim 1,0; trim 9,9
filter 1,0; reorder 0,0; attendblock 1,1 heads=4
open B kind=ragged batch=1 padding=right; B: feed 2; repeat 2; extend B; extend A; filter empty
open C kind=ragged batch=1 padding=left window=2; C: feed 3
open C kind=growing batch=1; C: append 1; join CC; extract 0 C; extract 5 C; feed 1,1 kv_heads=1; scribble"""

SINK = """append 3; positions; mask causal & window=2; append 2; positions; keep 0,4; rewind 5; positions
; open B window=1"""

KEYED = """request xyx; match xyxx; request xyy salt=s adapter=a media=p@1,q@2 chunk=1; compute 1 2; compute 7 1
answer 0 y resident=1; propose 0 xx; answer 0 x; accept 0 1; accept 0 9; request -; evict 1; clear; finish 0
abort 1; clear; scribble; open B kind=keyed page_size=1 pages=2 granule=row; B: request xy3; B: request x"""

CONVERSATION = (
    ("ring", "window=3", CACHE),
    ("growing", "dtype=bf16", CACHE),
    ("growing", "", ROUNDS),
    ("store", "layers=2 max_len=5", STORE),
    ("growing", "", ATTENTION),
    ("store", "layers=2 max_len=5", LAYERS),
    ("copy", "capacity=4 layout=head", COPY),
    ("page", "page_size=2 pages=4 debug=1", PAGE),
    ("ragged", "batch=2 padding=left", RAGGED),
    ("bucket", "layers=2 bounds=1-2", BUCKET),
    ("sink", "window=3 sinks=1 shifted=1", SINK),
    ("keyed", "page_size=2 pages=9", KEYED),
    ("layers", "of=full,state layers=2", "append 2; append 1 layers=1; rewind 1; pack x; free; unpack x"),
    ("layers", "of=full,window:2 layers=2", "branch 2 on=-1,-1; branch 1 on=7; branch 1; settle 9; settle 2"),
    ("layers", "of=full,cross layers=1", "encode 2; encode 1; append 2; encode 1 layers=3; rewind 1; free"),
)
"""Every operation, some that are refused, on every kind of cache."""


def schema(name: str) -> dict[str, Any]:
    text = resources.files("kvspec").joinpath("schemas", f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def validator(name: str) -> Draft202012Validator:
    every = [Resource.from_contents(schema(n)) for n in NAMES]
    registry: Registry[Any] = Registry().with_resources((r.id() or "", r) for r in every)
    return Draft202012Validator(schema(name), registry=registry)


def headers(stream: bytes) -> list[dict[str, Any]]:
    """The headers of a stream of messages, as they stand in it."""
    found = []
    while stream:
        line, _, stream = stream.partition(b"\n")
        found.append(json.loads(line))
        for _, dtype, shape in found[-1].get("tensors", []):
            stream = stream[framing.TYPES[dtype].itemsize * int(np.prod(shape)) if dtype else 0 :]
    return found


class Recorder:
    """Stands for a worker: takes down what is asked, as it would be sent; the reference answers here."""

    def __init__(self) -> None:
        self.stream, self.asked, self._server = b"", 0, Server("reference")
        self._answers: list[bytes] = []

    def send(self, head: Any, tensors: Any = None) -> None:
        self.asked += 1
        sent = framing.encode({"id": self.asked, **head}, tensors)
        self.stream += sent
        (question,) = framing.Decoder().feed(sent)
        self._answers.append(self._server.answer(*question))

    def receive(self) -> Any:
        ((head, tensors),) = framing.Decoder().feed(self._answers.pop())
        del head["id"]
        return head, tensors


@cache
def questions() -> bytes:
    """The conversation, as it is sent; opening a ring without a window too."""
    recorder = Recorder()
    recorder.send({"op": "describe", "protocol": framing.PROTOCOL})
    recorder.receive()
    session = RemoteSession(recorder)  # type: ignore[arg-type]
    for kind, fields, ops in CONVERSATION:
        trace = notation.trace(kind, fields, ops.replace("\n", ";"))
        trace_inputs = TraceInputs(trace)
        session.begin(kind, trace.config)
        for op in trace.ops:
            trace_inputs.done(op, session.do(op, trace_inputs.make(op)).result)
    session.begin("ring", Config(window=0))
    return recorder.stream


@cache
def answers() -> bytes:
    """What the reference's worker answers to all of that, sent in one go."""
    command = python_worker("reference")
    done = subprocess.run(command, input=questions(), capture_output=True, env=fakes.environment(), timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_the_schemas_are_schemas() -> None:
    for name in NAMES:
        Draft202012Validator.check_schema(schema(name))
        assert schema(name)["$id"] == f"kvconform:{name}"


def test_every_question_that_is_sent_follows_its_schema() -> None:
    asked = headers(questions())
    assert {q["op"] for q in asked} == {"describe", "begin", *OPERATIONS}
    for question in asked:
        validator("question").validate(question)


def test_every_answer_follows_its_schema() -> None:
    given = headers(answers())
    assert [a["id"] for a in given] == [q["id"] for q in headers(questions())]
    for answer in given:
        validator("answer").validate(answer)


def test_the_answers_held_all_that_an_answer_can_hold() -> None:
    given = headers(answers())
    assert {a["result"] for a in given} == {"ok", "refused", "absent"}
    values = {n.partition(".")[0] for a in given for n in a.get("values", {})}
    assert values == set(VALUES)
    tensors = [t for a in given for t in a.get("tensors", [])]
    assert {name.partition(".")[0] for name, *_ in tensors} == {*messages.ALONE, *messages.ARRAYS}
    assert {dtype for _, dtype, _ in tensors} == {"f16", "bf16", "bool", "f32", None}


UNSEEN = ("tensor missing",)
"""Bad questions that no schema can tell from good ones."""


@pytest.mark.parametrize("name", [name for name in BAD_QUESTIONS if name not in UNSEEN])
def test_a_question_that_a_worker_refuses_is_not_in_the_schema(name: str) -> None:
    question = BAD_QUESTIONS[name]
    full = {**Config().to_json(), **question["config"]} if question.get("config") else None
    asked = question if full is None else {"observe": [], **question, "config": full}
    assert not validator("question").is_valid({"id": 1, **asked})
    assert validator("question").is_valid({"id": 1, **BEGIN})


@pytest.mark.parametrize("answer", [a for a in BAD_ANSWERS if "1.0" not in str(a)], ids=repr)
def test_an_answer_that_is_refused_is_not_in_the_schema(answer: dict[str, Any]) -> None:
    """Save 1.0, which for JSON schema is a whole number."""
    assert not validator("answer").is_valid({"id": 1, **answer})
    assert validator("answer").is_valid({"id": 1, "result": "ok"})


def test_an_unknown_tensor_is_not_in_the_schema() -> None:
    tensors = [["state.q", "f32", [1]], ["state.k", "f64", [1]], ["state.k", "f32"], ["state.k", "f32", [-1]]]
    for tensor in tensors:
        assert not validator("answer").is_valid({"id": 1, "result": "ok", "tensors": [tensor]})
    assert validator("answer").is_valid({"id": 1, "result": "ok", "tensors": [["state.k", "f32", [1]]]})


def test_an_adapter_that_cannot_run_may_say_so() -> None:
    asked = framing.encode({"id": 1, "op": "describe", "protocol": framing.PROTOCOL})
    for name, result in (("NeedsADevice", "cannot_run"), ("DescribesNothing", "error")):
        done = subprocess.run(fakes.adapter(name), input=asked, capture_output=True, env=fakes.environment())
        [answer] = headers(done.stdout)
        assert answer["result"] == result
        validator("answer").validate(answer)


def test_the_schemas_know_every_operation_and_argument() -> None:
    """Held against the one table of operations, so that a new one cannot be forgotten."""
    known = {q["properties"]["op"]["const"]: q["properties"] for q in schema("question")["oneOf"]}
    assert set(known) == {"describe", "begin", *OPERATIONS}
    for name, operation in OPERATIONS.items():
        of_the_config = {"kind", *geometry.FIELDS} if "config" in known[name] else set()
        for a in (a for a in operation.arguments if a.name not in of_the_config):
            assert known[name][a.name] == argument_schema(a)
    assert set(schema("question")["$defs"]["config"]["properties"]) == set(geometry.FIELDS)


def test_operations_and_values_are_described_each() -> None:
    assert [r.name for r in (*OPERATIONS.values(), *VALUES.values()) if not r.says.endswith(".")] == []


LEAST: dict[str, Any] = {"name": "x", "chapters": {"ring": "visible"}}
OF_MODEL: dict[str, Any] = {
    "clause": ["RING-1", "MASK-8"],
    "model": "WIN-04/OwnRowNotCounted",
    "reason": "upstream 12",
}
OF_OUTCOME: dict[str, Any] = {
    "clause": "RING-7",
    "trace": "ring window=1: append 1",
    "shows": "offset: expected 1, found 2",
    "reason": "upstream 13",
}
GOOD: list[dict[str, Any]] = [
    LEAST,
    {**LEAST, "version": "1", "device": "cpu", "details": {"cores": [1, 2]}, "dtypes": ["f32"]},
    {**LEAST, "chapters": {"growing": {"level": "storage", "grows": "step"}, "mask": "visible"}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "rewind": -1}}},
    {**LEAST, "chapters": {"ring": {"level": "storage", "rewind": 0}}},
    {**LEAST, "limits": {"append": None, "batch": 1}, "known": [OF_MODEL, OF_OUTCOME]},
    {**LEAST, "limits": {"window": {"least": 2}, "dims": {"multiple": 32, "equal": True}}},
    {**LEAST, "limits": {"rows": 4096, "heads": 64}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "rewind": "since append", "chunk": 8, "keeps": "window"}}},
]
BAD: list[Any] = [
    None,
    [],
    {},
    {"name": "x"},
    {**LEAST, "name": ""},
    {**LEAST, "version": 1},
    {**LEAST, "device": None},
    {**LEAST, "details": "none"},
    {**LEAST, "colour": "red"},
    {**LEAST, "chapters": {}},
    {**LEAST, "chapters": {"mask": "visible"}},
    {**LEAST, "chapters": {"ring": "visible", "spiral": "visible"}},
    {**LEAST, "chapters": {"ring": "fully"}},
    {**LEAST, "chapters": {"ring": None}},
    {**LEAST, "chapters": {"ring": {}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "depth": 3}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "grows": "fast"}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "rewind": -2}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "rewind": True}}},
    {**LEAST, "chapters": {"ring": {"level": "storage", "rewind": 4}}},
    {**LEAST, "dtypes": []},
    {**LEAST, "dtypes": ["f64"]},
    {**LEAST, "dtypes": [["f16"]]},
    {**LEAST, "dtypes": "f32"},
    {**LEAST, "limits": {"append": 0}},
    {**LEAST, "limits": {"batch": True}},
    {**LEAST, "limits": {"rows": 0}},
    {**LEAST, "inputs": [["strided"]]},
    {**LEAST, "limits": {"layers": 3}},
    {**LEAST, "limits": {"heads": 0}},
    {**LEAST, "limits": {"window": 2}},
    {**LEAST, "limits": {"window": {"least": 0}}},
    {**LEAST, "limits": {"dims": {"equal": 1}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "chunk": 0}}},
    {**LEAST, "chapters": {"ring": {"level": "visible", "range": "wide"}}},
    {**LEAST, "chapters": {"ring": {"level": "storage", "chunk": "window"}}},
    {**LEAST, "known": {"CACHE-1": "upstream 12"}},
    {**LEAST, "known": [{"clause": "CACHE-1", "reason": "all of the clause"}]},
    {**LEAST, "known": [OF_MODEL | {"reason": ""}]},
    {**LEAST, "known": [OF_MODEL | {"model": []}]},
    {**LEAST, "known": [OF_MODEL | {"trace": "ring window=1: append 1"}]},
    {**LEAST, "known": [OF_MODEL | OF_OUTCOME]},
    {**LEAST, "known": [OF_OUTCOME | {"shows": None}]},
    {**LEAST, "known": [OF_MODEL | {"dialect": {"ring.rewind": "below"}}]},
]


@pytest.mark.parametrize("said", GOOD, ids=str)
def test_a_description_in_the_schema_is_accepted_and_so_is_what_it_becomes(said: dict[str, Any]) -> None:
    validator("describe").validate(said)
    validator("describe").validate(description(said).to_json())
    assert description(description(said).to_json()) == description(said)


@pytest.mark.parametrize("said", BAD, ids=str)
def test_a_description_outside_the_schema_is_bad_input(said: Any) -> None:
    assert not validator("describe").is_valid(said)
    with pytest.raises(BadInput):
        description(said)
