"""Caches that attend too, from an engine's functions: what `from_update` makes, with attention and RoPE beside it.

Queries and new keys are turned first, where RoPE is asked for. Then rows are appended, and the engine's attention
gets the history. Nothing is computed here: a mask of several parts is written as the one array that engines take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, UpdateCache
from kvspec.contract import Attention, Rope
from kvspec.errors import Unsupported
from kvspec.geometry import Array
from kvspec.masks import CAUSAL, Causal, Explicit, Logical

Attends = Callable[..., Any]
"""Take the engine's cache, queries, keys and values of the history, and the options; give the output
`[B, heads, n, v_dim]`."""

Turns = Callable[[Any, Array, Rope], Any]
"""Take rows of the engine, their positions and how to turn them; give new rows."""


def scores(through: Logical, n: int, rows: int) -> Array:
    """A mask as what is added to the scores of n queries, `[1 or B, 1 or heads, n, rows]`; the last row is the last
    query's."""
    found = np.zeros((1, 1, n, rows), np.float32)
    for part in through:
        found = found + _scores(part, n, rows)
    return found


def _scores(part: Any, n: int, rows: int) -> Array:
    if isinstance(part, Explicit) and part.array.dtype != bool:
        return part.array
    query, column = np.arange(rows - n, rows)[:, None], np.arange(rows)
    if isinstance(part, Explicit):
        seen = part.array
    else:
        seen = column <= query if isinstance(part, Causal) else column > query - part.size
    return np.where(seen, np.float32(0), np.float32(-np.inf))


class AttendingCache(UpdateCache):
    """One cache of the engine, which attends over what its last update returned."""

    adapter: AttendingAdapter

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Turn, append and attend."""
        self.adapter.demand(how, out)
        queries, keys, values = (self._own(a) for a in (queries, keys, values))
        if how.rope is not None:
            queries, keys = (self._turned(a, how.rope) for a in (queries, keys))
        self.append(keys, values)
        return self.adapter.attends(self.cache, queries, *self._returned, how)

    def _turned(self, rows: Any, rope: Rope) -> Any:
        """Rows at the positions behind the offset."""
        return self.adapter.rotate(rows, self._offset + np.arange(rows.shape[2]), rope)


def _attends(*_: Any) -> Any:
    raise Unsupported("no attend")


@dataclass(frozen=True)
class AttendingAdapter(UpdateAdapter):
    """The adapter: opens caches that attend, and turns rows."""

    attends: Attends = _attends
    turns: Turns | None = None
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What it claims of the chapters on attention and on RoPE."""

    def describe(self) -> dict[str, Any]:
        """Claim attention and RoPE beside the kind."""
        said = super().describe()
        return {**said, "chapters": {**said["chapters"], **self.claims}}

    def demand(self, how: Attention, out: Any) -> None:
        """Raise Unsupported for options that the engine's attention is not handed."""
        asked = {
            "into": out is not None,
            "splits": how.splits != 1,
            "scale": how.scale is not None,
            "softcap": how.softcap != 0,
            "learned sinks": how.sinks is not None,
            "parts": bool(how.parts),
            "masks beside its own": self.engine.mask is not None and how.through != CAUSAL,
        }
        if lacking := [
            name for name, there in asked.items() if there and name not in self.claims["attention"]["with"]
        ]:
            raise Unsupported(f"no {', '.join(lacking)}")

    def rotate(self, rows: Any, positions: Array, rope: Rope) -> Any:
        """Turn rows, each by its position."""
        if self.turns is None:
            raise Unsupported("no rotate")
        return self.turns(self.engine.to_engine(rows) if isinstance(rows, np.ndarray) else rows, positions, rope)


def attending(
    plain: UpdateAdapter,
    attends: Attends,
    able: Collection[str] = (),
    turns: Turns | None = None,
    tables: Collection[str] = (),
    dialect: Mapping[str, str] | None = None,
) -> AttendingAdapter:
    """Make an adapter that attends of one that was made by `from_update`.

    `able` and `tables` name abilities of the chapters on attention and on RoPE. `dialect` says where the engine
    differs, by chapter and name. `turns` turns rows; where `tables` names `rotate`, also rows that are handed in.
    """
    claims: dict[str, dict[str, Any]] = {"attention": {"level": "visible", "with": ["attend", *able]}}
    if turns is not None:
        claims["rope"] = {"level": "visible", "with": list(tables)}
    for name, value in (dialect or {}).items():
        chapter, _, own = name.partition(".")
        claims[chapter][own] = value
    given = {each.name: getattr(plain, each.name) for each in fields(UpdateAdapter)}
    return AttendingAdapter(**{**given, "cache": AttendingCache}, attends=attends, turns=turns, claims=claims)
