"""MOVE on layers: parcels of small layers in every state, and in other orders of layers. A part may be missing,
damaged or of another step. Some parcels are brought to layers of other views."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import layers
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, plan
from kvconform.generate.strategies.walk_moves import LATE
from kvspec.geometry import Config
from kvspec.operations.texts import APART, ORDERS, TOGETHER
from kvspec.session.driver import Session
from kvspec.trace import Trace

SMALL = (
    ("full,window:2", 3),
    ("sinks:1:2,chunk:2,share:0", 4),
    ("conv:2,state,window:3", 3),
    ("cross,full,cross", 1),
)
"""Layers, and the offset up to which their parcels are covered."""

OTHERS = (
    *("of=full layers=1", "of=full,full,full layers=3", "of=full,full layers=2", "of=window:4,window:1 layers=2"),
    *("of=state,full layers=2", "of=full,cross layers=1", "kv_heads=1", "dtype=f32", "k_dim=6 v_dim=8"),
    *("kind=growing", "kind=ring window=2"),
)
"""Caches that a parcel comes to: of other layers, of another geometry, and of another kind."""

DAMAGES = ("cut=1", "flip=3", "version=2")


def moves(bound: int, session: Session) -> list[str]:
    """Give the moves to other states, and parcels that come back in each order, in part, or elsewhere."""
    cache = session.caches["A"]
    left = bound - cache.offset
    encodes = ["encode 1", "encode 2"] * bool(cache.crossing)
    own = [*(f"append {n}" for n in (1, 2) if n <= left), "rewind 0", f"rewind {cache.offset - 1}", "free"]
    return [*own, *encodes, "pack x; unpack x", *_carried(), *_parts(), *map(_elsewhere, OTHERS)]


def _carried() -> list[str]:
    """Give parcels in each order of axes and of layers, and damaged ones."""
    orders = [
        f"pack x; carry x y axes={order} page={1 + i % 3} layers={('1,0,2', '2,1,0', '1,2,0')[i % 3]}; unpack y"
        for i, order in enumerate((*APART, *TOGETHER))
    ]
    return [*orders, *(f"pack x; carry x y axes={APART[1]} {damage}; unpack y" for damage in DAMAGES)]


def _parts() -> list[str]:
    """Give parcels without a layer, with one twice, and with a layer of another step or damaged."""
    first, others = f"carry x y axes={APART[0]} layers=0", f"z axes={APART[2]} page=2 layers=1,2"
    joined = "collect y z t; unpack t"
    return [
        f"pack x; {first}; unpack y",
        f"pack x; carry x y axes={APART[3]} layers=0,0; unpack y",
        f"pack x; {first}; carry x {others} flip=1; {joined}",
        f"pack x; {first}; append 1; pack w; carry w {others}; {joined}; rewind 0",
        f"open B; B: append 2; B: pack x; {first}; carry x {others}; {joined}; rewind 0",
    ]


def _elsewhere(other: str) -> str:
    """Bring a parcel to a cache that has rows, and what that packs back; neither may disturb the other."""
    return f"pack x; open B {other}; B: append 1; B: unpack x; B: append 1; B: pack y; unpack y; append 1; unpack x"


def of_ranks(session: Session) -> list[str]:
    """Give a few rows, and parcels that go through ranks."""
    ranks = "open B kv_heads=1 rank=0/2", "open C kv_heads=1 rank=1/2"
    each = "; ".join(f"{rank}; {x}: unpack x; {x}: pack {x.lower()}" for rank, x in zip(ranks, "BC", strict=True))
    ends = ("collect c b t", "carry b d axes=PKBHND layers=1,0; collect d c t", "collect b b t")
    room = session.caches["A"].offset < RANKED
    return ["rewind 0", *["append 1"] * room, *(f"pack x; {each}; {end}; unpack t" for end in ends)]


RANKED = 2
"""Largest offset of the layers whose heads go to ranks."""


def plans() -> list[Plan]:
    """Plan each of the small caches."""
    small = [
        plan(
            f"parcels layers of={of} offset<={bound}",
            Trace("layers", layers.opening(of)),
            *(partial(moves, bound), layers.continuations),
            look="scribble",
        )
        for of, bound in SMALL
    ]
    ranks = Trace("layers", layers.opening("window:2,state"))
    return [*small, plan("ranks layers", ranks, of_ranks, layers.continuations, look="scribble")]


KINDS = (*layers.KINDS, *("parcel",) * 6, "branch", "branch", "settle", "drafted")
"""Kinds of operations of an exploration. There are drafts too, which an unpack drops."""


class _Drawing(layers.Drawn):
    """Draws a trace on layers with parcels of them."""

    def _parcel(self) -> str:
        """Pack, go on, and unpack here or in a cache of other layers; mostly carried, seldom short of a layer."""
        between = self.of("", "append 1; ", "append 3; ", "free; ")
        end = f"append {self.of(1, 1, 2)}"
        if self.number(0, 3) == 3 and self.model.config.rank is None:
            return f"pack x; {self.through_ranks(self.model.config.kv_heads)}; {between}unpack w; {end}"
        carried = self.carried(self.model.offset) + self._layers()
        other = self.of("", "", "", "", self._other(), "kv_heads=5", "dtype=f32", "kind=growing")
        if not other:
            return f"pack x; {between}{carried}; unpack y; {end}"
        return f"pack x; {between}{carried}; open C {other}; C: unpack y; C: append 1; C: pack z; unpack z"

    def _drafted(self) -> str:
        """Unpack in place of drafts, and settle for one: it is not there."""
        return f"pack x; branch {self.of(1, 2)}; {self.of('unpack x', 'unpack x', 'free')}; settle 0; append 1"

    def _layers(self) -> str:
        """Name all layers in another order, or some of them."""
        count = len(self.model.sorts())
        turned = [(i + self.number(0, count)) % count for i in range(count)]
        chosen = self.of("", turned, list(reversed(range(count))), [self.number(0, count - 1)])
        return f" layers={','.join(map(str, chosen))}" if chosen else ""

    def _other(self) -> str:
        """The same number of layers, one of another view or all of them."""
        views = str(self.model.config.of).split(",")
        changed = self.number(0, len(views) - 1)
        new = self.of("full", f"window:{self.number(1, 5)}", f"chunk:{self.number(1, 5)}")
        of = ",".join(new if i == changed else view for i, view in enumerate(views))
        return f"of={of} layers={layers.count(of)}" if layers.proper(of) else f"of={new} layers=1"


@st.composite
def explored(draw: st.DrawFn) -> Trace:
    """Draw a trace on any layers."""
    return _traced(draw, draw(layers.configs()))


@st.composite
def explored_ranks(draw: st.DrawFn) -> Trace:
    """Draw a trace on the heads of a rank."""
    config = draw(layers.configs())
    first = draw(st.integers(0, 2))
    heads = first + config.kv_heads + draw(st.integers(0, 2))
    return _traced(draw, config.changed(rank=f"{first}/{heads}"))


def _traced(draw: st.DrawFn, config: Config) -> Trace:
    length = draw(st.integers(3, layers.LONGEST))
    return _Drawing(draw, Trace("layers", config)).until(length, layers.kinds(config, KINDS))


EXPLORATIONS = (
    Exploration("layers", ("layers",), explored, "layers"),
    Exploration("layers-of-ranks", ("layers",), explored_ranks, "layers"),
)

OTHERS_FIRST = "pack x; carry x y axes=PNBHD page=9 layers={rest}"
"""All parts but one."""

WALKED = (
    "pack x; append 1; unpack x; append 1",
    f"pack x; carry x y axes={ORDERS[3]} page=16 layers=2,1,0,3,4; free; unpack y; append {{n}}",
    f"pack x; carry x y axes={TOGETHER[1]} page=7; unpack y; append 1",
    "pack x; carry x y axes=BHDPN cut=1; unpack y",
    "pack x; carry x y axes=PBHND page=5 flip=999; unpack y",
    "pack x; carry x y axes=BHPND layers=0,1; unpack y",
    "pack x; branch 2 on=-1,-1; unpack x; branch 1; settle 0; append 1",
    f"pack {LATE}",
    f"unpack {{{LATE}}}",
    f"{OTHERS_FIRST}; carry {{{LATE}}} z axes=BPNHD page=5 layers={{late}}; collect y z w; unpack w",
    f"{OTHERS_FIRST}; carry {{{LATE}}} z axes={TOGETHER[0]} layers={{late}}; collect z y w; unpack w",
)
"""Moves of a walk. In the last two the part of a layer comes late: mostly it is of another step."""
