"""A whole system at once: layers that append, speculate, roll back and restore, a store with its batch, and others.

Most real bugs lie between two features. A trace has those of these caches that the adapter declares:

- A: a growing cache.
- B and C: rings of different windows.
- D: a store of several layers with a batch.
- E: a buffer that rows are copied into.
- F: a pool of pages.
- G: a bucketed cache of several layers.
- H: a padded batch whose sequences come from A and go to I.
- J: a cache with sinks.
- K: a pool that finds rows again.
- L: a cache of layers.

A draw follows the list model and steers to boundaries: a full window, the end of a store, a full sequence, a pool
without free pages, a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry
from kvconform.generate.strategies.layers import count
from kvconform.generate.strategies.trace_builder import Drawing
from kvspec.contract import CHAPTERS
from kvspec.geometry import WORDS, Config
from kvspec.operations.table import listed
from kvspec.registry import CACHES
from kvspec.trace import Trace

LONGEST = 24
"""Most pieces of work in a trace. Each is one or several operations."""

WORK = (
    ("tokens one rewind look clear", ()),
    ("mask", ("mask",)),
    ("round isolated", ("draft",)),
    ("snapshot restore", ("snapshot",)),
    ("plan", ("mem",)),
    ("fill store saved", ("store",)),
    ("batch sequence work", ("store", "batch")),
    ("copy", ("copy",)),
    ("attend", ("attention",)),
    ("layer", ("store", "attention")),
    ("asked", ("store", "batch", "attention")),
    ("graph", ("store", "attention")),
    ("turned", ("attention", "rope")),
    ("rotate", ("rope",)),
    ("request pages table", ("page",)),
    ("filled decoded verified encoded", ("bucket",)),
    ("padded beams", ("ragged",)),
    ("joined", ("growing", "ragged")),
    ("sinks", ("sink",)),
    ("asked_for lives", ("keyed",)),
    ("ways deeper", ("layers",)),
)
"""Kinds of work, and the chapters that they need."""

OFTEN = "tokens tokens store round rewind restore batch sequence sequence copy request pages pages"
"""Kinds of work that are drawn more often than the rest."""


def kinds(chapters: Collection[str]) -> tuple[str, ...]:
    """List the kinds of work that an adapter of these chapters can do."""
    able = [kind for names, needs in WORK if set(needs) <= set(chapters) for kind in names.split()]
    return (*able, *(kind for kind in OFTEN.split() if kind in able))


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw small rows of any geometry, for the whole system."""
    return geometry(draw, widest=9).changed(step=draw(st.sampled_from((1, 2, 3, 256))))


