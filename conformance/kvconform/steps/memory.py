"""What lies in the slots of a pool: for each, the history of its row, and who wrote it when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOBODY, WRITTEN, ZEROED, REJECTED = range(4)
"""What a slot holds: nothing yet, a row, zeros, or the row of a draft that was rejected."""
WHAT, COPIED, LOADED, TAKEN = 3, 4, 8, 16
"""The bits of a state that say what a slot holds. Then the bits of a row that was copied, of one that was loaded,
and of one whose page others have got."""
PAST = 6
"""How many times a page is taken until it is forgotten what it held."""

Ints = NDArray[np.int64]
Slots = Ints | list[int] | slice


@dataclass(frozen=True)
class Rows:
    """Rows that are kept elsewhere: what `Memory` holds of some slots, and the group that they are of."""

    arrays: tuple[NDArray[np.generic], ...]
    group: int


class Memory:
    """The slots of one pool. A page's row r lies in slot page * rows + r. `history` names all that a row depends
    on; `tokens` the tokens alone. `past` has the histories of the first rows that a page had when it was taken for
    others, the newest first. Memory is taken as pages are used."""

    def __init__(self, pages: int, rows: int) -> None:
        slots = pages * rows
        self.rows = rows
        self.history, self.tokens = (np.zeros(slots, np.int64) for _ in range(2))
        self.past = np.zeros((pages, PAST), np.int64)
        self.writer, self.position, self.step = (np.zeros(slots, np.int32) for _ in range(3))
        self.state = np.zeros(slots, np.uint8)
        self.group = np.full(pages, -1, np.int16)
        """The group whose rows a page holds; -1 while it was never used."""

    @property
    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return self.history, self.tokens, self.writer, self.position, self.step, self.state

    def write(
        self,
        slots: Ints,
        history: Sequence[int],
        tokens: Sequence[int],
        writer: Sequence[int],
        position: Sequence[int],
        step: int,
    ) -> None:
        """Write rows, each to its slot."""
        self.history[slots], self.tokens[slots] = history, tokens
        self.writer[slots], self.position[slots] = writer, position
        self.step[slots], self.state[slots] = step, WRITTEN

    def reject(self, slots: Slots) -> None:
        """Let rows be those of rejected drafts."""
        self.state[slots] = REJECTED

    def slots_of(self, page: int) -> slice:
        """Give the slots of a page."""
        return slice(page * self.rows, (page + 1) * self.rows)

    def take(self, page: int) -> None:
        """Let a page be taken for other rows: those that it has are of use no more."""
        self.state[self.slots_of(page)] |= TAKEN
        self.past[page, 1:] = self.past[page, :-1]
        self.past[page, 0] = self.history[page * self.rows]

    def zero(self, page: int) -> None:
        """Let a page hold zeros."""
        self.state[self.slots_of(page)] = ZEROED

    def taken(self, page: int) -> Rows:
        """Give a copy of a page's rows."""
        return Rows(tuple(array[self.slots_of(page)].copy() for array in self._arrays), int(self.group[page]))

    def put(self, page: int, rows: Rows, mark: int) -> None:
        """Put rows into a page; `mark` says that they were copied or loaded."""
        for array, part in zip(self._arrays, rows.arrays, strict=True):
            array[self.slots_of(page)] = part
        self.state[self.slots_of(page)] &= WHAT
        self.state[self.slots_of(page)] |= mark
        self.group[page] = rows.group
