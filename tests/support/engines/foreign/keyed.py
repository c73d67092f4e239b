"""KEY without block tables of numbers: a page is a thing that says in words what its rows are.

Written from the text of the chapter alone. A history is spelled out as one string. Pages are compared by the
strings of their rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES
from support.engines.foreign import Foreign
from support.engines.foreign.demands import want, want_sizes


class Sheet:
    """A page: the spelled histories of its rows as far as they can be found, and the rows."""

    def __init__(self) -> None:
        self.spelled: list[str] = []
        self.rows: list[tuple[Any, Any]] = []


class Life:
    """A sequence: what was asked, its pages, and tokens that may be taken back."""

    def __init__(self, request: Any, sheets: list[Sheet], length: int) -> None:
        self.request, self.sheets, self.length = request, sheets, length
        self.maybe: tuple[int, ...] = ()


class Library:
    """All pages that hold something, the one that was left longest ago first among `idle`; `shelf` has all."""

    def __init__(self, config: Any) -> None:
        want_sizes(config, "page_size", "pages")
        want(config.batch == 1 and config.granule in (None, "page", "row"), "batch or granule")
        self.config, self.per = config, config.page_size
        self.lives: dict[int, Life] = {}
        self.shelf: list[Sheet] = []
        self.idle: list[Sheet] = []

    def spell(self, request: Any, p: int) -> str:
        """Everything that the row of position p depends on, in words that cannot be confused."""
        tokens = ",".join(map(str, request.tokens[: p + 1]))
        items = ",".join(f"{name!r}@{at}" for name, at in request.media if at <= p)
        return f"adapter={request.adapter!r};salt={request.salt!r};tokens={tokens};items={items}"

    def find(self, request: Any) -> tuple[int, list[Sheet]]:
        """The rows that are there, and where."""
        count = len(request.tokens)
        want(count > 0 and all(at < count for _, at in request.media), "no token, or an item behind the last")
        found: list[Sheet] = []
        n = 0
        while n < count - 1:
            here = [self.spell(request, p) for p in range(n, min(n + self.per, count - 1))]
            overlap = [self.overlap(sheet.spelled, here) for sheet in self.shelf]
            longest = max(overlap, default=0)
            if longest == 0 or (longest < self.per and self.config.granule != "row"):
                break
            full = [self.spell(request, p) for p in range(n, min(n + self.per, count))]
            whole = [self.overlap(sheet.spelled, full) for sheet in self.shelf]
            best = [sheet for sheet, o in zip(self.shelf, whole, strict=True) if o == max(whole)]
            found.append(next((sheet for sheet in best if sheet not in self.idle), best[0]))
            n += longest
            if longest < self.per:
                break
        return n, found

    def overlap(self, a: list[str], b: list[str]) -> int:
        """How many of the first are equal."""
        n = 0
        while n < len(a) and n < len(b) and a[n] == b[n]:
            n += 1
        return n

    def match(self, request: Any) -> int:
        """How much is found."""
        return self.find(request)[0]

    def busy(self) -> list[Sheet]:
        """The pages of all sequences, as often as they have them."""
        return [sheet for life in self.lives.values() for sheet in life.sheets]

    def free_pages(self) -> int:
        """Pages that no sequence has."""
        return int(self.config.pages) - len({id(sheet) for sheet in self.busy()})

    def want_room(self, life: Life, to: int, joins: bool) -> None:
        """Refuse what has no pages."""
        new = -(-to // self.per) - len(life.sheets)
        if to > life.length and life.length % self.per and self.busy().count(life.sheets[-1]) + joins > 1:
            new += 1
        rest = self.free_pages() - (sum(sheet in self.idle for sheet in life.sheets) if joins else 0)
        want(new <= rest, f"{new} pages of {rest}")

    def request(self, request: Any, chunk: int | None, keys: Any, values: Any) -> tuple[int, int]:
        """Begin."""
        hit, sheets = self.find(request)
        to = min(len(request.tokens), hit + (chunk or len(request.tokens)))
        life = Life(request, sheets, hit)
        self.want_room(life, to, True)
        self.idle = [sheet for sheet in self.idle if sheet not in sheets]
        number = next(n for n in range(len(self.lives) + 1) if n not in self.lives)
        self.lives[number] = life
        self.write(life, to, keys, values)
        return number, hit

    def blank(self) -> Sheet:
        """An empty page, in place of the one that was left longest ago if all hold something."""
        if len(self.shelf) == self.config.pages:
            self.shelf.remove(self.idle.pop(0))
        self.shelf.append(Sheet())
        return self.shelf[-1]

    def write(self, life: Life, to: int, keys: Any, values: Any) -> None:
        """Rows, and what they are called if they may be found."""
        for p in range(life.length, to):
            at = p % self.per
            if at == 0:
                life.sheets.append(self.blank())
            elif self.busy().count(life.sheets[-1]) > 1:
                old = life.sheets[-1]
                life.sheets[-1] = self.blank()
                life.sheets[-1].spelled, life.sheets[-1].rows = old.spelled[:at], old.rows[:at]
            sheet = life.sheets[-1]
            del sheet.spelled[at:], sheet.rows[at:]
            sheet.rows.append((keys[0, :, p].copy(), values[0, :, p].copy()))
            if p < len(life.request.tokens):
                sheet.spelled.append(self.spell(life.request, p))
        life.length = max(life.length, to)

    def life(self, sequence: int) -> Life:
        """A sequence that is there."""
        want(sequence in self.lives, f"no sequence {sequence}")
        return self.lives[sequence]

    def settled(self, sequence: int) -> Life:
        """One without tokens that may be taken back."""
        life = self.life(sequence)
        want(not life.maybe, "tokens are proposed")
        return life

    def compute(self, sequence: int, n: int, keys: Any, values: Any) -> None:
        """Go on."""
        life = self.settled(sequence)
        to = min(life.length + n, len(life.request.tokens))
        self.want_room(life, to, False)
        self.write(life, to, keys, values)

    def answer(self, sequence: int, tokens: Any, keys: Any, values: Any) -> None:
        """Go on with more tokens."""
        life = self.settled(sequence)
        longer = life.request.longer(tokens)
        self.want_room(life, len(longer.tokens), False)
        life.request = longer
        self.write(life, len(longer.tokens), keys, values)

    def propose(self, sequence: int, tokens: Any, keys: Any, values: Any) -> None:
        """Go on with tokens that may be taken back."""
        life = self.settled(sequence)
        want(life.length == len(life.request.tokens), "tokens are left")
        self.want_room(life, life.length + len(tokens), False)
        life.maybe = tuple(tokens)
        self.write(life, life.length + len(tokens), keys, values)

    def accept(self, sequence: int, n: int) -> None:
        """Take some back."""
        life = self.life(sequence)
        want(0 <= n <= len(life.maybe), f"{n} of {len(life.maybe)}")
        if life.maybe:
            before = len(life.request.tokens)
            life.request, life.maybe = life.request.longer(life.maybe[:n]), ()
            life.length = before + n
            for p in range(before, life.length):
                life.sheets[p // self.per].spelled.append(self.spell(life.request, p))
            self.leave(life, -(-life.length // self.per))

    def leave(self, life: Life, keep: int) -> None:
        """Leave pages, the last one first."""
        while len(life.sheets) > keep:
            sheet = life.sheets.pop()
            if sheet not in self.busy():
                kept = sheet.spelled if self.config.granule == "row" else sheet.spelled[self.per - 1 :]
                (self.idle if kept else [])[len(self.idle) :] = [sheet]
                self.shelf = self.shelf if kept else [other for other in self.shelf if other is not sheet]

    def finish(self, sequence: int) -> None:
        """End."""
        self.leave(self.life(sequence), 0)
        del self.lives[sequence]

    def abort(self, sequence: int) -> None:
        """End, and forget."""
        life = self.life(sequence)
        for sheet in life.sheets:
            if self.busy().count(sheet) == 1:
                sheet.spelled = []
        self.finish(sequence)

    def evict(self, n: int) -> None:
        """Forget some pages."""
        for _ in range(min(n, len(self.idle))):
            self.shelf.remove(self.idle.pop(0))

    def clear(self) -> None:
        """Forget all."""
        want(not self.lives, "sequences are in use")
        self.evict(len(self.idle))

    def sequences(self) -> list[int]:
        """The rows of each."""
        return [self.lives[n].length if n in self.lives else -1 for n in range(max(self.lives, default=-1) + 1)]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of one."""
        life, c = self.life(sequence), self.config
        rows = [row for sheet in life.sheets for row in sheet.rows][: life.length]
        none = (np.zeros((c.kv_heads, 0, dim), DTYPES[c.dtype]) for dim in (c.k_dim, c.v_dim))
        return Pair(*(np.stack(side, 1) for side in zip(*rows, strict=True))) if rows else Pair(*none)


class Unsalted(Library):
    """One that is wrong in one thing."""

    def spell(self, request: Any, p: int) -> str:
        return super().spell(request._replace(salt=""), p)


class Spelled:
    """The adapter."""

    POOL: type[Library] = Library

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {"name": "spelled-histories", "chapters": {"keyed": "visible"}}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh pool."""
        if kind != "keyed":
            raise Unsupported(f"no kind {kind}")
        return self.POOL(config)


class SpelledUnsalted(Spelled):
    POOL = Unsalted


FOREIGN = (Foreign("keyed:Spelled", ("keyed",), "histories spelled as text; pages are lists"),)
WRONG = {"keyed:SpelledUnsalted": ["KEY-6"]}
