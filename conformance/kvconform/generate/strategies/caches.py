"""Exploration: Hypothesis strategies for traces on larger configurations than covers can close.

A draw follows the list model, so that it knows offsets and snapshots, and steers to where bugs live: the fill of a
window, one row beyond it, a growth boundary, a rewind just inside and just outside what is allowed. The length is
drawn first, because Hypothesis's own lists are mostly too short to wrap a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kvconform.generate.strategies.trace_builder import FAR, Drawing, geometry, mostly
from kvspec import masks
from kvspec.geometry import Config
from kvspec.masks import Explicit
from kvspec.operations.table import Operation
from kvspec.trace import Trace

BASE = (
    ("append",) * 8 + ("run", "twice") + ("rewind",) * 3 + ("ask", "view", "free", "scribble", "misfit", "beside")
)
MASKS = BASE + ("mask",) * 8
PIECES = ("resumed", "resumed", "pieces", "pieces", "elsewhere", "again")
SNAPSHOTS = BASE + ("snapshot",) * 4 + ("restore",) * 4 + ("split", "merge", "merge", "close", "open") + PIECES
EVERYTHING = MASKS + SNAPSHOTS

LONGEST = 30
LARGEST_WINDOW = 24
LARGEST_MASK = 2500
"""Elements of an explicit mask, for each head and sequence."""


@st.composite
def configs(draw: st.DrawFn, kind: str) -> Config:
    """Draw any geometry, mostly with small windows and steps, so that traces meet boundaries often."""
    small = st.integers(1, 6)
    window = mostly(draw, small, st.integers(7, LARGEST_WINDOW)) if kind == "ring" else None
    return geometry(draw).changed(
        batch=draw(st.sampled_from((1, 1, 2, 3))),
        step=mostly(draw, small, st.sampled_from((8, 256))),
        window=window,
    )


@st.composite
def traces(draw: st.DrawFn, kind: str, operations: Sequence[str]) -> Trace:
    """Draw a trace of these operations on a cache of this kind."""
    config = draw(configs(kind))
    length = draw(st.integers(3, LONGEST))
    drawing = _Drawing(draw, Trace(kind, config))
    while len(drawing.ops) < length:
        drawing.add(draw(st.sampled_from(operations)))
    return Trace(kind, config, tuple(drawing.ops))


class _Drawing(Drawing):
    """Draws a trace on caches, with masks and snapshots."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = self.of(*["legible"] * 4, "bits")
        self.cache = "A"

    def add(self, kind: str) -> None:
        """Add the operations of this kind, if any, and apply them to the list model."""
        self.cache = self.draw(st.sampled_from(sorted(self.session.caches)))
        found = getattr(self, f"_{kind}")()
        for op in found if isinstance(found, list) else [found] if found else []:
            if self.cache != "A":
                op["cache"] = op.get("cache", self.cache)
            self.follow(op)

    @property
    def history(self) -> Any:
        return self.session.caches[self.cache]

    def _append(self) -> Operation:
        window, step, offset = self.history.config.window, self.history.config.step, self.history.offset
        edge = window if window and offset < window else -(-max(1, offset) // step) * step
        room = max(0, min(edge - offset, self.of(*[LARGEST_WINDOW] * 7, 256)))
        chunk = window or 4
        long = self.number(0, 2 * chunk + 1)
        n = self.of(1, 1, 1, 2, 0, room, room + 1, max(0, room - 1), chunk, chunk + 1, max(0, chunk - 1), long)
        return {"op": "append", "n": n} | ({"fill": "bits"} if self.fill == "bits" else {})

    def _run(self) -> list[Operation]:
        """Append row after row, mostly once around a small ring."""
        around = min(8, (self.history.config.window or 3) + 1)
        fill = {"fill": "bits"} if self.fill == "bits" else {}
        return [{"op": "append", "n": 1, **fill} for _ in range(self.of(2, around, around))]

    def _beside(self) -> list[Operation] | None:
        """Open a second cache of either kind and append to it; often do nothing."""
        if len(self.session.caches) > 1 or self.draw(st.booleans()):
            return None
        kind = self.of({}, {"kind": "ring", "window": self.number(1, 5)}, {"kind": "growing"})
        return [{"op": "open", "cache": "B", **kind}, {"op": "append", "cache": "B", "n": self.of(1, 2, 3)}]

    def _misfit(self) -> Operation:
        other = "f32" if self.history.config.dtype != "f32" else self.of("f16", "bf16")
        sizes = ("kv_heads", 4), ("k_dim", 17), ("v_dim", 3), ("batch", 4), ("values", 5), ("values", 0)
        field, value = self.draw(st.sampled_from((*sizes, ("dtype", other))))
        return {"op": "append", "n": self.of(1, 1, 2, 2, 0), field: value}

    def _rewind(self) -> Operation:
        offset = self.history.offset
        inside = self.draw(st.integers(0, max(0, offset)))
        beyond = self.of(offset + 1, -1, offset + (self.history.config.window or 2), *FAR)
        return {"op": "rewind", "to": self.of(max(0, offset - 1), inside, inside, offset, 0, offset + 1, beyond)}

    def _twice(self) -> list[Operation]:
        """Rewind twice, each time further back; free a ring that may no longer rewind."""
        window, offset = self.history.config.window, self.history.offset
        if window and offset > window:
            return [{"op": "free"}]
        first = self.number(0, offset)
        return [{"op": "rewind", "to": first}, {"op": "rewind", "to": self.number(0, first)}]

    def _ask(self) -> Operation:
        return self._rewind() | {"op": "ask"}

    def _view(self) -> Operation:
        return {"op": "view"}

    def _free(self) -> Operation | None:
        return {"op": "free"} if self.draw(st.booleans()) else None

    def _scribble(self) -> Operation:
        return {"op": "scribble"}

    def _mask(self) -> Operation | None:
        queries, columns = self.history.queries, self.history.width
        if queries is None and self.draw(st.integers(0, 3)):
            return self._append()
        if not self.number(0, 19):
            return {"op": "mask", "parts": [{"window": self.of(0, -1)}]}
        parts = self.draw(st.lists(self._part(queries or 0, columns), max_size=3))
        return {"op": "mask", "parts": masks.to_json(tuple(parts))}

    def _part(self, queries: int, columns: int) -> st.SearchStrategy[masks.Part]:
        symbolic = st.one_of(st.just(masks.Causal()), st.integers(1, LARGEST_WINDOW).map(masks.Window))
        small = queries * columns <= LARGEST_MASK
        return st.one_of(symbolic, self._explicit(queries, columns)) if small else symbolic

    def _explicit(self, queries: int, columns: int) -> st.SearchStrategy[masks.Part]:
        config = self.history.config
        several = (1, config.batch, config.batch)
        batch, heads = st.sampled_from((*several * 3, config.batch + 1)), st.sampled_from((1, config.kv_heads, 2))
        width = st.sampled_from((columns,) * 6 + (1, columns + 1, max(1, columns - 1)))
        queries += self.of(*[0] * 9, 1)
        axes = self.of(*[4] * 18, 3, 5)

        def build(seed: int, b: int, h: int, k: int, scores: bool) -> masks.Part:
            random = np.random.default_rng(seed)
            shape = (1, b, h, queries, k)[5 - axes :]
            if scores:
                values = random.integers(-9, 10, shape).astype(np.float32)
                return Explicit(np.where(random.random(shape) < 0.2, np.float32(-np.inf), values))
            return Explicit(random.random(shape) < 0.7)

        return st.builds(build, st.integers(0, 1 << 16), batch, heads, width, st.booleans())

    def _names(self) -> list[str]:
        return sorted(self.session.snapshots)

    def _snapshot(self) -> Operation:
        name = self.draw(st.sampled_from(("s", "t", "u")))
        offset = self.history.offset
        start = self.of(0, 0, max(0, offset // 2), max(0, offset - 1), -1, offset, self.of(*FAR))
        return {"op": "snapshot", "name": name} | ({"start": start} if start else {})

    def _restore(self) -> Operation | None:
        if not self._names():
            return self._snapshot()
        name = self.draw(st.sampled_from(self._names()))
        saved = self.session.snapshots[name]
        start, stop = (saved.start, saved.stop) if saved else (0, self.history.offset)
        inside = self.draw(st.integers(0, stop))
        return {
            "op": "restore",
            "name": name,
            "to": self.of(stop, stop, inside, stop - 1, start, stop + 1, self.of(-1, *FAR)),
        }

    def _split(self) -> Operation | None:
        if not self._names():
            return self._snapshot()
        name = self.draw(st.sampled_from(self._names()))
        saved = self.session.snapshots[name]
        start, stop = (saved.start, saved.stop) if saved else (0, 1)
        at = self.of(self.number(start - 1, stop + 1), self.number(start, stop), *FAR[:1])
        return {"op": "split", "name": name, "at": at, "parent": "p", "child": "q"}

    def _merge(self) -> Operation | None:
        names = self._names()
        if not names:
            return self._snapshot()
        meeting = [
            (a, b)
            for a in names
            for b in names
            if (x := self.session.snapshots[a])
            and (y := self.session.snapshots[b])
            and x.stop == y.start
            and not (x.gone or y.gone)
        ]
        anyone = (self.draw(st.sampled_from(names)), self.draw(st.sampled_from(names)))
        parent, child = self.draw(st.sampled_from([*meeting, anyone]))
        return {"op": "merge", "parent": parent, "child": child, "name": self.draw(st.sampled_from(("s", "m")))}

    def _resumed(self) -> list[Operation]:
        """Snapshot, go on, restore to the saved offset or one less, then append."""
        offset = self.history.offset
        between = self._run() if self.draw(st.booleans()) else [self.of({"op": "free"}, {"op": "append", "n": 2})]
        to = self.of(offset, offset, max(0, offset - 1))
        back = {"op": "restore", "name": "s", "to": to}
        return [{"op": "snapshot", "name": "s"}, *between, back, {"op": "append", "n": self.of(1, 1, 2)}]

    def _again(self) -> list[Operation]:
        """Restore, overwrite in place and restore again: the snapshot must not have changed."""
        offset = self.history.offset
        back = {"op": "restore", "name": "s", "to": offset}
        other = [{"op": "rewind", "to": max(0, offset - 1)}, {"op": "append", "n": 1}]
        begin = self.of([], [{"op": "free"}])
        return [{"op": "snapshot", "name": "s"}, *begin, back, *other, back]

    def _pieces(self) -> list[Operation]:
        """Split a snapshot, mostly inside; merge the pieces again, or restore them one by one."""
        offset = self.history.offset
        start = self.of(0, 0, self.number(0, offset))
        at = self.number(start, offset)
        cut = [
            {"op": "snapshot", "name": "s", "start": start},
            {"op": "split", "name": "s", "at": at, "parent": "p", "child": "q"},
        ]
        if self.draw(st.booleans()):
            back = [{"op": "restore", "name": "p", "to": at}, {"op": "restore", "name": "q", "to": offset}]
            return [*cut, {"op": "rewind", "to": self.of(start, 0, offset)}, *self.of(back, back[::-1])]
        parts = self.of(("p", "q"), ("p", "q"), ("q", "p"))
        joined = {"op": "merge", "parent": parts[0], "child": parts[1], "name": "m"}
        return [*cut, joined, {"op": "restore", "name": "m", "to": offset}]

    def _elsewhere(self) -> list[Operation]:
        """Restore into a second cache, perhaps of another window or geometry."""
        window = self.history.config.window
        other = self.of({}, {"step": 3}, {"window": window + 1}, {"window": window + 7}) if window else {"step": 3}
        saved = {"op": "snapshot", "name": "t"}
        back = {"op": "restore", "cache": "C", "name": "t", "to": self.history.offset}
        opened = {"op": "open", "cache": "C", **other}
        return [saved, opened, back, {"op": "append", "cache": "C", "n": 1}]

    def _close(self) -> Operation | None:
        names = [n for n in self._names() if self.session.snapshots[n] is not None]
        return {"op": "close", "name": self.draw(st.sampled_from(names))} if names else None

    def _open(self) -> Operation:
        fields: tuple[dict[str, Any], ...] = (
            {},
            {},
            {},
            {"kv_heads": 4},
            {"step": 1},
            {"window": 7},
            {"dtype": "f32"},
            {"step": 0},
            {"kind": "ring", "window": 3},
            {"kind": "growing"},
        )
        changed = dict(self.draw(st.sampled_from(fields)))
        if changed == {"window": 7} and self.trace_inputs.opened["A"][0] == "growing":
            changed = {}
        return {"op": "open", "cache": self.draw(st.sampled_from(("B", "C"))), **changed}
