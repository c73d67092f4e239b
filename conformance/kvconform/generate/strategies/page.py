"""PAGE: every operation from every state of small pools, and random traces on larger pools with shared
sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale, beyond, inside, of_parcels, unseen
from kvref.list_model.page import InFlight, PagedSequence
from kvspec.geometry import Config
from kvspec.operations.arguments import ALIKE, PAIRINGS
from kvspec.operations.table import listed
from kvspec.session.driver import Session
from kvspec.trace import Trace

SIZES = ((1, 1, 3), (3, 2, 1), (1, 2, 2), (2, 2, 2), (2, 4, 1))
"""Rows of a page, pages and sequences of the covered pools."""

FAR = 1 << 31
"""Here a 32-bit integer changes its sign."""

MISFITS = ("kv_heads=1", "kv_heads=3", "k_dim=9", "v_dim=5", "dtype=f32", "batch=2", "values=0", "values=3")
"""Rows of another geometry."""

LONGEST = 30
"""Most operations of a trace."""


def moves(most: int, session: Session) -> list[str]:
    """Give the moves to other states, and those that stay in a state or return to it."""
    pages = session.caches["A"]
    return [*leading(most, pages), *_back(pages), *_through(pages), *_still(pages)]


def leading(most: int, pages: Any) -> list[str]:
    """Give the moves to other states."""
    found = ["admit"] if len(pages.in_use) < most else []
    for number, one in sorted(pages.in_use.items()):
        found += [f"append 1 sequence={number}", f"truncate {number} {max(0, one.length - 1)}", f"drop {number}"]
        found += [f"fork {number} {one.length}"] if len(pages.in_use) < most else []
    return found


def _next(pages: Any) -> int:
    """Give the number of the next sequence."""
    return next(n for n in range(len(pages.in_use) + 1) if n not in pages.in_use)


def _back(pages: Any) -> list[str]:
    """Give moves that return to the state: forks of every length, and appends of several rows that need no copy."""
    new, found = _next(pages), list[str]()
    for number, one in sorted(pages.in_use.items()):
        found += [f"fork {number} {n}; truncate {new} {n // 2}; drop {new}" for n in range(one.length + 1)]
        copies = one.length % pages.pool.size and pages.pool.counts[one.table[-1]] > 1
        room = pages.pool.free * pages.pool.size + -one.length % pages.pool.size
        several = f"append {room} sequence={number}; truncate {number} {one.length}"
        found += [f"append {room + 1} sequence={number}", *([] if copies else [several])]
    return found


def _through(pages: Any) -> list[str]:
    """Give gathers through the existing tables, with too many pages or rows, and through other tables."""
    size, found = pages.pool.size, list[str]()
    for one in pages.in_use.values():
        if one.length:
            table = ",".join(map(str, one.table))
            found += [f"gather {table} {n}" for n in {one.length, one.length + 1}]
            found.append(f"gather {table},-1 {one.length}")
            found.append(f"gather {table},{one.table[0]} {len(one.table) * size + 1}")
    total = len(pages.pool.counts)
    return [*found, *(f"gather {page} {size}" for page in range(-1, total + 1))]


def _still(pages: Any) -> list[str]:
    """Give moves that leave the pool unchanged: refused, empty, or on another pool. Those that do not depend on the
    state are tried only with one sequence."""
    new, some = _next(pages), min(pages.in_use, default=0)
    length = pages.in_use[some].length if pages.in_use else 0
    gone = [f"drop {new}", f"fork {new} 0", f"truncate {new} 0", *(f"append {n} sequence={new}" for n in (1, 0))]
    beyond = [f"{x} {some} {to}" for x in ("fork", "truncate") for to in (-1, length + 1)]
    looks = [f"peek {page}" for page in range(len(pages.pool.counts))]
    always = [*gone, *beyond, *looks, f"truncate {some} {length}", "scribble"]
    return [*always, *_anywhere(pages, some)] if len(pages.in_use) == 1 else always


def _anywhere(pages: Any, some: int) -> list[str]:
    """Give the moves whose result does not depend on the state."""
    far = [f"{x} {n}{y}" for n in (-1, FAR, -FAR) for x, y in (("fork", " 0"), ("truncate", " 0"), ("drop", ""))]
    beyond = [f"{x} {some} {to}" for x in ("fork", "truncate") for to in (FAR, -FAR)]
    wrong = [f"append 2 sequence={some} {misfit}" for misfit in MISFITS]
    nothing = [f"append 0 sequence={some} kv_heads=9", "append 1 sequence=-1", "gather empty 0", "gather -1 0"]
    other = "open B; B: admit; B: append 1; B: fork 0 1; B: append 1 sequence=1; B: drop 0; B: append 1 sequence=1"
    return [*far, *beyond, *wrong, *nothing, "gather empty 1", "peek -1", f"peek {len(pages.pool.counts)}", other]


def continuations(session: Session) -> list[str]:
    """Give all free pages to one sequence, which shows the free pages and their order; then admit, which shows the
    next number."""
    pages = session.caches["A"]
    for number, one in sorted(pages.in_use.items())[-1:]:
        rows = pages.pool.free * pages.pool.size + -one.length % pages.pool.size
        return [f"append {max(1, rows)} sequence={number}; admit"]
    return ["admit"]


def plans() -> list[Plan]:
    """Plan one pool for each size, with freed pages poisoned, so that a whole page can be seen."""
    return [_plan(Config(page_size=size, pages=pages, debug=1), most) for size, pages, most in SIZES]


def _plan(config: Config, most: int) -> Plan:
    name = f"page page_size={config.page_size} pages={config.pages} sequences<={most}"
    return plan(name, Trace("page", config), partial(moves, most), continuations, look="scribble")


@st.composite
def configs(draw: st.DrawFn, pages: int = 12) -> Config:
    """Draw any geometry, mostly with short pages, and pools small enough to fill often."""
    return geometry(draw).changed(
        page_size=mostly(draw, st.integers(1, 4), st.sampled_from((5, 7, 8, 16, 33))),
        pages=draw(st.integers(1, pages)),
        debug=draw(st.sampled_from((None, None, 1))),
    )


KINDS = (
    *("append",) * 7,
    *("fork", "truncate") * 3,
    *("admit", "drop", "gather") * 2,
    *("misfit", "beyond", "beyond", "gone", "peek", "scribble", "another"),
)
"""Kinds of operations. A kind listed more often is drawn more often."""


@st.composite
def explored(draw: st.DrawFn, more: Sequence[str] = (), turns: bool = False) -> Trace:
    """Draw a trace of all operations of a pool, and of those in `more` (`attend`), some with RoPE if it `turns`."""
    drawing = _Drawing(draw, Trace("page", draw(configs())))
    drawing.turned = f" rope={drawing.of(*PAIRINGS)}" if turns else ""
    drawing.do("admit")
    return drawing.until(draw(st.integers(2, LONGEST)), (*KINDS, *more))


class _Drawing(Drawing):
    """Draws a trace on a pool. The list model tells it each sequence's rows and the free pages."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = self.of("", "", "", " fill=bits")
        self.turned = ""
        """How RoPE turns rows, where that is drawn."""

    def some(self) -> tuple[int, PagedSequence]:
        """Choose a sequence in use; admit one if there is none."""
        if not any(self.model.all):
            self.do("admit")
        return self.of(*((number, one) for number, one in enumerate(self.model.all) if one))

    def rows(self, one: PagedSequence) -> int:
        """Draw how many rows to append: few, up to the end of a page or of the pool, or one beyond."""
        size: int = self.model.size
        page = -len(one.rows) % size
        room: int = page + self.model.free_pages() * size
        return self.of(1, 1, 2, page, page + 1, size, room, room + 1, 0)

    def _append(self) -> str:
        """Append rows to a sequence."""
        number, one = self.some()
        return f"append {self.rows(one)} sequence={number}{self.fill}"

    def _attend(self) -> str:
        """Append rows to a sequence, and attend with queries."""
        number, one = self.some()
        n = min(self.rows(one), 40)
        how = self.of(
            "", self.turned, " splits=2", f" heads={2 * self.model.config.kv_heads}", " queries=huge", " into=1"
        )
        width = len(one.rows) + n
        shown = "/".join("".join(str(self.number(0, 1)) for _ in range(width)) for _ in range(n))
        mask = self.of(
            "", "", " through causal & window=3", " through none", f" through {shown}" if width and n else ""
        )
        return f"attend {n} sequence={number}{how}{mask}"

    def _fork(self) -> str:
        """Fork a sequence at any row, mostly at its end."""
        number, one = self.some()
        return f"fork {number} {self.of(len(one.rows), len(one.rows), self.number(0, len(one.rows)))}"

    def _truncate(self) -> str:
        """Truncate a sequence to any row, mostly near its end."""
        number, one = self.some()
        length = len(one.rows)
        return f"truncate {number} {self.of(max(0, length - 1), self.number(0, length), 0)}"

    def _drop(self) -> str:
        """Drop a sequence."""
        return f"drop {self.some()[0]}"

    def _gather(self) -> str:
        """Gather through random pages, because the list model does not know which pages a sequence has."""
        last = self.model.total - 1
        table = [self.of(self.number(0, last), self.number(0, last), self.number(-1, last + 1)) for _ in range(3)]
        table = table[: self.number(1, 3)]
        room = len(table) * self.model.size
        n = self.of(self.number(0, room), self.number(0, room), self.of(room + 1, room + 1, -1))
        return f"gather {','.join(map(str, table))} {n}"

    def _misfit(self) -> str:
        """Append rows that do not fit."""
        return f"append 2 sequence={self.some()[0]} {self.of(*MISFITS)}"

    def _beyond(self) -> str:
        """Fork or truncate at a length that does not exist."""
        number, one = self.some()
        return f"{self.of('fork', 'truncate')} {number} {self.of(len(one.rows) + 1, len(one.rows) + 1, -1, FAR)}"

    def _gone(self) -> str:
        """Use a sequence that does not exist."""
        missing = next(
            n for n in range(len(self.model.all) + 1) if n >= len(self.model.all) or not self.model.all[n]
        )
        what = self.of("drop {}", "append 1 sequence={}", "fork {} 0", "truncate {} 0")
        return str(what.format(missing))

    def _peek(self) -> str:
        """Peek at any page."""
        return f"peek {self.number(-1, self.model.total)}"

    def _parcel(self) -> str:
        """Pack a sequence, go on, and unpack it to a new one; here, or in a pool of other pages and back."""
        number, one = self.some()
        between = self.of("", f"append 1 sequence={number}; ", f"truncate {number} 0; ", f"drop {number}; ")
        if self.number(0, 3) == 3:
            through = self.through_ranks(self.model.config.kv_heads, " sequence=0")
            return f"pack x sequence={number}; {through}; unpack w"
        first = f"pack x sequence={number}; {between}{self.carried(len(one.rows))}"
        if self.number(0, 2):
            return f"{first}; unpack y"
        return f"{first}; open C page_size={self.number(1, 5)} pages=9; C: unpack y; C: pack z sequence=0; unpack z"

    def _transfer(self) -> str:
        """Begin to send rows, or to expect some; or end what is in flight."""
        flying = self.model.in_flight
        if flying and self.number(0, 2):
            return self._ending(*self.of(*flying.items()))
        number, one = self.some()
        return self.of(f"send {number}", f"send {number}", f"expect {self.rows(one)}", f"lose {len(flying)}")

    def _ending(self, transfer: int, one: InFlight) -> str:
        """End a transfer as it should end, or otherwise."""
        if one.expected is None:
            return self.of(*[f"sent {transfer} v; unpack v"] * 3, f"sent {transfer} v", f"lose {transfer}")
        rows = one.expected + self.of(0, 0, 0, 1)
        brought = f"open C page_size=3 pages=9; C: admit; C: append {rows}; C: pack v sequence=0"
        late = f"lose {transfer}; arrive {transfer} v"
        come = self.of(
            *[f"arrive {transfer} v"] * 3, late, f"carry v u axes=BPNHD page=2 cut=1; arrive {transfer} u"
        )
        return f"{brought}; {come}"

    def _another(self) -> str:
        """Open a second pool with another page size, or use it beside the first."""
        if "B" not in self.session.caches:
            self.do(f"open B page_size={self.number(1, 5)} pages={self.number(2, 4)}")
            return "B: admit"
        return self.of("B: append 1", "B: append 3", "B: fork 0 1", "B: truncate 0 0", "B: admit")


