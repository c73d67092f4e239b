"""The list model: a cache is the list of all tokens it holds, and what a query sees is one line (see `views`).

It is the oracle at level `visible`, for caches that store their rows in any way they like, and it judges the
reference. It knows nothing of slots, capacities or ring indices. A row is known by its serial. Here is what a cache
does with its tokens; `caches` saves and moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from kvref.cite import cite
from kvref.list_model import attention, masks
from kvref.list_model.attention import Asked, KnownRows
from kvref.list_model.attention_bound import Output
from kvref.list_model.rows import Added, Out, Queries, Rows, fit, geometry
from kvref.list_model.snapshot import SavedTokens
from kvref.list_model.unsaid import Unsaid
from kvref.list_model.views import View
from kvspec.contract import Attention, Claim, Lengths
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.masks import Causal, Explicit, Logical
from kvspec.refusals import common
from kvspec.refusals import parcels as refusals_parcels

Scores = dict[int, float]
"""What one query sees: serials, and the score each is given on top (0 where the mask only lets it pass)."""


class TokenModel:
    """The tokens of a cache, what its view shows of them, and where it can go on, in the dialects of a claim.

    `width`: the rows of a history by the spec, one for each column of an explicit mask. `queries`: how many the
    last append had, None after an operation that ends its history."""

    kind: str
    appended: ClassVar[tuple[str, ...]]
    viewed: ClassVar[str]
    rewound: ClassVar[tuple[str, ...]]
    unmoved: ClassVar[tuple[str, ...]]
    drafted: ClassVar[str] = ""
    masked_several: ClassVar[tuple[str, ...]] = ()
    """The clauses on an append, on the view, on a rewind of some rows or of none, on drafts, and on what a mask for
    several queries hides."""
    place: Callable[[int], int] | None = None
    """The position that windows of a mask count with, where it is not that of the sequence."""

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        self.config, self.known, self.claim = config, known, claim
        if not common.valid(config):
            raise common.config("CACHE-3", self.kind, config)
        self.own_view = self._view()
        self.tokens: list[int] = []
        self.floor = 0
        """The offset at which it was unpacked, where rows below it were left behind."""
        self.queries: int | None = None
        self.width = 0
        self.capacity: int | None = None
        """Rows that the adapter says it has allocated, where it says so."""
        self.unseen = False
        """Whether it may have allocated more or less since then, because something was done in a run."""
        self.in_round = self.unaware = False
        """Whether it is in an open round, and whether it is one that its engine does not know of."""
        self.opened, self.shaped = config, claim.dialect("shape") == "opened"
        """The config it was opened with, and whether the geometry of its rows is fixed."""

    def _view(self) -> View:
        """What a query sees of the tokens: all. Refuses a config that is not of this kind."""
        if self.config.window is not None:
            raise common.config("CACHE-3", self.kind, self.config)
        return masks.ALL

    def visible(self) -> View:
        """What queries of the last append see: the view."""
        return self.own_view

    def key(self) -> tuple[int | None, ...]:
        """The state up to renaming tokens and shifting positions."""
        return self.offset, self.queries

    @property
    def offset(self) -> int:
        """The next token's position."""
        return len(self.tokens)

    def append(self, keys: Rows, values: Rows) -> None:
        """New tokens; in an open round none."""
        if keys.n:
            self._demand_free("append")
            self.demand_rows(keys, values)
            self._demand_chunk(keys.n)
            self.config, self.shaped = self._shape(keys, values), True
        self.take(keys.serials[0])

    def _demand_free(self, what: str) -> None:
        """Refuse what a cache does not do while it is in an open round."""
        if self.unaware:
            raise Unsaid("any", kept=what in ("view", "mask", "snapshot", "pack"))
        if self.in_round:
            raise common.in_round("DRAFT-12", what)

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        """Refuse rows of another geometry."""
        config = self._shape(keys, values)
        if not fit(keys, values, config, config.batch, config.kv_heads, keys.n) or not common.valid(config):
            raise Refused("CACHE-2", "rows of another geometry")

    def _shape(self, keys: Rows, values: Rows) -> Config:
        """The geometry of rows; that of these rows, where they are the first and fix it."""
        found = {} if self.shaped else geometry(keys, values)
        return self.config.changed(batch=keys.shape[0], **found) if found else self.config

    def _demand_chunk(self, n: int) -> None:
        """Refuse more rows at once than there is room for, or than are declared."""

    def can_append(self, n: int) -> bool | None:
        """Whether an append of so many rows would be accepted; None where that follows from what was not seen."""
        if self.unaware:
            raise Unsaid("any", kept=True)
        if self.in_round and n:
            cite("ASK-3")
            return False
        cite("ASK-1", "ASK-4")
        try:
            self._demand_chunk(n)
        except Refused:
            return n == 0
        except Unsaid:
            return None
        return True

    def take(self, serials: list[int]) -> None:
        """Take tokens in."""
        self.queries = len(serials)
        if not serials:
            cite("CACHE-1")
            return
        cite(*self.appended)
        self.width = self._width(len(serials))
        self.tokens += serials

    @contextmanager
    def drafting(self) -> Iterator[None]:
        """Be as outside of a round, for drafts that are appended as rows."""
        self.in_round = self.unaware = False
        try:
            yield
        finally:
            self.in_round = self.unaware = True

    def take_drafts(self, drafts: list[int]) -> None:
        """Take in the drafts of a round."""
        self.take(drafts)

    def keep_drafts(self, start: int, drafts: list[int]) -> None:
        """Of the rows that were appended in a round, which began at an offset, keep these drafts."""
        self.tokens = self.tokens[:start] + drafts

    def least(self) -> int:
        """Rows that must be retained: those that the newest query sees, or that it is declared to keep."""
        if self.floor and self.floor == self.offset:
            return len(self.own_view.needs(self.offset))
        return len(self.own_view.sees(self.offset - 1, self.offset))

    def plain(self) -> frozenset[int]:
        """The rows that are read to the bit though others are rounded: none, but of a residual window."""
        return frozenset()

    def handed_out(self) -> list[int] | None:
        """The rows of the history, where it is declared which are there."""
        return None

    def attend(
        self, queries: Queries, keys: Rows, values: Rows, how: Attention, out: Out = None, of: int | None = None
    ) -> Output | None:
        """Append, then what each query sees through the mask, beside what the cache itself hides."""
        if attention.nothing(queries, keys):
            self.take([])
            return attention.no_output(self.known, queries, self.config)
        self._demand_free("attend")
        self.demand_rows(keys, values)
        self._demand_chunk(keys.n)
        asked, batch = Asked(queries, how, out), self.config.batch
        asked.demand(self.config, batch, keys.n, self._width(keys.n))
        turned = self.known.turn(queries, keys, how, self.offset, self.config)
        self.config, self.shaped = self._shape(keys, values), True
        self.take(keys.serials[0])
        sees = asked.sees(batch, self.tokens, self.visible())
        asked.cite(*self._attended(how), *(["ROW-16"] if self.config.form else []))
        return self.known.output(turned, sees, self.config, how)

    def _attended(self, how: Attention) -> Iterator[str]:
        """The clauses on attention that hold for this kind alone."""
        yield from ()

    def lengths(self) -> Lengths:
        """The offset; all other lengths are a matter of storage."""
        return Lengths(self.offset)

    def read(self, what: str) -> list[int] | None:
        """The view; which slots hold which rows is not for this model to know."""
        return self.view() if what == "view" else None

    def plan(self, n: int) -> tuple[int, ...]:
        """How many bytes is for the adapter to say."""
        self._demand_free("plan")
        return ()

    def _width(self, n: int) -> int:
        """Rows in the history of an append of n: those that some of its queries see."""
        return len(self.own_view.needs(self.offset)) + n

    def view(self) -> list[int]:
        """What a reader may look at without writing: what a next query would see beside itself."""
        self._demand_free("view")
        cite(self.viewed)
        return [self.tokens[p] for p in self.own_view.needs(self.offset)]

    def mask(self, logical: Logical) -> list[list[list[Scores]]]:
        """For each sequence, head and query of the last append, what it sees through a mask. Raises Refused."""
        self._demand_free("mask")
        if self.queries is None:
            raise common.no_history("MASK-1")
        arrays = masks.demand(logical, self.config.batch, self.queries, self.width)
        cite(*self._mask_clauses(logical))
        sizes = self.config.batch, max([1, *(a.shape[1] for a in arrays)]), self.queries
        sees = masks.sees(logical, sizes, self.tokens, self.visible(), self.place)
        return [[[scores(seen) for seen in queries] for queries in heads] for heads in sees]

    def _mask_clauses(self, logical: Logical) -> Iterator[str]:
        if not logical:
            yield "MASK-3"
        if self.queries == 0:
            yield "MASK-16"
        if (self.queries or 0) > 1:
            yield from self.masked_several
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
        if self.unaware:
            raise Unsaid("any")
        if self.in_round:
            cite("DRAFT-13")
            return False
        cite("CACHE-9")
        return self._goes(to)

    def _goes(self, to: int) -> bool:
        """Whether it can go back to a target."""
        to = self._clamped(to)
        return self.floor <= to <= self.offset and self._reaches(to, self.offset)

    def _clamped(self, to: int) -> int:
        """The target of a rewind; where that is declared the nearest there is."""
        return clamped(self.claim, to, self.offset)

    def _reaches(self, to: int, end: int, saved: SavedTokens | None = None) -> bool:
        """Whether a cache that stands at `end`, or was saved there, still has what a query at `to` needs."""
        return True

    def either(self, to: int) -> bool:
        """Whether it is right to take and to refuse a rewind."""
        return False

    def rewind(self, to: int) -> None:
        """Drop the tokens at and beyond `to`."""
        self._demand_free("rewind")
        to = self._clamped(to)
        if not 0 <= to <= self.offset:
            raise common.rewind_range("CACHE-7", to, self.offset)
        if not self._reaches(to, self.offset):
            raise self._out_of_reach(to)
        if to < self.floor:
            raise refusals_parcels.left_behind("MOVE-11", to, self.floor)
        cite(*(self.unmoved if to == self.offset else self.rewound))
        self.width = self.width if to == self.offset else to
        self.tokens = self.tokens[:to]
        self.queries = None

    def _out_of_reach(self, to: int) -> Refused:
        raise NotImplementedError

    def free(self) -> None:
        """Forget everything."""
        self._demand_free("free")
        cite("CACHE-6")
        self._forget()
        if self.claim.dialect("shape") == "first append":
            self.config, self.shaped = self.opened, False

    def _forget(self) -> None:
        """Be as if it was never written."""
        self.tokens, self.queries, self.width, self.floor = [], None, 0, 0


def clamped(claim: Claim, to: int, offset: int) -> int:
    """The target of a rewind from an offset; where that is declared the nearest there is."""
    declared = claim.dialect("range")
    low = to if declared == "refused" else max(0, to)
    return min(low, offset) if declared == "clamped" else low


def scores(seen: Added) -> Scores:
    """What a mask adds to the score of each row, summed in f32; what that hides is not seen."""
    return {serial: total for serial, added in seen.items() if (total := _total(added)) != masks.HIDDEN}


def _total(added: Sequence[float]) -> float:
    if len(added) < 2:
        return added[0] + 0.0 if added else 0.0
    with np.errstate(over="ignore"):
        return float(sum(map(np.float32, added), np.float32(0)))
