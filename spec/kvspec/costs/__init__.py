"""Cost bounds of every operation: the chapter RESIDENCY."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kvspec.costs.terms import Bound, Bounded, Case, Cost, Layer, refused
from kvspec.errors import NotWhole
from kvspec.operations.table import CHAPTER_OF, OF_KIND
from kvspec.registry import RECORDS, members

OF_EACH_KIND = ("append", "encode")
"""The operations whose cost each kind of cache that has them bounds by itself."""


@cache
def of_chapter(chapter: str) -> Mapping[str, Bounded]:
    """Give the cost of each operation of a chapter that bounds costs, or of a kind of cache that has it.
    Raises NotWhole for an operation without a cost, and for a cost of what is no operation."""
    record, found = RECORDS[chapter], members(__name__, (chapter,)).get(chapter, {})
    if "costs" in record.rooms:
        bounded = {o.name for o in record.operations if not o.unbounded}
        bounded |= {*OF_EACH_KIND} & OF_KIND.get(chapter, frozenset())
        for name in sorted(bounded ^ {*found}):
            raise NotWhole(f"chapters/{chapter}.toml: [rooms] costs and the operations do not agree on {name!r}")
    return found


def _of(operation: str, kind: str) -> Bounded | None:
    """Give the cost of an operation on a kind of cache; none of those that every kind has."""
    chapter = kind if operation in OF_EACH_KIND else CHAPTER_OF.get(operation)
    return of_chapter(chapter).get(operation) if chapter else None


def cost(case: Case) -> Cost | None:
    """Bound the cost of an operation, performed or refused; None if the chapter sets no bound."""
    found = case.append if case.op["op"] == "append" else _of(case.op["op"], case.kind)
    if found is None or case.config.form:  # of rows in a form RESIDENCY says nothing
        return None
    return refused(case) if case.got.result == "refused" else found(case)


__all__ = ["Bound", "Case", "Cost", "Layer", "cost", "of_chapter"]
