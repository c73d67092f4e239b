"""A whole system at once: layers that append, speculate, roll back and restore; a store with its batch; a buffer.

Most real bugs lie between two features. A is a growing cache, B and C are rings of different windows, D is a store
of several layers with a batch, E a buffer that rows are copied into: as many of them as the adapter declares. A
draw follows the list model, and steers to where a window fills, a store ends, a sequence is full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hypothesis import strategies as st

from kvconform.strategies.drawing import Drawing, geometry
from kvspec import notation
from kvspec.contract import PROFILES
from kvspec.geometry import CACHES, Config
from kvspec.trace import Trace

LONGEST = 24
"""Things a system does; each is one or several operations."""

NEEDS: dict[str, tuple[str, ...]] = {
    "tokens": (),
    "one": (),
    "rewind": (),
    "look": (),
    "clear": (),
    "mask": ("mask",),
    "round": ("draft",),
    "isolated": ("draft",),
    "snapshot": ("snapshot",),
    "restore": ("snapshot",),
    "plan": ("mem",),
    "fill": ("store",),
    "store": ("store",),
    "saved": ("store",),
    "batch": ("store", "batch"),
    "sequence": ("store", "batch"),
    "work": ("store", "batch"),
    "copy": ("copy",),
}
"""What a system may do, and the profiles it takes."""

OFTEN = ("tokens", "tokens", "round", "rewind", "restore", "batch", "sequence", "sequence", "copy")
"""What it does more often than the rest."""


def kinds(profiles: Collection[str]) -> tuple[str, ...]:
    """What an adapter of these profiles can be asked to do."""
    able = {kind for kind, needs in NEEDS.items() if set(needs) <= set(profiles)}
    return tuple(kind for kind in (*NEEDS, *OFTEN) if kind in able)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Small rows of any geometry, for all of the system."""
    return geometry(draw, widest=9).changed(step=draw(st.sampled_from((1, 2, 3, 256))))


@st.composite
def explored(draw: st.DrawFn, profiles: Collection[str] = PROFILES) -> Trace:
    """A trace of a whole system, with what is declared of it."""
    config = draw(configs())
    first = "growing" if "growing" in profiles else "ring"
    window = None if first == "growing" else draw(st.integers(1, 4))
    system = _System(draw, Trace(first, config.changed(window=window)), profiles)
    length, able = draw(st.integers(4, LONGEST)), kinds(profiles)
    for _ in range(length):
        system.add(draw(st.sampled_from(able)))
    return Trace(first, system.start.config, tuple(system.ops))


