"""Engines that have only parts of a chapter, and say so: numpy caches that raise what numpy raises."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Config

Said = dict[str, Any]


class Rows:
    """A growing cache as an engine writes it: it concatenates, and keeps what it returned last."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.rows: Any = None

    def append(self, keys: Any, values: Any) -> None:
        if self.rows is None:
            self.rows = Pair(
                np.empty(self.config.shape("k", 0), keys.dtype), np.empty(self.config.shape("v", 0), values.dtype)
            )
        if keys.dtype != self.rows.keys.dtype or values.shape[2] != keys.shape[2]:
            raise TypeError("rows of another dtype, or of two lengths")
        self.rows = Pair(*(np.concatenate(pair, axis=2) for pair in zip(self.rows, (keys, values), strict=True)))

    def read(self, what: str) -> Any:
        if what != "history":
            raise Unsupported(f"no {what}")
        return Pair(*(a.copy() for a in self.rows))

    def rewind(self, to: int) -> None:
        if not 0 <= to <= self.offset:
            raise IndexError(f"{to} is out of range")
        if self.rows is not None:
            self.rows = Pair(*(a[:, :, :to] for a in self.rows))

    @property
    def offset(self) -> int:
        return 0 if self.rows is None else int(self.rows.keys.shape[2])

    def lengths(self) -> Lengths:
        return Lengths(self.offset, self.offset, self.offset, self.offset)


class Engine:
    """Opens one kind of cache, and claims what it has."""

    cache: type[Rows] = Rows
    chapters: Said = {"growing": {"level": "visible", "with": ["history", "rewind", "offset"]}}  # noqa: RUF012
    more: Said = {}  # noqa: RUF012

    def describe(self) -> Said:
        return {"name": type(self).__name__, "chapters": self.chapters, **self.more}

    def open(self, kind: str, config: Config) -> Rows:
        if kind not in self.chapters:
            raise Unsupported(f"no {kind}")
        window = 1 if config.window is None else config.window
        if min(config.batch, config.kv_heads, config.k_dim, config.v_dim, config.step, window) < 1:
            raise ValueError("sizes below 1")
        return self.cache(config)


class Plain(Engine):
    """Has rewind and lengths; no view, no free, no question whether it can."""


class ChangesThenRaises(Engine):
    """Appends the keys before it finds that the values do not fit."""

    class cache(Rows):
        def append(self, keys: Any, values: Any) -> None:
            if values.shape[2] != keys.shape[2] and self.rows is not None:
                super().append(keys, np.zeros((*values.shape[:2], keys.shape[2], values.shape[3]), values.dtype))
            super().append(keys, values)


class ClaimsAView(Engine):
    """Claims a view and has none."""

    chapters: Said = {"growing": {"level": "visible", "with": ["history", "view", "bits"]}}  # noqa: RUF012


class KeepsTooMuch(Engine):
    """A growing cache whose history ends with a row that nobody wrote."""

    class cache(Rows):
        def read(self, what: str) -> Any:
            found = super().read(what)
            return Pair(*(np.concatenate([a, np.full_like(a[:, :, :1], np.nan)], axis=2) for a in found))


class Window(Rows):
    """A ring that cuts its rows to the window and what the newest queries need."""

    def append(self, keys: Any, values: Any) -> None:
        super().append(keys, values)
        self.seen = getattr(self, "seen", 0) + keys.shape[2]
        kept = (self.config.window or 0) + keys.shape[2] - 1
        self.rows = Pair(*(a[:, :, -kept:] if kept else a for a in self.rows))

    @property
    def offset(self) -> int:
        return int(getattr(self, "seen", 0))


class Unmasked(Engine):
    """A ring whose caller makes the masks."""

    cache = Window
    chapters: Said = {"ring": {"level": "visible", "with": ["history", "offset"]}}  # noqa: RUF012


class NeverDrops(Unmasked):
    """The same, and it never drops a row."""

    cache = Rows


class OffsetOfTheCaller(Unmasked):
    """The caller keeps the offset; the adapter counts in its place."""

    more: Said = {"by_adapter": ["offset", "retained"]}  # noqa: RUF012
