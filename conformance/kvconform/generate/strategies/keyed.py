"""KEY: every operation from every state of small pools, and random traces of requests that begin alike."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale
from kvref.list_model.keyed import Sequence_
from kvspec.geometry import Config
from kvspec.session.driver import Session
from kvspec.trace import Trace

COVERED = (
    (1, 2, 2, None, ("x", "xy chunk=1")),
    (2, 2, 1, None, ("xx", "xy salt=s", "xyx")),
    (2, 2, 2, "row", ("xy",)),
)
"""Rows of a page, pages, sequences, granule and requests of the covered pools."""

SALTED = ("salt=s", "adapter=s", "media=s@0", "media=s@1")
"""What keeps requests apart."""

LONGEST = 24
"""Most operations of a trace."""

NAMES = ("", "", "", "", " salt=s", " adapter=s", " salt=t", " adapter=t", " salt=s adapter=t")
"""Names that a request may have."""

ITEMS = ("p@0", "q@0", "p@1", "p@2", "p@0,q@1", "p@1,q@2", "p@3,q@3")
"""Items that a request may have."""


def moves(most: int, texts: tuple[str, ...], session: Session) -> list[str]:
    """Give the moves to other states, and those that stay in a state or return to it."""
    pool = session.caches["A"]
    found = ["evict 1", "clear"]
    if len(pool.in_use) < most:
        found += [f"request {tokens}" for tokens in texts]
    for number, one in sorted(pool.in_use.items()):
        found += [f"finish {number}", f"abort {number}", f"accept {number} 0"]
        found += [f"compute {number} 1"] if one.length < len(one.request.tokens) else []
        found += _longer(number, one, pool)
    return [*found, *_still(pool)]


def _longer(number: int, one: Any, pool: Any) -> list[str]:
    """Give moves that make a sequence longer, to three rows; where pages are shared in part, to two by answers."""
    longer = [f"answer {number} x", f"propose {number} y", f"propose {number} x; accept {number} 1"]
    return longer[: 1 if pool.rows else 3] if one.length < (2 if pool.rows else 3) else []


def _still(pool: Any) -> list[str]:
    """Give the moves that leave the pool as it is."""
    new = next(n for n in range(len(pool.in_use) + 1) if n not in pool.in_use)
    gone = [f"{x} {new}{y}" for x, y in (("finish", ""), ("abort", ""), ("accept", " 0"), ("compute", " 1"))]
    asked = [f"match xxy {name}" for name in SALTED] if len(pool.in_use) == 1 else []
    beyond = [f"accept {number} {n}" for number, one in pool.in_use.items() for n in (-1, len(one.proposed) + 1)]
    return [
        *gone,
        *asked,
        *beyond,
        "match -",
        f"answer {new} x",
        f"propose {new} x",
        "scribble",
        "request x media=p@1",
    ]


ASKED = "match xxxxx; match xyxxx; match xyyxx; match xxyxx; match xyxxx salt=s; match xyyxx salt=s"
"""What shows which rows can be found in a covered pool."""


def continuations(session: Session) -> list[str]:
    """Ask what is found, three times. The second time, a request has taken a free page, which shows their order.
    The third time, all requests have gone on and ended."""
    pool = session.caches["A"]
    number = next(n for n in range(len(pool.in_use) + 1) if n not in pool.in_use)
    taken = f"; request {'z' * pool.size}; {ASKED}; answer {number} zz" if pool.free_pages() else ""
    going = sorted(pool.in_use.items())
    on = (f"compute {n} 1; accept {n} {min(1, len(one.proposed))}; answer {n} x; finish {n}" for n, one in going)
    ends = "; ".join(on)
    return [f"{ASKED}{taken}", f"{ends}; {ASKED}" if ends else f"evict 1; {ASKED}"]


def plans() -> list[Plan]:
    """Plan one pool for each size."""
    return [_plan(*row) for row in COVERED]


def _plan(size: int, pages: int, most: int, granule: str | None, texts: tuple[str, ...]) -> Plan:
    start = Trace("keyed", Config(page_size=size, pages=pages, granule=granule))
    name = f"keyed page_size={size} pages={pages} granule={granule or 'page'} sequences<={most}"
    return plan(name, start, partial(moves, most, texts), continuations, look="scribble")


@st.composite
def configs(draw: st.DrawFn, pages: int = 12) -> Config:
    """Draw any geometry, mostly with short pages, and pools small enough to fill often."""
    return geometry(draw).changed(
        page_size=mostly(draw, st.integers(1, 4), st.sampled_from((5, 7, 8, 16))),
        pages=draw(st.integers(2, pages)),
        granule=draw(st.sampled_from((None, None, "page", "row"))),
    )


KINDS = (
    *("request",) * 8,
    *("finish", "match", "answer") * 3,
    *("compute", "propose", "accept") * 2,
    *("abort", "branch", "evict", "clear", "gone", "scribble", "senseless", "another"),
)
"""Kinds of operations. A kind listed more often is drawn more often."""


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace of requests that begin like others."""
    return _Drawing(draw, Trace("keyed", draw(configs()))).until(draw(st.integers(2, LONGEST)), KINDS)


