"""Checks that the reference still gives exactly what vectors say; names each difference by id, step and field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kvconform.vectors import files
from kvconform.vectors.exported import exported
from kvconform.vectors.vector import counts, named, read, vector
from kvspec.errors import BadInput
from kvspec.geometry import Array


def differences(file: Path, with_tensors: bool) -> Iterator[str]:
    """Compare a document; `with_tensors` an exported one. Give one line for each vector that differs, and one for
    wrong counts. Raises BadInput where it cannot be read."""
    document = files.read(file)
    tensors = files.read_tensors(file) if with_tensors else None
    yield from (f"{file.name}: {text}" for text in _miscounted(document, tensors))
    for each in document["vectors"]:
        wrong = next(_wrong(each, tensors), "")
        if wrong:
            yield f"{file.name}: {_id(each)}: {wrong}"


def _miscounted(document: files.Document, tensors: Mapping[str, Array] | None) -> Iterator[str]:
    """Find wrong counts in the header, and tensors that nothing names."""
    try:
        found = counts(document["vectors"])
    except (KeyError, TypeError, AttributeError):
        return  # its vectors have told the error
    if document["counts"] != found:
        yield f"the header counts {document['counts']}; the file holds {found}"
    if tensors is not None and len(tensors) > found["tensors"]:
        yield f"{len(tensors)} tensors lie beside it; it names {found['tensors']}"


def _id(vector: Any) -> Any:
    return vector.get("id", "a vector without an id") if isinstance(vector, dict) else vector


def _wrong(said: Any, mine: Mapping[str, Array] | None) -> Iterator[str]:
    """Say what differs in one vector, the first difference first."""
    try:
        tensors: dict[str, Array] = {}
        does = vector(read(said), tensors)
        does = does if mine is None else json.loads(json.dumps(exported(does)))
    except BadInput as e:
        yield str(e)
        return
    for i, (was, now) in enumerate(zip(said["steps"], does["steps"], strict=True)):
        yield from (f"step {i} ({now['do']}): {text}" for text in _step(was, now))
    yield from _fields({**said, "steps": None}, {**does, "steps": None})
    if mine is not None:
        yield from _unlike(does["steps"], mine, tensors)


def _step(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Say what differs in one step: expected observations by name, then inputs, then the rest."""
    for part in ("see", "given"):
        both = was.get(part, {}), now.get(part, {})
        if isinstance(both[0], dict):
            yield from _fields(*both)
    yield from _fields(was, now)


def _fields(was: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Name the fields that differ, in the reference's order."""
    for name in {**now, **was}:
        said, does = _short(was, name), _short(now, name)
        if said != does or was.get(name) != now.get(name):
            yield f"{name} is {said}; the reference gives {does}"


def _short(fields: dict[str, Any], name: str) -> str:
    text = repr(fields[name]) if name in fields else "missing"
    return text if len(text) <= 200 else f"{text[:197]}..."


def _unlike(steps: list[Any], mine: Mapping[str, Array], now: Mapping[str, Array]) -> Iterator[str]:
    """Name tensors that are missing or not equal to the bit, by step and field."""
    for i, step in enumerate(steps):
        for field, name in named(step):
            text = _bits(mine[name], now[name]) if name in mine else f"there is no tensor {name}"
            if text:
                yield f"step {i} ({step['do']}): {field}: {text}"


def _bits(a: Array, b: Array) -> str:
    """Say how two tensors differ; empty if they do not."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"the tensor is {a.dtype}{list(a.shape)}; the reference gives {b.dtype}{list(b.shape)}"
    whole = (np.ascontiguousarray(x).reshape(-1).view(f"u{x.dtype.itemsize}") for x in (a, b))
    unlike = np.flatnonzero(np.not_equal(*whole))
    if not len(unlike):
        return ""
    at = np.unravel_index(int(unlike[0]), a.shape)
    return f"the tensor holds {a[at]} at {[int(i) for i in at]}; the reference gives {b[at]}"
