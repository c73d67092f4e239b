"""What is asked over the wire: masks among tensors, and operations that are done in a row as one message.

`kvspec/schemas/question.json` holds the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.operations.table import RUN, Operation
from kvspec.wire.framing import Tensors


def with_mask(op: Operation, logical: masks.Logical, name: str = "parts") -> tuple[Operation, Tensors]:
    """Move the explicit arrays of an operation's mask (`parts` of mask, `through` of attend) into tensors."""
    parts, tensors = masks.to_json(tuple(p for p in logical if not isinstance(p, masks.Explicit))), Tensors()
    for p in logical:
        if isinstance(p, masks.Explicit):
            tensor = f"mask{len(tensors)}"
            tensors[tensor] = p.array
            parts.append({"tensor": tensor})
    return {**op, name: parts}, tensors


def without_tensors(parts: Any, tensors: Tensors) -> masks.Logical:
    """Read the logical mask of a message: undo `with_mask`. Raises BadInput."""
    if not isinstance(parts, list):
        raise BadInput(f"mask: parts must be a list, not {parts!r:.60}")
    named = [p for p in parts if isinstance(p, dict) and set(p) == {"tensor"}]
    logical = masks.from_json([p for p in parts if p not in named])
    return logical + tuple(masks.Explicit(_named(p["tensor"], tensors)) for p in named)


def _named(name: Any, tensors: Tensors) -> Array:
    array = tensors.get(name) if isinstance(name, str) else None
    if array is None:
        raise BadInput(f"mask: no tensor {name!r:.40} came with the message")
    return array


Asked = tuple[Operation, Tensors]
"""The header and the tensors of one operation."""


def run(times: int, asked: Sequence[Asked]) -> Asked:
    """Make one message of operations that are done in a row, `times` times the same ones. It has their headers and
    their tensors. The tensors of all times are stacked, and named by the number of the operation, as `0.keys`.
    Where an operation takes other shapes from time to time, the message says each operation once."""
    length = len(asked) // times
    columns = [asked[i::length] for i in range(length)]
    if not all(map(_same_shapes, columns)):
        return run(1, asked)
    tensors: Tensors = {
        f"{i}.{name}": np.stack([array for _, each in column if (array := each[name]) is not None])
        for i, column in enumerate(columns)
        for name in column[0][1]
    }
    return {"op": RUN.name, "times": times, "ops": [column[0][0] for column in columns]}, tensors


def _same_shapes(column: Sequence[Asked]) -> bool:
    """Tell whether an operation has the same header and takes arrays of one shape and dtype each time."""
    shapes = [{name: a is not None and (a.shape, a.dtype) for name, a in tensors.items()} for _, tensors in column]
    return all(head == column[0][0] for head, _ in column) and all(each == shapes[0] for each in shapes)


def parts(head: Mapping[str, Any], tensors: Tensors) -> Iterator[Asked]:
    """Give the operations of a run one by one, as often as they are done: undo `run`. Raises BadInput."""
    times, ops = head.get("times"), head.get("ops")
    if type(times) is not int or times < 1 or not isinstance(ops, list) or not ops:
        raise BadInput(f"a run has times, 1 or more, and ops, not {times!r:.20} and {ops!r:.40}")
    own: list[Tensors] = [{} for _ in ops]
    for name, array in tensors.items():
        number, _, what = name.partition(".")
        if not number.isdecimal() or int(number) >= len(ops) or array is None or len(array) != times:
            raise BadInput(f"a run of {len(ops)} operations, {times} times, has no use for tensor {name!r:.40}")
        own[int(number)][what] = array
    for time in range(times):
        for op, stacked in zip(ops, own, strict=True):
            yield dict(op), {name: array[time] for name, array in stacked.items() if array is not None}
