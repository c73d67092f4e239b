"""RAGGED: every operation from every state of small batches, and random traces on larger ones, with other
caches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from random import Random
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import LARGEST_WINDOW, geometry, mostly
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves, Numbers, Scale, inside, unseen
from kvspec.geometry import WORDS, Config
from kvspec.operations.table import listed
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUNDS = ((2, 2), (3, 1))
"""Sequences and rows of each that the covers go up to."""

WINDOWED = 2, 2, 2
"""Sequences, rows of each in a block, and the window of the covers over one."""

FAR = 1 << 31
"""Here a 32-bit integer changes its sign."""

MISFITS = ("kv_heads=1", "kv_heads=3", "k_dim=9", "v_dim=5", "dtype=f32", "batch=7", "values=0", "values=9")
"""Blocks of another geometry."""

ASKED = ("q_batch=7", "q_rows=0", "q_rows=2", "q_dim=9", "heads=3", "heads=0", "values=9")
"""Queries that do not fit a block of one column, and a block that does not."""

LONGEST = 24
"""Most operations of a trace."""

MOST = 6
"""Most sequences of a drawn cache."""


def moves(most: int, bound: int, session: Session) -> list[str]:
    """Give the moves to other states, and those that stay in a state or return to it."""
    cache = session.caches["A"]
    lengths, window = cache.sequences(), cache.config.window
    feeds = product(*(range(bound + 1 - (n if window is None else 0)) for n in lengths))
    trims = product(*(range(min(n, bound) + 1) for n in lengths))
    leading = [*(f"feed {listed(each)}" for each in feeds), *(f"trim {listed(each)}" for each in trims)]
    between = _between(len(lengths), bound, single(cache.config))
    return [*leading, *_rearranged(len(lengths), most), *between, *_still(lengths), *_windows(window)]


def single(config: Config) -> str:
    """Give the kind of the caches of one sequence that join, and that sequences are extracted into."""
    return "growing" if config.window is None else "ring"


def _windows(window: int | None) -> list[str]:
    """Give what is refused because of another window, or of none."""
    if window is None:
        return []
    others = [f"open B window={window + 1} batch=1; extend B"]
    alone = [f"kind=ring window={window + 1}", "kind=growing", "kind=ring batch=2"]
    joined = [f"open B batch=1 {other}; {what}" for other in alone[:2] for what in ("join B", "extract 0 B")]
    return [*others, *joined, f"open B {alone[2]}; join B"]


def _rearranged(now: int, most: int) -> list[str]:
    """Give every choice of different sequences, every reorder of at most two, and repeats within the bound."""
    kept = (o for n in range(1, now + 1) for o in product(range(now), repeat=n) if len(set(o)) == n)
    beams = product(range(now), repeat=now)
    repeats = [f"repeat {n}" for n in range(2, most // now + 1)]
    return [*(f"filter {listed(o)}" for o in kept), *(f"reorder {listed(o)}" for o in beams), *repeats]


def _between(now: int, bound: int, kind: str) -> list[str]:
    """Give the operations that take another cache; afterwards there are as many sequences as before."""
    back = f"filter {listed(range(now))}"
    other = f"open B batch=1; B: feed {bound}; extend B; {back}"
    opposite = [f"open B padding={side} batch=2; B: feed 1,0; extend B; {back}" for side in WORDS["padding"]]
    alone = f"open B kind={kind} batch=1"
    joins = [f"{alone}; B: append {n}; join {'B' * now}" for n in range(bound + 1)]
    extracts = [f"{alone}; B: append 1; extract {s} B; B: view; B: append 1; B: view" for s in range(now)]
    return [other, *opposite, f"extend A; {back}", *joins, *extracts]


def _still(lengths: Sequence[int]) -> list[str]:
    """Give moves that change nothing: refused, or empty."""
    now, none = len(lengths), [0] * len(lengths)
    vectors = [[*none, 0], none[1:], [-1, *none[1:]], [*none[1:], FAR]]
    trims = [
        f"trim {listed(each)}"
        for each in [*vectors, *([*none[:s], n + 1, *none[s + 1 :]] for s, n in enumerate(lengths))]
    ]
    feeds = [f"feed {listed(each)} n=1 batch={now}" for each in vectors]
    orders = [f"{op} {listed(o)}" for op in ("filter", "reorder") for o in ([], [now], [-1], [*range(now), -1])]
    wrong = [f"feed {listed([1] * now)} {misfit}" for misfit in MISFITS]
    numbers = [
        "repeat 0",
        "repeat 1",
        f"repeat {-FAR}",
        "extract 0 A",
        "join A",
        *(f"extract {n} A" for n in (now, -1, FAR)),
    ]
    asks = [f"attendblock {listed([1] * now)} {misfit}" for misfit in ASKED]
    return [
        *trims,
        *feeds,
        f"feed {listed(none)} n=2",
        f"attendblock {listed(none)} n=2",
        *orders,
        *wrong,
        *asks,
        *numbers,
        "scribble",
    ]


def continuations(session: Session) -> list[str]:
    """Feed every sequence a row: this shows where its earlier rows are."""
    return [f"feed {listed([1] * len(session.caches['A'].sequences()))}"]


def plans() -> list[Plan]:
    """Plan a few sequences of some rows, padded on either side."""
    sizes = [*((*bounds, None) for bounds in BOUNDS), WINDOWED]
    return [_plan(side, *each) for each in sizes for side in WORDS["padding"]]


def _plan(side: str, most: int, bound: int, window: int | None) -> Plan:
    start = Trace("ragged", Config(batch=most, padding=side, step=2, window=window))
    name = f"ragged padding={side}{f' window={window}' if window else ''} sequences<={most} rows<={bound}"
    return plan(name, start, partial(moves, most, bound), continuations, look="scribble")


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any geometry, a few sequences, a side, and a window as often as none."""
    windows = mostly(draw, st.integers(1, 5), st.integers(6, LARGEST_WINDOW))
    return geometry(draw).changed(
        window=windows if draw(st.booleans()) else None,
        batch=draw(st.integers(1, 4)),
        step=mostly(draw, st.integers(1, 6), st.sampled_from((8, 256))),
        padding=draw(st.sampled_from(WORDS["padding"])),
    )


