"""Logs, as an engine would write them: by an adapter in this process, or from frozen vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.geometry import Array
from kvspec.session.driver import Session
from kvspec.session.step import Inputs, Step
from kvspec.trace import VERSION, Trace

Line = dict[str, Any]


def write(file: Path, *lines: Line) -> Path:
    """Write a log."""
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return file


def head(kind: str, config: dict[str, Any], **adapter: Any) -> Line:
    """The line that begins a life."""
    return {"kvtrace": VERSION, "kind": kind, "config": config, "adapter": {"name": "logger", **adapter}}


def performed(adapter: Any, trace: Trace, observe: tuple[str, ...]) -> Iterator[Line]:
    """What an adapter does and sees on a trace, its rows named by a digest of their bytes."""
    session, trace_inputs = Session(adapter, observe), TraceInputs(trace)
    session.begin(trace.kind, trace.config)
    for op in trace.ops:
        inputs = trace_inputs.make(op)
        given = _given(inputs)
        step = session.do(op, inputs)
        trace_inputs.done(op, step.result)
        yield {"op": op, **given, "see": _seen(step)}


def _given(inputs: Inputs) -> Line:
    return {} if inputs.rows is None else {"given": {"rows": _named(*inputs.rows)}}


def _named(keys: Array, values: Array) -> Line:
    """A name for each row of both: [B, H, n, dim]."""
    parts = [[a[:, :, i].tobytes() for i in range(a.shape[2])] for a in (keys, values)]
    rows = [hashlib.sha256(k + v).hexdigest()[:12] for k, v in zip(*parts, strict=False)]
    forms = ([*_dtype(a), *a.shape] for a in (keys, values))
    return {"rows": rows + ["odd"] * (keys.shape[2] - len(rows)), **dict(zip("kv", forms, strict=True))}


def _dtype(array: Array) -> list[str]:
    return [{"float16": "f16", "float32": "f32", "bfloat16": "bf16"}[str(array.dtype)]]


def _seen(step: Step) -> Line:
    see: Line = {"result": step.result, "clause": step.clause, "message": step.message, **step.values}
    for name, array in step.arrays.items():
        if name.endswith(".k"):
            values = step.arrays[f"{name[:-2]}.v"]
            see[name[:-2]] = None if array is None or values is None else _named(array, values)
        elif not name.endswith(".v"):
            see[name] = None if array is None else _mask(array)
    return see


def _mask(array: Array) -> Line:
    assert array.dtype == bool
    rows = array.reshape(-1, array.shape[-1]) if array.size else []
    return {"bits": ["".join("01"[int(x)] for x in row) for row in rows], "as": ["bool", *array.shape]}
