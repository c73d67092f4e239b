"""The list model: a cache is the list of all tokens it holds, and *visible* is one line.

It is the oracle at level `visible`, for caches that store their rows in any way they like, and it judges the
reference. It knows nothing of slots, capacities or ring indices. A row is known by its serial.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kvref.cite import cite
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Config, same_geometry
from kvspec.masks import Causal, Explicit, Logical, Part, Window
from kvspec.refusals import common


@dataclass(eq=False)
class Saved:
    """A snapshot: the tokens of positions [start, stop), or of a ring all there were."""

    kind: str
    config: Config
    start: int
    stop: int
    tokens: list[int]
    width: int = 0
    gone: str = ""


Seen = dict[int, float]
"""What one query sees: serials, and the score each is given on top (0 where the mask only lets it pass)."""


@dataclass
class History:
    """One cache. The claim says how far past the window an adapter declares to rewind: 0 as the spec demands.

    `width` is the number of rows a history has by the spec, which the columns of explicit masks count.
    """

    kind: str
    config: Config
    claim: Claim = field(default_factory=lambda: Claim("visible"))

    def __post_init__(self) -> None:
        self.ring = self.kind == "ring"
        if not common.valid(self.config) or self.ring != (self.config.window is not None):
            raise common.config(self._id("GROW-11", "RING-14"), self.kind, self.config)
        self.tokens: list[int] = []
        self.queries: int | None = None
        self.width = 0
        self.in_round = False

    def _id(self, growing: str, ring: str) -> str:
        return ring if self.ring else growing

    def key(self) -> tuple[int, int | None]:
        """The state up to renaming tokens and shifting positions: all offsets past a window are alike."""
        return min(self.offset, (self.config.window or self.offset) + 1), self.queries

    @property
    def offset(self) -> int:
        """The next token's position."""
        return len(self.tokens)

    def visible(self, position: int) -> range:
        """Positions that a query at `position` sees: the definition the whole project rests on."""
        first = max(0, position - self.config.window + 1) if self.config.window else 0
        return range(first, position + 1)

    def append(self, serials: list[int]) -> None:
        """Take the tokens in."""
        self.queries = len(serials)
        if not serials:
            cite(self._id("GROW-3", "RING-4"))
            return
        cite(*self._ids("GROW-1 GROW-2", "RING-1 RING-2 RING-3 RING-17"))
        self.width = self._width(len(serials))
        self.tokens += serials

    def _ids(self, growing: str, ring: str) -> list[str]:
        return (ring if self.ring else growing).split()

    def _width(self, n: int) -> int:
        """Rows in the history of an append of n: all; of a ring the window, or what a chunk keeps and adds."""
        if self.config.window is None:
            return self.offset + n
        return min(self.offset + 1, self.config.window) if n == 1 else min(self.offset, self.config.window - 1) + n

    def view(self) -> list[int]:
        """What a reader may look at without writing: the newest W-1 tokens of a ring, else all."""
        cite(self._id("GROW-4", "RING-5"))
        if self.config.window is None:
            return list(self.tokens)
        return self.tokens[max(0, self.offset - (self.config.window - 1)) :]

    def sees(self, logical: Logical, sequence: int = 0, head: int = 0) -> list[Seen]:
        """For each query of the last append, what it sees through a mask. Raises Refused."""
        if self.queries is None:
            raise common.no_history("MASK-1")
        self._check(logical)
        cite(*self._mask_clauses(logical))
        return [self._sees(q, logical, sequence, head) for q in range(self.queries)]

    def _sees(self, query: int, logical: Logical, sequence: int, head: int) -> Seen:
        position = self.offset - (self.queries or 0) + query
        candidates = self.visible(position) if self.ring else range(self.offset)
        if self.ring and self.queries != 1:
            candidates = range(candidates.start, self.offset)
        scored = ((j, self._score(j, position, query, logical, sequence, head)) for j in candidates)
        return {self.tokens[j]: score for j, score in scored if score != -np.inf}

    def _score(self, key: int, position: int, query: int, logical: Logical, sequence: int, head: int) -> float:
        """What the mask adds at this key: 0 lets it pass, minus infinity hides it."""
        total = np.float32(0)
        for part in logical:
            total += np.float32(self._one_score(part, key, position, query, sequence, head))
        return float(total)

    def _one_score(self, part: Part, key: int, position: int, query: int, sequence: int, head: int) -> float:
        if isinstance(part, Causal):
            return 0.0 if key <= position else -np.inf
        if isinstance(part, Window):
            return 0.0 if position - key < part.size else -np.inf
        batch, heads, _, columns = part.array.shape
        column = 0 if columns == 1 else key - (self.offset - columns)
        if column < 0:
            return -np.inf
        cell = part.array[min(sequence, batch - 1), min(head, heads - 1), query, column]
        return float(cell) if part.array.dtype != bool else (0.0 if cell else -np.inf)

    def _check(self, logical: Logical) -> None:
        for part in logical:
            if not isinstance(part, Explicit):
                continue
            shape, dtype = part.array.shape, part.array.dtype
            right = len(shape) == 4 and shape[0] in (1, self.config.batch) and shape[2] == self.queries
            if not right or dtype not in (np.bool_, np.float32):
                raise common.mask_shape("MASK-13", part.array, self.config.batch, self.queries or 0)
            if shape[3] not in (1, self.width):
                raise common.mask_width("MASK-12", shape[3], self.width)
        arrays = [p.array for p in logical if isinstance(p, Explicit)]
        heads = {a.shape[1] for a in arrays} - {1}
        if len(heads) > 1 or 0 in heads:
            raise common.mask_shape("MASK-13", arrays[0], self.config.batch, self.queries or 0)
        narrowest = min((part.size for part in logical if isinstance(part, Window)), default=1)
        if narrowest <= 0:
            raise common.mask_window("MASK-13", narrowest)

    def _mask_clauses(self, logical: Logical) -> Iterator[str]:
        if not logical:
            yield "MASK-3"
        if self.queries == 0:
            yield "MASK-16"
        if self.ring and (self.queries or 0) > 1:
            yield "MASK-8"
        if len(logical) > 1:
            yield "MASK-7"
        for part in logical:
            if isinstance(part, Explicit):
                yield from ("MASK-5" if part.array.dtype == bool else "MASK-6", "MASK-17")
                yield from ("MASK-11",) if part.array.shape[3] == 1 else ()
                hides_all = part.array.dtype == bool and part.array.size and not part.array.any(axis=3).all()
                yield from ("MASK-14",) if hides_all else ()
            else:
                yield "MASK-2" if isinstance(part, Causal) else "MASK-4"

    def can_rewind(self, to: int) -> bool:
        """Whether a rewind would be accepted."""
        if self.in_round:
            cite("DRAFT-13")
            return False
        cite(self._id("GROW-8", "RING-11"))
        return 0 <= to <= self.offset and self._reaches(to, self.offset)

    def _reaches(self, to: int, end: int) -> bool:
        """Whether a ring that stands at `end` can go back to `to`."""
        window = self.config.window
        free = window is None or to == end or end <= window
        return free or self.claim.rewind == -1 or end - to <= self.claim.rewind

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        if not 0 <= to <= self.offset:
            raise common.rewind_range(self._id("GROW-7", "RING-9"), to, self.offset)
        if not self._reaches(to, self.offset):
            raise common.rewind_window("RING-10", to, self.offset, self.config.window or 0)
        cite(*self._ids("GROW-5 GROW-6", "RING-6" if to == self.offset else "RING-7 RING-8"))
        self.width = self.width if to == self.offset else to
        self.tokens = self.tokens[:to]
        self.queries = None

    def free(self) -> None:
        """Forget everything."""
        cite(self._id("GROW-9", "RING-12"))
        self.tokens, self.queries, self.width = [], None, 0

    def snapshot(self, start: int) -> Saved | None:
        """Keep the tokens from `start` on; of a ring all of them."""
        cite("SNAP-5")
        first = max(0, start)
        if first >= self.offset:
            cite("SNAP-2")
            return None
        cite(*([] if self.ring else ["SNAP-1"]))
        first = 0 if self.ring else first
        return Saved(self.kind, self.config, first, self.offset, self.tokens[first:], self.width)

    def restore(self, saved: Saved | None, to: int) -> None:
        """Become what was saved, up to `to`."""
        if saved is None:
            cite("SNAP-11")
            self.rewind(to)
            return
        self.usable("restore", saved, "SNAP-10")
        if not 0 <= to <= saved.stop:
            raise common.restore_range("SNAP-8", to, saved.stop)
        if self.offset < saved.start:
            raise common.restore_gap("SNAP-9", self.offset, saved.start)
        if not self._reaches(to, saved.stop):
            raise common.restore_window("SNAP-13", to, saved.stop, self.config.window or 0)
        cite("SNAP-3", "SNAP-4", self._restore_clause(saved, to))
        self.width = saved.width if self.ring and to == saved.stop else to
        self.tokens = (self.tokens[: saved.start] + saved.tokens)[:to]
        self.queries = None

    def _restore_clause(self, saved: Saved, to: int) -> str:
        if self.ring:
            return "SNAP-12" if to == saved.stop else "SNAP-14"
        return "SNAP-7" if to < saved.start else "SNAP-6"

    def usable(self, what: str, saved: Saved, clause: str) -> None:
        """Refuse a snapshot that is used up, or of another kind or geometry."""
        still_open(what, saved)
        if saved.kind != self.kind or not same_geometry(saved.config, self.config):
            raise common.geometry(clause, what)

    def merge(self, parent: Saved | None, child: Saved | None) -> Saved | None:
        """One of two; both are gone."""
        given = [s for s in (parent, child) if s is not None]
        for s in given:
            self.usable("merge", s, "SNAP-21")
        if len(given) < 2:
            cite("SNAP-20")
            return handed_on(given[0]) if given else None
        first, second = given
        if first is second:
            raise common.same_snapshot("SNAP-21")
        if not self.ring and first.stop != second.start:
            raise common.not_meeting("SNAP-18", (first.start, first.stop), (second.start, second.stop))
        cite("SNAP-19" if self.ring else "SNAP-17", "SNAP-26")
        first.gone = "consumed"
        made = handed_on(second)
        return (
            made if self.ring else Saved(made.kind, made.config, first.start, made.stop, first.tokens + made.tokens)
        )

    def split(self, saved: Saved | None, at: int) -> tuple[Saved | None, Saved | None]:
        """Two of one; it is gone."""
        if saved is None:
            cite("SNAP-25")
            return None, None
        self.usable("split", saved, "SNAP-10")
        whole = handed_on(saved)
        if self.ring:
            cite("SNAP-24")
            return None, whole
        if not whole.start < at < whole.stop:
            cite("SNAP-23")
            return (None, whole) if at <= whole.start else (whole, None)
        cite("SNAP-22")
        i = at - whole.start
        return (
            Saved(whole.kind, whole.config, whole.start, at, whole.tokens[:i]),
            Saved(whole.kind, whole.config, at, whole.stop, whole.tokens[i:]),
        )


def still_open(what: str, saved: Saved) -> None:
    """Refuse a snapshot that was closed or consumed."""
    if saved.gone:
        raise common.used_up("SNAP-27" if saved.gone == "closed" else "SNAP-26", what, saved.gone)


def close(saved: Saved) -> None:
    """End a snapshot's life."""
    still_open("close", saved)
    saved.gone = "closed"


def handed_on(saved: Saved) -> Saved:
    """The same tokens under a new owner; the old one is consumed."""
    cite("SNAP-26")
    saved.gone = "consumed"
    return Saved(saved.kind, saved.config, saved.start, saved.stop, saved.tokens, saved.width)


__all__ = ["History", "Refused", "Saved", "Seen", "close"]
