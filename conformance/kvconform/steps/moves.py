"""Events that move or clear whole pages: copies, zeros, and what is kept outside the pools."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kvconform.steps.broken import Broken
from kvconform.steps.holders import Holders
from kvconform.steps.log_file import MOST_GROUPS, MOST_SLOTS, Event, Header, number, text
from kvconform.steps.memory import COPIED, LOADED, Memory, Rows
from kvspec.errors import BadInput


class Moves:
    """Moves pages. `kept` are rows outside the pools, by pool and key."""

    def __init__(self, header: Header, memory: list[Memory], holders: Holders, counts: Counter[str]) -> None:
        self._header, self._memory, self._holders, self.counts = header, memory, holders, counts
        self.kept: dict[tuple[int, str], Rows] = {}

    def take(self, verb: str, event: Event) -> None:
        """Take an event. Raises Broken and BadInput."""
        pool = number(event.get("pool", 0), "pool", 0, MOST_GROUPS)
        if pool >= self._header.pools:
            raise BadInput(f"there are {self._header.pools} pools")
        if not isinstance(event[verb], list):
            raise BadInput(f"{verb} is a list, not {event[verb]!r:.40}")
        for item in event[verb]:
            getattr(self, f"_{verb}")(pool, item)

    def _copy(self, pool: int, item: Any) -> None:
        """Copy a page: to one that nobody else holds."""
        source, target = self._pair(item, "a copy is a pair of pages: from, to")
        source, target = self._page(pool, source), self._page(pool, target)
        self._demand_own(pool, target, "copied to")
        self._memory[pool].put(target, self._memory[pool].taken(source), COPIED)
        self.counts["copies"] += 1

    def _zero(self, pool: int, item: Any) -> None:
        page = self._page(pool, item)
        for request, (group, index) in self._holders.of[pool].get(page, {}).items():
            block = self._header.groups[group].block
            if index * block < request.next:
                raise Broken(
                    "STEP-28",
                    f"after step {self.counts['steps']}: page {page} is zeroed, and {request.name} has rows from "
                    f"position {index * block} on there, group {group}",
                    (request.name,),
                )
        self._memory[pool].zero(page)
        self.counts["zeroed"] += 1

    def _offload(self, pool: int, item: Any) -> None:
        page, key = self._pair(item, "an offload is a page and a key")
        self.kept[pool, text(key, "a key")] = self._memory[pool].taken(self._page(pool, page))
        if len(self.kept) * self._header.rows > MOST_SLOTS:
            raise BadInput(f"more than {MOST_SLOTS} rows are kept outside the pools")
        self.counts["offloads"] += 1

    def _load(self, pool: int, item: Any) -> None:
        key, page = self._pair(item, "a load is a key and a page")
        target, rows = self._page(pool, page), self.kept.get((pool, text(key, "a key")))
        if rows is None:
            raise Broken(
                "STEP-29", f"after step {self.counts['steps']}: {key} is loaded, and nothing is kept as {key}"
            )
        self._demand_own(pool, target, "loaded")
        self._memory[pool].put(target, rows, LOADED)
        self.counts["loads"] += 1

    def _demand_own(self, pool: int, page: int, what: str) -> None:
        """Demand that no request has rows in a page that is filled."""
        for request, (group, index) in self._holders.of[pool].get(page, {}).items():
            if index * self._header.groups[group].block < request.next:
                raise Broken(
                    "STEP-16",
                    f"after step {self.counts['steps']}: page {page} is {what}, and {request.name} has rows there "
                    f"(group {group}, index {index})",
                    (request.name,),
                )

    def _page(self, pool: int, item: Any) -> int:
        page = number(item, "a page", 0, 1 << 31)
        if page >= (most := self._header.pages[pool]):
            raise Broken("STEP-20", f"after step {self.counts['steps']}: page {page}, of {most} pages")
        if page in self._header.reserved:
            raise Broken("STEP-20", f"after step {self.counts['steps']}: page {page} is reserved, and is moved")
        return page

    def _pair(self, item: Any, what: str) -> tuple[Any, Any]:
        if not isinstance(item, list) or len(item) != 2:
            raise BadInput(f"{what}, not {item!r:.40}")
        return item[0], item[1]
