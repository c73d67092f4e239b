"""Trace files: what is wrong is refused in words that say what and where; what is right comes back."""

from __future__ import annotations

import copy
import json
import resource
import subprocess
import sys
from importlib import resources
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvadapters.reference import Reference
from kvconform.generate.strategies import cache_moves, caches
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference
from kvspec import notation, trace
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.trace import Trace
from support import fakes
from support.slow import one_in
from tools import schemas

RING = notation.trace("ring", "window=3", "append 3; snapshot s; append 1; restore s 2; mask causal & 101")
REFERENCE = description(Reference().describe())
TRACES = st.one_of(caches.traces("growing", cache_moves.EVERYTHING), caches.traces("ring", cache_moves.EVERYTHING))
FEW = settings(max_examples=40, deadline=None)
SCHEMA = jsonschema.Draft202012Validator(schemas.trace.schema())


def document(**changes: Any) -> dict[str, Any]:
    return {**RING.to_json(), **changes}


def ops(*given: Any, config: Any = None, kind: str = "growing") -> dict[str, Any]:
    return {"kvtrace": 2, "kind": kind, "config": config or {}, "ops": list(given)}


WRONG: dict[str, tuple[Any, str]] = {
    "truncated": (trace.dumps(RING)[:-40], "not complete JSON .*; was the file cut off"),
    "empty": ("", "not complete JSON"),
    "not text": (b"\xff\xfe\x00", "not complete JSON"),
    "a list": ([], "expected an object with kvtrace, kind, config, ops; found \\[\\]"),
    "another version": (document(kvtrace=1), "version 1; this kvconform reads version 2"),
    "no version": ({}, r"not a trace \(no kvtrace\)"),
    "a version of true": (document(kvtrace=True), "version True"),
    "unknown field": (document(colour="red"), "unknown field 'colour'"),
    "unknown kind": (document(kind="spiral"), "kind is 'spiral'; it must be one of growing, ring"),
    "a kind that is a list": (document(kind=["ring"]), "kind is"),
    "no config": (document(config=None), "config: expected an object, found None"),
    "unknown config": (document(config={"window": 3, "depth": 2}), "config: unknown field 'depth'; known: batch"),
    "negative size": (document(config={"window": -3}), "window must be a whole number from 1 to 131072, is -3"),
    "huge size": (document(config={"window": 1 << 70}), "window must be a whole number from 1 to 131072"),
    "a size of true": (document(config={"window": True}), "window must be a whole number"),
    "unknown dtype": (
        document(config={"window": 3, "dtype": "f64"}),
        "dtype must be one of f32, f16, bf16, is 'f64'",
    ),
    "a dtype that is a list": (document(config={"window": 3, "dtype": []}), "dtype must be one of"),
    "a ring without window": (document(config={}), "window"),
    "a window without ring": (ops(config={"window": 3}), "window"),
    "ops that are none": (document(ops={}), "ops must be a list of at most 4096 operations"),
    "too many ops": (ops(*[{"op": "view"}] * 4097), "ops must be a list of at most 4096 operations"),
    "unknown operation": (ops({"op": "explode"}), "operation 1: unknown operation 'explode'; did you mean"),
    "an operation of another kind of cache": (
        ops({"op": "rollback", "to": 0}),
        "operation 1 \\(rollback\\): A is a growing cache, which has no rollback",
    ),
    "an operation of the kind that it was before": (
        ops(
            *({"op": "open", "cache": "B"}, {"op": "view", "cache": "B"}),
            *({"op": "open", "cache": "B", "kind": "ring", "window": 2}, {"op": "view", "cache": "B"}),
            *({"op": "open", "cache": "B", "kind": "copy"}, {"op": "view", "cache": "B"}),
        ),
        "operation 6 \\(view\\): B is a copy cache, which has no view",
    ),
    "an operation that is a list": (ops({"op": ["append"]}), "operation 1: unknown operation"),
    "an operation of no form": (ops({"op": "view"}, 7), "operation 2: unknown operation 7"),
    "unknown argument": (ops({"op": "view", "loud": 1}), "operation 1 \\(view\\): unknown argument 'loud'"),
    "missing argument": (ops({"op": "append"}), "operation 1 \\(append\\): n is missing"),
    "negative rows": (ops({"op": "append", "n": -1}), "n must be a number from 0 to 1048576, is -1"),
    "rows of true": (ops({"op": "append", "n": True}), "n must be a number from 0 to 1048576, is True"),
    "rows in tenths": (ops({"op": "append", "n": 1.0}), "n must be a number"),
    "huge target": (ops({"op": "rewind", "to": 1 << 40}), "to must be a number from -2147483648 to 2147483648"),
    "unknown fill": (ops({"op": "append", "n": 1, "fill": "zeros"}), "fill must be a fill"),
    "a cache of small letters": (
        ops({"op": "view", "cache": "b"}),
        "a cache is named by one capital letter, not 'b'",
    ),
    "a cache with a newline": (ops({"op": "view", "cache": "A\n"}), "a cache is named by one capital letter"),
    "a cache never opened": (ops({"op": "view", "cache": "B"}), "operation 1 \\(view\\): no cache B was opened"),
    "A opened twice": (ops({"op": "open", "cache": "A"}), "A is open from the beginning; open B"),
    "a snapshot never made": (
        ops({"op": "restore", "name": "s", "to": 0}),
        "no snapshot named 's' was made before",
    ),
    "a name too long": (ops({"op": "snapshot", "name": "s" * 9}), "name must be a name"),
    "a name with a newline": (ops({"op": "snapshot", "name": "s\n"}), "name must be a name"),
    "a mask of text": (ops({"op": "mask", "parts": "causal"}), "a mask is a list of at most 8 parts"),
    "a mask of nine": (ops({"op": "mask", "parts": ["causal"] * 9}), "a mask is a list of at most 8 parts"),
    "a mask of far too wide a window": (
        ops({"op": "mask", "parts": [{"window": 1 << 17}]}),
        '"window": -65536..65536',
    ),
    "a mask of half a window": (ops({"op": "mask", "parts": [{"window": 0.5}]}), '"window": -65536..65536'),
    "an output that is twice read-only": (
        ops({"op": "attend", "n": 1, "out_readonly": 2}),
        "out_readonly must be a number from 0 to 1",
    ),
    "a ragged mask": (
        ops({"op": "mask", "parts": [{"array": [[[[True], [True, False]]]], "dtype": "bool"}]}),
        "array",
    ),
    "a mask of words": (ops({"op": "mask", "parts": [{"array": [[[["no"]]]], "dtype": "f32"}]}), "numbers, -inf"),
    "a mask of ones": (ops({"op": "mask", "parts": [{"array": [[[[1]]]], "dtype": "bool"}]}), "true, false"),
    "a huge score": (ops({"op": "mask", "parts": [{"array": [[[[1e300]]]], "dtype": "f32"}]}), "finite f32"),
    "a vast score": (ops({"op": "mask", "parts": [{"array": [[[[10**400]]]], "dtype": "f32"}]}), "too large"),
    "a mask of no dtype": (ops({"op": "mask", "parts": [{"array": [[[[1]]]], "dtype": ["f32"]}]}), "a part is"),
    "a mask of no elements": (
        ops({"op": "mask", "parts": [{"array": [], "dtype": "f32", "shape": [2]}]}),
        "holds a 0",
    ),
    "a deep mask": (ops({"op": "mask", "parts": [{"array": [[[[[[[0]]]]]]], "dtype": "f32"}]}), "too large"),
}