class _Equal(_Drawing):
    """Draws whole pages of equal rows, and of rows that are equal in a part, which come and go."""

    def _append(self) -> str:
        """Append up to the end of a page, mostly a whole one, of any sort of rows."""
        number, one = self.some()
        size: int = self.model.size
        fill = self.of("alike", "alike", "legible", *ALIKE)
        return f"append {-len(one.rows) % size or self.of(size, size, 2 * size)} sequence={number} fill={fill}"

    def _empty(self) -> str:
        """Truncate a sequence to nothing, so that its pages are taken again."""
        return f"truncate {self.some()[0]} 0"


@st.composite
def equal_pages(draw: st.DrawFn) -> Trace:
    """Draw a trace in which most pages are equal to others, whole or in part."""
    sizes = draw(st.integers(1, 3)), draw(st.integers(3, 10))
    config = geometry(draw).changed(page_size=sizes[0], pages=sizes[1], kv_heads=draw(st.integers(1, 3)))
    drawing = _Equal(draw, Trace("page", config))
    drawing.do("admit")
    return drawing.until(draw(st.integers(4, LONGEST)), EQUAL)


EQUAL = (*("append",) * 8, *("empty", "admit") * 2, "drop", "fork", "truncate")
"""Kinds of operations in a trace of equal pages."""


