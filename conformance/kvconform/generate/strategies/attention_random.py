"""Attends of all kinds on larger caches, stores and batches, steered to the ends of tiles, windows and layers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from hypothesis import strategies as st

from kvconform.generate.strategies.configs import geometry
from kvconform.generate.strategies.trace_builder import Drawing
from kvspec import notation
from kvspec.chapters import CHAPTERS
from kvspec.geometry import Config
from kvspec.masks import Causal, Explicit, Part, Window, to_json
from kvspec.trace import Trace

KINDS = (*("attend",) * 8, *("append",) * 2, "rewind", "dead", "misfit", "beyond", "beyond", "still")
STORES = (*KINDS, *("captured",) * 3, *("batch",) * 5)
"""Kinds of operations. A kind listed more often is drawn more often."""

LONGEST = 12
"""Most operations of a trace; on a store, which also has a batch, twice as many."""


@st.composite
def configs(draw: st.DrawFn, kind: str) -> Config:
    """Draw any geometry, with windows and stores of up to more than two tiles."""
    size = draw(st.sampled_from((1, 2, 3, 5, 31, 32, 33, 40, 70)))
    config = geometry(draw, heads=2).changed(step=draw(st.sampled_from((1, 7, 256))))
    if kind == "store":
        return config.changed(layers=draw(st.integers(1, 2)), max_len=max(2, size))
    return config.changed(batch=draw(st.integers(1, 2)), window=size if kind == "ring" else None)


@st.composite
def explored(draw: st.DrawFn, kind: str | None = None, claimed: Collection[str] = CHAPTERS) -> Trace:
    """Draw a trace on one kind of cache, or on any kind that is claimed; on a store with a batch, if that is."""
    every = ("growing", "ring", "ring", "store", "store")
    kind = kind or draw(st.sampled_from([each for each in every if each in claimed]))
    drawing = _Drawing(draw, Trace(kind, draw(configs(kind))))
    longest, kinds = (2 * LONGEST, STORES) if drawing.store else (LONGEST, KINDS)
    return drawing.until(draw(st.integers(2, longest)), [k for k in kinds if k != "batch" or k in claimed])


class _Drawing(Drawing):
    """Draws a trace of attends. The list model tells it where tiles and windows end."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.store = start.kind == "store"
        self.numbers = "fine" if start.config.dtype == "f32" else "random"
        self.layer = 0

    def _length(self) -> int:
        """Count the rows of the chosen layer, or of the cache."""
        return int(self.model.layers[self.layer].length if self.store else self.model.offset)

    def _rows(self) -> int:
        """Draw how many rows: few, up to the end of a tile, or one beyond. In a store it is mostly as many as
        fit."""
        to_edge = 32 - self._length() % 32
        n = int(self.of(1, 1, 1, 2, 3, to_edge, to_edge + 1))
        return min(n, max(1, int(self.model.room) - self._length())) if self.store else n

    def _where(self) -> str:
        if not self.store:
            return ""
        self.layer = self.number(0, len(self.model.layers) - 1)
        return f" layer={self.layer}"

    def _asked(self) -> str:
        """Draw heads, splits and queries."""
        heads = self.model.config.kv_heads * self.of(1, 2, 4)
        queries = self.of(self.numbers, self.numbers, "random", "huge", "tiny", "zero")
        return f" heads={heads} splits={self.of(1, 1, 2, 3, 4)} queries={queries}{self.of('', ' into=1')}"

    def _fill(self) -> str:
        return f" fill={self.of(*(self.numbers,) * 4, 'even', 'legible', 'bits', 'edges')}"

    def _attend(self) -> str:
        where, n = self._where(), self._rows()
        text = f"attend {n}{self._asked()}{self._fill()}{where}"
        return f"{text}{self._through(text, n)}"

    def _through(self, text: str, n: int) -> str:
        """Draw a mask of any kind that fits; no mask means causal."""
        parts = [self._part(text, n) for _ in range(self.of(0, 0, 1, 1, 2, 3))]
        return f" through {notation.mask_words(to_json(tuple(parts)))}" if parts else ""

    def _part(self, text: str, n: int) -> Part:
        kind = self.of("causal", "window", "bool", "f32")
        if kind in ("causal", "window"):
            return Causal() if kind == "causal" else Window(self.of(1, 2, 5, 32, 40))
        config, heads = self.model.config, notation.operation(text)["heads"]
        shape = self.of(1, config.batch), self.of(1, heads), n, self.of(1, self._columns(n), self._columns(n))
        random = np.random.default_rng(self.number(0, 1 << 16))
        if kind == "bool":
            return Explicit(random.random(shape) < self.of(0.7, 0.3, 0.0))
        scores = random.integers(-64, 65, shape).astype(np.float32) / np.float32(8)
        return Explicit(np.where(random.random(shape) < 0.3, np.float32(-np.inf), scores))

    def _columns(self, n: int) -> int:
        window: int | None = None if self.store else self.model.config.window
        if window is None:
            return self._length() + n
        return min(self._length() + 1, window) if n == 1 else min(self._length(), window - 1) + n

    def _append(self) -> str:
        where = self._where()
        return f"append {self._rows()} fill={self.of(self.numbers, 'even', 'bits', 'edges')}{where}"

    def _back(self, to: int) -> str:
        return f"rollback {to}" if self.store else f"rewind {to}"

    def _rewind(self) -> str:
        return self._back(self.number(0, self._length()))

    def _dead(self) -> str:
        """Append rows of arbitrary bits, then rewind over them."""
        where, length = self._where(), self._length()
        return f"append {self._rows()} fill=bits{where}; {self._back(length)}"

    def _misfit(self) -> str:
        config, where = self.model.config, self._where()
        said = f"k_dim={config.k_dim + 1}", "values=3", f"q_dim={config.k_dim + 1}", "q_rows=3", "q_dtype=f16"
        room = "into=1 out_dim=40", "into=1 out_rows=2", "into=1 out_readonly=1"
        return f"attend 1{where} {self.of(*said, 'splits=0', 'heads=0', *room)}"

    def _beyond(self) -> str:
        """Attend with masks of a wrong size, windows below 1, or more rows than a store has room for."""
        where = self._where()
        if self.store and self.draw(st.booleans()):
            return f"attend {self.model.room - self._length() + 1}{where}"
        other = self.of(self._columns(1) - 1, self._columns(1) + 1, self._length() + 1)
        wide, narrow = "1" * (other or 2), self.of("window=0", "causal & window=-2")
        return f"attend 1{where} through {self.of(wide, wide, wide, wide, narrow)}"

    def _still(self) -> str:
        return "scribble" if self.store else str(self.of("scribble", "scribble", "attend 0 heads=3"))

    def _captured(self) -> str:
        """Capture an attend and replay it, at times after an operation that may make it invalid."""
        names = sorted(self.session.names["captured attention"])
        if not names:
            return "; ".join(self._capture(name) for name in self.of(("w",), ("v", "w")))
        if not self.number(0, 4):
            return self._capture(self.of("w", "v"))
        between = self.of("", "", "rollback 1; ", "zero; ", f"init max_len={self.number(1, 40)}; ")
        return f"{between}replayattend {self.of(*names)}{self.of('', ' queries=huge')}{self._fill()}"

    def _capture(self, name: str) -> str:
        heads, layer = self.model.config.kv_heads * self.of(1, 2), self.number(0, len(self.model.layers) - 1)
        return f"captureattend {name} {layer} heads={heads} splits={self.of(1, 3)}"

    def _batch(self) -> str:
        """Create a batch, advance it, or attend with it."""
        batch, layers = self.model.batched, self.model.layers
        if batch is None or not self.number(0, 7):
            return f"batch {self.number(1, 3)}"
        least, s = min(layer.length for layer in layers), self.number(0, len(batch.all) - 1)
        layer = self.number(0, len(layers) - 1)
        on = "step", f"scatter {s} {self.number(0, least)}", f"scatter {s} {layers[layer].length} layer={layer}"
        config = self.model.config
        asked = f"heads={config.kv_heads * self.of(1, 2)} splits={self.of(1, 2, 4)}{self.of('', ' into=1')}"
        before = self.of(*on, f"rollback 1 sequence={s}", "append 1")
        return f"{before}; attendbatch {layer} {asked}"