@pytest.mark.parametrize(("given_", "words"), WRONG.values(), ids=WRONG)
def test_a_trace_file_that_is_wrong_is_refused_in_words(given_: Any, words: str) -> None:
    text = given_ if isinstance(given_, str | bytes) else json.dumps(given_)
    with pytest.raises(BadInput, match=words) as e:
        trace.loads(text, "wrong.json")
    assert "\n" not in str(e.value) and len(str(e.value)) < 400
    assert str(e.value).startswith(("wrong.json: ", "wrong.json, ")), "it names the file"


@pytest.mark.parametrize("text", ["[" * 200_000, '{"kvtrace": ' * 100_000])
def test_a_file_that_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="nested too deeply"):
        trace.loads(text)


def test_numbers_of_a_million_digits_are_refused() -> None:
    with pytest.raises(BadInput):
        trace.loads('{"kvtrace": 2, "kind": "growing", "config": {"batch": ' + "9" * 1_000_000 + '}, "ops": []}')


def test_a_file_too_large_is_not_read() -> None:
    with pytest.raises(BadInput, match="a trace file has at most 8388608"):
        trace.loads(b" " * (trace.LARGEST_FILE + 1))


COSTLY = {
    "geometry": ("batch=65536 kv_heads=65536 k_dim=65536", "append 0", "bytes of rows"),
    "rows": ("k_dim=4096 v_dim=4096", "append 4000", "bytes of rows"),
    "a growth step": ("kv_heads=64 k_dim=256 v_dim=256 step=65536", "append 1", "bytes of rows"),
    "rows in sum": ("k_dim=4096 v_dim=4096", "append 900; rewind 0; " * 9, "bytes of rows"),
    "another cache": ("k_dim=64", "open B batch=4096 kv_heads=4096", "bytes of rows"),
    "small rows": ("k_dim=5 v_dim=5 kv_heads=512", "append 10; rewind 0; " * 210, "heads and sequences counted"),
    "what queries see": ("", "append 3000", "pairs"),
    "what a batch sees": ("batch=60", "append 700", "pairs"),
    "what heads see": ("", "append 900; mask " + "bool[1,9000,0,4]", "pairs"),
    "snapshots": ("k_dim=1024 v_dim=1024", "append 2000; " + "snapshot s; " * 90, "the snapshots of the trace"),
    "merges": (
        "k_dim=1024 v_dim=1024",
        "append 2000; snapshot s; " + "merge s s s; " * 90,
        "the snapshots of the trace",
    ),
    "serials": ("k_dim=2", "append 100; append 29", "rows of 2 elements can name only 128"),
}


