"""Trace files and the notation: what is written is read back, and what is wrong is said, never run."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kvconform.strategies import draws
from kvspec import masks, notation, trace
from kvspec.errors import BadInput
from kvspec.trace import Trace

QUICK = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
PUBLISHED = json.loads(resources.files("kvspec").joinpath("schemas", "trace.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(PUBLISHED)

GOOD: dict[str, Any] = {
    "kvtrace": 1,
    "profile": "ring",
    "config": {"window": 3},
    "ops": [{"op": "append", "n": 2}, {"op": "snapshot", "name": "s"}, {"op": "restore", "name": "s", "to": 2}],
}


def test_the_published_schema_is_the_one_the_code_follows() -> None:
    assert trace.schema() == PUBLISHED
    Draft202012Validator.check_schema(PUBLISHED)


def test_a_good_trace_is_read_and_written() -> None:
    read = trace.loads(json.dumps(GOOD))
    assert (read.profile, read.config.window, len(read.ops)) == ("ring", 3, 3)
    assert trace.loads(trace.dumps(read)) == read


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good trace with one thing in it changed."""
    document = copy.deepcopy(GOOD)
    *inner, last = path.split("/")
    at: Any = document
    for key in inner:
        at = at[int(key) if key.isdigit() else key]
    at[int(last) if last.isdigit() else last] = value
    return document


