"""Planning memory: the bytes an append will need, and the largest batch that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvspec.operations.table import Operation, argument
from kvspec.session.operations.cache import offered

if TYPE_CHECKING:
    from kvspec.session.driver import Given, Session, Step


def plan(session: Session, cache: Any, op: Operation, step: Step, given: Given) -> None:
    """Bytes held after an append of n rows, and at most during it."""
    ahead = offered(cache, "plan")
    with session.metered(step):
        planned = ahead(op["n"])
    step.values["plan"] = [int(n) for n in planned]


def fit(session: Session, cache: Any, op: Operation, step: Step, given: Given) -> None:
    """The largest batch that fits into so much free memory, and whether one sequence does at all."""
    assert given.opening is not None
    largest = offered(session.adapter, "fit")
    with session.metered(step):
        found, fits = largest(*given.opening, op["free"], argument(op, "reserve"), argument(op, "most"))
    step.values["fit"] = [int(found), int(bool(fits))]


DO = {"plan": plan, "fit": fit}
