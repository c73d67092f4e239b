"""The published schemas are the protocol: what is really sent and answered follows them, and nothing else does."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from importlib import resources
from typing import Any

import fakes
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from test_serve import BAD_QUESTIONS, BEGIN
from test_wire import BAD_ANSWERS

from kvconform.remote import RemoteSession
from kvconform.worker import python_worker
from kvspec import geometry, notation, wire
from kvspec.contract import LEVELS, PROFILES, Pair, description
from kvspec.errors import BadInput
from kvspec.geometry import Config
from kvspec.operations import OPERATIONS
from kvspec.rows import Book
from kvspec.session import OBSERVABLES

NAMES = ("question", "answer", "describe")

TRACE = """append 3; append 2 fill=bits; mask none; mask causal & 11111/01111; mask [0 / 1.5] & window=2
append 1 batch=2; append 2 values=1; append 1 dtype=f32; append 0; view; scribble
snapshot s; append 2; restore s 4; rewind 3; ask 2; rewind 99; snapshot t 1; split t 2 p q; merge p q u; close u
close u; open B window=2
B: append 1; B: append 3; B: view; B: mask causal; B: rewind 0; B: free; restore u 1; free; view"""


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
            stream = stream[wire.TYPES[dtype].itemsize * int(np.prod(shape)) if dtype else 0 :]
    return found


class Recorder:
    """Stands for a worker: takes down what is asked, as it would be sent."""

    def __init__(self) -> None:
        self.stream, self.asked = b"", 0

    def send(self, head: Any, tensors: Any = None) -> None:
        self.asked += 1
        self.stream += wire.encode({"id": self.asked, **head}, tensors)

    def receive(self) -> Any:
        return {"result": "ok"}, {}


@cache
def questions() -> bytes:
    """Every operation, some that are refused, on a ring and a growing cache."""
    recorder = Recorder()
    recorder.send({"op": "describe", "protocol": wire.PROTOCOL})
    session, book, config = RemoteSession(recorder), Book(), Config(window=3)  # type: ignore[arg-type]
    for profile, opened in (("ring", config), ("growing", Config(dtype="bf16")), ("ring", Config(window=0))):
        session.begin(profile, opened)
        for words in TRACE.replace("\n", ";").split(";"):
            op = notation.operation(words)
            rows = Pair(*book.rows(op, opened)) if op["op"] == "append" else None
            session.do(op, rows, opening=(profile, opened.changed(window=2 if profile == "ring" else None)))
            book.took(op.get("n", 0))
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
    assert {n for a in given for n in a.get("values", {})} == {*wire.NUMBERS, *wire.SNAPSHOTS, *wire.TRUTHS}
    tensors = [t for a in given for t in a.get("tensors", [])]
    assert {name for name, *_ in tensors} == set(wire.ARRAYS)
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
    asked = wire.encode({"id": 1, "op": "describe", "protocol": wire.PROTOCOL})
    for name, result in (("NeedsADevice", "cannot_run"), ("DescribesNothing", "error")):
        done = subprocess.run(fakes.adapter(name), input=asked, capture_output=True, env=fakes.environment())
        [answer] = headers(done.stdout)
        assert answer["result"] == result
        validator("answer").validate(answer)


def test_the_schemas_know_every_operation_and_argument() -> None:
    """Held against the one table of operations, so that a new one cannot be forgotten."""
    known = {q["properties"]["op"]["const"]: q["properties"] for q in schema("question")["oneOf"]}
    assert set(known) == {"describe", "begin", *OPERATIONS}
    for name, arguments in OPERATIONS.items():
        for a in () if name == "open" else arguments:
            there = {k: v for k, v in known[name][a.name].items() if k != "description"}
            assert a.holds == "mask" or there == a.schema()
    config = schema("question")["$defs"]["config"]["properties"]
    assert set(config) == {*geometry.SIZES, "dtype"}
    assert config["dtype"]["enum"] == list(geometry.DTYPES)
    assert known["begin"]["observe"]["items"]["enum"] == list(OBSERVABLES)


def test_the_schemas_know_every_profile_and_level_and_result() -> None:
    profiles = schema("describe")["properties"]["profiles"]
    assert profiles["propertyNames"]["enum"] == list(PROFILES)
    assert [r["required"][0] for r in profiles["anyOf"]] == list(geometry.CACHES)
    assert schema("describe")["$defs"]["claim"]["properties"]["level"]["enum"] == list(LEVELS)
    answer = schema("answer")["oneOf"][0]["properties"]
    assert answer["result"]["enum"] == list(wire.RESULTS)
    assert set(answer["values"]["properties"]) == {*wire.NUMBERS, *wire.SNAPSHOTS, *wire.TRUTHS}
    named, typed, _ = answer["tensors"]["items"]["prefixItems"]
    assert (named["enum"], typed["enum"]) == (list(wire.ARRAYS), [*wire.TYPES, None])


LEAST: dict[str, Any] = {"name": "x", "profiles": {"ring": "visible"}}
GOOD: list[dict[str, Any]] = [
    LEAST,
    {**LEAST, "version": "1", "device": "cpu", "details": {"cores": [1, 2]}, "dtypes": ["f32"]},
    {**LEAST, "profiles": {"growing": {"level": "storage", "grows": "step"}, "mask": "visible"}},
    {**LEAST, "profiles": {"ring": {"level": "visible", "rewind": -1}}},
    {**LEAST, "profiles": {"ring": {"level": "storage", "rewind": 0}}},
    {**LEAST, "limits": {"append": None, "batch": 1}, "known": {"RING-4": "upstream 12"}},
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
    {**LEAST, "profiles": {}},
    {**LEAST, "profiles": {"mask": "visible"}},
    {**LEAST, "profiles": {"ring": "visible", "spiral": "visible"}},
    {**LEAST, "profiles": {"ring": "fully"}},
    {**LEAST, "profiles": {"ring": None}},
    {**LEAST, "profiles": {"ring": {}}},
    {**LEAST, "profiles": {"ring": {"level": "visible", "depth": 3}}},
    {**LEAST, "profiles": {"ring": {"level": "visible", "grows": "fast"}}},
    {**LEAST, "profiles": {"ring": {"level": "visible", "rewind": -2}}},
    {**LEAST, "profiles": {"ring": {"level": "visible", "rewind": True}}},
    {**LEAST, "profiles": {"ring": {"level": "storage", "rewind": 4}}},
    {**LEAST, "dtypes": []},
    {**LEAST, "dtypes": ["f64"]},
    {**LEAST, "dtypes": "f32"},
    {**LEAST, "limits": {"append": 0}},
    {**LEAST, "limits": {"batch": True}},
    {**LEAST, "limits": {"heads": 3}},
    {**LEAST, "known": {"RING-4": ""}},
    {**LEAST, "known": {"RING-4": None}},
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
