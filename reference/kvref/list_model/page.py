"""The list model of a paged cache: for each sequence the list of its rows, and what it shares by identity.

It knows no page numbers: a page is a thing of its own, free pages are those in no table. So it says when there is
room, and the reference says which page is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvref.cite import cite
from kvref.list_model import attention, parcels
from kvref.list_model.attention import Asked, KnownRows
from kvref.list_model.attention_bound import Output
from kvref.list_model.parcels import NamedParcel
from kvref.list_model.rows import ANYTHING, Out, Queries, Rows, fit
from kvspec.contract import Attention, Claim
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.refusals import common
from kvspec.refusals import page as refusals_page
from kvspec.refusals import parcels as refusals_parcels


class Page:
    """A page, whichever it is."""


@dataclass
class PagedSequence:
    """One sequence: the serials of its rows, and its pages in order."""

    rows: list[int] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)


@dataclass
class InFlight(PagedSequence):
    """Rows that are sent, which have their pages; or pages for rows that are expected."""

    expected: int | None = None
    """How many rows, if they are."""


class PoolModel:
    """All sequences, at their numbers; None at a number that is not in use."""

    kind = "page"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        sizes = config.page_size, config.pages, config.batch, config.debug or 1
        if None in sizes or not common.valid(config) or sizes[2:] != (1, 1):
            raise refusals_page.config("CACHE-3", config)
        cite("PAGE-2")
        self.known = known
        self.config, self.size, self.total = config, config.page_size or 0, config.pages or 0
        self.all: list[PagedSequence | None] = []
        self.in_flight: dict[int, InFlight] = {}
        self.copies = claim.dialect("part") == "copied"
        """Whether rows that end within a page of several sequences are copied at once."""
        self.follows = claim.dialect("shares") != "forks"
        """Whether full pages of equal rows may be shared: which are is for the adapter to say."""
        self.said: int | None = None
        """Free pages that the adapter says it has, if it was looked at."""
        self.took: bool | None = None
        """Whether the adapter took the rows of the operation that is being done, if that is known."""
        self.answered: Mapping[str, Any] | None = None
        """The values of the adapter's answer to it, which say nothing here."""
        self.unsure = False
        """Whether it did something that is not known, so that nothing can be said of it any more."""

    def key(self) -> tuple[object, ...]:
        """The state up to renaming rows and pages."""
        met: dict[Page, int] = {}
        each = (*self.all, *(self.in_flight[n] for n in sorted(self.in_flight)))
        found = (
            None if s is None else (len(s.rows), *(met.setdefault(p, len(met)) for p in s.pages)) for s in each
        )
        return (*found, *((n, one.expected) for n, one in sorted(self.in_flight.items())))

    @property
    def held(self) -> list[Page]:
        """Every page of every sequence and transfer, as often as it is held."""
        return [page for one in self._holders for page in one.pages]

    @property
    def _holders(self) -> list[PagedSequence]:
        return [*(one for one in self.all if one), *self.in_flight.values()]

    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return self.total - len(set(self.held))

    def free_between(self) -> tuple[int, int]:
        """Pages that no sequence has where all pages of equal rows are apart, and where all are one."""
        pages = {tuple(map(self.known.content, page)) for one in self._holders for page in self._divided(one)}
        begun = {page[:n] for page in pages for n in range(1, len(page))}
        expected = sum(len(one.pages) for one in self.in_flight.values() if one.expected is not None)
        return self.free_pages(), self.total - expected - len(pages - begun)

    def _divided(self, one: PagedSequence) -> list[list[int]]:
        return [one.rows[i : i + self.size] for i in range(0, len(one.rows), self.size)]

    def sequences(self) -> list[int]:
        """The length of each sequence, -1 where there is none."""
        return [-1 if one is None else len(one.rows) for one in self.all]

    def read_sequence(self, sequence: int) -> list[int]:
        """The serials of a sequence's rows."""
        return list(self.one(sequence).rows)

    def pack(self, sequence: int = 0) -> NamedParcel:
        """All rows of a sequence."""
        rows = self.one(sequence).rows
        return parcels.packed(self.config, len(rows), range(len(rows)), rows)

    def unpack(self, *parts: NamedParcel) -> int:
        """A new sequence with these rows, in new pages."""
        offset = parts[0].offset
        parcels.demand(parts, self.config, range(offset))
        return self._arrived(parts, self._taken(offset))

    def _taken(self, n: int) -> list[Page]:
        """New pages for n rows."""
        new = len(range(0, n, self.size))
        if new > self.free_pages() and not self._shares_enough(new):
            raise refusals_parcels.no_room("MOVE-10", n, self.free_pages() * self.size)
        return [Page() for _ in range(new)]

    def _arrived(self, parts: Sequence[NamedParcel], pages: list[Page]) -> int:
        """A new sequence with these rows, in these pages."""
        offset = parts[0].offset
        found = parcels.rows(parts, self.config, range(offset))
        cite("MOVE-4", "MOVE-5", "MOVE-6", "MOVE-13")
        return self._admitted(PagedSequence([found[p] for p in range(offset)], pages))

    def send(self, sequence: int) -> int:
        """A transfer with the rows of a sequence, and its pages."""
        of = self.one(sequence)
        cite("MOVE-19", "MOVE-20")
        return self._begun(InFlight(list(of.rows), list(of.pages)))

    def sent(self, transfer: int) -> NamedParcel:
        """These rows; the transfer has ended."""
        rows = self._flying(transfer, expected=False).rows
        cite("MOVE-19", "MOVE-20")
        del self.in_flight[transfer]
        return parcels.packed(self.config, len(rows), range(len(rows)), rows)

    def transfers(self) -> list[int]:
        """The rows of each transfer, -1 where there is none."""
        each = map(self.in_flight.get, range(max(self.in_flight, default=-1) + 1))
        return [-1 if one is None else len(one.rows) if one.expected is None else one.expected for one in each]

    def expect(self, n: int) -> int:
        """A transfer with pages for n rows."""
        cite("MOVE-21")
        return self._begun(InFlight([], self._taken(n), n))

    def arrive(self, transfer: int, *parts: NamedParcel) -> int:
        """A new sequence with these rows, in the pages of the transfer."""
        of = self._flying(transfer, expected=True)
        parcels.demand(parts, self.config, range(parts[0].offset))
        if parts[0].offset != of.expected:
            raise refusals_parcels.unexpected("MOVE-22", parts[0].offset, of.expected)
        cite("MOVE-22")
        del self.in_flight[transfer]
        return self._arrived(parts, of.pages)

    def lose(self, transfer: int) -> None:
        """Nobody has the pages of this transfer."""
        if transfer not in self.in_flight:
            raise refusals_parcels.over("MOVE-24", transfer)
        cite("MOVE-23")
        del self.in_flight[transfer]

    def _begun(self, made: InFlight) -> int:
        """The first number that is not in flight."""
        number = next(n for n in range(len(self.in_flight) + 1) if n not in self.in_flight)
        self.in_flight[number] = made
        return number

    def _flying(self, transfer: int, expected: bool) -> InFlight:
        """A transfer that goes this way."""
        found = self.in_flight.get(transfer)
        if found is None or (found.expected is not None) is not expected:
            raise refusals_parcels.over("MOVE-24", transfer)
        return found

    def plan(self, n: int) -> tuple[int, ...]:
        """How many bytes is for the adapter to say."""
        return ()

    def one(self, sequence: int) -> PagedSequence:
        """The sequence of this number."""
        found = self.all[sequence] if sequence in range(len(self.all)) else None
        if found is None:
            raise refusals_page.sequence("PAGE-4", sequence)
        return found

    def admit(self) -> int:
        """A new sequence of no rows."""
        return self._admitted(PagedSequence())

    def _admitted(self, new: PagedSequence) -> int:
        """A sequence at the first number that is free, or behind the last."""
        cite("PAGE-3", "PAGE-5")
        if None not in self.all:
            self.all.append(None)
        number = self.all.index(None)
        self.all[number] = new
        return number

    def fork(self, sequence: int, n: int) -> int:
        """The same first rows in the same pages."""
        parent = self.one(sequence)
        if n not in range(len(parent.rows) + 1):
            raise refusals_page.fork("PAGE-16", n, sequence, len(parent.rows))
        cite("PAGE-14", "PAGE-15", "PAGE-18")
        return self._admitted(PagedSequence(parent.rows[:n], self._own(self._covering(parent, n), n)))

    def _own(self, pages: list[Page], n: int) -> list[Page]:
        """The pages of n rows, which others hold: by a dialect the last is one's own where it is not full."""
        if not (self.copies and n % self.size and pages[-1] in self.held):
            return pages
        if not self.free_pages():
            raise refusals_page.no_copy("PAGE-21", 0, 0, 0)
        return [*pages[:-1], Page()]

    def _covering(self, one: PagedSequence, n: int) -> list[Page]:
        """The pages in which a sequence's first n rows lie."""
        return [page for i, page in enumerate(one.pages) if i * self.size < n]

    def _room(self, one: PagedSequence, n: int) -> tuple[list[Page], int, bool]:
        """What n more rows take: the pages that stay, how many must be new, and whether one of these is a copy."""
        full = len(one.rows) // self.size
        shared = any(self.held.count(page) > 1 for page in one.pages[full:])
        kept = one.pages[:full] if shared else one.pages
        return kept, len(range(0, len(one.rows) + n, self.size)) - len(kept), shared

    def append(self, keys: Rows, values: Rows, sequence: int = 0) -> None:
        """Rows behind those there are."""
        if not keys.n:
            cite("CACHE-1")
            return
        self._demand(keys, values, sequence)
        self._write(keys.serials[0], sequence)

    def _demand(self, keys: Rows, values: Rows, sequence: int) -> PagedSequence:
        """Refuse rows that do not fit, or for which there are no pages."""
        one, n = self.one(sequence), keys.n
        if not fit(keys, values, self.config, 1, self.config.kv_heads, n):
            raise Refused("CACHE-2", "rows of another geometry")
        _, new, shared = self._room(one, n)
        free = self.free_pages()
        if new <= free or self._shares_enough(new):
            return one
        free = free if self.said is None else self.said  # a pool that shares more has pages where others have none
        if new - shared > free:
            raise refusals_page.full("PAGE-13", n, new, free)
        raise refusals_page.no_copy("PAGE-21", n, new - shared, free)

    def _shares_enough(self, new: int) -> bool:
        """Tell whether the adapter has room because it shares pages. It has if it says so, counting one page for a
        copy. Otherwise the model follows what it does."""
        if not self.follows:
            return False
        if (self.said or 0) > new:
            return True
        self.unsure = self.unsure or self.took is None
        return bool(self.took)

    def _write(self, serials: list[int], sequence: int) -> None:
        """Append rows, in pages that no other sequence has."""
        one = self.one(sequence)
        cite("PAGE-6", "PAGE-10", "PAGE-18", "PAGE-27", *(["PAGE-19"] if one.pages else []))
        kept, new, _ = self._room(one, len(serials))
        one.rows, one.pages = one.rows + serials, [*kept, *(Page() for _ in range(new))]

    def attend(
        self, queries: Queries, keys: Rows, values: Rows, how: Attention, out: Out = None, of: int | None = None
    ) -> Output | None:
        """Append to a sequence, then what each query sees of it."""
        if attention.nothing(queries, keys):
            cite("CACHE-1")
            return attention.no_output(self.known, queries, self.config)
        one, asked = self._demand(keys, values, of or 0), Asked(queries, how, out)
        asked.demand(self.config, 1, keys.n, len(one.rows) + keys.n)
        turned = self.known.turn(queries, keys, how, len(one.rows), self.config)
        self._write(keys.serials[0], of or 0)
        cite("PAGE-37")
        sees = asked.sees(1, one.rows)
        asked.cite(*["ROW-16"] * (self.config.form is not None))
        return self.known.output(turned, sees, self.config, how)

    def truncate(self, sequence: int, to: int) -> None:
        """The first rows, and the pages in which they lie."""
        one = self.one(sequence)
        if to not in range(len(one.rows) + 1):
            raise refusals_page.truncate("CACHE-7", to, sequence, len(one.rows))
        cite(
            "PAGE-22",
            "PAGE-18",
            "PAGE-27",
            *(["PAGE-25"] if not to else ["PAGE-23"] if to % (self.config.page_size or 1) else []),
        )
        self._cut(one, to)

    def _cut(self, one: PagedSequence, to: int) -> None:
        """Give all pages back, then take those of the first rows. Raises Refused."""
        kept, before, one.pages = self._covering(one, to), one.pages, []
        try:
            kept = self._own(kept, to)
        except Refused:
            one.pages = before
            raise
        one.rows, one.pages = one.rows[:to], kept

    def drop(self, sequence: int) -> None:
        """Nobody at this number; no numbers beyond the last that is in use."""
        self.one(sequence)
        cite("PAGE-26", "PAGE-5", "PAGE-18", "PAGE-27")
        self.all[sequence] = None
        while self.all and self.all[-1] is None:
            self.all.pop()

    def gather(self, table: Sequence[int], n: int) -> object:
        """The rows, where that is known without knowing pages: of none."""
        if n == 0:
            cite("PAGE-29")
            return []
        wanted = table[: len(range(0, n, self.size))]
        if n not in range(len(wanted) * self.size + 1):
            raise refusals_page.short("PAGE-30", n, len(table), self.size)
        for i, page in enumerate(wanted):
            if page not in range(self.total):
                raise refusals_page.entry("PAGE-31", i, page, self.total)
        return ANYTHING

    def peek(self, page: int) -> None:
        """Whether there is something to be seen; what that is is not for this model to know."""
        if page not in range(self.total):
            raise refusals_page.peek("PAGE-35", page, self.total)
        if self.config.debug is None:
            raise refusals_page.no_debug("PAGE-36")


model = PoolModel
