"""What the queries of a request see of rows that it did not write in this step: all of them must be its own.

Rows are compared by their histories. What is wrong is told by what else is known of a slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvconform.steps.broken import Broken
from kvconform.steps.log_file import Header
from kvconform.steps.memory import COPIED, LOADED, NOBODY, REJECTED, TAKEN, WHAT, WRITTEN, Ints, Memory
from kvconform.steps.requests import Request


class Writer(NamedTuple):
    """Who wrote rows: what is remembered of a request."""

    name: str
    salt: str
    adapter: str


class Sight:
    """Compares what is in a request's tables with its text."""

    def __init__(self, header: Header, memory: list[Memory]) -> None:
        self._header, self._memory = header, memory
        self.writers: dict[int, Writer] = {}
        self.reset = 0
        """The last step before the prefix cache was reset."""
        self._kept = 1 << 12

    def knows(self, request: Request) -> None:
        """Remember a request as a writer; forget writers of whom no row is left."""
        self.writers[request.serial] = Writer(request.name, request.salt, request.adapter)
        if len(self.writers) > self._kept:
            left = set(np.concatenate([np.unique(memory.writer) for memory in self._memory]).tolist())
            self.writers = {
                n: w for n, w in self.writers.items() if n in left or n > request.serial - self._kept // 4
            }
            self._kept = max(1 << 12, 2 * len(self.writers))

    def check(self, request: Request, start: int, step: int, found: bool, states: bool) -> None:
        """Check all rows before `start` that a query there, or a later one, sees: of the groups of `states`, or of
        the others. `found` says that they were found in the prefix cache. Raises Broken."""
        for group, of in enumerate(self._header.groups):
            if (of.view.kind == "state") is states:
                self._check_group(request, group, start, step, found)

    def slots(self, request: Request, group: int, positions: Ints) -> Ints:
        """Give where the rows of positions lie."""
        of = self._header.groups[group]
        pages = np.asarray(request.begun[group], np.int64)[positions // of.block]
        return pages * self._header.rows + (0 if of.view.kind == "state" else positions % of.block)

    def _check_group(self, request: Request, group: int, start: int, step: int, found: bool) -> None:
        of, table = self._header.groups[group], request.begun[group]
        first = of.view.first(start)
        if first >= start:
            return
        for index in range(first // of.block, (start - 1) // of.block + 1):
            if index >= len(table) or table[index] < 0 or table[index] in self._header.reserved:
                raise self._missing(request, group, max(first, index * of.block), start, step, found)
        positions = np.arange(first, start)
        memory, slots = self._memory[of.pool], self.slots(request, group, positions)
        right = (memory.history[slots] == np.asarray(request.history[first:start], np.int64)) & (
            memory.state[slots] & WHAT == WRITTEN
        )
        right &= memory.group[slots // self._header.rows] == group
        if not right.all():
            at = int(np.argmin(right))
            raise self._wrong(request, group, first + at, int(slots[at]), (start, step, found))
        if found:
            self._check_found(request, group, first, slots, start, step)

    def _missing(self, request: Request, group: int, at: int, start: int, step: int, found: bool) -> Broken:
        others = len(self._header.groups) > 1
        clause = ("STEP-7" if others else "STEP-5") if found else "STEP-4"
        why = f" of {start} tokens that were found" if found else ""
        of = self._header.groups[group].view
        return Broken(
            clause,
            f"step {step}, {request.name}, group {group} ({of}): the query at {start} sees position {at}{why}, "
            f"and the table has no page for it",
            (request.name,),
        )

    def _check_found(self, request: Request, group: int, first: int, slots: Ints, start: int, step: int) -> None:
        """Check what shows in a hit alone: salts, and the last reset."""
        memory = self._memory[self._header.groups[group].pool]
        for serial in np.unique(memory.writer[slots]).tolist():
            if self.writers[serial].salt != request.salt:
                at = int(np.argmax(memory.writer[slots] == serial))
                theirs = f"salt {self.writers[serial].salt!r}, and {request.name} has {request.salt!r}"
                raise self._told("STEP-12", request, group, first + at, int(slots[at]), start, step, theirs)
        if self.reset and (old := memory.step[slots] <= self.reset).any():
            at = int(np.argmax(old))
            after = f"the prefix cache was reset after step {self.reset}"
            raise self._told("STEP-15", request, group, first + at, int(slots[at]), start, step, after)

    def _wrong(self, request: Request, group: int, at: int, slot: int, when: tuple[int, int, bool]) -> Broken:
        start, step, found = when
        clause, why = self._blamed(request, group, at, slot, found)
        return self._told(clause, request, group, at, slot, start, step, why)

    def _blamed(self, request: Request, group: int, at: int, slot: int, found: bool) -> tuple[str, str]:
        """Give the clause that a wrong row breaks, and what is to be said of it."""
        memory = self._memory[self._header.groups[group].pool]
        state, holds = int(memory.state[slot]), int(memory.group[slot // self._header.rows])
        of = self._header.groups[group]
        first = at if of.view.kind == "state" else at - at % of.block
        if found and request.history[first] in memory.past[slot // self._header.rows]:
            return "STEP-9", "the right row was there before, and the page was taken for others"
        if found and state & TAKEN and state & WHAT in (WRITTEN, REJECTED):
            return "STEP-5", "it was there before the page was taken for others, which are not computed"
        moved = state & (COPIED | LOADED)
        if moved and (state & WHAT != WRITTEN or memory.tokens[slot] != request.alone[at]):
            return ("STEP-27", "it was copied there") if moved == COPIED else ("STEP-29", "it was loaded there")
        if state & WHAT == REJECTED:
            return ("STEP-13" if found else "STEP-3"), "it is the row of a draft that was rejected"
        if state & WHAT != WRITTEN:
            return ("STEP-5" if found else "STEP-2"), ""
        if holds != group:
            return "STEP-14", f"the page holds rows of group {holds}"
        if memory.tokens[slot] == request.alone[at]:
            if (theirs := self.writers[int(memory.writer[slot])].adapter) != request.adapter:
                return (
                    "STEP-10",
                    f"it was computed with adapter {theirs!r}, and {request.name} has {request.adapter!r}",
                )
            return "STEP-11", "it was computed behind other media"
        return ("STEP-8" if found else "STEP-1"), "it was computed behind other tokens"

    def _told(
        self, clause: str, request: Request, group: int, at: int, slot: int, start: int, step: int, why: str
    ) -> Broken:
        memory, of = self._memory[self._header.groups[group].pool], self._header.groups[group].view
        known = memory.state[slot] & WHAT != NOBODY
        writer = self.writers.get(int(memory.writer[slot])) if known else None  # a page of zeros may have none
        page, place = divmod(slot, self._header.rows)
        what = {WRITTEN: "", REJECTED: ""}.get(int(memory.state[slot]) & WHAT, "a row that nobody wrote")
        if writer and not what:
            what = f"position {memory.position[slot]} of {writer.name}, written in step {memory.step[slot]}"
        names = tuple(dict.fromkeys((request.name, *([writer.name] if writer else []))))
        return Broken(
            clause,
            f"step {step}, {request.name}, group {group} ({of}): the query at {start} would see, for its position "
            f"{at}, {what} (page {page}, place {place}){why and '; '}{why}",
            names,
        )
