"""The oracle at level `storage`: the reference. Its steps say which clauses they exercised."""

from __future__ import annotations

from functools import cache
from typing import Any

from kvconform.oracle.citing import CitingSession
from kvspec import masks
from kvspec.contract import Description, Pair, description
from kvspec.operations.table import Operation
from kvspec.registry import OBSERVABLES
from kvspec.session.step import NOTHING, Inputs, Step


@cache
def claims() -> Description:
    """What the reference claims: everything, at level storage."""
    return description(_made().describe())


def _made() -> Any:
    """The reference, read when it is first asked: an adapter at level visible is judged without it."""
    from kvadapters.reference import Reference

    return Reference()


def _copied(logical: masks.Logical | None) -> masks.Logical | None:
    if logical is None:
        return None
    return tuple(masks.Explicit(p.array.copy()) if isinstance(p, masks.Explicit) else p for p in logical)


class CitingReference(CitingSession):
    """A session on the reference, or on a variant of it."""

    def __init__(self, adapter: Any = None, observe: tuple[str, ...] = OBSERVABLES) -> None:
        super().__init__(adapter or _made(), observe)

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Perform one operation on copies: a session scribbles on the arrays handed to it, as any caller may."""
        if inputs is NOTHING or inputs.each is not None:
            return super().do(op, inputs)
        rows = None if inputs.rows is None else Pair(inputs.rows.keys.copy(), inputs.rows.values.copy())
        queries = None if inputs.queries is None else inputs.queries.copy()
        return super().do(op, Inputs(rows, queries, _copied(inputs.logical), inputs.opening))
