"""SNAP: one snapshot of a small cache. Splits, merges and a second cache are moves that keep the state.
Explorations draw any of these, and several snapshots alive at once, restored in any order."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from kvconform.generate.strategies import cache_moves, layers
from kvconform.generate.strategies.configs import configs
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.strategies.plan_moves import Plan, name, plan
from kvconform.generate.strategies.trace_builder import Drawing
from kvconform.generate.strategies.walk_moves import Moves
from kvspec.geometry import Config
from kvspec.operations.table import caches_with
from kvspec.session.driver import Session
from kvspec.trace import Trace

BOUND = 2

LONGER = "; ".join(
    f"B: {op}"
    for op in (
        *("append 3", "snapshot t 1", "split t 2 p q", "restore p 2", "append 1", "restore q 3"),
        *("snapshot t", "split t 2 p q", "merge p q t", "split t 1 p q", "restore q 3"),
    )
)
"""Snapshots of three rows, from the first on and from the second, cut between them: no cache within the bound has
that many."""


def moves(session: Session) -> list[str]:
    """Give moves that change the cache, and moves on a snapshot `s` of it."""
    cache = session.caches["A"]
    full = getattr(cache, "window", None) or getattr(cache, "most", None)
    sizes = {1, full + 1} if full else {n for n in (1, 2) if cache.offset + n <= BOUND}
    base = [*(f"append {n}" for n in sorted(sizes)), f"rewind {cache.offset - 1}", "rewind 0", "free"]
    taken = [f"snapshot s {start}" for start in sorted({-1, 1, cache.offset})]
    return [*base, *taken, *_with(session)]


def _with(session: Session) -> list[str]:
    if "s" not in session.snapshots:
        return [f"open B; {LONGER}"]
    saved = session.snapshots["s"]
    if saved is None:
        return ["restore s 0", "split s 1 p q", "merge s s s"]
    if saved.gone:
        return ["restore s 0", "split s 1 p q", "merge s s m", "close s"]
    restores = [f"restore s {t}" for t in sorted({-1, 0, *range(saved.start, saved.stop + 2)})]
    return [*restores, *_pieces(saved), *_elsewhere(saved), "close s"]


def _pieces(saved: Any) -> list[str]:
    """Split and merge, and restore piece by piece. Then merge what is refused: pieces that do not meet, a piece
    with itself, a missing piece."""
    cuts, inner = range(saved.start - 1, saved.stop + 2), range(saved.start + 1, saved.stop)
    whole = [f"split s {at} p q; merge p q s" for at in cuts]
    parts = [f"split s {at} p q; restore p {at}; append 1; restore q {saved.stop}" for at in inner]
    unlike = ["merge s s m", "snapshot t; merge t s m", "snapshot t; merge s t m"]
    return [*whole, *parts, *unlike, f"snapshot t {1 << 20}; merge t s s"]


def _elsewhere(saved: Any) -> list[str]:
    """Restore the snapshot into another cache; neither may disturb the other. Another geometry must refuse it."""
    to = saved.stop
    return [
        f"open B; B: append 1; B: restore s {to}; B: append 1; append 1; B: append 2; restore s {to}",
        f"open B kv_heads=3; B: append 1; B: restore s {to}; B: merge s s m; B: split s 0 p q; B: append 1",
    ]


def continuations(session: Session) -> list[str]:
    """Give appends that show the cache's state, then restore the snapshot: it must not have changed."""
    saved, cache = session.snapshots.get("s"), session.caches["A"]
    after = "append 1; append 1; view"
    if "s" not in session.snapshots:
        return [after, "append 2"]
    if saved is None or saved.gone:
        return [f"restore s 0; close s; {after}" if saved else f"restore s {cache.offset}; {after}"]
    last = f"rewind 0; restore s {saved.stop}" if cache.kind == "growing" else f"restore s {saved.stop - 1}"
    return [f"{after}; restore s {saved.stop}; append 1; append 2; {last}"]


def plans() -> list[Plan]:
    """Plan small growing caches, rings, and layers."""
    starts = [Trace("growing", Config(step=2))]
    starts += [Trace("ring", Config(window=w, step=s)) for w, s in ((1, 256), (2, 1))]
    starts += [
        Trace("sink", Config(window=2, sinks=1)),
        Trace("sink", Config(window=1, sinks=1, beside=1, shifted=1)),
    ]
    alone = [plan(f"snapshot {_named(t)}", t, moves, continuations, snapshots=("s",)) for t in starts]
    return [*alone, *(_of_layers(of, bound) for of, bound in LAYERS)]


def _named(start: Trace) -> str:
    """Name a cache; tell apart those whose positions are shifted."""
    return name(start, BOUND) + (" shifted" if start.config.shifted else "")


LAYERS = (("full,window:2", 3), ("chunk:2,sinks:1:1,share:0", 3), ("state,conv:2", 3), ("full,cross", 1))
"""Layers, and the offset up to which they are saved and put back."""


