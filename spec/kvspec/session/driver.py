"""Performs the operations of a trace on an adapter's caches, and notes what was observed.

The same code drives the reference in the harness and a Python adapter in its worker process. What each
operation does is in `kvspec.session.operations`.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.contract import METERED, Pair
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Array, Config
from kvspec.operations.table import NAMES, Operation, cache_of, names_used
from kvspec.session.operations import DO, LOOK, draft

OBSERVABLES = ("state", "history", "mask", "held", "meter")
"""What can be observed beside the lengths; the harness asks for what the adapter's claims let it see."""


@dataclass(frozen=True)
class Given:
    """What goes with an operation: rows with those that write, queries with those that attend, a logical mask with
    mask and attend, profile and config with open, init and fit."""

    rows: Pair | None = None
    queries: Array | None = None
    logical: masks.Logical | None = None
    opening: tuple[str, Config] | None = None


NOTHING = Given()


@dataclass(slots=True)
class Step:
    """What one operation did.

    `result`: ok, refused, unsupported, error (the adapter raised something else), absent (the cache or
    name was never made); and, from a worker, crash, hang, oom, protocol.
    `values`: offset, retained, buffered, capacity; can (rewind); snapshot, parent, child as
    [start, stop, bytes] or None; bytes (close); intact (scribble); drafted; lengths, sequences, moved; held, plan,
    fit, meter; sequence, free, references and table.0 (page); past, bound, key, extent (bucket). After an
    operation on a whole round those of cache X end in `.X`.
    `arrays`: history.k, history.v, mask, view.k, view.v, state.k, state.v; output, rotated; gathered.k, page.k
    (page); None where there is none. Those of cache X after an operation on a whole round are state.X.k, those of a
    store's layer 0 state.0.k and saved.0.k, and of sequence 1 of its batch batch.0.1.k; those of a paged cache's
    sequence 1 state.1.k; those of a bucketed cache's layer 0 state.0.k, host.0.k and handle.0.k: what is
    observed comes first, whether of keys or values last.
    `cites`: the clauses this step exercised, where the reference performed it.
    """

    result: str = "ok"
    clause: str = ""
    message: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array | None] = field(default_factory=dict)
    cites: tuple[str, ...] = ()