WRONG = {
    "another version": ("kvtrace", 2, "version 2"),
    "an unknown field": ("comment", "x", "comment"),
    "an unknown profile": ("profile", "paged", "profile"),
    "a ring without a window": ("config", {}, "window"),
    "an unknown size": ("config/windows", 4, "windows"),
    "a size of zero": ("config/window", 0, "window"),
    "a negative size": ("config/kv_heads", -1, "kv_heads"),
    "a huge size": ("config/k_dim", 1 << 40, "k_dim"),
    "a size that is no number": ("config/step", "8", "step"),
    "a truth for a number": ("config/step", True, "step"),
    "an unknown dtype": ("config/dtype", "f64", "dtype"),
    "operations that are no list": ("ops", {"op": "view"}, "ops"),
    "an unknown operation": ("ops/0", {"op": "explode"}, "operation 1"),
    "an operation that is a text": ("ops/0", "append 2", "operation 1"),
    "an unknown argument": ("ops/0/m", 2, "'m'"),
    "a missing argument": ("ops/2", {"op": "restore", "name": "s"}, "to is missing"),
    "a negative count": ("ops/0/n", -1, "n must be"),
    "a huge count": ("ops/0/n", 1 << 40, "n must be"),
    "a snapshot never made": ("ops/2/name", "t", "'t'"),
    "a cache never opened": ("ops/0/cache", "B", "no cache B"),
    "a cache opened twice": ("ops/0", {"op": "open", "cache": "A"}, "A is open"),
    "a cache with two letters": ("ops/0/cache", "AB", "capital letter"),
    "a cache with a line end": ("ops/0/cache", "B\n", "capital letter"),
    "a name with a slash": ("ops/1/name", "../s", "name"),
    "a ragged mask": ("ops/0", {"op": "mask", "parts": [{"array": [[1], [1, 2]], "dtype": "bool"}]}, "array"),
    "a mask of texts": ("ops/0", {"op": "mask", "parts": [{"array": ["x"], "dtype": "f32"}]}, "-inf"),
    "a mask with NaN": ("ops/0", {"op": "mask", "parts": [{"array": [float("nan")], "dtype": "f32"}]}, "finite"),
    "a mask of an unknown kind": ("ops/0", {"op": "mask", "parts": ["alibi"]}, "part"),
    "a window of nothing": ("ops/0", {"op": "mask", "parts": [{"window": 0}]}, "part"),
    "a shape for a mask with elements": (
        "ops/0", {"op": "mask", "parts": [{"array": [True], "dtype": "bool", "shape": [1]}]}, "without elements",
    ),
    "a huge shape": (
        "ops/0", {"op": "mask", "parts": [{"array": [], "dtype": "bool", "shape": [0, 1 << 40]}]},
        "without elements",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", WRONG)
def test_what_is_wrong_is_said(lie: str) -> None:
    path, value, says = WRONG[lie]
    with pytest.raises(BadInput) as e:
        trace.from_json(changed(path, value))
    assert says in str(e.value)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 300


def test_rows_of_a_huge_width_are_within_the_bound_or_refused() -> None:
    document = changed("ops/0/k_dim", 1 << 16)
    document["ops"][0]["n"] = 1 << 12
    with pytest.raises(BadInput, match="bytes of rows"):
        trace.from_json(document)


@pytest.mark.parametrize(
    "text", ["", "{", '{"kvtrace": 1, "profile": "ri', "[" * 100_000, "null", "3", '"x"', "\x00"]
)
def test_a_file_that_is_no_trace_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadInput):
        trace.loads(text)


def test_a_file_that_is_not_text_is_said_to_be_none() -> None:
    with pytest.raises(BadInput):
        trace.loads(b"\xff\xfe\x00")


def test_a_huge_file_is_not_read() -> None:
    with pytest.raises(BadInput, match="at most"):
        trace.loads(" " * (trace.LARGEST_FILE + 1))


def test_a_trace_of_too_many_operations_is_refused() -> None:
    with pytest.raises(BadInput, match="at most"):
        trace.from_json(changed("ops", [{"op": "view"}] * (trace.LARGEST_TRACE + 1)))


junk: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["append", "s", "B"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(
    st.sampled_from(["kvtrace", "profile", "config", "config/window", "ops", "ops/0", "ops/1/name", "ops/2/to"]),
    junk,
)
def test_junk_is_refused_with_words_or_is_a_trace_by_the_schema_too(path: str, value: Any) -> None:
    document = changed(path, value)
    try:
        trace.from_json(document)
    except BadInput:
        return
    VALIDATOR.validate(document)


@QUICK
@given(st.sampled_from(["growing", "ring"]).flatmap(lambda p: draws.traces(p, draws.EVERYTHING)))
def test_drawn_traces_follow_the_schema_and_are_read_back(drawn: Trace) -> None:
    VALIDATOR.validate(drawn.to_json())
    assert trace.loads(trace.dumps(drawn)) == drawn


@QUICK
@given(st.sampled_from(["growing", "ring"]).flatmap(lambda p: draws.traces(p, draws.EVERYTHING)))
def test_the_notation_is_read_back(drawn: Trace) -> None:
    for op in drawn.ops:
        if op["op"] == "mask" and any(isinstance(p, dict) and "array" in p for p in op["parts"]):
            continue
        back = notation.operation(notation.words(op))
        assert notation.words(back) == notation.words(op)
        assert {k: v for k, v in op.items() if v is not None} == back or "start" in op or "fill" in op


@pytest.mark.parametrize(
    "text",
    ["append 3", "B: append 2 fill=bits", "open B window=4", "open B profile=growing", "mask none", "mask causal",
     "mask causal & window=2 & 1011", "mask [0 -1.5 / -inf 3]", "mask bool[1,1,0,4]", "view", "ask 3", "rewind -1",
     "snapshot s", "snapshot s 2", "restore s 5", "split s 2 p c", "merge p c m", "close s", "append 1 values=2"],
)  # fmt: skip
def test_the_notation_says_the_same_both_ways(text: str) -> None:
    assert notation.words(notation.operation(text)) == text


@pytest.mark.parametrize("text", ["", "append", "append x", "append 1 2 3 4 5 6 7 8 9", "apend 1",
                                  "B append 1", "mask", "mask 12", "mask window=x", "rewind 1.5",
                                  "append 1 colour=red"])  # fmt: skip
def test_notation_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        notation.operation(text)


@pytest.mark.parametrize("parts", [[], ["causal"], [{"window": 3}],
                                   [{"array": [[[[0.5, "-inf"]]]], "dtype": "f32"}],
                                   [{"array": [], "dtype": "bool", "shape": [1, 1, 0, 4]}]])  # fmt: skip
def test_masks_are_written_as_they_were_read(parts: list[Any]) -> None:
    assert masks.to_json(masks.from_json(parts)) == parts