EXPLORATIONS = (
    Exploration("page", (), explored),
    Exploration("equal", (), equal_pages),
    Exploration("attention", ("attention",), partial(explored, more=("attend",) * 5)),
    Exploration("rope", ("attention", "rope"), partial(explored, more=("attend",) * 5, turns=True)),
)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw a sequence, one that does not exist, and places inside and beyond what it holds; some pages."""
    pool = session.caches["A"]
    used = [number for number, one in enumerate(pool.all) if one]
    pages = [random.randrange(pool.total) for _ in range(2)]
    found: Numbers = {"gone": len(pool.all), "page": pages[0], "table": listed(pages), "room": pool.size + 1}
    found |= {"length": 0, "to": 1, "pages": len(pages) * pool.size + 1}
    if used:
        s = random.choice((used[0], used[-1], random.choice(used)))
        length = len(pool.all[s].rows)
        longest = max(used, key=lambda number: len(pool.all[number].rows))
        found |= {"s": s, "to": inside(length, random), "beyond": beyond(length, random)}
        found |= {"longest": longest, "length": len(pool.all[longest].rows)}
    return found | of_parcels(session) | _of_transfers(pool.in_flight, random)


def _of_transfers(flying: dict[int, InFlight], random: Random) -> Numbers:
    """Draw three transfers. One sends, one expects, with its rows and their pages of three, and one is over."""
    found: Numbers = {"over": next(n for n in range(len(flying) + 1) if n not in flying)}
    sending = [n for n, one in flying.items() if one.expected is None]
    coming = [(n, one.expected) for n, one in flying.items() if one.expected is not None]
    if sending:
        found["sending"] = random.choice(sending)
    if coming:
        n, rows = random.choice(coming)
        found |= {"coming": n, "expected": rows, "apart": -(-rows // 3) or 1}
    return found


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    size = min(scale.size(turn), 70)
    pages = max(4 * (scale.room // size + 2), scale.length // 4) + scale.batch
    begin = unseen(scale, "append {n} sequence=0")
    return scale.fields(f"page_size={size} pages={pages}"), "admit", begin, *["admit"] * scale.batch


WALKS = Moves(
    {
        ("page",): (
            "admit",
            "append {n} sequence={s}{fill}",
            "append 1 sequence={s}{fill}",
            "append {n} sequence={s} v_dim=3",
            "append 1 sequence={gone}",
            "fork {s} {to}",
            "fork {s} {to}; append 1 sequence={s}",
            "fork {s} {beyond}",
            "truncate {s} {to}",
            "truncate {s} {beyond}",
            "drop {s}",
            "drop {gone}",
            "gather {table} {room}",
            "gather {table} {pages}",
            "peek {page}",
            "scribble",
        )
    },
    _numbers,
    _sized,
)
