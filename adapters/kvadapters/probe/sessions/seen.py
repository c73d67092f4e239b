"""A cache of an engine whose tokens stand for rows, and what its last queries saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.reading import Judgement, Reading
from kvspec.geometry import DTYPES, Array, Config

Rows = tuple[Array, Array]
Column = tuple[int, int]
"""An id, and which of its rows this is: the first is 0. It is -1 for a row that is there and is not what was
appended: at another place, or of another context."""


class Session:
    """One cache. `rows` are those of all ids that were appended, the latest last."""

    def __init__(self, probe: Probe, precision: Precision, model: Model, config: Config, cache: Any = None) -> None:
        self.probe, self.precision, self.model, self.config = probe, precision, model, config
        self.cache = model.open() if cache is None else cache
        self.text, self.rows, self.masked = list[int](), dict[int, Rows](), np.zeros((1, 1, 0, 0), bool)
        self.family = WeakSet[Session]()
        """The sequences of its memory that are beside others. Weak, as a session lets its cache go when it ends."""

    def update(self, keys: Array, values: Array) -> Rows:
        """Append rows as tokens; give the rows that their queries saw. Raises ValueError for rows of another shape,
        which no engine sees."""
        n = keys.shape[2]
        if not n:  # no engine is asked to decode nothing
            self.masked = np.zeros((1, 1, 0, 0), bool)
            return self._made("k", 0), self._made("v", 0)
        for part, array in (("k", keys), ("v", values)):
            if array.shape != self.config.shape(part, n) or array.dtype != DTYPES[self.config.dtype]:
                raise ValueError("rows of another shape or dtype than the cache was opened with")
        new = self._drawn(n)
        for i, token in enumerate(new):
            self.rows.pop(token, None)
            self.rows[token] = keys[:, :, i : i + 1], values[:, :, i : i + 1]
        seen = self._asked(new)
        columns = self._ordered(set().union(*seen))
        self.masked = np.array([[column in one for column in columns] for one in seen])[None, None]
        return self._of(columns)

    def shown(self) -> Rows:
        """Give the rows that a further token sees: a copy is asked, which is let go."""
        if not self.text:
            return self._of([])
        twin = self.copy()
        (new,) = twin._drawn(1)
        (seen,) = twin._asked([new])
        return self._of(self._ordered(seen - {(new, 0)}))

    def _asked(self, new: list[int]) -> list[set[Column]]:
        """Decode tokens; give what each saw."""
        answers = np.asarray(self.model.decode(self.cache, new))
        self.text += new
        return seen_in(self.probe, self.text, answers, self.precision)

    def _drawn(self, n: int) -> list[int]:
        """Draw ids that the text does not have. Those that were used before come last, and of these the ones of
        other sequences."""
        held, theirs = set(self.text), {t for other in self.family for t in other.text}
        fresh = [t for t in range(self.probe.layout.ids) if t not in self.rows]
        used = sorted(self.rows, key=lambda t: t in theirs)
        drawn = [t for t in [*fresh, *used] if t not in held][:n]
        if len(drawn) < n:
            raise ValueError(f"a probe has {self.probe.layout.ids} ids; no text is longer")
        return drawn

    def _ordered(self, columns: set[Column]) -> list[Column]:
        """Put rows in the order of the text, behind those that it does not have."""
        at = {token: i for i, token in enumerate(self.text)}
        return sorted(columns, key=lambda column: (at.get(column[0], -1), *column))

    def _of(self, columns: Sequence[Column]) -> Rows:
        """Give the rows of columns; zeros for what nobody appended."""
        none = self._made("k", 1), self._made("v", 1)
        rows = [self.rows.get(token, none) if which >= 0 else none for token, which in columns]
        keys, values = ([row[part] for row in rows] for part in (0, 1))
        return np.concatenate([self._made("k", 0), *keys], 2), np.concatenate([self._made("v", 0), *values], 2)

    def _made(self, part: str, n: int) -> Array:
        """Make rows of zeros."""
        return np.zeros(self.config.shape(part, n), DTYPES[self.config.dtype])

    def mask(self, n: int) -> Array:
        """Give what the last queries saw of the rows that were handed out: bool [1, 1, n, rows]."""
        return self.masked

    def rewind(self, n: int) -> None:
        """Drop the newest tokens. Raises ValueError for more tokens than before, which no caller can ask for."""
        assert self.model.rewind is not None
        if n < 0:
            raise ValueError(f"there are {len(self.text)} tokens")
        if n:
            self.model.rewind(self.cache, n)
            del self.text[-n:]

    commit = rewind

    def copy(self) -> Session:
        """Copy the cache."""
        assert self.model.copy is not None
        found = Session(self.probe, self.precision, self.model, self.config, self.model.copy(self.cache))
        found.text, found.rows = [*self.text], dict(self.rows)
        return found

    def beside(self) -> Session:
        """Make an empty sequence in the same memory."""
        assert self.model.beside is not None
        return self._joined(
            Session(self.probe, self.precision, self.model, self.config, self.model.beside(self.cache))
        )

    def forked(self) -> Session:
        """Copy the sequence within its memory."""
        return self._joined(self.copy())

    def _joined(self, other: Session) -> Session:
        other.rows, other.family = self.rows, self.family
        self.family.add(other)
        return other

    def __deepcopy__(self, _: Any) -> Session:
        return self.copy()

    def __del__(self) -> None:
        if self.model.drop is not None:
            self.model.drop(self.cache)


def seen_in(probe: Probe, text: Sequence[int], answers: Array, precision: Precision) -> list[set[Column]]:
    """Give the rows that each of the last queries of a text saw."""
    return [_seen(readings) for readings in _by_query(read(probe, text, answers, precision))]


def _by_query(judgement: Judgement) -> list[list[Reading]]:
    """Give the readings of each query, the lowest layer first."""
    queries = sorted({reading.query for reading in judgement.readings})
    return [[r for r in judgement.readings if r.query == query] for query in queries]


def _seen(readings: Sequence[Reading]) -> set[Column]:
    """Give the rows that a query saw in the lowest layer in which something is wrong; in the first one, if nothing
    is."""
    reading = next((r for r in readings if r.findings), readings[0])
    if not reading.findings and any(r.seen is None for r in readings):
        raise RuntimeError(f"{reading.place}: it cannot be told which rows it saw")
    strange = _strange(reading)
    seen = Counter({row.token: row.count for row in reading.rows})
    columns = {(token, which) for token, count in seen.items() if token not in strange for which in range(count)}
    return columns | {(token, -1) for token in strange}


def _strange(reading: Reading) -> set[int]:
    """Give the ids whose rows are not what was appended; all, if it is not known which."""
    found = set[int]()
    for finding in (f for f in reading.findings if f.sort not in ("extra", "missing")):
        named = {row.token for row in reading.rows if {*row.positions} & {*finding.rows}}
        found |= named or {row.token for row in reading.rows} or {-1}
    return found
