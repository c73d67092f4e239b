"""A vector: a trace on the reference, written step by step with all inputs and all expected outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import expected
from kvconform.oracle.reference import CitingReference
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.vectors.arrays import Arrays
from kvspec import notation, trace
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.operations.table import TAKES_QUERIES, Operation
from kvspec.rows import fingerprint
from kvspec.rows.book import SerialBook
from kvspec.session.step import Inputs, Step
from kvspec.trace import Trace, used_chapters

VERSION = 3
"""Version of the document. Covers are version 1."""

LICENCE = "CC0-1.0"

OBSERVED = ("state", "positions", "history", "mask", "sees", "fold", "held", "offset", "free", "can")
"""The observers: all but the meter's counts, which differ between engines."""


@dataclass(frozen=True)
class Vector:
    """A trace to keep, and the reason."""

    id: str
    source: str
    trace: Trace
    clause: str = ""
    """The clause that it tests, if it tests one."""
    bug_class: str = ""
    """Class of the bug that it finds."""
    notes: dict[str, Any] = field(default_factory=dict)
    """`bug` says which bug it finds, `anomaly` and `effect` the name of the fault and its effect on a model.
    `shows` says how it shows, `links` where it was met; `finds` has ids of mutants."""


def read(v: dict[str, Any]) -> Vector:
    """Read a vector of a document, to write it again. Raises BadInput if it holds no trace."""
    try:
        _, *ops = (step["op"] for step in v["steps"])
        made = trace.from_json({"kvtrace": trace.VERSION, "kind": v["kind"], "config": v["config"], "ops": ops})
        return Vector(v["id"], v["source"], made, v.get("clause", ""), v.get("class", ""), v.get("notes", {}))
    except (KeyError, TypeError, ValueError) as e:
        raise BadInput(f"not a vector: {type(e).__name__}: {e}") from None


@dataclass
class Written:
    """Written vectors: a document, and the tensors it refers to by name."""

    document: dict[str, Any]
    tensors: dict[str, Array] = field(default_factory=dict)


def counts(listed: list[dict[str, Any]]) -> dict[str, int]:
    """Count vectors, steps and everything else."""
    steps = [step for v in listed for step in v["steps"]]
    return {"vectors": len(listed), "steps": len(steps), "tensors": len({t for s in steps for _, t in named(s)})}


def named(step: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the fields of a step with the tensors they name."""
    for fields in (step.get("see", {}), step.get("given", {})):
        for field_, value in fields.items() if isinstance(fields, dict) else ():
            if isinstance(value, dict):
                yield from ((field_, v["tensor"]) for v in (value, value.get("within")) if v and "tensor" in v)


def vector(v: Vector, tensors: dict[str, Array]) -> dict[str, Any]:
    """Write one vector; add its tensors to the others."""
    cites = dict[str, None]()
    steps = list(_steps(v, tensors, cites))
    why = {"clause": v.clause, "class": v.bug_class, "notes": v.notes}
    made = {
        "id": v.id,
        "source": v.source,
        **{name: value for name, value in why.items() if value},
        "exercises": sorted(cites),
        "needs": sorted(used_chapters(v.trace)),
        "words": notation.sentence(v.trace),
        "kind": v.trace.kind,
        "config": v.trace.config.to_json(),
        "steps": steps,
    }
    return dict(json.loads(json.dumps(made)))  # as it will be read


def _steps(v: Vector, tensors: dict[str, Array], cites: dict[str, None]) -> Iterator[dict[str, Any]]:
    """Write every operation, first the opening of cache A: its inputs, and the expected observations."""
    for op, inputs, step, bound, book in performed(v.trace):
        arrays = Arrays(book, tensors)
        cites.update(dict.fromkeys(step.cites))
        yield {"do": notation.words(op), "op": op, **_given(inputs, arrays), "see": _seen(step, arrays, bound)}


class Performed(NamedTuple):
    """An operation as the reference did it."""

    op: Operation
    inputs: Inputs
    step: Step
    bound: Expected | None
    """The list model's bounds, where the step gave numbers."""
    book: SerialBook


def performed(trace: Trace) -> Iterator[Performed]:
    """Perform every operation on the reference, first the opening of cache A."""
    reference, trace_inputs = CitingReference(observe=OBSERVED), TraceInputs(trace)
    bounds = _bounds(trace)
    opening: Operation = {"op": "open"}
    for i, op in enumerate((opening, *trace.ops)):
        inputs = trace_inputs.make(op) if i else Inputs(opening=(trace.kind, trace.config))
        step = reference.do(op, inputs)
        yield Performed(op, inputs, step, bounds.get(i), trace_inputs.book)
        if i:
            trace_inputs.done(op, step.result)


def _bounds(trace: Trace) -> dict[int, Expected]:
    """Give the list model's bounds for steps with numeric outputs, by step."""
    if not any(op["op"] in (*TAKES_QUERIES, "rotate") for op in trace.ops):
        return {}
    return {i: step for i, step in enumerate(expected(trace), 1) if step.outputs or step.rotated}


def _given(inputs: Inputs, arrays: Arrays) -> dict[str, Any]:
    """Write rows and queries; kind and config if the operation has them."""
    put: dict[str, Any] = {}
    if inputs.opening is not None:
        put["opens"] = {"kind": inputs.opening[0], "config": inputs.opening[1].to_json()}
    if inputs.rows is not None:
        put |= arrays.pair("rows", *inputs.rows)
    if inputs.queries is not None:
        put["queries"] = arrays.alone("queries", inputs.queries)
    return {"given": put} if put else {}


def _seen(step: Step, arrays: Arrays, bound: Expected | None) -> dict[str, Any]:
    """Write the result, the clause of a refusal and the values. Rows are serials, masks are text, other arrays are
    tensors."""
    out: dict[str, Any] = {"result": step.result, **({"clause": step.clause} if step.clause else {})}
    out |= {name: _value(name, value) for name, value in step.values.items() if not _free(name, value)}
    for name, array in step.arrays.items():
        if name.endswith(".k"):
            out |= arrays.pair(name[:-2], array, step.arrays[f"{name[:-2]}.v"])
        elif not name.endswith(".v"):
            out[name] = arrays.alone(name, array, within(name, array, bound))
    return out


def _free(name: str, value: Any) -> bool:
    """Whether a value is left out, because engines may differ: the meter's counts, and that a buffer moved."""
    return name == "meter" or (name == "moved" and bool(value))


def _value(name: str, value: Any) -> Any:
    """Write a value; a fingerprint as a number and its allowed error, as text, because JSON has no infinity."""
    if name != "fingerprint":
        return value
    middle, _, error = str(value).partition(fingerprint.APART)
    return {"number": middle, "within": error or "0"}


def within(name: str, array: Array | None, bound: Expected | None) -> Array | None:
    """Bound how far an engine's elements may be from the reference's, in f32. It is the spec's bound plus the
    reference's own error. It is rounded up to a power of 2, so that it is the same on every machine."""
    found = None if bound is None else {"output": bound.outputs, "rotated": bound.rotated}.get(name)
    if found is None or array is None or found.middle.shape != array.shape:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(array.astype(np.float64) - found.middle)
        off = np.where(np.isnan(off) & (np.isnan(found.middle) | (array == found.middle)), 0.0, off) + found.bound
        whole, power = np.frexp(off)
        up = np.ldexp(1.0, np.maximum(power - (whole == 0.5), -149))
        return np.asarray(np.where(off == 0, 0.0, np.where(np.isfinite(off), up, np.inf))).astype(np.float32)
