"""The shared part of the growing cache and the ring: their rows on the device, reads and writes."""

from __future__ import annotations

import numpy as np

from kvgpu.memory import row_forms
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.layout import Geometry, Place, Span, move, put
from kvgpu.memory.residual import Residual
from kvgpu.memory.row_forms import Codec
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, SIZES, Array, Config, heads_of
from kvspec.refusals import common as refusals


def acceptable(config: Config) -> bool:
    """Tell whether every given size is 1 or more, the dtype known, and a rank's heads among all that there are."""
    sizes, heads = (getattr(config, name) for name in SIZES), heads_of(config)
    whole = config.dtype in DTYPES and min(n for n in sizes if n is not None) >= 1
    return whole and heads.behind <= heads.all


def rows_in(keys: Array) -> int:
    """Count the given rows; -1 if the count is unclear."""
    shape = keys.shape
    return shape[2] if len(shape) == 4 else -1


def fitting(config: Config, keys: Array, values: Array) -> bool:
    """Tell whether rows have this geometry, with as many keys as values."""
    n, dtype = rows_in(keys), DTYPES[config.dtype]
    return (
        (keys.shape, values.shape) == (config.shape("k", n), config.shape("v", n))
        and keys.dtype == dtype
        and values.dtype == dtype
    )


class Fitting:
    """Tells whether rows have the geometry of a config, with as many keys as values. Of single rows, which are the
    most common, it is told soonest."""

    def __init__(self, config: Config) -> None:
        self.config, dtype = config, DTYPES[config.dtype]
        self._one_row = config.shape("k", 1), config.shape("v", 1), dtype, dtype

    def __call__(self, keys: Array, values: Array) -> bool:
        """Tell it."""
        a_row = (keys.shape, values.shape, keys.dtype, values.dtype) == self._one_row
        return a_row or fitting(self.config, keys, values)


class Slots:
    """The device side of a cache: its rows, once it has any, and its scratch space. Rows in a form are bytes,
    made where rows are staged and read again where they leave. Raises Refused for a form that they cannot have."""

    def __init__(self, space: Workspace, config: Config) -> None:
        row_forms.demand(config)
        self.space, self.config, self.geometry = space, config, Geometry.of(config)
        self.codec, self.residual = Codec(space, config), Residual(space, config)
        self.rows: Rows | None = None
        self._fitting = Fitting(config)

    @property
    def slots(self) -> int:
        """Count the allocated slots."""
        return 0 if self.rows is None else self.rows.slots

    def allocated(self, slots: int) -> Rows:
        """Allocate rows of this cache's geometry, not yet its own."""
        return Rows(self.space.runtime, self.geometry, slots)

    def move(self, n: int, source: Span, target: Span) -> None:
        """Copy n rows on the device."""
        move(self.space.runtime, self.geometry, n, source, target)

    def put(self, n: int, source: Place, rows: Rows, at: int) -> None:
        """Write the first n rows of a place, at least one, to the slots of others from `at` on."""
        if source.slots == 1:
            rows.write_row(source, at)
            return
        put(self.space.runtime, self.geometry, n, source, rows.place, at)

    def adopt(self, rows: Rows | None) -> None:
        """Make these the cache's rows, and release the former ones."""
        if self.rows is not None and self.rows is not rows:
            self.rows.release()
        self.rows = rows

    def staged(self, clause: str, keys: Array, values: Array) -> Place:
        """Bring the given rows to the device, in the cache's form. Raises Refused unless they have its geometry, as
        many keys as values."""
        return self.codec.in_form(self.handed(clause, keys, values))

    def handed(self, clause: str, keys: Array, values: Array) -> Place:
        """Bring the given rows to the device as they are. Raises Refused as `staged` does."""
        self.demand(clause, keys, values)
        return self.space.staged(self.codec.plain, keys, values)

    def demand(self, clause: str, keys: Array, values: Array) -> None:
        """Refuse rows of another geometry, and keys that are not as many as the values."""
        if not self._fitting(keys, values):
            raise refusals.rows(clause, self.config, keys, values)

    def read(self, n: int, first: int = 0, turn: int = 0, wrap: int = 0, whole: bool = False) -> Pair:
        """Download n rows, and nothing else, from the ring of `wrap` slots (0: n) that begins at slot `first`,
        from its `turn`th slot on. The arrays are the caller's. `whole`: rows of a residual window are read in the
        form too.
        """
        if self.rows is None or n == 0:
            return Pair(*(np.empty(self.config.shape(kind, 0), DTYPES[self.config.dtype]) for kind in "kv"))
        if self.space.checks:
            self.rows.check_guards()
        return downloaded(
            self.codec, n, Span(self.rows.place, first, turn, wrap or n), None if whole else self.residual
        )


def downloaded(codec: Codec, n: int, source: Span, residual: Residual | None = None) -> Pair:
    """Download n rows of a cache, at least one, and nothing else: `[batch, kv_heads, n, dim]`, the caller's own.
    Rows of a residual window come as they were handed in."""
    space, config = codec.space, codec.config
    span = codec.shown(n, space.straightened(codec.kept, n, source))
    if residual is not None:
        residual.lay(span.place, source.first, n)
    return Pair(_lines(space, config, "k", n, span), _lines(space, config, "v", n, span))


def _lines(space: Workspace, config: Config, kind: str, n: int, span: Span) -> Array:
    """Give contiguous rows, one line of bytes for each head."""
    place, shape, dtype = span.place, config.shape(kind, n), DTYPES[config.dtype]
    block, begin = (place.keys, place.keys_at) if kind == "k" else (place.values, place.values_at)
    size = shape[3] * dtype.itemsize
    at = begin + (span.first + span.turn) * size
    lines = space.runtime.download(block, at, n * size, shape[0] * shape[1], place.slots * size)
    return lines.view(dtype).reshape(shape)
