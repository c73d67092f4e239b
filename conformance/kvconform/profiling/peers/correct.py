"""Checks a peer's output before any time is taken, and chooses its fastest form.

An output is right if no element is further from that in f64 than C u sum(p |v|), where p are the weights and u is
half a unit in the last place of the rows' dtype, which weights may be rounded to. C is 4; in f32 it is 16, for the
sums. An output in the dtype of the rows may be off by u |out| more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kvconform.profiling.case import Case
from kvconform.profiling.operation import Job
from kvconform.profiling.peers.host_arrays import Library, Rows
from kvspec.geometry import Array

UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
SUMS = {"f32": 16.0, "f16": 4.0, "bf16": 4.0}
LOST = {"f32": 0.0, "f16": 2.0**-24, "bf16": 0.0}
"""What a number may lose because it is too small for its dtype."""

TRIES = 3
"""Turns of each form; the fastest of them counts."""

Make = Callable[[Rows], Job]


class Wrong(Exception):
    """A peer computed wrong numbers; so it gets no time."""


def demand(dtype: str, out: Array, queries: Array, keys: Array, values: Array, seen: int | None = None) -> None:
    """Raise Wrong unless outputs `[B, heads, n, v_dim]` are within the bound, for queries `[B, heads, n, k_dim]` at
    the last n of `seen` rows (all) of keys and values `[B, kv_heads, rows, dim]`."""
    for b, head, asked, group in _groups(queries, keys.shape[1]):
        wanted, sizes = _exact(asked, keys[b, head], values[b, head], seen)
        found = out[b, group].reshape(wanted.shape).astype(np.float64)
        bound = UNIT[dtype] * (SUMS[dtype] * sizes + np.abs(wanted)) + LOST[dtype] * keys.shape[2]
        off = np.abs(found - wanted) / bound
        if not (off <= 1).all():
            raise Wrong(f"an output for kv head {head} of entry {b} is {np.nanmax(off):.3g} times its bound away")


def _groups(queries: Array, kv_heads: int) -> Iterator[tuple[int, int, Array, slice]]:
    """Give each kv head of each entry, with the queries of its group and which heads these are."""
    each = queries.shape[1] // kv_heads
    for b, head in np.ndindex(len(queries), kv_heads):
        group = slice(head * each, (head + 1) * each)
        yield b, head, queries[b, group].astype(np.float64), group


def _exact(queries: Array, keys: Array, values: Array, seen: int | None) -> tuple[Array, Array]:
    """Compute outputs `[group, n, v_dim]`, and the weighted means of |v|, in f64."""
    n, rows = queries.shape[1], len(keys)
    scores = queries @ keys.astype(np.float64).T / np.sqrt(queries.shape[2])
    ahead = np.arange(rows) > (seen or rows) - n + np.arange(n)[:, None]
    scores[:, ahead] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    exact = values.astype(np.float64)
    return weights @ exact, weights @ np.abs(exact)


class Checked:
    """A library whose first output is checked."""

    def __init__(self, library: Library, dtype: str) -> None:
        self._library, self._dtype, self._waits = library, dtype, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend; the first output is compared with that in f64."""
        out = self._library.attend(queries, keys, values, seen)
        if self._waits:
            self._waits = False
            host = self._library.host
            demand(self._dtype, host(out), host(queries), host(keys), host(values), seen)
        return out


def fastest(forms: Sequence[Library], make: Make, case: Case, wait: Callable[[], None]) -> Library:
    """Give the form of a library that does the work fastest, of those that are right. Raises Wrong if none is."""
    taken, wrong = list[tuple[float, int]](), ""
    for i, form in enumerate(forms):
        job = make(Rows(Checked(form, case.dtype), case, memory=1))
        try:
            job.do(0)
        except Wrong as e:
            wrong = wrong or str(e)
        else:
            taken.append((min(_seconds(job, wait) for _ in range(TRIES)), i))
    if not taken:
        raise Wrong(wrong)
    return forms[min(taken)[1]]


def _seconds(job: Job, wait: Callable[[], None]) -> float:
    wait()
    began = time.perf_counter()
    job.do(1)
    wait()
    return time.perf_counter() - began
