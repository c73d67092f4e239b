"""Attention on growing caches and rings: they append the rows, then attend to them where they lie."""

from __future__ import annotations

from typing import Any

from kvgpu.caches import parted, rope, scored
from kvgpu.caches.attention import TILE, Positions, Runs, in_form, prepare
from kvgpu.caches.queries import Fit, asked, demand, empty, nothing
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.cache_rows import Slots, fitting, rows_in
from kvspec.contract import Attention
from kvspec.geometry import Array, Config
from kvspec.refusals import common as refusals


class Attending:
    """Mixin of growing caches and rings: they know where their rows lie in position order."""

    space: Workspace
    config: Config
    store: Slots
    offset: int
    misfit: str
    """The clause that rows of another geometry break."""

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        raise NotImplementedError

    def slots_after(self, n: int) -> int:
        """Slots of the buffer after an append of n rows."""
        raise NotImplementedError

    def in_order(self) -> Runs:
        """Where the held rows lie, oldest first. There must be at least one."""
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        """Append rows."""
        raise NotImplementedError

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append n rows, and have n queries `[B, heads, n, k_dim]` attend: the output `[B, heads, n, v_dim]`. Two
        launches more than an append; queries, rows and a mask's arrays are uploaded from the host."""
        if nothing(queries, keys):
            self.append(keys, values)
            return empty(self.config, queries, out)
        if not fitting(self.config, keys, values):
            raise refusals.rows(self.misfit, self.config, keys, values)
        n, plain = rows_in(keys), self.config.changed(form=None)
        held = self.held_after(n)
        demand(self.config, Fit((self.config.batch,), n, held), queries, how, out)
        rope.demand_attend(how.rope, self.config)
        asking = parted.hiding(how, asked(how.through, self.config.window), n, held)
        # A ring's tiles may begin within its window: one more than fit in. Slots stay while a cache need not grow.
        most = self.slots_after(n) + TILE
        ready = prepare(self.space, plain, queries, asking, how.splits, most, out, how.sinks)
        ready, keys, values = rope.at_positions(self.space, self.config, how.rope, ready, keys, values, self.offset)
        ready = scored.by(self.space, how, ready, held)
        ready = parted.by(self.space, how, ready, held)
        self.append(keys, values)
        positions = Positions(self.offset - held, self.offset)
        whole = self.store.residual.most == 0
        if whole and (formed := in_form(ready, self.config)) is not None:
            return formed.answer(self.in_order(), positions)
        return ready.answer(self._readable(held), positions)

    def _readable(self, held: int) -> Runs:
        """Where the held rows lie as they are read, oldest first: rows in a form are decoded to another place."""
        runs, codec = self.in_order(), self.store.codec
        if self.config.form is None:
            return runs
        wrap = min(runs.before, held)
        parts = (wrap, runs.place.span(runs.start)), (held - wrap, runs.place.span(runs.then))
        aside, filled = self.space.other(codec.kept, held), 0
        for n, span in parts:
            self.store.move(n, span, aside.span(filled))
            filled += n
        place = codec.decoded(aside, held)
        self.store.residual.lay(place, self.offset - held, held)
        return Runs(place, self.config.kv_heads * place.slots)