class _Drawing(Drawing):
    """Draws a trace on a pool. The list model tells it each sequence's request and the free pages."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.texts = ["x", "xy"]
        """What was asked before: requests begin like these."""

    def some(self) -> tuple[int, Sequence_]:
        """Choose a sequence; begin one if there is none."""
        if not self.model.all:
            self.do("request x")
        number = self.of(*sorted(self.model.all))
        return number, self.model.all[number]

    def tokens(self) -> str:
        """Draw the tokens of a request: those of an earlier one, a part of them, or more behind them."""
        text = self.of(*self.texts[-6:])
        if self.of(False, False, True):
            text = text[: self.number(1, len(text))]
        more = self.number(0, min(self.model.size + 1, 9))
        text += "".join(self.of("x", "x", "y", "z") for _ in range(more))
        self.texts.append(text[: self.model.size * self.model.total + 1])
        return self.texts[-1]

    def _asked(self) -> str:
        """Draw a request as an operation names it."""
        text, names = self.tokens(), self.of(*NAMES)
        fitting = [item for item in ITEMS if max(int(x.partition("@")[2]) for x in item.split(",")) < len(text)]
        items = f" media={self.of(*fitting)}" if fitting and self.number(0, 3) == 3 else ""
        return f"{text}{names}{items}"

    def _request(self) -> str:
        """Make a request, in pieces or whole."""
        chunk = f" chunk={self.number(1, self.model.size + 1)}" if self.of(False, False, True) else ""
        return f"request {self._asked()}{chunk}"

    def _match(self) -> str:
        """Ask about a request."""
        return f"match {self._asked()}"

    def _more(self, operation: str) -> str:
        number, _ = self.some()
        count = self.of(1, 1, 2, self.model.size)
        text = "".join(self.of("x", "y") for _ in range(min(count, 5)))
        return f"{operation} {number} {text}"

    def _answer(self) -> str:
        """Add tokens."""
        return self._more("answer")

    def _propose(self) -> str:
        """Propose tokens."""
        return self._more("propose")

    def _accept(self) -> str:
        """Accept some of the proposed tokens, mostly not all; or one too many."""
        number, one = self.some()
        n = len(one.proposed)
        return f"accept {number} {self.of(0, n, max(0, n - 1), self.of(n, n + 1, -1))}"

    def _compute(self) -> str:
        """Go on with a request."""
        return f"compute {self.some()[0]} {self.of(1, self.model.size, 0, 99)}"

    def _finish(self) -> str:
        """End a sequence."""
        number, one = self.some()
        self.texts.append("".join(chr(97 + t) for t in one.request.tokens) or "x")
        return f"finish {number}"

    def _branch(self) -> tuple[str, ...]:
        """End a request, begin one that leaves its text somewhere, and ask for the rows of the first."""
        text = self.tokens()
        new = next(n for n in range(len(self.model.all) + 1) if n not in self.model.all)
        left = text[: self.number(0, len(text) - 1)]
        return f"request {text}", f"finish {new}", f"request {left}z", f"match {text}x"

    def _abort(self) -> str:
        """End a sequence that is not to be trusted."""
        return f"abort {self.some()[0]}"

    def _evict(self) -> str:
        """Evict pages."""
        return f"evict {self.of(1, 1, 2, 99, 0)}"

    def _clear(self) -> tuple[str, ...]:
        """Clear, mostly with no sequence in use."""
        ends = tuple(f"finish {number}" for number in sorted(self.model.all)) if self.of(True, True, False) else ()
        return *ends, "clear"

    def _gone(self) -> str:
        """Use a sequence that does not exist."""
        missing = next(n for n in range(len(self.model.all) + 1) if n not in self.model.all)
        return self.of(
            "finish {}", "abort {}", "compute {} 1", "answer {} x", "propose {} x", "accept {} 0"
        ).format(missing)

    def _senseless(self) -> str:
        """Ask for what no request can be."""
        return self.of("match -", "request -", "match x media=p@1", "request xy media=p@0,q@2")

    def _another(self) -> str:
        """Open a second pool, or use it beside the first."""
        if "B" not in self.session.caches:
            self.do(f"open B page_size={self.number(1, 5)} pages={self.number(2, 4)}")
        return self.of("B: request xy", "B: match xyx", "B: evict 1", "B: match x")


EXPLORATIONS = (Exploration("keyed", (), explored),)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw a sequence, one that does not exist, tokens that others have and tokens that none has."""
    pool = session.caches["A"]
    gone = next(n for n in range(len(pool.all) + 1) if n not in pool.all)
    size = pool.size
    n = random.choice((size, size + 1, 2 * size, 3 * size + 2, 1))
    found: Numbers = {"gone": gone, "n": n, "t": "xyz"[random.randrange(3)], "m": size}
    found |= {"one": random.choice("pq"), "at": random.choice((0, n - 1, n // 2))}
    if pool.all:
        found["s"] = random.choice(sorted(pool.all))
        found["k"] = len(pool.all[found["s"]].proposed)
    return found


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    size = min(scale.size(turn), 70)
    pages = max(12, 4 * (scale.room // size + 2))
    granule = ("granule=page", "granule=row")[turn % 2]
    begin = tuple(f"request {'xyz'[i % 3]}{size + 1}" for i in range(scale.batch))
    return scale.fields(f"page_size={size} pages={pages + 2 * scale.batch} {granule}"), *begin


WALKS = Moves(
    {
        ("keyed",): (
            "request x{n}{t}",
            "request y{n}x{m} chunk={m}",
            "request x{n}{t} salt={one}",
            "request x{n}{t} adapter={one}",
            "request x{n}{t} media={one}@{at}",
            "match x{n}{t}",
            "match x{n}{t} salt={one}",
            "match x{n}{t} media={one}@{at}",
            "match x{n}{t} adapter={one}",
            "compute {s} {m}",
            "answer {s} {t}",
            "propose {s} {t}{t}",
            "accept {s} {k}",
            "accept {s} 0",
            "finish {s}",
            "abort {s}",
            "finish {gone}",
            "compute {gone} 1",
            "evict 1",
            "clear",
            "scribble",
        )
    },
    _numbers,
    _sized,
)
