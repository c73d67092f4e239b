"""One step of a log: the rows of all its requests are written, and then their queries see.

So a request may find, within a step, what another one writes in it: a layer's rows are written before its queries
attend. A state is read before it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kvconform.steps.broken import Broken, broken_by
from kvconform.steps.holders import Holders
from kvconform.steps.log_file import LARGEST_NUMBER, Header, number, numbers
from kvconform.steps.memory import Memory
from kvconform.steps.requests import MOST_TOKENS, Request
from kvconform.steps.sight import Sight
from kvconform.steps.words import counted
from kvconform.steps.writing import Part, Writing
from kvspec.errors import BadInput

UNKNOWN = -1
"""A draft whose token the scheduler does not know."""
KEYS = frozenset({"start", "n", "tables", "more", "drafts"})


def _goes_on(request: Request, given: Any) -> bool:
    """Tell whether a part is the usual one: the next row of a request, in the tables that it had."""
    return (
        type(given) is dict
        and len(given) == 2
        and given.get("start") == request.next
        and given.get("n") == 1
        and type(given["start"]) is type(given["n"]) is int
        and request.next < len(request.history)
        and not request.finished
        and request.tables is not None
    )


class Stepping:
    """Takes the steps of a log, and what was sampled in them."""

    def __init__(
        self, header: Header, memory: list[Memory], holders: Holders, sight: Sight, counts: Counter[str]
    ) -> None:
        self._header, self._memory, self._holders, self._sight = header, memory, holders, sight
        self.counts = counts
        self._writing = Writing(header, memory, holders, sight)
        self.number = 0

    def take(self, step: Mapping[str, Any], alive: Mapping[str, Request]) -> None:
        """Take a step. Raises Broken and BadInput."""
        self.number += 1
        self.counts["steps"] += 1
        usual, parts = list[Request](), list[Part]()
        for name, given in step.items():
            request = alive.get(name)
            if request is not None and _goes_on(request, given):
                usual.append(request)
            else:
                parts.append(self._part(name, given, request))
        self._check(parts, states=True)
        self._writing.write(usual, parts, self.number)
        self._check(parts, states=False)
        for part in parts:
            self._done(part)
        for request in usual:
            self._computed(request, request.next + 1, [])
        self.counts["computed"] += len(usual) + len(parts)
        self.counts["rows"] += len(usual) + sum(part.n for part in parts)

    def _check(self, parts: list[Part], states: bool) -> None:
        """Check what came into tables: states before the step writes, as it writes over them, rows behind that."""
        for part in parts:
            if part.checks:
                self._sight.check(part.request, part.start, self.number, part.found, states)

    def _broken(self, clause: str, request: Request, what: str, *others: Request) -> Broken:
        return broken_by(clause, self.number, request, what, *others)

    def _part(self, name: str, given: Any, request: Request | None) -> Part:
        """Read what a step computes of a request, and let it have its pages."""
        if not isinstance(given, dict) or given.keys() - KEYS:
            raise BadInput(f"{name:.40} is computed with {', '.join(sorted(KEYS))}; it has {given!r:.60}")
        if request is None or request.finished:
            state = "was not added, or has ended" if request is None else "has ended"
            raise Broken("STEP-26", f"step {self.number} computes {name}, which {state}", (name,))
        start = number(given.get("start"), f"start of {name}", 0, MOST_TOKENS)
        n = number(given.get("n"), f"n of {name}", 0, MOST_TOKENS)
        drafts = numbers(given.get("drafts", []), f"drafts of {name}", LARGEST_NUMBER, UNKNOWN)
        fresh = request.tables is None
        replaced = self._give(request, given, start)
        self._demand_positions(request, start, n, drafts, fresh)
        again = replaced or start < request.next
        if again:
            request.low = [
                min(low, g.view.first(start) // g.block)
                for low, g in zip(request.low, self._header.groups, strict=True)
            ]
        return Part(request, start, n, drafts, again and start > 0, fresh)

    def _give(self, request: Request, given: Mapping[str, Any], start: int) -> bool:
        """Let a request have the tables or the more pages that it is given; say whether all are new."""
        if "tables" in given:
            tables = self._pages(given["tables"], request)
            kept = [
                {page for page in table if self._holders.holds(group, page, request)}
                for group, table in enumerate(tables)
            ]
            self._holders.drop_all(request)
            request.tables = [list(table) for table in tables]
            request.low = [group.view.first(start) // group.block for group in self._header.groups]
            for group, table in enumerate(tables):
                for index in range(request.low[group], len(table)):
                    self._hold(request, group, index, start, kept[group])
        elif request.tables is None:
            raise self._broken(
                "STEP-21", request, " is computed, and has no pages: they were freed, or never given"
            )
        if "more" in given:
            for group, pages in enumerate(self._pages(given["more"], request)):
                table = request.begun[group]
                table += pages
                for index in range(max(request.low[group], len(table) - len(pages)), len(table)):
                    self._hold(request, group, index, start, set())
        return "tables" in given

    def swap(self, request: Request, given: Mapping[str, Any]) -> None:
        """Let a request have other tables, in which its next query finds all that it sees."""
        if request.tables is None or "tables" not in given:
            raise BadInput(f"{request.name} has no tables to be swapped, or is given none")
        self._give(request, given, request.next)
        for states in (True, False):
            self._sight.check(request, request.next, self.number, found=False, states=states)

    def _pages(self, given: Any, request: Request) -> list[list[int]]:
        """Read a list of pages for each group; -1 stands for none."""
        if not isinstance(given, list) or len(given) != len(self._header.groups):
            raise BadInput(
                f"{request.name}: tables are a list of pages for each of {len(self._header.groups)} groups"
            )
        for group, table in zip(self._header.groups, given, strict=True):
            if not isinstance(table, list):
                raise BadInput(f"{request.name}: a table is a list of pages, not {table!r:.40}")
            for page in table:
                number(page, f"{request.name}: a page", -1, LARGEST_NUMBER)
                if page >= (most := self._header.pages[group.pool]):
                    raise self._broken("STEP-20", request, f" has page {page}; there are {most}")
        return given

    def _hold(self, request: Request, group: int, index: int, start: int, kept: set[int]) -> None:
        """Let a request hold a page; one that it is to write must be in no other table."""
        page = request.begun[group][index]
        if page < 0 or page in self._header.reserved:
            return
        at, pool = index * self._header.groups[group].block, self._header.groups[group].pool
        if at >= start and page not in kept:
            for other in self._holders.others(group, page, request):
                of, where = self._holders.of[pool][page][other]
                raise self._broken(
                    "STEP-17",
                    request,
                    f" gets page {page} for its positions from {at} on, group {group}; {other.name} has it, "
                    f"group {of}, for its positions from {where * self._header.groups[of].block} on",
                    request,
                    other,
                )
            self.counts["evictions"] += int(self._memory[pool].group[page] >= 0)
            self._memory[pool].take(page)
        self._holders.hold(request, group, index)

    def _demand_positions(self, request: Request, start: int, n: int, drafts: list[int], fresh: bool) -> None:
        known = len(request.history)
        if fresh and start >= known:
            said = f" has {known} tokens, and rows of {start} were found: none is left to compute"
            raise self._broken("STEP-6", request, said)
        if request.next < start <= request.drafted[1] and not fresh:
            of = f"position {request.next}, which is of a draft that was rejected"
            raise self._broken("STEP-3", request, f" goes on at position {start}: its query sees the row of {of}")
        if start > request.next and not fresh:
            said = f" goes on at position {start}, and the rows of its first {request.next} tokens are computed"
            raise self._broken("STEP-22", request, said)
        end = start + n - len(drafts)
        if n < len(drafts) + 1:
            raise BadInput(f"{request.name}: n counts drafts and at least one token; it is {n}")
        if end > known or (drafts and end != known):
            said = (
                f" computes positions {start} to {start + n - 1}, with {len(drafts)} drafts; it has {known} tokens"
            )
            raise self._broken("STEP-23", request, said)

    def _done(self, part: Part) -> None:
        """Count what was found, and note what was computed."""
        if part.found and part.start:
            self.counts["hits"] += 1
            self.counts["reused"] += part.start
        self._computed(part.request, part.start + part.n - len(part.drafts), part.drafts)

    def _computed(self, request: Request, end: int, drafts: list[int]) -> None:
        """Note that a request is computed up to a position; let go of what no later query sees."""
        request.next = end
        request.drafts = drafts if end == len(request.history) else None
        request.drafted = end, end + len(drafts)
        self._holders.drop_below(request, end)

    def sampled(self, request: Request, tokens: list[int]) -> None:
        """Take the tokens that were chosen behind a request's last ones: those of right drafts, and one more."""
        if not tokens:
            return
        drafts = request.drafts
        if drafts is None or len(tokens) > len(drafts) + 1:
            said = f": {counted(len(tokens), 'token')} sampled"
            if drafts is None:
                raise self._broken("STEP-24", request, f"{said}, and its last token was not computed")
            raise self._broken("STEP-25", request, f"{said} behind {counted(len(drafts), 'draft')}")
        if any(draft not in (token, UNKNOWN) for draft, token in zip(drafts, tokens[:-1], strict=False)):
            raise self._broken("STEP-25", request, f": {tokens[:-1]} were accepted, of the drafts {drafts}")
        request.extend(tokens)
        self.counts["sampled"] += len(tokens)
        request.drafts = None
        if not drafts:
            return
        accepted, (first, end) = len(tokens) - 1, request.drafted
        self.counts["accepted"] += accepted
        self.counts["rejected"] += len(drafts) - accepted
        if UNKNOWN in drafts[:accepted]:
            self._writing.reveal(request, first, first + accepted)
        self._writing.reject(request, first + accepted, end)
        request.next = first + accepted
        self._holders.drop_below(request, request.next)
