"""Cost bounds of every operation: the chapter RESIDENCY."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kvspec.costs.terms import Bound, Bounded, Case, Cost, Layer, refused
from kvspec.errors import NotWhole
from kvspec.operations.table import CHAPTER_OF, OF_KIND
from kvspec.registry import RECORDS, members


@cache
def of_chapter(chapter: str) -> Mapping[str, Bounded]:
    """Give the cost of each operation of a chapter that bounds costs; that of `append` is of each kind of cache.
    Raises NotWhole for an operation without a cost, and for a cost of what is no operation."""
    record, found = RECORDS[chapter], members(__name__, (chapter,)).get(chapter, {})
    if "costs" in record.rooms:
        bounded = {o.name for o in record.operations if not o.unbounded}
        bounded |= {"append"} if "append" in OF_KIND.get(chapter, ()) else set()
        for name in sorted(bounded ^ {*found}):
            raise NotWhole(f"chapters/{chapter}.toml: [rooms] costs and the operations do not agree on {name!r}")
    return found


def _of(operation: str) -> Bounded | None:
    """Give the cost of an operation; none of those that every kind has."""
    return of_chapter(CHAPTER_OF[operation]).get(operation) if operation in CHAPTER_OF else None


def cost(case: Case) -> Cost | None:
    """Bound the cost of an operation, performed or refused; None if the chapter sets no bound."""
    found = case.append if case.op["op"] == "append" else _of(case.op["op"])
    if found is None or case.config.form:  # of rows in a form RESIDENCY says nothing
        return None
    return refused(case) if case.got.result == "refused" else found(case)


__all__ = ["Bound", "Case", "Cost", "Layer", "cost", "of_chapter"]
