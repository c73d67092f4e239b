"""JAX: a step that writes rows and attends is one compiled call, into buffers that it gives away to itself.

Arrays of JAX do not change: each call makes new ones, in the memory of those it was given. They lie as JAX attends
to them, `[B, rows, heads, dim]`. JAX computes on a stream of its own, so only whole times are measured.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.array_work import ArrayPeer
from kvprofile.peers.host_arrays import Library, Rows
from kvspec.geometry import DTYPES, Array

ROWS = 1
"""The axis of rows."""


class Arrays:
    """JAX as a library of arrays, which attends by one implementation."""

    def __init__(self, implementation: str = "xla") -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes most of the GPU's memory
        self.jax: Any = importlib.import_module("jax")
        self.form, self.numpy = implementation, importlib.import_module("jax.numpy")
        self.latest = dict[int, Any]()
        self._written = self.jax.jit(self._write, donate_argnums=0, static_argnums=(2, 3, 4))
        self._stepped = self.jax.jit(self._step, donate_argnums=1)
        self._attended = self.jax.jit(self._attend)

    def wrap(self, array: Array) -> Any:
        """Copy an array."""
        return self.numpy.array(array)

    def queries(self, array: Array, dtype: str) -> Any:
        """Make queries `[B, n, heads, dim]` in the dtype of the rows."""
        return self.turned(self.wrap(array.astype(DTYPES[dtype])))

    def turned(self, array: Any) -> Any:
        """Turn `[B, heads, n, dim]` into `[B, n, heads, dim]`, in memory too; and back."""
        return self.numpy.swapaxes(array, 1, 2)

    def host(self, array: Any) -> Array:
        """Copy to the host."""
        found: Array = self.jax.device_get(array)
        return found

    def in_order(self, *arrays: Any) -> list[Any]:
        """Turn all of these."""
        return [self.turned(array) for array in arrays]

    def step(self, queries: Any, cache: Any, new: Any, seen: Any = None) -> tuple[Any, Any]:
        """Write new rows behind all others, if there are any, and attend. Returns outputs and the cache."""
        if new is None:
            return self._attended(queries, *cache, seen), cache
        found: tuple[Any, Any] = self._stepped(queries, cache, new)
        return found

    def write(self, state: Any, new: Any, axis: int, low: int, high: int) -> Any:
        """Write rows at the position that the state holds, which then moves on, between low and high."""
        return self._written(state, new, axis, low, high)

    def _step(self, queries: Any, cache: Any, new: Any) -> tuple[Any, Any]:
        behind = cache[0].shape[ROWS] - new[0].shape[ROWS]
        cache = self._update(cache, new, ROWS, behind)
        return self._attend(queries, *cache), cache

    def _write(self, state: Any, new: Any, axis: int, low: int, high: int) -> Any:
        *cache, at = state
        n = new[0].shape[axis]
        return *self._update(cache, new, axis, at), low + (at - low + n) % (high - low)

    def _update(self, cache: Any, new: Any, axis: int, at: Any) -> tuple[Any, ...]:
        update = self.jax.lax.dynamic_update_slice_in_dim
        return tuple(update(to, rows, at, axis) for to, rows in zip(cache, new, strict=True))

    def _attend(self, queries: Any, keys: Any, values: Any, seen: Any = None) -> Any:
        """Attend causally: the last query sees all rows, or those of its sequence."""
        (n, rows), jnp = (queries.shape[ROWS], keys.shape[ROWS]), self.numpy
        mask = None if n == 1 else (jnp.arange(rows) <= jnp.arange(n)[:, None] + rows - n)[None, None]
        with self.jax.default_matmul_precision("highest" if keys.dtype == jnp.float32 else "default"):
            return self.jax.nn.dot_product_attention(
                queries, keys, values, mask=mask, key_value_seq_lengths=seen, implementation=self.form
            )


def _caches(rows: Rows, count: int, most: int = 256, kind: int = 0) -> list[Any]:
    """Make keys and values `[B, rows, kv_heads, dim]` in rotation."""
    library: Any = rows.library
    return [library.in_order(*pair) for pair in rows.caches(count, most, kind)]


def attend(rows: Rows, new: int = 0, behind: bool = True, ragged: bool = False) -> Job:
    """Write new rows, if there are any: behind the context or as the last of it. Then attend over all."""
    library: Any = rows.library
    asked, caches = rows.queries(), _caches(rows, rows.case.context + (new if behind else 0))
    sources = _caches(rows, new, 64, 1) if new else [None]
    seen = library.wrap(np.array(rows.case.lengths, np.int32)) if ragged else None

    def do(i: int) -> None:
        at = i % len(caches)
        library.latest[at], caches[at] = library.step(asked, caches[at], sources[i % len(sources)], seen)

    return Job(do)


def write(library: Any, caches: list[Any], sources: list[Any], axis: int, span: range) -> Job:
    """Write rows at positions of a span, from its first to its last and again."""
    states = [(*cache, library.wrap(np.array(span.start, np.int32))) for cache in caches]

    def do(i: int) -> None:
        at = i % len(states)
        states[at] = library.write(states[at], sources[i % len(sources)], axis, span.start, span.stop)
        library.latest[at] = states[at][-1]

    return Job(do)


def append(rows: Rows) -> Job:
    """Write rows behind the context of a buffer that has room."""
    case = rows.case
    span = range(case.context, case.context + case.context // case.rows * case.rows)
    return write(rows.library, _caches(rows, 2 * case.context), _caches(rows, case.rows, 64, 1), ROWS, span)


def turn(rows: Rows) -> Job:
    """Write one row into the slot of the oldest."""
    return write(
        rows.library, _caches(rows, rows.case.context), _caches(rows, 1, 64, 1), ROWS, range(rows.case.context)
    )


def layered(rows: Rows) -> Job:
    """Write rows of all layers into arrays `[layers, kv_heads, rows, dim]`."""
    case, model = rows.case, rows.case.model
    stores = rows.pairs((model.layers, model.kv_heads, case.context), 256)
    sources = rows.pairs((model.layers, model.kv_heads, case.rows), kind=1)
    return write(rows.library, stores, sources, 2, range(case.context // case.rows * case.rows))


def step(rows: Rows) -> Job:
    """Write one row of every sequence and layer at once: all sequences have the same length."""
    shape = rows.case.model.layers, rows.case.batch, rows.case.model.kv_heads
    batch, sources = rows.pairs((*shape, rows.case.context), 1), rows.pairs((*shape, 1))
    return write(rows.library, batch, sources, 3, range(rows.case.context))


WORK: dict[str, Callable[[Rows], Job]] = {
    "append": append,
    "ring append": turn,
    "store append": layered,
    "batch step": step,
    "captured step": step,
    "attention": lambda rows: attend(rows, rows.case.rows),
    "ring attention": lambda rows: attend(rows, rows.case.rows, behind=False),
    "captured attention": lambda rows: attend(rows, rows.case.rows, behind=False),
    "batch attention": attend,
    "ragged attention": lambda rows: attend(rows, ragged=True),
}
"""The operations it has."""


class Jax(ArrayPeer):
    """The peer. On a GPU it attends by XLA or by cuDNN."""

    name = "jax"
    work = MappingProxyType(WORK)

    def __init__(self) -> None:
        self.jax = Arrays().jax
        self.on_gpu = self.jax.default_backend() == "gpu"
        self.libraries = [Arrays("xla"), *([Arrays("cudnn")] if self.on_gpu else [])]
        super().__init__(*cast(list[Library], self.libraries))
        where, how = self.jax.devices()[0].device_kind, "dynamic_update_slice into donated buffers and"
        self.words = f"jax {self.jax.__version__} on {where}: {how} dot_product_attention, in one compiled call"

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case; appending a chunk to a ring is not among it."""
        self.wait()
        return None if case.operation == "ring append" and case.rows > 1 else super().job(case, memory)

    def wait(self) -> None:
        """Wait for the last output of every cache."""
        for library in self.libraries:
            self.jax.block_until_ready([*library.latest.values()])
            library.latest.clear()