@st.composite
def explored(draw: st.DrawFn, chapters: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace of a whole system, with the parts that the adapter declares."""
    config = draw(configs())
    first = "growing" if "growing" in chapters else "ring"
    window = None if first == "growing" else draw(st.integers(1, 4))
    system = _System(draw, Trace(first, config.changed(window=window)), chapters)
    return system.times(draw(st.integers(4, LONGEST)), kinds(chapters))


class _System(Drawing):
    """Draws the trace of a system."""

    def __init__(self, draw: st.DrawFn, start: Trace, chapters: Collection[str]) -> None:
        super().__init__(draw, start)
        self.chapters = chapters
        for text in self._opened():
            self.do(text)
        self.layers = [c for c, model in self.session.caches.items() if c < "D" and model.kind in CACHES]

    def _opened(self) -> Iterator[str]:
        if "ring" in self.chapters:
            yield f"open B kind=ring window={self.number(1, 4)}"
            yield f"open C kind=ring window={self.number(2, 7)}"
        if "store" in self.chapters:
            yield f"open D kind=store layers={self.number(1, 3)} max_len={self.number(2, 7)}"
        if "bucket" in self.chapters:
            yield f"open G kind=bucket layers={self.number(1, 3)} bounds={self.of('1-2-4', '2-3', '3')}"
        if "copy" in self.chapters:
            yield f"open E kind=copy capacity={self.number(1, 6)} layout={self.of('token', 'head')}"
        if "page" in self.chapters:
            pages = f"page_size={self.number(1, 3)} pages={self.number(1, 6)}{self.of('', ' debug=1')}"
            yield f"open F kind=page {pages}"
        if "ragged" in self.chapters:
            yield f"open H kind=ragged batch={self.number(1, 3)} padding={self.of(*WORDS['padding'])}"
        if {"growing", "ragged"} <= set(self.chapters):
            yield "open I kind=growing"
        if "sink" in self.chapters:
            yield f"open J kind=sink window={self.number(3, 5)} sinks={self.number(1, 2)}"
        if "keyed" in self.chapters:
            sizes = f"page_size={self.number(1, 3)} pages={self.number(3, 8)}"
            yield f"open K kind=keyed {sizes}{self.of('', ' granule=row')}"
        if "layers" in self.chapters:
            of = self.of("full,window:2,state", "chunk:2,sinks:1:2,share:0", "conv:3,full,cross")
            yield f"open L kind=layers of={of} layers={count(of)} batch=1"

    def offset(self, layer: str) -> int:
        """Count the tokens in a layer."""
        return int(self.session.caches[layer].offset)

    def rows(self, layer: str) -> int:
        """Draw how many rows to append: few, up to the window's fill, or one beyond it."""
        window = self.session.caches[layer].config.window or 3
        room = max(0, window - self.offset(layer))
        return self.of(1, 1, 2, room, room + 1, window, window + 1, 0)

    def _sinks(self) -> Iterator[str]:
        """Append beside sinks, and ask for positions or go back."""
        offset = self.offset("J")
        yield f"J: append {self.of(1, 1, 2, 5, 0)}{self.of('', ' fill=bits')}"
        yield f"J: {self.of('positions', 'view', f'rewind {self.number(0, offset)}', 'free')}"

    def _padded(self) -> Iterator[str]:
        """Feed a block to the batch, perhaps one whose columns ask, and trim it."""
        lengths = self.session.caches["H"].sequences()
        block = self.of("feed", "feed", "attendblock")
        more = self.of("", "", " n=4", " fill=bits" if block == "feed" else " beside=numbers")
        yield f"H: {block} {listed(self.number(0, 3) for _ in lengths)}{more}"
        yield f"H: trim {listed(self.number(0, min(2, n)) for n in lengths)}"

    def _beams(self) -> Iterator[str]:
        """Rearrange the batch, and keep it small."""
        now = len(self.session.caches["H"].sequences())
        beams = listed(self.number(0, now - 1) for _ in range(now))
        yield f"H: {self.of(f'reorder {beams}', 'repeat 2', 'extend H')}"
        yield f"H: filter {listed(range(self.number(1, min(now, 3))))}"

    def _joined(self) -> Iterator[str]:
        """Make the rows of A a sequence, and those of a sequence the rows of I."""
        yield f"H: {self.of('join A', 'join AI', 'join AA')}"
        yield "H: extract 0 I"
        yield f"I: {self.of('append 1', 'view', 'rewind 0')}"

    def _tokens(self) -> Iterator[str]:
        """Pass n tokens through every layer."""
        n = self.rows(self.of(*self.layers))
        yield from (f"{layer}: append {n}" for layer in self.layers)

    def _one(self) -> Iterator[str]:
        layer = self.of(*self.layers)
        yield f"{layer}: append {self.rows(layer)}{self.of('', '', ' fill=bits', ' k_dim=11')}"

    def _rewind(self) -> Iterator[str]:
        """Rewind every layer that can to the same position."""
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
        """Choose the layers of a round, one of them perhaps without a cache."""
        chosen = [layer for layer in self.layers if self.number(0, 3)] or self.layers[:1]
        return "".join(self.draw(st.permutations([*chosen, *self.of((), (), ("-",))])))

    def _drafts(self, name: str, wrapped: str) -> Iterator[str]:
        """Pass drafts through the layers; with masks, some side by side, and ask for one."""
        for _ in range(self.number(0, 3)):
            n = self.of(1, 1, 2, 3, 0)
            beside = f" on={listed([-1] * n)}" if "mask" in self.chapters and not self.number(0, 3) else ""
            yield from (f"{layer}: draft {name} {n}{beside}" for layer in wrapped if layer != "-")
        if "mask" in self.chapters and self.draw(st.booleans()):
            yield f"{wrapped.strip('-')[0]}: mask round={name} {self.of('causal', 'window=2')}"

    def _round(self) -> Iterator[str]:
        """Draft on every layer, do other work meanwhile, and keep some of the drafts."""
        wrapped = self._wrapped()
        yield f"speculate r {wrapped}"
        yield from self._drafts("r", wrapped)
        yield from getattr(self, f"_{self._meanwhile()}")()
        yield self.of("commit r 1", f"commit r {self.number(-1, 7)}", "commit r 0", "abandon r", "choose r 0")
        if not self.number(0, 5):
            yield "commit r 1"

    def _meanwhile(self) -> str:
        """Work while a round is open: on caches outside it, or refused operations on those in it."""
        other = [k for k in kinds(self.chapters) if k in ("fill", "sequence", "copy", "look", "one")]
        return self.of(*other)

    def _isolated(self) -> Iterator[str]:
        """Draft in isolation while the live caches go on."""
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
        """Restore every layer to where it was saved, or to less."""
        names = {layer: f"{self.of('p', 'q')}{layer.lower()}" for layer in self.layers}
        there = {layer: name for layer, name in names.items() if name in self.session.snapshots}
        for layer, name in there.items():
            saved = self.session.snapshots[name]
            stop = saved.stop if saved else 0
            yield f"{layer}: restore {name} {self.of(stop, stop, max(0, stop - 1), stop + 1)}"
        if not there:
            yield from self._snapshot()

    def _plan(self) -> Iterator[str]:
        yield f"{self.of(*self.layers)}: plan {self.number(0, 9)}"
        yield f"{self.of(*self.session.caches)}: fit {self.number(0, 1 << 20)} 1000"

    def _length(self) -> int:
        """Give the length of the store's longest layer."""
        return max(int(layer.length) for layer in self.session.caches["D"].layers)

    def _fill(self) -> Iterator[str]:
        room = int(self.session.caches["D"].room) - self._length()
        layer = self.of("", "", f" layer={len(self.session.caches['D'].layers) - 1}")
        yield f"D: append {self.of(1, 2, room, room + 1, 0)}{layer}"

    def _store(self) -> Iterator[str]:
        to = self.number(0, self._length() + 1)
        yield f"D: {self.of(f'rollback {to}', 'reset', f'setlength 0 {to}', 'zero', 'fingerprint 0')}"

    def _saved(self) -> Iterator[str]:
        if "s" not in self.session.names["saved store"] or self.draw(st.booleans()):
            yield "D: save s"
        yield from self._fill()
        yield "D: load s"

    def _batch(self) -> Iterator[str]:
        yield from self._fill()
        yield f"D: batch {self.number(1, 4)}"
        yield from self._sequence()

    def _sequence(self) -> Iterator[str]:
        """Scatter, step, roll back or reset."""
        where, n = self.number(0, 3), self.number(0, self._length() + 1)
        layer = self.of("", "", " layer=0")
        yield self.of(f"D: scatter {where} {n}{layer}", "D: step", f"D: rollback {n} sequence={where}")
        yield self.of("D: step", "D: step", "D: resetbatch", "D: step v_dim=11")

    def _work(self) -> Iterator[str]:
        """Replay captured work; at times after its batch is gone."""
        if "c" not in self.session.names["captured work"] or self.draw(st.booleans()):
            yield "D: capture c"
        yield self.of("D: step", "D: step", "D: freebatch", "D: batch 4")
        if "c" in self.session.names["captured work"]:
            yield "D: replay c"

    def _turned(self) -> Iterator[str]:
        """Pass n tokens with RoPE, with a base for each layer; at times to one layer too many."""
        n, pairing = self.rows(self.of(*self.layers)), self.of("neox", "norm")
        bases = self.of("", " base=500000"), "", self.of("", " base=7")
        yield from (f"{a}: attend {n} rope={pairing}{b}" for a, b in zip(self.layers, bases, strict=False))
        if "store" in self.chapters:
            yield f"D: attend {self.of(1, 2)} layer=0 rope={pairing}"

    def _rotate(self) -> Iterator[str]:
        """Rotate rows on some cache, at times by the offset of the first layer."""
        cache = self.of(*self.session.caches)
        by = self.of("", " by=-3", f" by={self.offset(self.layers[0])}")
        yield f"{cache}: rotate {self.number(0, 3)} {self.of(0, 1, 70000)} pairing={self.of('norm', 'neox')}{by}"

    def _filled(self) -> Iterator[str]:
        """Fill the host's rows, or sync them from the device; at times install them."""
        back = max(0, self.session.caches["G"].past() - 1)
        yield self.of("G: sync", f"G: prefill {self.number(0, 5)}", f"G: cut {back}")
        yield self.of("G: bind refresh=1", "G: sync", "G: bind", "G: unbind")

    def _decoded(self) -> Iterator[str]:
        """Decode steps, after the work they may need first."""
        refresh = " refresh=1" * self.session.caches["G"].stale
        yield from (f"G: decode{refresh if i == 0 else ''}" for i in range(self.number(1, 3)))

    def _verified(self) -> Iterator[str]:
        """Verify a block, mostly with the reset after it."""
        yield f"G: block {self.number(1, 3)}"
        yield self.of("G: unbind", "G: unbind", "G: decode")

    def _encoded(self) -> Iterator[str]:
        yield self.of(f"G: encode {self.number(0, 4)}", "G: cross 2")
        yield f"G: cross {self.number(1, 2)}"

    def _copy(self) -> Iterator[str]:
        capacity = self.session.caches["E"].config.capacity or 1
        at, n = self.number(0, 2 * capacity), self.of(1, 2, capacity, capacity + 1, 0)
        yield self.of(f"E: copy {n} {at} sliding=1", f"E: copy {n} {at}")
        if self.draw(st.booleans()):
            yield f"E: alias 1 {at % capacity} {capacity - 1}"

    def _request(self) -> Iterator[str]:
        """Admit or fork a sequence, or drop one."""
        used = [(number, len(one.rows)) for number, one in enumerate(self.session.caches["F"].all) if one]
        number, rows = self.of(*used, (len(used), 0))
        shared = self.of(rows, self.number(0, rows))
        yield f"F: {self.of('admit', f'fork {number} {shared}', f'fork {number} {shared}', f'drop {number}')}"
        yield from self._pages()

    def _pages(self) -> Iterator[str]:
        """Append rows to a sequence: to the end of its page or of the pool, or fewer."""
        pool = self.session.caches["F"]
        used = [(number, one) for number, one in enumerate(pool.all) if one]
        if not used:
            yield "F: admit"
            return
        number, one = self.of(*used)
        page = -len(one.rows) % pool.size
        room = page + pool.free_pages() * pool.size
        more, to = f"append {self.of(1, 1, 2, page + 1, room, room + 1)}", self.number(0, len(one.rows))
        yield f"F: {self.of(f'{more} sequence={number}', f'{more} sequence={number}', f'truncate {number} {to}')}"

    def _asked_for(self) -> Iterator[str]:
        """Begin a sequence that finds rows of another one, or ask, or make pages forget."""
        text = "".join(self.of("x", "x", "y") for _ in range(self.number(1, 5)))
        yield f"K: {self.of('request', 'request', 'match')} {text}{self.of('', '', ' salt=s', ' adapter=s')}"
        if not self.number(0, 4):
            yield f"K: {self.of('evict 1', 'clear')}"

    def _lives(self) -> Iterator[str]:
        """Go on with a sequence of the pool that finds rows, or end it."""
        number = self.of(*sorted(self.session.caches["K"].all), 0)
        yield f"K: {self.of('answer {} y', 'propose {} x', 'compute {} 2', 'finish {}').format(number)}"
        yield f"K: {self.of('accept {} 1', 'accept {} 0', 'answer {} x', 'abort {}', 'finish {}').format(number)}"

    def _ways(self) -> Iterator[str]:
        """Hand drafts to all layers, on the newest one or on any, and keep those on one way."""
        there, n = len(self.session.caches["L"].drafts), self.of(1, 2, 3)
        on = (self.of(i - 1, self.number(-1, i - 1)) for i in range(there, there + n))
        yield f"L: branch {n}{self.of('', f' on={listed(on)}')}"
        if self.number(0, 2):
            yield f"L: settle {self.number(-1, there + n - 1)}"

    def _deeper(self) -> Iterator[str]:
        """Append to all layers, or take tokens back."""
        offset = int(self.session.caches["L"].offset)
        yield f"L: {self.of('append 1', 'append 2', f'rewind {self.number(0, offset)}', 'encode 2', 'free')}"

    def _queries(self) -> str:
        """Draw heads, splits, and where the output goes."""
        heads = self.start.config.kv_heads * self.of(1, 2)
        return f"heads={heads} splits={self.of(1, 2)}{self.of('', ' into=1')}"

    def _attend(self) -> Iterator[str]:
        """Pass tokens through every layer that attends."""
        n, asked = self.rows(self.of(*self.layers)), self._queries()
        mask = self.of("", "", " through causal & window=2", " through none")
        yield from (f"{layer}: attend {n} {asked}{mask}" for layer in self.layers)

    def _layer(self) -> Iterator[str]:
        """Pass a token through the layers of the store."""
        n, asked = self.of(1, 1, 2), self._queries()
        yield from (f"D: attend {n} {asked} layer={i}" for i in range(len(self.session.caches["D"].layers)))

    def _asked(self) -> Iterator[str]:
        yield f"D: attendbatch {self.number(0, len(self.session.caches['D'].layers) - 1)} {self._queries()}"

    def _graph(self) -> Iterator[str]:
        """Capture an attend, or replay it among other work."""
        if "g" not in self.session.names["captured attention"] or not self.number(0, 3):
            yield f"D: captureattend g {self.number(0, len(self.session.caches['D'].layers) - 1)}"
        yield "D: replayattend g"

    def _table(self) -> Iterator[str]:
        """Gather rows of one or two random pages, or peek at a page."""
        pool = self.session.caches["F"]
        first, second = (self.number(0, pool.total - 1) for _ in range(2))
        yield self.of(f"F: gather {first} 1", f"F: gather {first},{second} {pool.size + 1}", f"F: peek {first}")
