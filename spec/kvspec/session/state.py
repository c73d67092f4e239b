"""The state of a session during a trace: caches and names, and the arrays that were passed in or out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.chapters.record import METERED
from kvspec.contract import Description
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config, Pair
from kvspec.operations.input_forms import INPUT_FORMS
from kvspec.operations.table import ARGUMENTS, NAMED, TAKES_ROWS, Operation, argument, numbers_in
from kvspec.registry import OBSERVABLES
from kvspec.session.arrays import Lent, OutputRoom
from kvspec.session.step import Inputs, Step


class SessionState:
    """Caches, snapshots, rounds, saved stores and captured work by name; and methods that observe them."""

    def __init__(self, adapter: Any, observe: Sequence[str] = OBSERVABLES, said: Description | None = None) -> None:
        """`said` is how the adapter describes itself, where it was asked before."""
        self.adapter, self._said = adapter, said
        self.observe = frozenset(observe)
        self.caches: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}
        self.configs: dict[str, Config] = {}
        self.lent: dict[str, Lent] = {}
        self.names: dict[str, dict[str, Any]] = {kind: {} for kind in NAMED}
        self._now = "A"
        self._left_to_caller: dict[str, bool] = {}
        self.unseen = False
        """Whether the operation at hand is one of a run and not its last: nothing of it is observed."""

    def shows_state(self, cache: Any) -> bool:
        """Whether what a cache keeps can be read: where its kind is claimed at level visible it cannot, though that
        of another kind in the same trace can."""
        kind = next((self.kinds[name] for name, each in self.caches.items() if each is cache), "")
        claim = self._said.chapters.get(kind) if self._said else None
        return claim is None or claim.level != "visible"

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
    def parcels(self) -> dict[str, Any]:
        """Parcels by name."""
        return self.names["parcel"]

    @property
    def captured(self) -> dict[str, Any]:
        """Captured work by name."""
        return self.names["captured work"]

    @property
    def config(self) -> Config:
        """Give the config of the current operation's cache."""
        return self.configs[self._now]

    def speculating(self, cache: Any) -> bool:
        """Tell whether the cache is in an open round that may write through to it."""
        live = (r for r in self.rounds.values() if r.open and not r.isolated)
        return any(c is cache for r in live for c in r.caches)

    def handed(self, op: Operation, inputs: Inputs) -> tuple[Any, ...]:
        """Give the queries and rows to pass in, in the form that the operation names, and note them as lent. They
        are on the device if the operation says so, else arrays of the engine if the adapter makes those."""
        given = (*(() if inputs.queries is None else (inputs.queries,)), *(inputs.rows or ()))
        arrays = tuple(map(INPUT_FORMS[op.get("input", "plain")], given))
        if not op.get("resident"):
            own = tuple(map(getattr(self.adapter, "to_engine", np.asarray), arrays))
            for array, passed in zip(arrays, own, strict=True):
                self.keep(array.base if passed is array and not array.flags.writeable else passed)
            return own
        for array in arrays:
            self.keep(array)
        placed = tuple(self._placing()(*arrays))
        for array, there in zip(arrays, placed, strict=True):
            self._lend_there(there, np.array(array))
        return placed

    def _placing(self) -> Callable[..., Any]:
        place: Callable[..., Any] | None = getattr(self.adapter, "place", None)
        if place is None:
            raise Unsupported("this adapter has no place for rows on a device")
        return place

    def room(self, op: Operation, inputs: Inputs) -> Any:
        """A given output, where the operation has one: of the right size and dtype, if it says nothing else."""
        if not argument(op, "into"):
            return None
        assert inputs.queries is not None
        *front, rows, _ = inputs.queries.shape
        sizes = ("out_rows", rows), ("out_dim", self.config.v_dim)
        shape = (*front, *(own if op.get(name) is None else op[name] for name, own in sizes))
        writeable = bool(op.get("resident")) or not argument(op, "out_readonly")
        return self.make_room(shape, op.get("out_dtype") or "f32", writeable, bool(op.get("resident")))

    def make_room(self, shape: tuple[int, ...], dtype: str, writeable: bool, resident: bool) -> Any:
        """An output to be written to."""
        return OutputRoom(shape, dtype, writeable, self.adapter if resident else None)

    def wait(self) -> None:
        """Wait until the adapter has done all that it was asked for, if it offers that and this is observed."""
        synchronise = None if self.unseen else getattr(self.adapter, "synchronise", None)
        if synchronise is not None:
            synchronise()

    def take(self, step: Step, what: str, pair: Any, arranged: Callable[[Array], Array] = np.asarray) -> None:
        """Note copies of arrays that were read, `arranged` as `[B, H, n, dim]`; the originals are the caller's, to
        scribble on."""
        self.wait()
        for part, array in zip("kv", (None, None) if pair is None else pair, strict=True):
            copy = self.keep(array)
            step.arrays[f"{what}.{part}"] = None if copy is None else arranged(copy)

    def history(self, cache: Any, step: Step) -> None:
        """Read what the queries of the latest append attend to."""
        self.wait()
        if "history" in self.observe:
            self.take(step, "history", cache.read("history"))
        if "mask" in self.observe:
            self.note(step, "mask", cache.mask(masks.CAUSAL))

    def note(self, step: Step, what: str, array: Any, resident: bool = False) -> None:
        """Note a copy of a mask, or of an output."""
        self.wait()
        step.arrays[what] = (self.keep_there if resident else self.keep)(array)

    def copied(self, pair: Any) -> Any:
        """Copies of key and value rows, to be handed back later."""
        return Pair(*(np.array(a) for a in pair))

    def resized(self, array: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        """Rows cut or padded with zeros to a shape, in another dtype if one is given."""
        new = np.zeros(shape, array.dtype)
        part = tuple(slice(min(a, b)) for a, b in zip(shape, array.shape, strict=True))
        new[part] = array[part]
        with np.errstate(invalid="ignore", over="ignore"):  # of NaN and of numbers too large
            return new if dtype is None else new.astype(DTYPES[dtype])

    def keep(self, array: Any) -> Array | None:
        """Remember an array that was passed in or out as lent, with a copy. Make no copy while nothing is
        observed, because an engine may do deferred work when its array is read."""
        if array is None:
            return None
        read = None if isinstance(array, np.ndarray) else getattr(self.adapter, "from_engine", None)
        lent = EngineArray(array, read) if read else np.asarray(array)
        copy = None if self.unseen else np.array(read(array) if read else lent)
        self.lent[self._now].append((lent, copy))
        return copy

    def keep_there(self, array: Any) -> Array | None:
        """Remember an array on the device as lent, with a copy, if something is observed."""
        if self.unseen:
            return None
        copy = np.array(self.adapter.fetch(array))
        self._lend_there(array, copy)
        return copy

    def _lend_there(self, array: Any, copy: Array) -> None:
        self.lent[self._now].append((Placed(array, self.adapter.fetch), copy))

    def metered(self, step: Step) -> AbstractContextManager[None]:
        """Note what the adapter's meter counts meanwhile, if that is observed; also for refused operations."""
        read = getattr(self.adapter, "meter", None) if "meter" in self.observe else None
        return nullcontext() if read is None else Metered(read, step)

    def held(self, cache: Any, step: Step, which: str = "") -> None:
        """Note the bytes of rows a cache has allocated, if that is observed."""
        if "held" in self.observe and hasattr(cache, "held"):
            step.values[f"held{which}"] = int(cache.held())


class Metered:
    """Notes what a meter counts while an operation runs."""

    def __init__(self, read: Callable[[], Mapping[str, int]], step: Step) -> None:
        self._read, self._step = read, step

    def __enter__(self) -> None:
        self._before = dict(self._read())

    def __exit__(self, *raised: object) -> None:
        before, after = self._before, self._read()
        self._step.values["meter"] = {name: int(after[name]) - int(before[name]) for name in METERED}


@dataclass(frozen=True)
class Placed:
    """An array lent on the device; its content can be fetched at any time."""

    array: Any
    fetch: Callable[[Any], Any]

    def tobytes(self) -> bytes:
        """Give its current content as bytes, like a host array."""
        return np.asarray(self.fetch(self.array)).tobytes()


class EngineArray(Placed):
    """An array of the engine's own, lent as it is and read by the adapter's `from_engine`."""

    def overwrite(self, value: float) -> None:
        """Overwrite its elements, unless it is an array that nothing changes."""
        with suppress(Exception):
            self.array[...] = value


def offered(thing: Any, method: str) -> Callable[..., Any]:
    """Get a method that not every adapter has. Raises Unsupported if it is missing."""
    found = getattr(thing, method, None)
    if found is None:
        raise Unsupported(f"this adapter has no {method}")
    return found  # type: ignore[no-any-return]


def metered(session: SessionState, step: Step, thing: Any, method: str, *arguments: Any) -> Any:
    """Call a method that not every adapter has, and note what the meter counts. Raises Unsupported."""
    with session.metered(step):
        return offered(thing, method)(*arguments)


def call(method: str, *names: str) -> Callable[..., None]:
    """Make an operation that is one metered call of a cache's method. It passes the operation's rows, if there are
    any, then its arguments of these names."""

    def do(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
        rows = session.handed(op, inputs) if op["op"] in TAKES_ROWS else ()
        values = [numbers_in(op[n]) if ARGUMENTS[op["op"]][n].holds == "list" else op[n] for n in names]
        metered(session, step, cache, method, *rows, *values)

    return do
