"""Checks a peer's output before any time is taken, and chooses its fastest form.

An output is right if each element is within C u sum(p |v|) of its value in f64. Here p are the weights, and u is
half a unit in the last place of the rows' dtype, to which weights may be rounded. C is 4; in f32 it is 16, for the
sums. An output in the dtype of the rows may be off by u |out| more.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.host_arrays import Library, Rows
from kvspec.geometry import Array

UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
SUMS = {"f32": 16.0, "f16": 4.0, "bf16": 4.0}
LOST = {"f32": 0.0, "f16": 2.0**-24, "bf16": 0.0}
"""What a number may lose because it is too small for its dtype."""

CHECKED = 1 << 27
"""Elements of keys to check. In a larger batch only some entries are checked, at equal distances from the first to
the last."""

TRIES, EACH = 3, 8
"""Turns of each form, and the operations of a turn by a device's clock. The fastest turn counts."""

Make = Callable[[Rows], Job]
Clock = Callable[[Callable[[], object]], float]
Bound = tuple[Array, Array]
"""Exact outputs `[heads, n, v_dim]` of an entry, and how far off each may be."""


class Wrong(Exception):
    """A peer computed wrong numbers, or failed; so it gets no time."""


def demand(dtype: str, out: Array, queries: Array, keys: Array, values: Array, seen: int | None = None) -> None:
    """Raise Wrong unless outputs `[B, heads, n, v_dim]` are within the bound, for queries `[B, heads, n, k_dim]` at
    the last n of `seen` rows (all) of keys and values `[B, kv_heads, rows, dim]`."""
    for b, entry in enumerate(zip(queries, keys, values, strict=True)):
        _compare(out[b], _bound(dtype, *entry, seen), b)


def _compare(out: Array, bound: Bound, b: int) -> None:
    wanted, most = bound
    off = np.abs(out.reshape(wanted.shape) - wanted) / most
    wrong = ~(off <= 1).all((1, 2))
    if wrong.any():
        head = int(np.argmax(wrong))
        raise Wrong(f"an output of head {head} of entry {b} is {np.nanmax(off[head]):.3g} times its bound away")


def _bound(dtype: str, queries: Array, keys: Array, values: Array, seen: int | None) -> Bound:
    """Compute what an entry's outputs must be within."""
    groups = np.split(queries.astype(np.float64), len(keys))
    wanted, sizes = zip(*(_exact(*head, seen) for head in zip(groups, keys, values, strict=True)), strict=True)
    exact = np.concatenate(wanted)
    bound = UNIT[dtype] * (SUMS[dtype] * np.concatenate(sizes) + np.abs(exact)) + LOST[dtype] * keys.shape[1]
    return exact, bound


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


class Checks:
    """Compares outputs over the same rows, of several forms; what is exact is computed once."""

    def __init__(self, dtype: str) -> None:
        self._dtype, self._bounds = dtype, dict[tuple[int, int], Bound]()

    def compare(
        self, call: int, b: int, out: Array, rows: Callable[[], Iterable[Array]], seen: int | None = None
    ) -> None:
        """Raise Wrong if the outputs of an entry in a call are wrong. `rows` gives its queries, keys and values."""
        if (call, b) not in self._bounds:
            queries, keys, values = rows()
            self._bounds[call, b] = _bound(self._dtype, queries, keys, values, seen)
        _compare(out, self._bounds[call, b], b)


class Checked:
    """A library whose outputs are checked."""

    def __init__(self, library: Any, checks: Checks) -> None:
        self._library, self._checks, self._calls = library, checks, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend, and compare with outputs in f64."""
        out = self._library.attend(queries, keys, values, seen)
        self._compare([seen] * len(queries), out, queries, keys, values)
        return out

    def step(self, queries: Any, cache: Any, new: Any, seen: Any = None) -> tuple[Any, Any]:
        """Write and attend in one call, and compare likewise. The library brings what it has in the usual order."""
        out, cache = self._library.step(queries, cache, new, seen)
        lengths = [None] * len(queries) if seen is None else self._library.host(seen).tolist()
        self._compare(lengths, *self._library.in_order(out, queries, *cache))
        return out, cache

    def _compare(self, seen: Sequence[int | None], out: Any, queries: Any, keys: Any, values: Any) -> None:
        host = self._library.host
        for b in _entries(len(queries), prod(keys.shape[1:])):
            rows = partial(map, host, (queries[b], keys[b], values[b]))
            self._checks.compare(self._calls, b, host(out[b]), rows, seen[b])
        self._calls += 1

    def attend_pages(self, queries: Any, pool: tuple[Any, Any], plan: Any) -> Any:
        """Attend through block tables, and compare likewise."""
        out, host = self._library.attend_pages(queries, pool, plan), self._library.host
        tables, lengths = plan.batch.tables, plan.batch.lengths
        for b in _entries(len(queries), int(lengths.max()) * prod(pool[0].shape[1::2])):
            pages = (_in_order(host(part[tables[b].tolist()]), lengths[b]) for part in pool)
            self._checks.compare(self._calls, b, host(out[b]), partial(chain, (host(queries[b]),), pages))
        self._calls += 1
        return out


def _in_order(pages: Array, count: int) -> Array:
    """Give rows `[kv_heads, count, dim]` of pages `[pages, kv_heads, page, dim]`."""
    rows = pages.swapaxes(0, 1)
    return rows.reshape(len(rows), -1, rows.shape[3])[:, :count]


def _entries(count: int, each: int) -> list[int]:
    """Choose the entries to check, where each has this many elements of keys."""
    most = max(2, CHECKED // each)
    return sorted({*np.linspace(0, count - 1, min(count, most)).astype(int).tolist()})


class OneOf:
    """Stands for one of several forms of a library, which may change."""

    def __init__(self, form: Library) -> None:
        self.now = form

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


def fastest(
    forms: Sequence[Library],
    make: Make,
    case: Case,
    memory: int,
    wait: Callable[[], None],
    clock: Clock | None = None,
) -> Job:
    """Make the work, in the form of a library that does it fastest, of those that are right; by the device's clock
    if there is one. A form that fails takes no part. Raises Wrong if none is left."""
    one, checks = OneOf(forms[0]), Checks(case.dtype)
    job = make(Rows(one, case, memory))
    taken, why = list[tuple[float, int]](), ""
    for i, form in enumerate(forms):
        try:
            one.now = Checked(form, checks)
            _quietly(job)
            one.now = form
            taken.append((min(_seconds(job, 1 + EACH * turn, wait, clock) for turn in range(TRIES)), i))
        except Exception as e:  # whatever a library raises where it cannot do this
            why = why or reason(e)
    if not taken:
        raise Wrong(why)
    one.now = forms[min(taken)[1]]
    return job._replace(about={"form": one.now.form})


def _quietly(job: Job) -> None:
    """Do the first operation: what refuses it may warn, beside its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.do(0)


def reason(error: Exception) -> str:
    """Say in a line why a peer gets no time."""
    if isinstance(error, Wrong):
        return str(error)
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"[:200]


def _seconds(job: Job, first: int, wait: Callable[[], None], clock: Clock | None) -> float:
    """Time operations by the device's clock, or one until all is done."""
    if clock is not None:
        return clock(lambda: [job.do(i) for i in range(first, first + EACH)])
    wait()
    began = time.perf_counter()
    job.do(first)
    wait()
    return time.perf_counter() - began
