"""Exploration: Hypothesis strategies for traces on larger configurations than covers can close.

A draw follows the list model, so that it knows offsets and snapshots. It steers to where bugs live: the fill of a
window, one row beyond it, a growth boundary, a rewind at the edge of the allowed range. The length is drawn first,
because Hypothesis's own lists are mostly too short to wrap a ring.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from kvconform.generate.strategies.configs import FAR, LARGEST_WINDOW, configs
from kvconform.generate.strategies.trace_builder import DrawingOnCaches
from kvspec import masks
from kvspec.masks import Explicit
from kvspec.operations.table import OF_KIND, positions_named
from kvspec.trace import Trace

KEEPS = ("keep",) * 3
"""Drawn beside all of these on a kind that can keep chosen rows."""

LONGEST = 30
LARGEST_MASK = 2500
"""Elements of an explicit mask, for each head and sequence."""


@st.composite
def traces(draw: st.DrawFn, kind: str, operations: Sequence[str]) -> Trace:
    """Draw a trace of these operations on a cache of this kind."""
    start, length = Trace(kind, draw(configs(kind))), draw(st.integers(3, LONGEST))
    return _Drawing(draw, start).until(length, (*operations, *KEEPS) if "keep" in OF_KIND[kind] else operations)


class _Drawing(DrawingOnCaches):
    """Draws a trace on caches, with masks and snapshots."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(draw, start)
        self.fill = self.of(*[""] * 4, " fill=bits")

    def _append(self) -> str:
        window, step, offset = self.model.config.window, self.model.config.step, self.model.offset
        edge = window if window and offset < window else -(-max(1, offset) // step) * step
        edge = self.model.config.max_len or edge
        room = max(0, min(edge - offset, self.of(*[LARGEST_WINDOW] * 7, 256)))
        chunk = window or 4
        long = self.number(0, 2 * chunk + 1)
        n = self.of(1, 1, 1, 2, 0, room, room + 1, max(0, room - 1), chunk, chunk + 1, max(0, chunk - 1), long)
        return f"append {n}{self.fill}"

    def _run(self) -> str:
        """Append row after row, mostly once around a small ring."""
        around = min(8, (self.model.config.window or 3) + 1)
        return "; ".join([f"append 1{self.fill}"] * self.of(2, around, around))

    def _beside(self) -> str:
        """Open a second cache of either kind and append to it; often do nothing."""
        if len(self.session.caches) > 1 or self.draw(st.booleans()):
            return ""
        kind = self.of("", f"kind=ring window={self.number(1, 5)}", "kind=growing")
        return f"open B {kind}; B: append {self.of(1, 2, 3)}"

    def _misfit(self) -> str:
        other = "f32" if self.model.config.dtype != "f32" else self.of("f16", "bf16")
        misfit = self.of("kv_heads=4", "k_dim=17", "v_dim=3", "batch=4", "values=5", "values=0", f"dtype={other}")
        return f"append {self.of(1, 1, 2, 2, 0)} {misfit}"

    def _rewind(self) -> str:
        offset = self.model.offset
        inside = self.number(0, offset)
        beyond = self.of(offset + 1, -1, offset + (self.model.config.window or 2), *FAR)
        return f"rewind {self.of(max(0, offset - 1), inside, inside, offset, 0, offset + 1, beyond)}"

    def _twice(self) -> str:
        """Rewind twice, each time further back; free a ring that may no longer rewind."""
        window, offset = self.model.config.window, self.model.offset
        if window and offset > window:
            return "free"
        first = self.number(0, offset)
        return f"rewind {first}; rewind {self.number(0, first)}"

    def _keep(self) -> str:
        """Keep all rows but one, or any, in order or not; seldom one that is not seen, one twice, or none."""
        if self.model.kind != "sink":
            return ""
        seen = self.model.seen()
        if not seen or not self.number(0, 9):
            return f"keep {self.of('0', 'empty', self.model.offset, '-1', positions_named([*seen, *seen[:1]]))}"
        but, bits = self.number(0, len(seen) - 1), self.number(1, (1 << len(seen)) - 1)
        some = [p for i, p in enumerate(seen) if bits >> i & 1]
        all_but_one = seen[:but] + seen[but + 1 :] or seen
        return f"keep {positions_named(self.of(all_but_one, some, some, some[::-1], seen))}"

    def _ask(self) -> str:
        return self._rewind().replace("rewind", "ask")

    def _free(self) -> str:
        return "free" if self.draw(st.booleans()) else ""

    def _mask(self) -> str:
        queries, columns = self.model.queries, self.model.width
        if queries is None and self.number(0, 3):
            return self._append()
        if not self.number(0, 19):
            return f"mask window={self.of(0, -1)}"
        parts = self.draw(st.lists(self._part(queries or 0, columns), max_size=3))
        self.follow({"op": "mask", "parts": masks.to_json(tuple(parts))})
        return ""

    def _part(self, queries: int, columns: int) -> st.SearchStrategy[masks.Part]:
        symbolic = st.one_of(st.just(masks.Causal()), st.integers(1, LARGEST_WINDOW).map(masks.Window))
        small = queries * columns <= LARGEST_MASK
        return st.one_of(symbolic, self._explicit(queries, columns)) if small else symbolic

    def _explicit(self, queries: int, columns: int) -> st.SearchStrategy[masks.Part]:
        config = self.model.config
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

    def _saved(self, stop: int) -> tuple[str, int, int]:
        """Choose a snapshot. Give its name, start and stop, which are 0 and `stop` if it was refused."""
        name = self.of(*sorted(self.session.snapshots))
        saved = self.session.snapshots[name]
        return name, *((saved.start, saved.stop) if saved else (0, stop))

    def _snapshot(self) -> str:
        name, offset = self.of("s", "t", "u"), self.model.offset
        start = self.of(0, 0, max(0, offset // 2), max(0, offset - 1), -1, offset, self.of(*FAR))
        return f"snapshot {name} {start or ''}"

    def _restore(self) -> str:
        if not self.session.snapshots:
            return self._snapshot()
        name, start, stop = self._saved(self.model.offset)
        inside = self.number(0, stop)
        return f"restore {name} {self.of(stop, stop, inside, stop - 1, start, stop + 1, self.of(-1, *FAR))}"

    def _split(self) -> str:
        if not self.session.snapshots:
            return self._snapshot()
        name, start, stop = self._saved(1)
        return f"split {name} {self.of(self.number(start - 1, stop + 1), self.number(start, stop), FAR[0])} p q"

    def _merge(self) -> str:
        names = sorted(self.session.snapshots)
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
        parent, child = self.of(*meeting, (self.of(*names), self.of(*names)))
        return f"merge {parent} {child} {self.of('s', 'm')}"

    def _resumed(self) -> str:
        """Snapshot, go on, restore to the saved offset or one less, then append."""
        offset = self.model.offset
        between = self._run() if self.draw(st.booleans()) else self.of("free", "append 2")
        to = self.of(offset, offset, max(0, offset - 1))
        return f"snapshot s; {between}; restore s {to}; append {self.of(1, 1, 2)}"

    def _again(self) -> str:
        """Restore, overwrite in place and restore again: the snapshot must not have changed."""
        offset = self.model.offset
        back = f"restore s {offset}"
        return f"snapshot s; {self.of('', 'free; ')}{back}; rewind {max(0, offset - 1)}; append 1; {back}"

    def _pieces(self) -> str:
        """Split a snapshot, mostly inside; merge the pieces again, or restore them one by one."""
        offset = self.model.offset
        start = self.of(0, 0, self.number(0, offset))
        at = self.number(start, offset)
        cut = f"snapshot s {start}; split s {at} p q"
        if self.draw(st.booleans()):
            first, last = f"restore p {at}", f"restore q {offset}"
            return f"{cut}; rewind {self.of(start, 0, offset)}; {self.of(f'{first}; {last}', f'{last}; {first}')}"
        return f"{cut}; merge {self.of('p q', 'p q', 'q p')} m; restore m {offset}"

    def _elsewhere(self) -> str:
        """Restore into a second cache, perhaps of another window or geometry."""
        window = self.model.config.window
        other = self.of("", "step=3", f"window={window + 1}", f"window={window + 7}") if window else "step=3"
        return f"snapshot t; open C {other}; C: restore t {self.model.offset}; C: append 1"

    def _parcel(self) -> str:
        """Pack, go on, and unpack here or in a cache of another kind or size; mostly carried, seldom damaged."""
        between = self.of("", "append 1; ", "append 3; ", "free; ")
        carried = self.carried(self.model.offset)
        window = (self.model.config.window or 3) + self.of(-1, 0, 1)
        kinds = "kind=growing", f"kind=ring window={max(1, window)}", f"kind=bounded max_len={self.number(1, 30)}"
        if self.number(0, 3) == 3:
            return f"pack x; {self.through_ranks(self.model.config.kv_heads)}; {between}unpack w; append 1"
        other = self.of("", "", "", "", *kinds, "kv_heads=5", "dtype=f32")
        if not other:
            return f"pack x; {between}{carried}; unpack y; append {self.of(1, 1, 2)}"
        return f"pack x; {between}{carried}; open C {other}; C: unpack y; C: append 1; C: pack z; unpack z"

    def _close(self) -> str:
        names = [name for name, saved in sorted(self.session.snapshots.items()) if saved is not None]
        return f"close {self.of(*names)}" if names else ""

    def _open(self) -> str:
        other = ("kv_heads=4", "step=1", "window=7", "dtype=f32", "step=0", "kind=ring window=3", "kind=growing")
        changed = self.of("", "", "", *other)
        if changed == "window=7" and self.start.kind == "growing":
            changed = ""
        return f"open {self.of('B', 'C')} {changed}"
