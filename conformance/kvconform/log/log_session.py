"""A log as an adapter: it makes rows by the names in the log, and answers with what the log saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from kvconform.log.log_file import Life, Line, Name
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import Pair
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array, Config
from kvspec.operations.table import TAKES_ROWS, Operation, cache_of
from kvspec.session.step import NOTHING, Inputs, Step
from kvspec.wire import framing, messages


class LoggedInputs(TraceInputs):
    """Makes rows as their names say: the same row for the same name, also where it is appended again."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.trace)
        self._lines = list(life.lines)
        self._serials: dict[Name, int] = {}

    def done(self, op: Operation, result: str) -> None:
        """Remember which rows the names of this operation stand for, if it took them."""
        if result == "ok" and op["op"] in TAKES_ROWS:
            self._serials = self._known()
        super().done(op, result)
        self._lines.pop(0)

    def _known(self) -> dict[Name, int]:
        """Give a serial to each new name of this operation."""
        known = dict(self._serials)
        for i, name in enumerate(_names(self._lines[0])):
            known.setdefault(name, self.book.next + i)
        return known

    def _now(self) -> list[int]:
        known = self._known()
        return [known[name] for name in _names(self._lines[0])]

    def _rows(self, op: Operation) -> Pair:
        serials, (_, config) = self._now(), self.opened_as(op)
        if not serials or op.get("values") is not None:
            return super()._rows(op)
        each = [self.book.rows(op, config, 1, serial - self.book.next) for serial in serials]
        return Pair(*(np.concatenate(arrays, axis=2) for arrays in zip(*each, strict=True)))

    def serials(self, op: Operation) -> list[list[int]]:
        """Give those of the names of this operation."""
        return [self._now()]


class LoggedSession:
    """Performs nothing: gives for each operation what the log saw after it."""

    def __init__(self, life: Life) -> None:
        self._life, self._at = life, 0
        self._configs: dict[str, Config] = {}
        self._bytes = 0
        """What the arrays that were seen take, all together."""
        self._rows: dict[Name, tuple[Array, Array]] = {}
        """The key row and the value row, `[B, H, dim]`, of each name that was taken."""

    def begin(self, kind: str, config: Config) -> Step:
        """Begin the life."""
        self._configs = {"A": config}
        return Step()

    def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
        """Give what the next line saw. Raises BadInput for what cannot be read."""
        line, where = self._life.lines[self._at], self._life.where(self._at)
        self._at += 1
        if line["see"].get("result") == "ok":
            self._take(op, inputs, line)
        try:
            return self._seen(line["see"], cache_of(op))
        except (framing.ProtocolError, BadInput) as e:
            raise BadInput(f"{where}: {e}") from None

    def _take(self, op: Operation, inputs: Inputs, line: Line) -> None:
        if op["op"] == "open" and inputs.opening is not None:
            self._configs[cache_of(op)] = inputs.opening[1]
        for i, name in enumerate(_names(line) if inputs.rows is not None else ()):
            assert inputs.rows is not None
            self._rows.setdefault(name, (inputs.rows.keys[:, :, i].copy(), inputs.rows.values[:, :, i].copy()))

    def _seen(self, see: Line, cache: str) -> Step:
        said = {n: x for n, x in see.items() if n in ("result", "clause", "message")}
        values, arrays = dict[str, Any](), framing.Tensors()
        for name, value in see.items():
            if name in said:
                continue
            arrays |= (found := dict(self._arrays(name, value, cache)))
            values |= {} if found else {name: value}
        return messages.step(said | {"values": values}, arrays)

    def _arrays(self, name: str, value: Any, cache: str) -> Iterator[tuple[str, Array | None]]:
        """Give the arrays that an observation stands for; none if it is a value."""
        what, _, letter = name.partition(".")
        if what in messages.ALONE:
            yield name, None if value is None else _mask(value)
        elif name.endswith((".k", ".v")) and value is None:
            yield name, None
        elif what in messages.ARRAYS and value is None:
            yield from ((f"{name}.{part}", None) for part in "kv")
        elif what in messages.ARRAYS:
            config = self._configs[letter if letter in self._configs else cache]
            yield from ((f"{name}.{part}", self._array(value, part, config)) for part in "kv")

    def _array(self, value: Any, part: str, config: Config) -> Array:
        """Make the keys or the values of named rows, in the shape and dtype that the log says, if it says so."""
        rows = value.get("rows") if isinstance(value, dict) else None
        if not isinstance(rows, list) or not all(name is None or isinstance(name, int | str) for name in rows):
            raise BadInput(f'write rows as {{"rows": [names]}}, texts, whole numbers or null, not {value!r:.60}')
        made = np.empty(self._bounded(config.dtype, config.shape(part, len(rows))), DTYPES[config.dtype])
        for i, name in enumerate(rows):
            known = self._rows.get(name)
            made[:, :, i] = known["kv".index(part)] if known else 0 if name is None else UNKNOWN
        return made if value.get(part) in (None, [config.dtype, *made.shape]) else self._other_form(value[part])

    def _other_form(self, form: Any) -> Array:
        """Make an array of another dtype or shape than the cache's: no row of it can be right."""
        try:
            dtype, *shape = form
            return np.zeros(self._bounded(dtype, shape), DTYPES[dtype])
        except (KeyError, TypeError, ValueError) as e:
            if isinstance(e, BadInput):
                raise
            raise BadInput(f"keys and values have a dtype and a shape, not {form!r:.60}") from None

    def _bounded(self, dtype: str, shape: Sequence[int]) -> Sequence[int]:
        """Give the shape back, if the arrays of this life may take so many bytes. Raises BadInput."""
        if len(shape) > DEEPEST or any(type(n) is not int or n < 0 for n in shape):
            raise BadInput(f"a shape is at most {DEEPEST} whole numbers from 0 on, not {shape!r:.60}")
        self._bytes += prod(max(1, n) for n in shape) * DTYPES[dtype].itemsize
        if self._bytes > LARGEST_SEEN:
            raise BadInput(f"the rows seen so far take more than {LARGEST_SEEN} bytes; judge shorter lives")
        return shape


DEEPEST = 8
"""The most axes of an array."""

LARGEST_SEEN = 1 << 30
"""Bytes of rows that the observations of a life may hold, all together."""

UNKNOWN = -1
"""The elements of a row that was never appended: no row that is made has them."""


def _names(line: Line) -> list[Name]:
    return list(line.get("given", {}).get("rows", {}).get("rows", []))


def _mask(value: Any) -> Array:
    """Read a mask of booleans: a text of 0 and 1 for each row of its last axis, and its dtype and shape."""
    try:
        cells, (dtype, *shape) = "".join(value["bits"]), value["as"]
        if dtype == "bool" and set(cells) <= {"0", "1"} and all(type(n) is int and n >= 0 for n in shape):
            mask: Array = np.frombuffer(cells.encode(), np.uint8) == ord("1")
            return mask.reshape(shape)
    except (KeyError, TypeError, ValueError):
        pass
    raise BadInput(f'write a mask as {{"bits": ["10", "11"], "as": ["bool", 1, 1, 2, 2]}}, not {value!r:.60}')