class Session:
    """Caches, snapshots, rounds, saved stores and captured work by name; `do` performs one operation."""

    def __init__(self, adapter: Any, observe: Sequence[str] = OBSERVABLES) -> None:
        self.adapter = adapter
        self.observe = frozenset(observe)
        self.caches: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}
        self.configs: dict[str, Config] = {}
        self.lent: dict[str, deque[tuple[Any, Array]]] = {}
        self.names: dict[str, dict[str, Any]] = {kind: {} for kind in set(NAMES.values())}
        self._now = "A"

    @property
    def snapshots(self) -> dict[str, Any]:
        """Snapshots by name."""
        return self.names["snapshot"]

    @property
    def rounds(self) -> dict[str, Any]:
        """Rounds of speculation by name."""
        return self.names["round"]

    @property
    def saved(self) -> dict[str, Any]:
        """Host snapshots of stores by name."""
        return self.names["saved store"]

    @property
    def captured(self) -> dict[str, Any]:
        """Captured work by name."""
        return self.names["captured work"]

    @property
    def config(self) -> Config:
        """What the cache of the operation under way was opened with."""
        return self.configs[self._now]

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open", "cache": "A"}, Given(opening=(profile, config)))

    def do(self, op: Operation, given: Given = NOTHING) -> Step:
        """Perform one operation."""
        step = Step()
        self._now = name = cache_of(op)
        try:
            if op["op"] == "open":
                self._open(name, given)
            elif name not in self.caches or not self._named(op):
                return Step("absent")
            else:
                DO[op["op"]](self, self.caches[name], op, step, given)
        except (Refused, Unsupported) as e:
            step.result = "refused" if isinstance(e, Refused) else "unsupported"
            step.clause, step.message = getattr(e, "clause", ""), str(e)
        except Exception as e:
            step.result, step.message = "error", _what(e)
        self._look(op, step)
        return step

    def _open(self, name: str, given: Given) -> None:
        assert given.opening is not None
        self.caches[name] = self.adapter.open(*given.opening)
        self.kinds[name], self.configs[name] = given.opening
        self.lent[name] = deque(maxlen=32)

    def _named(self, op: Operation) -> bool:
        there = self.names.get(NAMES.get(op["op"], ""), {})
        layers = set(op.get("layers", "")) - {"-"} if op["op"] == "speculate" else set[str]()
        return all(name in there for name in names_used(op)) and layers <= set(self.caches)

    def _look(self, op: Operation, step: Step) -> None:
        name = cache_of(op)
        if name not in self.caches:
            return
        try:
            if op["op"] in draft.WHOLE:
                draft.look(self, op, step)
            else:
                LOOK[self.kinds[name]](self, self.caches[name], step)
        except Exception as e:
            step.result, step.message = "error", f"observing the cache: {_what(e)}"

    def speculating(self, cache: Any) -> bool:
        """Whether the cache is in a round that is open and may write through to it."""
        live = (r for r in self.rounds.values() if r.open and not r.isolated)
        return any(c is cache for r in live for c in r.caches)

    def handed(self, op: Operation, given: Given) -> tuple[Any, ...]:
        """The queries and rows given, noted as lent; on the device already where the operation says so."""
        arrays = (*(() if given.queries is None else (given.queries,)), *(given.rows or ()))
        for array in arrays:
            self.keep(array)
        if not op.get("resident"):
            return arrays
        place = getattr(self.adapter, "place", None)
        if place is None:
            raise Unsupported("this adapter has no place for rows on a device")
        placed = tuple(place(*arrays))
        for array, there in zip(arrays, placed, strict=True):
            self._lend_there(there, np.array(array))
        return placed

    def take(self, step: Step, what: str, pair: Any) -> None:
        """Note copies of arrays that were read; the originals are the caller's, to scribble on."""
        for part, array in zip("kv", (None, None) if pair is None else pair, strict=True):
            step.arrays[f"{what}.{part}"] = self.keep(array)

    def keep(self, array: Any) -> Array | None:
        """A copy of an array that was handed in or out, which is remembered as lent."""
        if array is None:
            return None
        copy = np.array(array)
        self.lent[self._now].append((array, copy))
        return copy

    def keep_there(self, array: Any) -> Array:
        """The same of one on the device."""
        copy = np.array(self.adapter.fetch(array))
        self._lend_there(array, copy)
        return copy

    def _lend_there(self, array: Any, copy: Array) -> None:
        self.lent[self._now].append((Placed(array, self.adapter.fetch), copy))

    @contextmanager
    def metered(self, step: Step) -> Iterator[None]:
        """Note what the adapter's meter counts meanwhile, where that is observed; of what is refused as well."""
        read = getattr(self.adapter, "meter", None) if "meter" in self.observe else None
        if read is None:
            yield
            return
        before = dict(read())
        try:
            yield
        finally:
            after = read()
            step.values["meter"] = {name: int(after[name]) - int(before[name]) for name in METERED}

    def held(self, cache: Any, step: Step, which: str = "") -> None:
        """Note the bytes of rows a cache has allocated, where that is observed."""
        if "held" in self.observe and hasattr(cache, "held"):
            step.values[f"held{which}"] = int(cache.held())


@dataclass(frozen=True)
class Placed:
    """An array on the device that was lent: what it holds can be fetched at any time."""

    array: Any
    fetch: Callable[[Any], Any]

    def tobytes(self) -> bytes:
        """What it holds now, as arrays of the host say it."""
        return np.asarray(self.fetch(self.array)).tobytes()


def _what(e: Exception) -> str:
    """One line: the exception and the place in the adapter where it was raised."""
    last = traceback.extract_tb(e.__traceback__)[-1]
    return f"{type(e).__name__}: {' '.join(str(e).split())} ({last.filename.rpartition('/')[2]}:{last.lineno})"