KINDS = (
    *("feed",) * 6,
    *("asks",) * 3,
    *("trim", "filter", "reorder") * 2,
    *("repeat", "extend", "join", "extract", "scribble", "another"),
    *("misfit", "lengths", "beyond", "order"),
)
"""Kinds of operations. A kind listed more often is drawn more often."""


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace of all operations of a ragged cache A; B is another, C and D are growing caches."""
    return _Drawing(draw, Trace("ragged", draw(configs()))).until(draw(st.integers(2, LONGEST)), KINDS)


class _Drawing(Drawing):
    """Draws a trace. The list model tells it the rows of each sequence."""

    @property
    def lengths(self) -> list[int]:
        """The length of each sequence."""
        return [len(rows) for rows in self.model.all]

    def each(self, highest: Iterable[int]) -> list[int]:
        """Draw a number for each sequence, up to these; mostly small ones."""
        return [self.of(min(1, high), 0, min(2, high), self.number(0, high), high) for high in highest]

    def _feed(self) -> str:
        """Feed a block, sometimes of columns that nobody owns, or of arbitrary bits."""
        lengths = self.each([5] * len(self.lengths))
        lengths = self.of(lengths, lengths[-1:] * len(lengths))  # engines take blocks of equal lengths another way
        wider = self.of("", "", f" n={max(lengths) + self.number(0, 2)}")
        return f"feed {listed(lengths)}{wider}{self.of('', '', ' fill=bits')}"

    def _asks(self) -> str:
        """Feed a block whose columns ask, in as many heads as the rows have or more; or queries that do not fit."""
        lengths = self.each([5] * len(self.lengths))
        heads = self.of("", "", f" heads={2 * self.session.caches['A'].config.kv_heads}", f" {self.of(*ASKED)}")
        wider, beside = self.of("", f" n={max(lengths) + 1}"), self.of("", " beside=numbers")
        fill = self.of("", " fill=legible", " fill=fine", " fill=in_runs")
        return f"attendblock {listed(lengths)}{wider}{beside}{fill}{heads}"

    def _trim(self) -> str:
        """Trim sequences, mostly by little; as often all by the same count."""
        window = self.session.caches["A"].config.window
        whole = [n if window is None or n <= window else 0 for n in self.lengths]
        counts = self.each(self.of(whole, whole, whole, self.lengths))
        return f"trim {listed(self.of(counts, [min(counts)] * len(counts)))}"

    def _filter(self) -> str:
        """Keep some sequences, mostly most of them."""
        now = len(self.lengths)
        order = self.draw(st.permutations(range(now)))
        return f"filter {listed(order[: self.of(now, max(1, now - 1), self.number(1, now))])}"

    def _reorder(self) -> str:
        """Continue some sequences, some of them more than once."""
        now = len(self.lengths)
        return f"reorder {listed(self.number(0, now - 1) for _ in range(now))}"

    def _repeat(self) -> str:
        """Repeat the sequences, if there are few."""
        return f"repeat {self.number(1, max(1, MOST // len(self.lengths)))}"

    def _another(self) -> list[str]:
        """Open a second batch, of either side, or use it."""
        if "B" not in self.session.caches:
            return [f"open B batch={self.number(1, 2)} padding={self.of(*WORDS['padding'])}"]
        now = len(self.session.caches["B"].all)
        return [f"B: feed {listed(self.number(0, 4) for _ in range(now))}"]

    def _extend(self) -> list[str]:
        """Extend the cache by itself or by the second one, and keep it small."""
        others = [name for name in "AB" if name in self.session.caches]
        other = self.of(*others)
        now = len(self.lengths) + len(self.session.caches[other].all)
        more = [f"extend {other}"]
        return more if now <= MOST else [*more, f"filter {listed(range(now - MOST, now))}"]

    def _alone(self) -> list[str]:
        """Open a growing cache, or use it."""
        name = self.of("C", "D")
        if name not in self.session.caches:
            return [self._open_alone(name), f"{name}: append {self.number(0, 4)}"]
        offset = len(self.session.caches[name].tokens)
        return [self.of(f"{name}: append {self.number(0, 3)}", f"{name}: rewind {self.number(0, offset)}")]

    def _open_alone(self, name: str) -> str:
        return f"open {name} kind={single(self.session.caches['A'].config)} batch=1"

    def _join(self) -> list[str]:
        """Join growing caches, where there are some."""
        names = [name for name in "CD" if name in self.session.caches]
        if not names:
            return self._alone()
        return ["join " + "".join(self.of(*names) for _ in range(self.number(1, 3))), *self._alone()]

    def _extract(self) -> list[str]:
        """Extract a sequence into a growing cache, and use that."""
        name = self.of("C", "D")
        opened = [] if name in self.session.caches else [self._open_alone(name)]
        which = self.number(0, len(self.lengths) - 1)
        return [*opened, f"extract {which} {name}", f"{name}: view", f"{name}: append 1", f"{name}: view"]

    def _misfit(self) -> str:
        """Feed a block that does not fit."""
        return f"feed {listed([1] * len(self.lengths))} {self.of(*MISFITS)}"

    def _lengths(self) -> str:
        """Feed lengths that do not fit the block."""
        now = len(self.lengths)
        lengths = [1] * now
        lengths[self.number(0, now - 1)] = self.of(-1, 3, FAR, -FAR)
        wrong = self.of(lengths, lengths, [1] * (now + 1), [1] * (now - 1))
        return f"feed {listed(wrong)} n=2 batch={now}"

    def _beyond(self) -> str:
        """Trim one sequence by more rows than it has."""
        counts = [0] * len(self.lengths)
        which = self.number(0, len(counts) - 1)
        counts[which] = self.of(self.lengths[which] + 1, -1, FAR)
        return f"trim {listed(self.of(counts, counts, [*counts, 0], counts[1:]))}"

    def _order(self) -> str:
        """List sequences that do not exist, too few, or too many."""
        now, alone = len(self.lengths), [name for name in "CD" if name in self.session.caches]
        return self.of(
            f"filter {self.of(now, -1, FAR, 'empty')}",
            f"reorder {listed(self.of([0] * (now + 1), [0] * (now - 1), [now] * now))}",
            f"repeat {self.of(0, -1)}",
            *(f"extract {self.of(now, -1)} {name}" for name in alone[:1]),
        )


EXPLORATIONS = (Exploration("ragged", (), explored),)


def _numbers(session: Any, random: Random) -> Numbers:
    """Draw lists for all sequences: rows, rows back, choices of them."""
    lengths = session.caches["A"].sequences()
    now, rows = len(lengths), random.choice((1, 2, 3, 5))
    found: Numbers = {"list": listed(random.choice((0, 1, rows, rows)) for _ in lengths)}
    window = session.caches["A"].config.window
    whole = [n if window is None or n <= window else 0 for n in lengths]
    found |= {"back": listed(random.choice((0, min(1, n), inside(n, random))) for n in whole)}
    found |= {"beyond": listed([*lengths[:-1], lengths[-1] + 1]), "length": max(lengths), "gone": now}
    kept = random.sample(range(now), max(2, now - random.choice((0, 1, 2)))) if now > 2 else range(now)
    found |= {"order": listed(kept), "beams": listed(random.randrange(now) for _ in lengths)}
    found |= {"whole" if window is None else "windowed": random.randrange(now)}
    return found | ({"twice": 2} if now <= MOST else {})


def _sized(scale: Scale, turn: int) -> tuple[str, ...]:
    batch = max(3, scale.batch)
    most = listed([scale.at_once, *[1] * (batch - 1)])
    window = f" window={scale.size(turn)}" if (turn + scale.batch) % 2 else ""  # of some scales, and in turn
    fields = scale.fields(f"batch={batch} padding={WORDS['padding'][turn % 2]}{window}")
    return fields, unseen(scale, f"feed {most}")


WALKS = Moves(
    {
        ("ragged",): (
            "feed {list}{fill}",
            "feed {list}",
            "feed {list} v_dim=3",
            "attendblock {list}",
            "attendblock {list} heads={heads} fill=fine beside=numbers",
            "attendblock {list} q_dim=3",
            "trim {back}",
            "trim {beyond}",
            "filter {order}",
            "filter {gone}",
            "reorder {beams}",
            "reorder {gone}",
            "repeat {twice}; filter {order}",
            "repeat 1",
            "repeat 0",
            "open B batch=2; B: feed 1,2; extend B; filter {order}",
            "open B batch=2; B: feed 2,1; extend B",
            "extract {gone} A",
            "open B kind=growing batch=1; extract {whole} B; B: append 2; B: view",
            "open B kind=ring batch=1; extract {windowed} B; B: append 2; B: append 1; B: view",
            "scribble",
        ),
    },
    _numbers,
    _sized,
)
