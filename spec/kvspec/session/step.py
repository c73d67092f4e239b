"""The inputs and the result of one operation of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct, field

from kvspec import masks
from kvspec.geometry import Array, Config, Pair


class EachInputs(Protocol):
    """The inputs of the operations of a run, one after another."""

    def make(self, op: dict[str, Any]) -> Inputs:
        """Give the inputs of the next operation, which is this one."""

    def done(self, op: dict[str, Any], result: str) -> None:
        """Note how it ended."""


class Inputs(Struct, frozen=True):
    """Inputs of an operation. Writes have rows, and attends have queries. Mask and attend have a logical mask.
    Open, init and fit have a kind and a config. A run has the inputs of each of its operations."""

    rows: Pair | None = None
    queries: Array | None = None
    logical: masks.Logical | None = None
    opening: tuple[str, Config] | None = None
    each: EachInputs | None = None


NOTHING = Inputs()


class Listed:
    """The inputs of a run's operations, from a list."""

    def __init__(self, each: Iterable[Inputs]) -> None:
        self._each = iter(each)

    def make(self, op: dict[str, Any]) -> Inputs:
        """Give the next."""
        return next(self._each)

    def done(self, op: dict[str, Any], result: str) -> None:
        """Do nothing: later inputs do not depend on it."""


class Step(Struct):
    """The result of one operation.

    `result` is ok, refused, unsupported, error (the adapter raised something else) or absent (the cache or name
    was never made). From a worker it may also be crash, hang, oom or protocol.

    `values` has these names. After an operation on a whole round, the names of cache X's values end in `.X`.

    - offset, retained, buffered, capacity; lengths, sequences, moved; held, plan, fit, meter.
    - can (rewind), accepts (askappend, askrestore), bytes (close), intact (scribble), drafted.
    - snapshot, parent, child: [start, stop, bytes], or None.
    - sequence, free, references and table.0 (page); past, bound, key, extent (bucket).
    - failed (run): the operations before the last that were not done, by number.

    `arrays` has these names, with None where there is no array. A name begins with what is observed, and ends with
    `.k` for keys or `.v` for values if it has both.

    - history, mask, view, state; output, rotated; gathered, page (page); fold.0 (what a layer 0 folded).
    - state.X.k: of cache X, after an operation on a whole round.
    - state.0.k, saved.0.k: of a store's layer 0. batch.0.1.k: of sequence 1 of its batch.
    - state.1.k: of a paged cache's sequence 1.
    - state.0.k, host.0.k, handle.0.k: of a bucketed cache's layer 0.

    `cites` are the clauses that this step exercised, where the reference performed it.
    """

    result: str = "ok"
    clause: str = ""
    message: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array | None] = field(default_factory=dict)
    cites: tuple[str, ...] = ()
    missed: dict[int, str] = field(default_factory=dict)
    """The clauses that refused the operations of a run which were not done, by their numbers."""

    def answered(self, value: str, answer: bool | None) -> None:
        """Note an answer as this value; the list model answers None where that is the engine's choice."""
        if answer is not None:
            self.values[value] = bool(answer)
