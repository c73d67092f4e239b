"""Performs the operations of a trace on caches that follow the contract, and notes what was observed.

The same code drives the reference in the harness and a Python adapter in its worker process.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.contract import Lengths, Pair
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Array, Config
from kvspec.operations import MAKES, USES, Operation, argument, cache_of

OBSERVABLES = ("state", "history", "mask")
"""What can be observed beside the lengths; the harness asks for what the adapter's claims let it see."""

Open = Callable[[str, Config], Any]


@dataclass(slots=True)
class Step:
    """What one operation did.

    `result`: ok, refused, unsupported, error (the adapter raised something else), absent (the cache or
    snapshot named was never made); and, from a worker, crash, hang, oom, protocol.
    `values`: offset, retained, buffered, capacity; can (rewind); snapshot, parent, child as
    [start, stop, bytes] or None; bytes (close); intact (scribble).
    `arrays`: history.k, history.v, mask, view.k, view.v, state.k, state.v; None where there is none.
    `cites`: the clauses this step exercised, where the reference performed it.
    """

    result: str = "ok"
    clause: str = ""
    message: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array | None] = field(default_factory=dict)
    cites: tuple[str, ...] = ()


class Session:
    """Caches and snapshots by name; `do` performs one operation."""

    def __init__(self, open_cache: Open, observe: Sequence[str] = OBSERVABLES) -> None:
        self._open = open_cache
        self._observe = frozenset(observe)
        self.caches: dict[str, Any] = {}
        self.snapshots: dict[str, Any] = {}
        self._lent: dict[str, deque[tuple[Array, Array]]] = {}

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open", "cache": "A"}, opening=(profile, config))

    def do(
        self,
        op: Operation,
        rows: Pair | None = None,
        logical: masks.Logical | None = None,
        opening: tuple[str, Config] | None = None,
    ) -> Step:
        """Perform one operation. `rows` go with append, `logical` with mask, `opening` with open."""
        step, name = Step(), cache_of(op)
        try:
            if op["op"] == "open":
                assert opening is not None
                self.caches[name] = self._open(*opening)
                self._lent[name] = deque(maxlen=16)
            elif name not in self.caches or not self._named(op):
                return Step("absent")
            else:
                getattr(self, f"_{op['op']}")(self.caches[name], op, step, rows, logical)
        except (Refused, Unsupported) as e:
            step.result = "refused" if isinstance(e, Refused) else "unsupported"
            step.clause, step.message = getattr(e, "clause", ""), str(e)
        except Exception as e:
            step.result, step.message = "error", _what(e)
        self._look(name, step)
        return step

    def _named(self, op: Operation) -> bool:
        return all(op[a] in self.snapshots for a in USES.get(op["op"], ()))

    def _look(self, name: str, step: Step) -> None:
        cache = self.caches.get(name)
        if cache is None:
            return
        try:
            step.values.update(Lengths(*cache.lengths())._asdict())
            if "state" in self._observe:
                self._take(name, step, "state", cache.read("state"))
        except Exception as e:
            step.result, step.message = "error", f"observing the cache: {_what(e)}"

    def _take(self, name: str, step: Step, what: str, pair: Any) -> None:
        """Note copies of arrays that were read; the originals are the caller's, to scribble on."""
        for part, array in zip("kv", (None, None) if pair is None else pair, strict=True):
            step.arrays[f"{what}.{part}"] = self._copy(name, array)

    def _copy(self, name: str, array: Any) -> Array | None:
        if array is None:
            return None
        copy = np.array(array)
        self._lent[name].append((array, copy))
        return copy

    def _append(self, cache: Any, op: Operation, step: Step, rows: Pair | None, _: Any) -> None:
        assert rows is not None
        name = cache_of(op)
        for array in rows:
            self._copy(name, array)
        cache.append(*rows)
        if "history" in self._observe:
            self._take(name, step, "history", cache.read("history"))
        if "mask" in self._observe:
            step.arrays["mask"] = self._copy(name, cache.mask(masks.CAUSAL))

    def _mask(self, cache: Any, op: Operation, step: Step, _: Any, logical: masks.Logical | None) -> None:
        parts = masks.from_json(op["parts"]) if logical is None else logical
        for p in parts:
            if isinstance(p, masks.Explicit):
                self._copy(cache_of(op), p.array)
        step.arrays["mask"] = self._copy(cache_of(op), _offered(cache, "mask")(parts))

    def _view(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        self._take(cache_of(op), step, "view", cache.read("view"))

    def _ask(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        step.values["can"] = bool(cache.can_rewind(op["to"]))

    def _rewind(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        step.values["can"] = bool(cache.can_rewind(op["to"]))
        cache.rewind(op["to"])

    def _free(self, cache: Any, *_: Any) -> None:
        cache.free()

    def _scribble(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        """Look whether the newest arrays handed in or out still hold what they held; then overwrite them all."""
        lent = self._lent[cache_of(op)]
        step.values["intact"] = all(array.tobytes() == copy.tobytes() for array, copy in lent)
        for array in [array for array, _ in lent]:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = False if array.dtype == bool else np.nan
        lent.clear()

    def _snapshot(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        taken = _offered(cache, "snapshot")(argument(op, "start"))
        self._bind(op, step, taken)

    def _restore(self, cache: Any, op: Operation, *_: Any) -> None:
        _offered(cache, "restore")(self.snapshots[op["name"]], op["to"])

    def _merge(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        parent, child = self.snapshots[op["parent"]], self.snapshots[op["child"]]
        self._bind(op, step, _offered(cache, "merge")(parent, child))

    def _split(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        parent, child = _offered(cache, "split")(self.snapshots[op["name"]], op["at"])
        self._bind(op, step, parent, child)

    def _close(self, cache: Any, op: Operation, step: Step, *_: Any) -> None:
        snapshot = self.snapshots[op["name"]]
        if snapshot is not None:
            snapshot.close()
            step.values["bytes"] = snapshot.nbytes

    def _bind(self, op: Operation, step: Step, *made: Any) -> None:
        for name, snapshot in zip(MAKES[op["op"]], made, strict=True):
            self.snapshots[op[name]] = snapshot
            seen = None if snapshot is None else [snapshot.start, snapshot.stop, snapshot.nbytes]
            step.values["snapshot" if name == "name" else name] = seen


def _offered(cache: Any, method: str) -> Callable[..., Any]:
    found = getattr(cache, method, None)
    if found is None:
        raise Unsupported(f"this cache has no {method}")
    return found  # type: ignore[no-any-return]


def _what(e: Exception) -> str:
    """One line: the exception and the place in the adapter where it was raised."""
    last = traceback.extract_tb(e.__traceback__)[-1]
    return f"{type(e).__name__}: {' '.join(str(e).split())} ({last.filename.rpartition('/')[2]}:{last.lineno})"
