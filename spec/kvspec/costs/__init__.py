"""Cost bounds of every operation: the chapter RESIDENCY."""

from __future__ import annotations

from kvspec.costs.appends import appends
from kvspec.costs.terms import Bound, Bounded, Case, Cost, Layer, refused
from kvspec.registry import RECORDS, modules

COSTS: dict[str, Bounded] = {
    operation.name: vars(module)[operation.name]
    for chapter, module in modules(__name__).items()
    for operation in RECORDS[chapter].operations
    if operation.name in vars(module)
}
"""The cost of each operation but `open` and `scribble`. That of `append` is looked up by the kind of cache."""


def cost(case: Case) -> Cost | None:
    """Bound the cost of an operation, performed or refused; None if the chapter sets no bound."""
    found = appends().get(case.kind) if case.op["op"] == "append" else COSTS.get(case.op["op"])
    if found is None:
        return None
    return refused(case) if case.got.result == "refused" else found(case)


__all__ = ["COSTS", "Bound", "Case", "Cost", "Layer", "cost"]
