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
from kvconform.generate.strategies.whole_system.pools import Pools
from kvconform.generate.strategies.whole_system.store import OfStore
from kvspec.contract import CHAPTERS
from kvspec.geometry import WORDS, Config
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


class _System(OfStore, Pools):
    """Draws the trace of a system."""

    def __init__(self, draw: st.DrawFn, start: Trace, chapters: Collection[str]) -> None:
        super().__init__(draw, start)
        self.chapters, self.kinds = chapters, kinds(chapters)
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
