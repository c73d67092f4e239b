"""What a step writes: to which slots, of which rows, and to no page that another request has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvconform.steps.broken import broken_by
from kvconform.steps.holders import Holders
from kvconform.steps.log_file import Header
from kvconform.steps.memory import Memory
from kvconform.steps.requests import Request
from kvconform.steps.sight import Sight
from kvspec.errors import BadInput


class Part(NamedTuple):
    """What a step computes of a request: `n` rows from position `start` on. Rows of `drafts` come last. `checks`
    says that rows before `start` came into its tables; `found`, that they were found in the prefix cache."""

    request: Request
    start: int
    n: int
    drafts: list[int]
    checks: bool
    found: bool


class Written(NamedTuple):
    """The rows that a step writes to a pool: their places and positions, who writes them, and what they and their
    tokens were computed from."""

    slots: list[int]
    history: list[int]
    alone: list[int]
    writers: list[int]
    positions: list[int]


class Writing:
    """Writes the rows of steps."""

    def __init__(self, header: Header, memory: list[Memory], holders: Holders, sight: Sight) -> None:
        self._header, self._memory, self._holders, self._sight = header, memory, holders, sight
        self.step = 0
        self._usual = [(group.block, group.pool, group.view.kind == "state") for group in header.groups]
        self._joined: dict[Request, int] = {}
        """The requests that got tables in this step, and where they go on."""

    def write(self, usual: list[Request], parts: list[Part], step: int) -> None:
        """Write the rows of a step: the next one of those that are usual, and those of parts. Raises Broken."""
        self.step = step
        self._joined = {part.request: part.start for part in parts if part.checks}
        written = [Written([], [], [], [], []) for _ in self._memory]
        for request in usual:
            self._next_row(request, written)
        for part in parts:
            for group, of in enumerate(self._header.groups):
                self._rows(part, group, written[of.pool])
        for memory, rows in zip(self._memory, written, strict=True):
            if rows.slots:
                memory.write(np.array(rows.slots), *rows[1:], self.step)

    def _next_row(self, request: Request, written: list[Written]) -> None:
        """Give the one row of a request that goes on, in each group."""
        at = request.next
        for group, (block, pool, state) in enumerate(self._usual):
            table, index = request.begun[group], at // block
            held = self._holders.of[pool].get(table[index]) if index < len(table) else None
            if held is None or len(held) > 1 or request not in held:
                self._demand_own(request, group, index)
            page = table[index]
            self._memory[pool].group[page] = group
            slots, history, alone, writers, positions = written[pool]
            slots.append(page * self._header.rows + (0 if state else at % block))
            history.append(request.history[at])
            alone.append(request.alone[at])
            writers.append(request.serial)
            positions.append(at)

    def _rows(self, part: Part, group: int, written: Written) -> None:
        """Give what a part writes in a group."""
        request, of = part.request, self._header.groups[group]
        first = part.start if of.view.kind != "state" else part.start + part.n - 1
        positions = range(first, part.start + part.n)
        for index in range(positions[0] // of.block, positions[-1] // of.block + 1):
            self._demand_own(request, group, index)
            self._memory[of.pool].group[request.begun[group][index]] = group
        end = part.start + part.n - len(part.drafts)
        written.history.extend(request.history[first:end])
        written.alone.extend(request.alone[first:end])
        if part.drafts:
            if of.view.kind == "state":
                raise BadInput("drafts in a group of states cannot be told yet")
            history, alone = request.histories(part.drafts)
            written.history.extend(history)
            written.alone.extend(alone)
        written.slots.extend(self._sight.slots(request, group, np.array(positions)).tolist())
        written.writers.extend([request.serial] * len(positions))
        written.positions.extend(positions)

    def _demand_own(self, request: Request, group: int, index: int) -> None:
        """Demand that a page that is written is in the table, and held by this request alone."""
        table, of = request.begun[group], self._header.groups[group]
        at = f" writes position {index * of.block} and on, group {group}"
        if index >= len(table):
            said = f"{at}; its table has {len(table)} pages of {of.block} rows"
            raise broken_by("STEP-19", self.step, request, said)
        page = table[index]
        if page < 0 or page in self._header.reserved:
            raise broken_by("STEP-20", self.step, request, f"{at}, to page {page}, which no request has")
        others = [
            other
            for other in self._holders.others(group, page, request)
            if self._joined.get(other, 0) < (index + 1) * of.block  # else it sees, in this step, what is written
        ]
        if others:
            raise broken_by(
                "STEP-16", self.step, request, f"{at}, to page {page}, which {others[0].name} has too", *others
            )

    def reject(self, request: Request, first: int, end: int) -> None:
        """Let the rows of positions `first` to `end` be those of rejected drafts."""
        for group, of in enumerate(self._header.groups):
            if first < end:
                self._memory[of.pool].reject(self._sight.slots(request, group, np.arange(first, end)))

    def reveal(self, request: Request, first: int, end: int) -> None:
        """Let the rows of drafts that were not known be those of the tokens that were chosen for them."""
        for group, of in enumerate(self._header.groups):
            slots = self._sight.slots(request, group, np.arange(first, end))
            self._memory[of.pool].history[slots] = request.history[first:end]
            self._memory[of.pool].tokens[slots] = request.alone[first:end]
