"""The list model of a pool that finds rows by content: pages are things with the names of the rows in them.

It knows no page numbers. A page knows what came before its first row, what its own rows are, and when it was last
given up. An adapter may choose what is evicted, and which of two equal pages is kept. There the model evicts
nothing, and follows what the adapter says of each hit as far as that is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvref.cite import cite
from kvref.list_model.attention import KnownRows
from kvref.list_model.rows import Rows
from kvspec.contract import Claim, Request
from kvspec.geometry import Config
from kvspec.refusals import common
from kvspec.refusals import keyed as refusals

Names = list[Any]
"""What rows are, one after another from the first token on: each is its token with the items at it."""


@dataclass(eq=False)
class Page:
    """A page, whichever it is."""

    before: Any
    """The salt, the adapter and the names of all rows before those of this page."""
    names: Names
    """Those of its own rows that can be found."""
    given_up: int = 0
    in_doubt: bool = False
    """Whether the adapter may have had this page in place of an equal one, and have forgotten it with that."""


@dataclass
class Sequence_:
    """One sequence: its request, the serials of its rows, its pages, and the tokens proposed behind it."""

    request: Request
    serials: list[int] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    proposed: list[int] = field(default_factory=list)
    most: int = 0
    """The most rows that it has had."""


class KeyedModel:
    """All sequences by number, and all pages in which something may be found, in the order they were taken."""

    kind = "keyed"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        right = config.batch == 1 and config.granule in (None, "page", "row") and config.page_size and config.pages
        if not right or not common.valid(config):
            raise refusals.config("CACHE-3", config)
        cite("KEY-2")
        self.config, self.size, self.total = config, config.page_size or 1, config.pages or 1
        self.all: dict[int, Sequence_] = {}
        self.pages: list[Page] = []
        self.clock = self.spent = 0
        self.whole = claim.dialect("last") == "found"
        self.keeps = claim.dialect("dropped") == "kept"
        self.follows = claim.dialect("evicts") == "any"
        """Whether the adapter chooses what is found and free, or has had equal pages to choose from."""
        self.merges = claim.dialect("duplicates") == "any"
        self.said: int | None = None
        self.took: bool | None = None
        """Whether the adapter took the operation that is being done, if that is known."""
        self.answered: Mapping[str, Any] | None = None
        """The values of the adapter's answer to it, if they are known."""
        self.unsure = False

    def key(self) -> tuple[object, ...]:
        """The state up to renaming pages."""
        met: dict[int, int] = {}
        held = (
            (n, len(s.serials), *(met.setdefault(id(p), len(met)) for p in s.pages)) for n, s in self.all.items()
        )
        return *held, tuple((len(p.names), id(p) in met) for p in self.pages)

    # What is found

    def match(self, request: Request) -> int:
        """How many rows are found."""
        cite("KEY-3")
        return self._hit(request)[0]

    def _hit(self, request: Request) -> tuple[int, list[Page]]:
        """How many rows are found, and in which pages: the adapter's number, where it may choose."""
        n = len(request.tokens)
        if n == 0 or max((at for _, at in request.media), default=0) >= n:
            raise refusals.request("KEY-11", n, [at for _, at in request.media])
        pages = self._longest(request, n if self.whole else n - 1)
        most = sum(run for _, run in pages)
        self._cite_found(request)
        found = self._followed(most, pages) if self.follows else most
        return found, [page for i, (page, _) in enumerate(pages) if i * self.size < found]

    def _cite_found(self, request: Request) -> None:
        cite("KEY-4", "KEY-9", "KEY-10", "KEY-19", "KEY-30")
        cite(*(["KEY-5"] if request.adapter else []), *(["KEY-6"] if request.salt else []))
        cite(*(["KEY-8"] if request.media else []), *(["KEY-7"] if request.adapter or request.salt else []))

    def _followed(self, most: int, pages: list[tuple[Page, int]]) -> int:
        """What the adapter says, where it may have forgotten what is not found; else the most."""
        if self.answered is None:
            self.unsure = True
        said = (self.answered or {}).get("hit")
        whole = self.config.granule == "row" or (type(said) is int and said % self.size == 0)
        if type(said) is not int or not whole or not 0 <= said <= most:
            return most
        lost = said < most and pages[said // self.size][0].in_doubt
        return said if self.spent > self.total or lost else most

    def _longest(self, request: Request, most: int) -> list[tuple[Page, int]]:
        """The pages that hold the first rows of a request, at most so many, each with the number of these rows."""
        names, found, at = _names(request), list[tuple[Page, int]](), 0
        while at < most:
            wanted = names[at : at + self.size]
            here = [
                (self._common(page, wanted), page)
                for page in self.pages
                if page.before == _before(request, names, at)
            ]
            best = max((n for n, _ in here), default=0)
            n = min(best, most - at)
            if n < self.size and self.config.granule != "row":
                break
            if n:
                held = self._held()
                equal = [page for run, page in here if run == best]
                found.append((min(equal, key=lambda page: (page not in held, page.in_doubt)), n))
            if n < self.size:
                break
            at += n
        return found

    def _common(self, page: Page, wanted: Names) -> int:
        n = 0
        while n < min(len(page.names), len(wanted)) and page.names[n] == wanted[n]:
            n += 1
        return n

    # Sequences

    def request(self, request: Request, chunk: int | None, keys: Rows, values: Rows) -> tuple[int, int]:
        """A sequence with what is found and what is computed behind it."""
        hit, pages = self._hit(request)
        left = len(request.tokens) - hit
        end = hit + (left if chunk is None else min(left, chunk))
        new = Sequence_(request, keys.serials[0][:hit], pages)
        self._demand_room(new, end, joins=True)
        cite("KEY-12", *(["KEY-13", "KEY-14"] if hit else []), "KEY-24", "KEY-25", "KEY-26", "KEY-31")
        number = min(set(range(len(self.all) + 1)) - set(self.all))
        self.all[number] = new
        self._compute(new, keys.serials[0][:end])
        return number, hit

    def compute(self, sequence: int, n: int, keys: Rows, values: Rows) -> None:
        """The next tokens."""
        one = self._decided(sequence)
        end = min(len(one.serials) + n, len(one.request.tokens))
        self._demand_room(one, end)
        cite("KEY-17", "KEY-24", "KEY-26", "KEY-31")
        self._compute(one, keys.serials[0][:end])

    def answer(self, sequence: int, tokens: Sequence[int], keys: Rows, values: Rows) -> None:
        """More tokens, and all that are left."""
        one = self._decided(sequence)
        self._demand_room(one, keys.n)
        cite("KEY-18", "KEY-24", "KEY-26", "KEY-31")
        one.request = one.request.longer(tokens)
        self._compute(one, keys.serials[0])

    def propose(self, sequence: int, tokens: Sequence[int], keys: Rows, values: Rows) -> None:
        """Tokens that are not the request's yet."""
        one = self._decided(sequence)
        if len(one.serials) < len(one.request.tokens):
            raise refusals.undecided("KEY-21", sequence, len(one.request.tokens) - len(one.serials), 0)
        self._demand_room(one, keys.n)
        cite("KEY-20", "KEY-24", "KEY-26", "KEY-31")
        one.proposed = list(tokens)
        self._compute(one, keys.serials[0])

    def accept(self, sequence: int, n: int) -> None:
        """Some of them are."""
        one = self._one(sequence)
        if n not in range(len(one.proposed) + 1):
            raise refusals.accept("KEY-23", n, len(one.proposed))
        cite("KEY-22", "KEY-26")
        before = len(one.request.tokens)
        one.request = one.request.longer(one.proposed[:n])
        one.serials = one.serials[: len(one.request.tokens)]
        one.proposed = []
        for p in range(before, len(one.request.tokens)):
            one.pages[p // self.size].names.append(_names(one.request)[p])
            self._notice(one.pages[p // self.size])
        keep = len(range(0, len(one.serials), self.size))
        self.follows = self.follows or (self.keeps and keep < len(one.pages))
        self._leave(one, keep)

    def finish(self, sequence: int) -> None:
        """Nobody at this number."""
        self._leave(self._one(sequence), keep=0)
        cite("KEY-26", "KEY-27", "KEY-35")
        del self.all[sequence]

    def abort(self, sequence: int) -> None:
        """Nobody at this number, and nothing in the pages that it alone has."""
        one = self._one(sequence)
        cite("KEY-26", "KEY-28", "KEY-35")
        others = {id(page) for other in self.all.values() if other is not one for page in other.pages}
        for page in one.pages:
            if id(page) not in others:
                self._doubt(page, others)
                page.names = []
        self._leave(one, keep=0)
        del self.all[sequence]

    def _doubt(self, gone: Page, others: set[int]) -> None:
        """What is in a page is to be found no more. The adapter may have given it back for an equal one."""
        for page in self.pages if self.merges and len(gone.names) == self.size else ():
            same = page.before == gone.before and page.names == gone.names
            page.in_doubt = page.in_doubt or (same and id(page) not in others)

    def _one(self, sequence: int) -> Sequence_:
        if sequence not in self.all:
            raise refusals.sequence("KEY-16", sequence)
        return self.all[sequence]

    def _decided(self, sequence: int) -> Sequence_:
        one = self._one(sequence)
        if one.proposed:
            raise refusals.undecided("KEY-21", sequence, 0, len(one.proposed))
        return one

    # Pages

    def _held(self) -> list[Page]:
        return [page for one in self.all.values() for page in one.pages]

    def _copies(self, one: Sequence_, end: int, joins: bool) -> bool:
        """Whether the first new row goes to a page that somebody else has."""
        n = len(one.serials)
        begun = n % self.size > 0 and end > n
        return begun and self._held().count(one.pages[-1]) + joins > 1

    def _demand_room(self, one: Sequence_, end: int, joins: bool = False) -> None:
        new = len(range(0, end, self.size)) - len(one.pages) + self._copies(one, end, joins)
        if new <= 0:
            return  # the adapter may share equal pages: there may be more here than it has in all
        used = {id(page) for page in self._held()} | {id(page) for page in one.pages}
        free = self.total - len(used)
        if self.follows:
            free = new if self._finds_room(new + len(one.pages) * joins) else new - 1
        if new > free:
            raise refusals.full("KEY-15", new, free)

    def _finds_room(self, new: int) -> bool:
        """Tell whether the adapter has pages. It must have them if there are enough even when no page is shared.
        Otherwise the model follows what it did."""
        if self._apart() + new <= self.total:
            return True
        self.unsure = self.unsure or self.took is None
        return bool(self.took)

    def _compute(self, one: Sequence_, serials: list[int]) -> None:
        """The rows up to there, in pages that nobody else has."""
        n, names = len(one.serials), _names(one.request.longer(one.proposed))
        if len(serials) <= n:
            return
        if n % self.size:
            self._own_last(one, n % self.size)
        for p in range(n, len(serials)):
            if p % self.size == 0:
                one.pages.append(self._taken(_before(one.request, names, p)))
            if p < len(one.request.tokens):
                one.pages[-1].names.append(names[p])
                self._notice(one.pages[-1])
        one.serials, one.most = serials, max(one.most, len(serials))

    def _notice(self, page: Page) -> None:
        """From two equal pages on the adapter may choose."""
        equal = (p for p in self.pages if p.before == page.before and p.names[:1] == page.names[:1])
        self.follows = self.follows or (self.merges and len(list(equal)) > 1)

    def _own_last(self, one: Sequence_, rows: int) -> None:
        """Rows behind these will be written: in the page itself, or in a copy."""
        page = one.pages[-1]
        if self._held().count(page) > 1:
            one.pages[-1] = self._taken(page.before)
            one.pages[-1].names = page.names[:rows]
        else:
            del page.names[rows:]

    def _taken(self, before: Any) -> Page:
        """A new page, in place of one that is free: of those in which something is found the one given up first."""
        cite("KEY-29")
        self.spent += 1
        if not self.follows and len(self.pages) == self.total:
            held = {id(page) for page in self._held()} | {
                id(page) for one in self.all.values() for page in one.pages
            }
            self.pages.remove(min((p for p in self.pages if id(p) not in held), key=lambda p: p.given_up))
        self.pages.append(Page(before, []))
        return self.pages[-1]

    def _leave(self, one: Sequence_, keep: int) -> None:
        """A sequence has only its first pages from now on; the last of the others is given up first."""
        while len(one.pages) > keep:
            page = one.pages.pop()
            if page not in self._held():
                self.clock += 1
                page.given_up = self.clock
                if not page.names or (len(page.names) < self.size and self.config.granule != "row"):
                    self.pages.remove(page)

    def evict(self, n: int) -> None:
        """Forget the pages that were given up first."""
        cite("KEY-31", "KEY-32")
        held = self._held()
        free = sorted((p for p in self.pages if p not in held), key=lambda p: p.given_up)
        for page in free[:n] if not self.follows else ():
            self.pages.remove(page)
        self.spent += self.total if self.follows and n else 0

    def clear(self) -> None:
        """Forget all."""
        if self.all:
            raise refusals.busy("KEY-34", len(self.all))
        cite("KEY-33", "KEY-31", "KEY-32")
        self.pages = []

    # What is observed

    def sequences(self) -> list[int]:
        """The number of rows of each sequence, -1 where there is none."""
        numbers = range(1 + max(self.all, default=-1))
        return [len(self.all[n].serials) if n in self.all else -1 for n in numbers]

    def read_sequence(self, sequence: int) -> list[int]:
        """The serials of its rows."""
        return list(self._one(sequence).serials)

    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return self.total - len({id(page) for page in self._held()})

    def free_between(self) -> tuple[int, int]:
        """Pages that no sequence has, where all pages are apart, and where all equal ones are one."""
        each = [rows for one in self.all.values() for rows in self._divided(one)]
        begun = {page[:n] for page in each for n in range(1, len(page))}
        return max(0, self.total - self._apart()), self.total - len(set(each) - begun)

    def _divided(self, one: Sequence_) -> list[tuple[int, ...]]:
        return [tuple(one.serials[i : i + self.size]) for i in range(0, len(one.serials), self.size)]

    def _apart(self) -> int:
        """Pages in use, where no two sequences have one; with those of dropped rows, where these are kept."""
        rows = (one.most if self.keeps else len(one.serials) for one in self.all.values())
        return sum(-(-n // self.size) for n in rows)


def _names(request: Request) -> Names:
    """What each row is: its token, and the items that stand behind it."""
    items = [(at, name) for name, at in request.media]
    return [(token, *sorted(name for at, name in items if at == p)) for p, token in enumerate(request.tokens)]


def _before(request: Request, names: Names, at: int) -> Any:
    return request.salt, request.adapter, names[:at]


model = KeyedModel