class _System(Drawing):
    """A system in the making."""

    def __init__(self, draw: st.DrawFn, start: Trace, profiles: Collection[str]) -> None:
        super().__init__(draw, start)
        self.start, self.profiles = start, profiles
        for text in self._opened():
            self.do(text)
        self.layers = [c for c, model in self.lists.caches.items() if model.profile in CACHES]

    def _opened(self) -> Iterator[str]:
        if "ring" in self.profiles:
            yield f"open B profile=ring window={self.number(1, 4)}"
            yield f"open C profile=ring window={self.number(2, 7)}"
        if "store" in self.profiles:
            yield f"open D profile=store layers={self.number(1, 3)} max_len={self.number(2, 7)}"
        if "copy" in self.profiles:
            yield f"open E profile=copy capacity={self.number(1, 6)} layout={self.of('token', 'head')}"

    def add(self, kind: str) -> None:
        """Let the system do one thing."""
        for text in getattr(self, f"_{kind}")():
            self.do(text)

    def do(self, text: str) -> None:
        """Add one operation, and follow it."""
        self.follow(notation.operation(text))

    def offset(self, layer: str) -> int:
        """Tokens in a layer."""
        return int(self.lists.caches[layer].offset)

    def rows(self, layer: str) -> int:
        """Rows to append: few, up to the fill of the window, or one beyond it."""
        window = self.lists.caches[layer].config.window or 3
        room = max(0, window - self.offset(layer))
        return int(self.of(1, 1, 2, room, room + 1, window, window + 1, 0))

    def _tokens(self) -> Iterator[str]:
        """A pass of n tokens through every layer."""
        n = self.rows(self.of(*self.layers))
        yield from (f"{layer}: append {n}" for layer in self.layers)

    def _one(self) -> Iterator[str]:
        layer = self.of(*self.layers)
        yield f"{layer}: append {self.rows(layer)}{self.of('', '', ' fill=bits', ' k_dim=11')}"

    def _rewind(self) -> Iterator[str]:
        """Every layer back to the same position, wherever one can."""
        least = min(map(self.offset, self.layers))
        to = self.of(max(0, least - 1), self.number(0, least), least, 0, least + 1)
        yield from (f"{layer}: rewind {to}" for layer in self.layers)

    def _look(self) -> Iterator[str]:
        layer = self.of(*self.layers)
        yield f"{layer}: {self.of('view', 'scribble', f'ask {self.number(-1, self.offset(layer) + 1)}')}"

    def _clear(self) -> Iterator[str]:
        if self.draw(st.booleans()):
            yield f"{self.of(*self.layers)}: free"

    def _mask(self) -> Iterator[str]:
        yield f"{self.of(*self.layers)}: mask {self.of('causal', 'none', 'causal & window=2')}"

    def _wrapped(self) -> str:
        """The layers of a round, one of them perhaps without a cache."""
        chosen = [layer for layer in self.layers if self.number(0, 3)] or self.layers[:1]
        return "".join(self.draw(st.permutations([*chosen, *self.of((), (), ("-",))])))

    def _drafts(self, name: str, wrapped: str) -> Iterator[str]:
        """Passes of drafts; of masks one where there are masks."""
        for _ in range(self.number(0, 3)):
            n = self.of(1, 1, 2, 3, 0)
            yield from (f"{layer}: draft {name} {n}" for layer in wrapped if layer != "-")
        if "mask" in self.profiles and self.draw(st.booleans()):
            yield f"{wrapped.strip('-')[0]}: mask round={name} {self.of('causal', 'window=2')}"

    def _round(self) -> Iterator[str]:
        """Drafts on every layer, other work meanwhile, and how many of them are kept."""
        wrapped = self._wrapped()
        yield f"speculate r {wrapped}"
        yield from self._drafts("r", wrapped)
        yield from getattr(self, f"_{self._meanwhile()}")()
        yield self.of("commit r 1", f"commit r {self.number(-1, 7)}", "commit r 0", "abandon r")
        if not self.number(0, 5):
            yield "commit r 1"

    def _meanwhile(self) -> str:
        """What is done while a round is open: work on what is not in it, or what is refused."""
        other = [k for k in kinds(self.profiles) if k in ("fill", "sequence", "copy", "look", "one")]
        return str(self.of(*other))

    def _isolated(self) -> Iterator[str]:
        """Drafts beside the live caches, which go on."""
        wrapped = self._wrapped()
        yield f"speculate i {wrapped} isolated=1"
        yield from self._drafts("i", wrapped)
        yield from self._tokens()
        yield from self._drafts("i", wrapped)
        yield self.of("abandon i", "commit i 1")

    def _snapshot(self) -> Iterator[str]:
        name = self.of("p", "q")
        yield from (f"{layer}: snapshot {name}{layer.lower()}" for layer in self.layers)

    def _restore(self) -> Iterator[str]:
        """Every layer to where it was saved, or to less."""
        names = {layer: f"{self.of('p', 'q')}{layer.lower()}" for layer in self.layers}
        there = {layer: name for layer, name in names.items() if name in self.lists.saved}
        for layer, name in there.items():
            saved = self.lists.saved[name]
            stop = saved.stop if saved else 0
            yield f"{layer}: restore {name} {self.of(stop, stop, max(0, stop - 1), stop + 1)}"
        if not there:
            yield from self._snapshot()

    def _plan(self) -> Iterator[str]:
        yield f"{self.of(*self.layers)}: plan {self.number(0, 9)}"
        yield f"{self.of(*self.lists.caches)}: fit {self.number(0, 1 << 20)} 1000"

    def _length(self) -> int:
        """The length of the longest layer of the store."""
        return max(int(layer.length) for layer in self.lists.caches["D"].layers)

    def _fill(self) -> Iterator[str]:
        room = int(self.lists.caches["D"].room) - self._length()
        layer = self.of("", "", f" layer={len(self.lists.caches['D'].layers) - 1}")
        yield f"D: append {self.of(1, 2, room, room + 1, 0)}{layer}"

    def _store(self) -> Iterator[str]:
        to = self.number(0, self._length() + 1)
        yield f"D: {self.of(f'rollback {to}', 'reset', f'setlength 0 {to}', 'zero', 'fingerprint 0')}"

    def _saved(self) -> Iterator[str]:
        if "s" not in self.lists.names["saved store"] or self.draw(st.booleans()):
            yield "D: save s"
        yield from self._fill()
        yield "D: load s"

    def _batch(self) -> Iterator[str]:
        yield from self._fill()
        yield f"D: batch {self.number(1, 4)}"
        yield from self._sequence()

    def _sequence(self) -> Iterator[str]:
        """Scatter, step, roll back, reset."""
        where, n = self.number(0, 3), self.number(0, self._length() + 1)
        layer = self.of("", "", " layer=0")
        yield self.of(f"D: scatter {where} {n}{layer}", "D: step", f"D: rollback {n} sequence={where}")
        yield self.of("D: step", "D: step", "D: resetbatch", "D: step v_dim=11")

    def _work(self) -> Iterator[str]:
        """Captured work replayed; at times after its batch is gone."""
        if "c" not in self.lists.names["captured work"] or self.draw(st.booleans()):
            yield "D: capture c"
        yield self.of("D: step", "D: step", "D: freebatch", "D: batch 4")
        if "c" in self.lists.names["captured work"]:
            yield "D: replay c"

    def _copy(self) -> Iterator[str]:
        capacity = self.lists.caches["E"].config.capacity or 1
        at, n = self.number(0, 2 * capacity), self.of(1, 2, capacity, capacity + 1, 0)
        yield self.of(f"E: copy {n} {at} sliding=1", f"E: copy {n} {at}")
        if self.draw(st.booleans()):
            yield f"E: alias 1 {at % capacity} {capacity - 1}"