@pytest.mark.parametrize(("config", "text", "words"), COSTLY.values(), ids=COSTLY)
def test_a_trace_that_would_cost_too_much_is_refused(config: str, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        notation.trace("growing", config, text)


DEAR = {
    "bytes": ("batch=64 kv_heads=16 k_dim=8000 v_dim=8000 step=1", "append 1; view"),
    "rows": ("kv_heads=64 k_dim=5 v_dim=5", "append 600 fill=bits; rewind 0; append 1"),
    "pairs": ("kv_heads=1 k_dim=5 v_dim=5", "append 1300"),
    "no rows": ("batch=2048 kv_heads=1024 k_dim=5 v_dim=5 step=1", "append 0; view; snapshot s"),
}


@pytest.mark.parametrize("dear", one_in(4, DEAR))
def test_a_trace_that_may_just_be_replayed_needs_no_more_than_two_gibibytes(dear: str) -> None:
    config, text = DEAR[dear]
    script = f"import runpy, sys; runpy.run_path({__file__!r})['replay_within'](2 << 30, *sys.argv[1:])"
    command = [sys.executable, "-c", script, config, text]
    done = subprocess.run(command, env=fakes.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-600:]


def replay_within(limit: int, config: str, text: str) -> None:
    """Replay at both levels with so many bytes of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found = notation.trace("growing", config, text)
    for level in ("storage", "visible"):
        assert not trial.run(found, CitingReference(), REFERENCE, level).failed


@pytest.mark.parametrize("size", ["batch", "kv_heads", "k_dim", "v_dim", "step", "window"])
@pytest.mark.parametrize("fill", ["legible", "bits"])
def test_a_cache_of_impossible_size_is_refused_and_then_absent(size: str, fill: str) -> None:
    kind, config = ("ring", "window=3") if size == "window" else ("growing", "")
    found = notation.trace(kind, config, f"open B {size}=-3; B: append 2 fill={fill}; append 1")
    seen = trial.run(found, CitingReference(), REFERENCE)
    assert [want.result for want, _ in seen.steps] == ["refused", "absent", "ok"] and not seen.failed


@FEW
@given(TRACES)
def test_a_drawn_trace_is_written_and_read_back(drawn: Trace) -> None:
    assert trace.loads(trace.dumps(drawn)) == drawn
    SCHEMA.validate(drawn.to_json())


@FEW
@given(TRACES)
def test_the_notation_says_an_operation_and_reads_it_back(drawn: Trace) -> None:
    for op in drawn.ops:
        said = notation.words(op)
        read = notation.operation(said)
        assert notation.words(read) == said
        if not _sized(op):
            assert _plain(read) == _plain(op)


def _sized(op: dict[str, Any]) -> bool:
    """Of a mask with values but without four axes the shape alone is said."""
    arrays = [p for p in op.get("parts", ()) if isinstance(p, dict) and "array" in p and "shape" not in p]
    return any(np.array(a["array"], dtype=object).ndim != 4 for a in arrays)


@pytest.mark.parametrize(("said", "shape"), [("f32[2,3]", (2, 3)), ("bool[1, 2,3]", (1, 2, 3)), ("f32[]", ())])
def test_of_a_mask_without_four_axes_the_shape_alone_is_said(said: str, shape: tuple[int, ...]) -> None:
    read = notation.operation(f"mask causal & {said}")
    assert np.shape(read["parts"][1]["array"]) == shape
    assert notation.words(read) == "mask causal & " + said.replace(" ", "")


def test_a_shape_that_is_said_is_bounded() -> None:
    with pytest.raises(BadInput, match=r"f32\[70000,70000\].*at most 65536 elements"):
        notation.operation("mask f32[70000,70000]")


def _plain(op: dict[str, Any]) -> dict[str, Any]:
    """An operation with its defaults filled in."""
    defaults = {a.name: a.default for a in notation.OPERATIONS[op["op"]].arguments if not a.required}
    return {"cache": "A", **defaults, **op}


def test_the_published_schema_is_that_of_the_parser() -> None:
    published = resources.files("kvspec").joinpath("schemas", "trace.json").read_text(encoding="utf-8")
    assert json.loads(published) == schemas.trace.schema()
    jsonschema.Draft202012Validator.check_schema(schemas.trace.schema())


# Copies: a document that is changed further must not change these lists for the next one.
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-2, 70000), st.floats(), st.text(max_size=3),
    st.sampled_from(["append", "mask", "ring", "f16", "A", "B", "s", [], {}, ["causal"], [[]], "n", "to", "name"]),
).map(copy.deepcopy)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A trace document with up to three places changed, lost or added."""
    whole = json.loads(trace.dumps(draw(TRACES)))
    for _ in range(draw(st.integers(1, 3))):
        place = whole
        while isinstance(place, dict | list) and place and draw(st.integers(0, 3)):
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            parent, place = place, place[key]
            if not isinstance(place, dict | list) or not place:
                parent[key] = draw(VALUES)
        if isinstance(place, dict) and draw(st.booleans()):
            place[draw(st.sampled_from(["n", "op", "extra", "cache", "to", "shape", "values"]))] = draw(VALUES)
        elif isinstance(place, list) and place:
            place.pop(draw(st.integers(0, len(place) - 1)))
    return whole


@settings(max_examples=150, deadline=None)
@given(mutated())
def test_a_mutated_document_is_read_or_refused_and_nothing_else(changed: Any) -> None:
    try:
        read = trace.from_json(changed)
    except BadInput:
        return
    assert SCHEMA.is_valid(changed), f"read, though the schema forbids it: {changed}"
    if sum(op.get("n", 0) for op in read.ops) > 500:
        return  # it may be replayed, but takes its time
    for level in ("storage", "visible"):
        assert not trial.run(read, CitingReference(), REFERENCE, level).failed


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(VALUES, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=4), x, max_size=3))
)
def test_whatever_json_there_is_it_is_refused_in_words(anything: Any) -> None:
    with pytest.raises(BadInput):
        trace.from_json(anything)
