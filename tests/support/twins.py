"""The reference and an adapter, driven alike: every observation must be the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from kvadapters.reference import Reference
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Explicit, Part
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step

Op = dict[str, Any]


ROWS = ("state", "positions", "history", "mask", "offset", "free", "can")
"""What both must show alike."""


class Difference(AssertionError):
    """The two did not do the same."""


class Twins:
    """The reference and an adapter, driven alike; bits that no arithmetic makes are among the rows."""

    def __init__(self, adapter: Any, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        # what is held and what it costs may differ: those have bounds of their own
        self.sessions = Session(Reference(), ROWS), Session(adapter, ROWS)
        self.claims = {p: c for p, c in adapter.describe()["chapters"].items() if isinstance(c, dict)}
        self.kinds: dict[str, str] = {}
        self.configs: dict[str, Config] = {}
        self.log: list[Op] = []

    def open(self, kind: str, config: Config, name: str = "A") -> Step:
        self.kinds[name], self.configs[name] = kind, config
        return self.do({"op": "open", "cache": name}, Inputs(opening=(kind, config)))

    def append(self, n: int, name: str = "A", values: int | None = None, **changed: Any) -> Step:
        rows = self.rows(n, name, values, **changed)
        return self.do({"op": "append", "n": n, "cache": name}, Inputs(rows=rows))

    def rows(self, n: int, name: str = "A", values: int | None = None, **changed: Any) -> Pair:
        config = self.configs[name].changed(**changed)
        return Pair(self._bits(config, "k", n), self._bits(config, "v", n if values is None else values))

    def mask(self, *parts: Part, name: str = "A") -> Step:
        return self.do({"op": "mask", "parts": [], "cache": name}, Inputs(logical=parts))

    def do(self, op: Op, given: Inputs = NOTHING) -> Step:
        self.log.append(op)
        ours, theirs = (s.do(op, _own(given)) for s in self.sessions)
        self._compare(op.get("cache", "A"), ours, theirs)
        return ours

    def _bits(self, config: Config, kind: str, n: int) -> Array:
        dtype = DTYPES[config.dtype]
        shape = config.shape(kind, n)
        return self.random.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)

    def _compare(self, name: str, ours: Step, theirs: Step) -> None:
        grows = self.claims[self.kinds[name]]["grows"]
        if grows == "free" and "capacity" in ours.values and ours.result != "error":
            buffered = theirs.values["buffered"]
            self._demand(theirs.values["capacity"] >= buffered, "capacity", ours, theirs)
            ours.values["capacity"] = theirs.values["capacity"]
        for field in ("result", "clause", "message", "values"):
            self._demand(getattr(ours, field) == getattr(theirs, field), field, ours, theirs)
        self._demand(list(ours.arrays) == list(theirs.arrays), "arrays", ours, theirs)
        for what, array in ours.arrays.items():
            self._demand(_form(array) == _form(theirs.arrays[what]), what, ours, theirs)

    def _demand(self, same: bool, what: str, ours: Step, theirs: Step) -> None:
        if not same:
            raise Difference(f"{what} after {self.log} of {self.configs}:\n{ours}\n{theirs}")


def _own(given: Inputs) -> Inputs:
    """Arrays of its own for each session, because a scribble overwrites them."""
    rows = given.rows and Pair(*(a.copy() for a in given.rows))
    parts = given.logical and tuple(
        Explicit(p.array.copy()) if isinstance(p, Explicit) else p for p in given.logical
    )
    return replace(given, rows=rows, logical=parts)


def _form(array: Array | None) -> tuple[Any, ...] | None:
    """Everything about an array that must be the same."""
    return None if array is None else (array.dtype, array.shape, array.tobytes())
