"""Cost bounds of every operation: the chapter RESIDENCY."""

from __future__ import annotations

from kvspec.costs.terms import Bound, Bounded, Case, Cost, Layer, refused
from kvspec.errors import NotWhole
from kvspec.operations.table import OF_KIND
from kvspec.registry import RECORDS, members, objects

COSTS: dict[str, Bounded] = {
    name: cost for each in members(__name__).values() for name, cost in each.items() if name != "append"
}
"""The cost of each operation but `append`, which each kind of cache has its own for, and those without a bound."""

APPENDS: dict[str, Bounded] = objects(__name__, "append")
"""The cost of an append by the kind of cache."""


def _demand_all() -> None:
    """Raise NotWhole for an operation without a cost of a chapter that bounds costs, and for a cost of what is no
    operation."""
    for chapter, record in ((c, r) for c, r in RECORDS.items() if "costs" in r.rooms):
        bounded = {o.name for o in record.operations if not o.unbounded}
        bounded |= {"append"} if "append" in OF_KIND.get(chapter, ()) else set()
        for name in sorted(bounded ^ {*record.rooms["costs"]}):
            raise NotWhole(f"chapters/{chapter}.toml: [rooms] costs and the operations do not agree on {name!r}")


_demand_all()


def cost(case: Case) -> Cost | None:
    """Bound the cost of an operation, performed or refused; None if the chapter sets no bound."""
    found = case.append if case.op["op"] == "append" else COSTS.get(case.op["op"])
    if found is None or case.config.form:  # of rows in a form RESIDENCY says nothing
        return None
    return refused(case) if case.got.result == "refused" else found(case)


__all__ = ["COSTS", "Bound", "Case", "Cost", "Layer", "cost"]