def _of_layers(of: str, bound: int) -> Plan:
    start, parts = Trace("layers", layers.opening(of)), (partial(moves_of_layers, bound), continuations_of_layers)
    return plan(f"snapshot layers of={of} offset<={bound}", start, *parts, look="scribble", snapshots=("s",))


def moves_of_layers(bound: int, session: Session) -> list[str]:
    """Give appends, rewinds and `free`, a snapshot, and every restore of it, also into another cache."""
    offset = session.caches["A"].offset
    base = [*(f"append {n}" for n in (1, 2) if offset + n <= bound), f"rewind {offset - 1}", "rewind 0", "free"]
    base += ["encode 2"] * bool(session.caches["A"].crossing)
    base += ["snapshot s", f"snapshot t {offset}", "snapshot t 1"]
    if "s" not in session.snapshots:
        return base
    saved = session.snapshots["s"]
    stop = 0 if saved is None or saved.gone else saved.stop
    restores = [f"restore s {to}" for to in range(-1, stop + 2)]
    if not stop:
        return [*base, *restores, *(["close s"] if saved else [])]
    elsewhere = [
        f"open B; B: append 1; B: restore s {stop}; B: append 2",
        f"open B of=full,full layers=2; B: append 1; B: restore s {stop}; B: append 1",
    ]
    return [*base, *restores, *elsewhere, "close s"]


def continuations_of_layers(session: Session) -> list[str]:
    """Give appends that show what each layer has; then put the snapshot back, which must not have changed."""
    if "s" not in session.snapshots:
        return layers.continuations(session)
    saved, offset = session.snapshots["s"], session.caches["A"].offset
    if saved is None or saved.gone:
        first = "restore s 0; close s" if saved else f"restore s {offset}"
        return [f"{first}; {after}" for after in layers.continuations(session)]
    back = f"restore s {saved.stop}; append 1"
    return [f"{after}; scribble; {back}; restore s 0; append 2" for after in layers.continuations(session)]


MOST = 6
"""Most snapshots that `several` draws."""


@st.composite
def several(draw: st.DrawFn, kind: str) -> Trace:
    """Draw several snapshots, mostly from late starts. Each is restored once, in any order."""
    drawing = _Several(draw, Trace(kind, draw(configs(kind))))
    names = [f"s{i}" for i in range(draw(st.integers(2, MOST)))]
    for saved in names:
        drawing.save(saved)
    for saved in draw(st.permutations(names)):
        drawing.bring_back(saved)
    return drawing.trace()


class _Several(Drawing):
    """Draws a trace with several snapshots alive."""

    def save(self, saved: str) -> None:
        """Append a few rows, and take a snapshot."""
        self.do(f"append {self.of(1, 2, 3)}")
        last = self.model.offset - 1
        self.do(f"snapshot {saved} {self.of(last, last // 2, self.number(0, last), 0)}")

    def bring_back(self, saved: str) -> None:
        """Go back, mostly below its start, and beyond it by short appends; then restore it, and go on."""
        start, stop = self.session.snapshots[saved].start, self.session.snapshots[saved].stop
        self.do(self._back(start))
        appends = self.number(2, 5)
        while appends > 0 or self.model.offset < start:
            self.do(f"append {self.of(1, 1, 2)}")
            appends -= 1
        self.do(f"restore {saved} {self.of(stop, stop, stop, self.number(start, stop))}; append 1")

    def _back(self, start: int) -> str:
        """A rewind; free a ring that may no longer rewind."""
        offset, window = self.model.offset, self.model.config.window
        if window and offset > window:
            return "free"
        below = min(offset, self.number(0, start))
        return f"rewind {self.of(below, below, offset)}"


EXPLORATIONS = (
    *(cache_moves.on_cache(kind, cache_moves.SNAPSHOTS) for kind in caches_with("restore")),
    *(Exploration(f"several/{kind}", (kind,), partial(several, kind), kind) for kind in caches_with("restore")),
    *(
        cache_moves.on_cache(kind, cache_moves.EVERYTHING, f"everything/{kind}", "mask")
        for kind in caches_with("restore")
    ),
    Exploration("layers", ("layers",), layers.explored_saved, "layers"),
)

WALKS = Moves(
    {
        ("growing", "ring", "sink"): (
            "snapshot s",
            "snapshot s {to}",
            "restore s {stop}",
            "restore s {later}",
            "restore s {stop}; rewind {to}",
            "snapshot t; split t {to} p q; merge p q s",
            "snapshot t {half}; split t {late} p q; merge p q u; rewind {half}; restore u {length}; append 1",
            "snapshot v; close v; restore v 1",
        ),
        ("layers",): (
            "snapshot s",
            "restore s {stop}; append 1",
            "restore s {within}; append 1",
            "restore s {later}",
            "open B; B: restore s {stop}; B: append {n}",
            "snapshot v; close v; restore v 1",
        ),
    }
)
