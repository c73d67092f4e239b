"""What queries see of a reference that has a bug: an adapter at level visible can be held against the bug.

Two references do what the list model does, one of them with the bug. Where they answer alike, what the list model
expects stays. Where they do not, what the one with the bug shows is expected.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kvconform.judge.levels import mask_columns, visible
from kvconform.oracle.expected import NOT_SAID, Expected
from kvref.list_model.tokens import Scores
from kvspec.contract import Description
from kvspec.geometry import DTYPES, Array, Config
from kvspec.operations.table import Operation, cache_of
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import ILLEGIBLE
from kvspec.session.step import Inputs, Listed, Step

Seen = list[list[list[Scores | None]]] | None

UNJUDGED = (*NOT_SAID, "meter", "held", "intact", "moved", "fingerprint", "fit")
"""Values that are not compared with those of a bug."""


TAKES_SHAPE = ("append", "attend")
"""Operations whose rows may give a cache its geometry."""


class SeenTwice(dict[int, float]):
    """What a query sees, where it sees a row more than once: each row as often as it is seen, with its score."""

    def __init__(self, pairs: Iterable[tuple[int, float]]) -> None:
        self.pairs = list(pairs)
        super().__init__(self.pairs)

    def __iter__(self) -> Iterator[int]:
        return iter([serial for serial, _ in self.pairs])

    def values(self) -> Any:
        """The score of each row, as often as it is seen."""
        return [score for _, score in self.pairs]

    def items(self) -> Any:
        """Each row as often as it is seen, with its score."""
        return list(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and sorted(self.pairs) == sorted(other.items())

    __hash__ = None


class Planted:
    """The list model's expectations of one trace, with a bug of the reference in them. Neither reference knows the
    dialects that an adapter declares: they do what the list model did."""

    def __init__(self, sessions: tuple[Any, Any], book: SerialBook, adapter: Description) -> None:
        """`sessions`: on the reference, and on the one with the bug."""
        self._sessions = sessions
        self._histories: tuple[dict[Any, Any], dict[Any, Any]] = {}, {}
        self._book, self._dialect, self._claims = book, not adapter.plain, adapter.chapters

    def begin(self, kind: str, config: Config, want: Step) -> Step:
        """Open cache A as the list model did."""
        right, wrong = (session.begin(kind, config) for session in self._sessions)
        return want if right.result == wrong.result else wrong

    def expect(self, op: Operation, inputs: Inputs, want: Expected) -> Expected:
        """What the list model expects of an operation, or what the bug shows, where that differs."""
        kept = copy.deepcopy(self._sessions) if self._dialect and want.result == "refused" else None
        self._shape(op, inputs, want)
        right, wrong = (session.do(self._done(op, want), _again(inputs)) for session in self._sessions)
        if kept is not None and right.result == "ok":
            self._sessions = kept  # refused as declared: neither reference has done it
            return want
        with self._book.handed_in():
            shows = [self._shows(op, want, *each) for each in zip((right, wrong), self._histories, strict=True)]
        return want if _same(*shows) else self._of_bug(want, wrong, shows[1])

    def _done(self, op: Operation, want: Expected) -> Operation:
        """The operation as the list model did it: a rewind may have been clamped."""
        clamped = self._dialect and op["op"] == "rewind" and want.result == "ok" and "offset" in want.values
        return {**op, "to": want.values["offset"]} if clamped else op

    def _shape(self, op: Operation, inputs: Inputs, want: Expected) -> None:
        """Open an empty cache anew in the geometry of the first rows, where it is declared that they give it."""
        if not self._dialect or inputs.rows is None or want.result != "ok" or op["op"] not in TAKES_SHAPE:
            return
        kind, config = self._sessions[0].kinds[cache_of(op)], self._sessions[0].configs[cache_of(op)]
        (batch, heads, _, k_dim), v_dim = inputs.rows.keys.shape, inputs.rows.values.shape[3]
        shaped = config.changed(
            batch=batch, kv_heads=heads, k_dim=k_dim, v_dim=v_dim, dtype=_name(inputs.rows.keys)
        )
        if shaped != config and self._claims[kind].dialect("shape") != "opened":
            for session in self._sessions:
                session.do({"op": "open", "cache": cache_of(op)}, Inputs(opening=(kind, shaped)))

    def _shows(self, op: Operation, want: Expected, step: Step, histories: dict[Any, Any]) -> dict[str, Any]:
        """What can be seen of a step at level visible."""
        names = {"view", *want.rows} & {n.removesuffix(".k") for n in step.arrays if n.endswith(".k")}
        values = {n: v for n, v in step.values.items() if n.partition(".")[0] not in UNJUDGED}
        return {
            "result": (step.result, step.clause),
            "values": {n: visible.shown(n, v, want.values.get(n)) for n, v in values.items()},
            "rows": {n: self._names(step, n) for n in sorted(names)},
            "sees": self._sees(op, want, step, histories),
            "output": step.arrays.get("output"),
            "rotated": step.arrays.get("rotated"),
        }

    def _names(self, step: Step, name: str) -> list[int] | None:
        """The rows of an array, if all its sequences have the same."""
        found = visible.one_name_each(step.arrays.get(f"{name}.k"), step.arrays.get(f"{name}.v"), self._book)
        return found[0] if found and all(row == found[0] for row in found) else None

    def _sees(self, op: Operation, want: Expected, step: Step, histories: dict[Any, Any]) -> Seen:
        """What each query sees, or None where no history is observed."""
        looked = mask_columns.looked(op)
        if "history.k" in step.arrays:
            histories[looked] = self._rows(step)
        elif "history.0.k" in step.arrays:
            sequences = sum(n.startswith("history.") and n.endswith(".k") for n in step.arrays)
            histories[looked] = visible.padded(step, sequences, self._book)
        mask = step.arrays.get("mask")
        if "mask" not in step.arrays or histories.get(looked) is None or step.result != "ok":
            return None
        owed = want.sees[0] if want.sees else [[None]]
        heads, queries = (len(owed), len(owed[0])) if mask is None else mask.shape[1:3]
        return [
            [list(self._queries(names, mask, (s, head), queries)) for head in range(heads)]
            for s, names in enumerate(histories[looked])
        ]

    def _rows(self, step: Step) -> list[list[int]] | None:
        """The names of the rows in a history; of rows without one name, that they have none."""
        arrays = step.arrays.get("history.k"), step.arrays.get("history.v")
        named = visible.one_name_each(*arrays, self._book)
        if named is not None or any(a is None or a.ndim != 4 for a in arrays):
            return named
        k, v = (self._book.read(a, kind) for a, kind in zip(arrays, "kv", strict=True) if a is not None)
        if k.shape != v.shape:
            return None
        same = (k == k[:, :1]).all(1) & (k == v).all(1)
        return [[int(n) for n in row] for row in np.where(same, k[:, 0], ILLEGIBLE)]

    @staticmethod
    def _queries(names: list[int], mask: Array | None, at: tuple[int, int], count: int) -> Iterator[Scores]:
        for query in range(count):
            found = visible.seen(names, mask, at, query) or []
            scores = dict(found)
            yield scores if len(scores) == len(found) else SeenTwice(found)

    @staticmethod
    def _of_bug(want: Expected, step: Step, shows: dict[str, Any]) -> Expected:
        """What is expected of an adapter with the bug."""
        asked = want.values if want.result == step.result else shows["values"]
        found = Expected(result=step.result, clause=step.clause, cites=want.cites, empty="either")
        found.values = {n: v for n, v in shows["values"].items() if n in asked}
        found.rows = {n: [ILLEGIBLE] if r is None else r for n, r in shows["rows"].items()}
        found.rows = {n: r for n, r in found.rows.items() if n in want.rows or want.result != step.result}
        found.sees = shows["sees"] if want.sees is not None or want.result != step.result else None
        for name, array in (("outputs", shows["output"]), ("rotated", shows["rotated"])):
            owed = getattr(want, name)
            if owed is not None and array is not None and array.shape == owed.middle.shape:
                setattr(found, name, owed._replace(middle=array.astype(np.float64), bound=2 * owed.bound))
        return found


def _name(array: Array) -> str:
    """The spec's name of an array's dtype."""
    return next((name for name, dtype in DTYPES.items() if dtype == array.dtype), "")


def _again(inputs: Inputs) -> Inputs:
    """The same inputs for another session."""
    made = getattr(inputs.each, "made", None)
    return inputs if made is None else Inputs(each=Listed(made))


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    arrays = ("output", "rotated")
    rest = all(one[n] == other[n] for n in one if n not in arrays)
    return rest and all(_alike(one[n], other[n]) for n in arrays)


def _alike(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=True))
