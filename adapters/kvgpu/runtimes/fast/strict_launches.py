"""Runs fast attention instead of strict: notes the launches of caches, and has a fast kernel do their work.

Caches launch a strict kernel, then one that joins its parts. If a fast kernel applies, the first launch is only
noted, and the fast kernel runs instead of the second, which knows where outputs go. It applies wherever rows lie,
seen through causal masks and windows. Masks given as arrays and learned sinks go to the strict kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kvgpu.caches.attention import Pages, Positions, Runs
from kvgpu.caches.queries import FLOAT
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Place
from kvgpu.runtime import Block, Runtime, Work
from kvgpu.runtimes.capture import Replayable
from kvgpu.runtimes.fast.attention import Call, FastAttention, Geometry
from kvgpu.runtimes.tensor_map import TensorMap

ATTEND, JOIN, STRICT = re.compile(r"attend_(runs|pages)_(.+)"), "attend_join", "attend_"
"""The names of the strict kernels, which tell how rows lie and what they are (see `caches.attention.kind`), of the
kernel that joins parts into outputs, and how all these begin."""


class Asked(NamedTuple):
    """The arguments of a strict kernel, in its order: see `kernels/attend.inc`."""

    keys: Block
    values: Block
    queries: Block
    added: Block
    lengths: Block
    tables: Block
    parts: Block
    entries: int
    heads: int
    kv_heads: int
    each: int
    splits: int
    k_dim: int
    v_dim: int
    scale: int
    queries_at: int
    keys_at: int
    values_at: int
    slots: int
    first: int
    given: int
    reads: int
    lengths_at: int
    lengths_stride: int
    causal: int
    window: int
    masks: int
    lying: tuple[int, ...]

    def rows(self, lie: str, size: int) -> Runs | Pages:
        """Give the places of the rows, for elements of this many bytes."""
        place = Place(self.keys, self.values, self.keys_at * size, self.values_at * size, self.slots)
        if lie == "pages":
            page, at, stride = self.lying
            return Pages(place, page, self.tables, at, stride)
        return Runs(place, *self.lying)

    def most(self, lie: str) -> int | None:
        """Give the largest number of positions, if their end is on the device."""
        if not self.reads:
            return None
        return self.slots * max(1, self.lying[2]) if lie == "pages" else self.slots

    def positions(self) -> Positions:
        """Give the positions of the queries."""
        lengths = self.lengths if self.reads else None
        return Positions(self.first, self.given, lengths, self.lengths_at, self.lengths_stride)


def asked(*args: Any) -> Asked:
    """Take the arguments of a strict kernel apart: the last ones say where rows lie."""
    named = len(Asked._fields) - 1
    return Asked._make((*args[:named], args[named:]))


Choose = Callable[[str, str, Asked], Geometry | None]
"""Chooses the fast kernel's geometry by how rows lie, what they are, and the arguments; None if none applies."""


class StrictLaunches:
    """Takes the strict launches of a runtime. `choose` gives the geometry, and `make` compiles a kernel for it."""

    def __init__(self, runtime: Runtime, choose: Choose, make: Callable[[Geometry], FastAttention]) -> None:
        self._runtime, self._choose, self._make = runtime, choose, make
        self._made: dict[Geometry, FastAttention] = {}
        self._noted: tuple[str, FastAttention, Asked] | None = None
        self._capturing = False

    def taken(self, kernel: str, args: tuple[Block | int | TensorMap, ...]) -> bool:
        """Take a launch, and tell whether it was taken; if not, the caller starts it."""
        if not kernel.startswith(STRICT):
            return False
        if strict := ATTEND.fullmatch(kernel):
            self._noted = self._noting(strict[1], strict[2], asked(*args))
            return self._noted is not None
        if kernel == JOIN and self._noted is not None:
            self._instead(*args)
            return True
        return False

    def _noting(self, lie: str, dtype: str, asked: Asked) -> tuple[str, FastAttention, Asked] | None:
        """Note what the fast kernel does later, if one applies. Nothing may be allocated during a capture, so then
        the strict kernel takes every geometry that is not compiled yet."""
        geometry = None if asked.masks else self._choose(lie, dtype, asked)
        if geometry is None or (self._capturing and geometry not in self._made):
            return None
        if geometry not in self._made:
            self._made[geometry] = self._make(geometry)
        return lie, self._made[geometry], asked

    def _instead(self, parts: Any, out: Any, units: Any, splits: Any, width: Any, at: Any) -> None:
        """Attend with the noted arguments; outputs go from the element `at` on."""
        assert self._noted is not None
        (lie, attention, asked), self._noted = self._noted, None
        shape = asked.entries, asked.heads, asked.each
        places = asked.queries_at * FLOAT.itemsize, at * FLOAT.itemsize
        queries = DeviceRows(self._runtime, asked.queries, (*shape, asked.k_dim), FLOAT, places[0])
        target = DeviceRows(self._runtime, out, (*shape, width), FLOAT, places[1])
        rows, most = asked.rows(lie, attention.size), asked.most(lie)
        attention.attend(Call(queries, rows, asked.positions(), target, bool(asked.causal), asked.window, most))

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Compile nothing meanwhile."""
        self._capturing = True
        try:
            yield
        finally:
            self._capturing = False


class InPlaceOfStrict:
    """The first base of a fast runtime, before a plain one: strict launches go to `_strict`, made by its class."""

    _strict: StrictLaunches

    def launch(self, kernel: str, work: Work, *args: Block | int | TensorMap) -> None:
        """Start a kernel, or the fast one in its place."""
        if not self._strict.taken(kernel, args):
            super().launch(kernel, work, *args)  # type: ignore[misc]

    def capture(self, work: Callable[[], None]) -> Replayable:
        """Capture what `work` launches; nothing is compiled meanwhile."""
        with self._strict.capturing():
            captured: Replayable = super().capture(work)  # type: ignore[misc]
            return captured
