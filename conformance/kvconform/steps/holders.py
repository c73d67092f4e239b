"""Which requests hold which pages: those that a query of theirs, now or later, sees or writes."""

from __future__ import annotations

from kvconform.steps.broken import Broken
from kvconform.steps.log_file import Header
from kvconform.steps.requests import Request

Place = tuple[int, int]
"""A group, and an index in its table."""


class Holders:
    """For each page of each pool, who holds it, and where in their tables it stands."""

    def __init__(self, header: Header) -> None:
        self._groups = header.groups
        self._sheds = [(n, group) for n, group in enumerate(header.groups) if group.view.kind != "full"]
        self.of: list[dict[int, dict[Request, Place]]] = [{} for _ in range(header.pools)]

    def others(self, group: int, page: int, request: Request) -> list[Request]:
        """Give who else holds a page."""
        held = self.of[self._groups[group].pool].get(page, {})
        return [] if len(held) < 2 and request in held else [other for other in held if other is not request]

    def holds(self, group: int, page: int, request: Request) -> bool:
        """Tell whether a request holds a page already."""
        return request in self.of[self._groups[group].pool].get(page, {})

    def hold(self, request: Request, group: int, index: int) -> None:
        """Let a request hold a page of its table. Raises Broken if the page stands in its tables twice."""
        page = request.begun[group][index]
        held = self.of[self._groups[group].pool].setdefault(page, {})
        if request in held:
            was = held[request]
            raise Broken(
                "STEP-18",
                f"page {page} stands twice in the tables of {request.name}: group {was[0]}, index {was[1]}, "
                f"and group {group}, index {index}",
                (request.name,),
            )
        held[request] = group, index

    def drop(self, request: Request, group: int, index: int) -> None:
        """Let a request hold a page of its table no more."""
        pages, page = self.of[self._groups[group].pool], request.begun[group][index]
        held = pages.get(page, {})
        if held.get(request) == (group, index):
            del held[request]
            if not held:
                del pages[page]

    def drop_all(self, request: Request) -> None:
        """Let a request hold nothing."""
        for group, table in enumerate(request.tables or ()):
            for index in range(request.low[group], len(table)):
                self.drop(request, group, index)

    def drop_below(self, request: Request, at: int) -> None:
        """Let a request hold only what queries at position `at` and later see."""
        for group, of in self._sheds:
            first, table = of.view.first(at) // of.block, request.begun[group]
            for index in range(request.low[group], min(first, len(table))):
                self.drop(request, group, index)
            request.low[group] = max(request.low[group], first)
