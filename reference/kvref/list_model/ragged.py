"""The list model of a ragged cache: for each sequence the list of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvref.cite import cite, uncited
from kvref.list_model import forms
from kvref.list_model.attention import KnownRows
from kvref.list_model.attention_bound import Output
from kvref.list_model.rows import Added, Queries, Rows, fitting
from kvref.list_model.snapshot import SavedTokens
from kvspec.contract import Claim
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.refusals import common
from kvspec.refusals import ragged as refusals_ragged

Sees = dict[int, float] | None
"""What a query sees, each row with score 0; None for padding, where nothing is expected."""


class RaggedModel:
    """All sequences in order, and how many rows each had of the last block."""

    kind = "ragged"

    def __init__(self, config: Config, known: KnownRows, claim: Claim) -> None:
        if config.padding is None or not common.valid(config):
            raise common.config("CACHE-3", self.kind, config)
        cite("RAGGED-2")
        self.config, self.known = config, known
        self.window: int | None = config.window
        """How many rows a query sees, its own included; None if all."""
        self._become([[] for _ in range(config.batch)])

    def _become(self, sequences: list[list[int]]) -> None:
        cite("RAGGED-24")
        self.all = sequences
        self.last: tuple[list[int], int] | None = None

    def key(self) -> tuple[object, ...]:
        """The state up to renaming rows."""
        names: dict[int, int] = {}
        known = [(len(rows), rows) for rows in self.all]
        if self.window is not None:
            known = [(min(n, self.window + 1), rows[max(0, n - self.window) :]) for n, rows in known]
        return tuple((n, *(names.setdefault(row, len(names)) for row in rows)) for n, rows in known)

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        """Each sequence's own rows behind those it has."""
        columns = self._demand_block(keys, values, lengths)
        cite("RAGGED-3", "RAGGED-4", "RAGGED-5", *([] if any(lengths) else ["RAGGED-11"]))
        forms.cite_written(self.config, *(self._owned(rows, lengths) for rows in (keys, values)))
        self._become([rows + new for rows, new in zip(self.all, keys.serials, strict=True)])
        self.last = list(lengths), columns

    def _demand_block(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> int:
        """The columns of a block that fits."""
        columns = keys.shape[2]
        if not fitting(keys, values, self.config, len(self.all), self.config.kv_heads, columns):
            raise Refused("CACHE-2", "rows of another geometry")
        if len(lengths) != len(self.all) or not set(lengths) <= set(range(columns + 1)):
            raise refusals_ragged.lengths("RAGGED-9", list(lengths), len(self.all), columns)
        return columns

    def attend_block(self, queries: Queries, keys: Rows, values: Rows, lengths: Sequence[int]) -> Output | None:
        """Feed, then what each query makes of the rows that it sees; of padding nothing."""
        columns, kv_heads = self._demand_block(keys, values, lengths), self.config.kv_heads
        batch, heads, *rest = queries.shape
        right = (batch, *rest) == (len(self.all), columns, self.config.k_dim)
        if not right or queries.dtype != "f32" or heads not in range(kv_heads, heads + 1, kv_heads):
            raise Refused("RAGGED-38", "queries of another geometry")
        self.feed(keys, values, lengths)
        cite("RAGGED-36", "RAGGED-37", "ATTN-44", *["ROW-16"] * (self.config.form is not None))
        sees: list[list[list[list[Added]]]] = [
            [[[dict.fromkeys(seen or (), ()) for seen in each[0]]]] for each in self.mask()
        ]
        found = self.known.stacked(None if queries.array is None else queries.array[:, None], sees, self.config)
        return found and Output(*(part[:, 0] for part in found))

    def _owned(self, rows: Rows, lengths: Sequence[int]) -> Rows:
        """The rows of a block that are no padding."""
        serials = [[serial for each in rows.serials for serial in each]]
        if rows.array is None:
            return rows._replace(serials=serials)
        left, columns = self.config.padding == "left", rows.shape[2]
        spans = [slice(columns - n, columns) if left else slice(0, n) for n in lengths]
        parts = [rows.array[s, :, span] for s, span in enumerate(spans)]
        return rows._replace(serials=serials, array=np.concatenate(parts, axis=1))

    def trim(self, counts: Sequence[int]) -> None:
        """Fewer rows of each."""
        known = zip(self.all, counts, strict=False)
        if len(counts) != len(self.all) or any(count not in range(len(rows) + 1) for rows, count in known):
            raise refusals_ragged.trim("RAGGED-15", list(counts), self.sequences())
        if self.window is not None:
            self._demand_whole(counts, self.window)
        cite("RAGGED-14")
        self._become([rows[: len(rows) - count] for rows, count in zip(self.all, counts, strict=True)])

    def _demand_whole(self, counts: Sequence[int], window: int) -> None:
        """Refuse to drop rows of which the window let go of older ones."""
        if any(n > window for n, count in zip(self.sequences(), counts, strict=True) if count):
            raise refusals_ragged.behind("RAGGED-34", list(counts), self.sequences(), window)
        cite("RAGGED-34")

    def filter(self, order: Sequence[int]) -> None:
        """These, in this order."""
        if not order or not set(order) <= set(range(len(self.all))):
            raise refusals_ragged.order("RAGGED-19", list(order), len(self.all))
        cite("RAGGED-16")
        self._become([self.all[s] for s in order])

    def reorder(self, order: Sequence[int]) -> None:
        """As many as there are."""
        if len(order) != len(self.all):
            raise refusals_ragged.beams("RAGGED-19", list(order), len(self.all))
        cite("RAGGED-17")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Each several times."""
        if times <= 0:
            raise refusals_ragged.times("RAGGED-19", times)
        cite("RAGGED-18")
        self._become([rows for rows in self.all for _ in range(times)])

    def extend(self, other: Any) -> None:
        """Those of another behind them."""
        self._demand("extend", "a ragged cache", other, isinstance(other, RaggedModel))
        cite("RAGGED-20")
        self._become(self.all + other.all)

    def join(self, others: Sequence[Any]) -> None:
        """Those of caches of one sequence each."""
        for other in others:
            self._demand("join", f"{self._single} caches", other, self._alone(other))
        cite("RAGGED-21")
        self._become([list(other.tokens) for other in others])

    def extract(self, sequence: int, into: Any) -> None:
        """One of them as a cache of its own."""
        if sequence not in range(len(self.all)):
            raise refusals_ragged.sequence("RAGGED-19", sequence, len(self.all))
        self._demand("extract", f"a {self._single} cache", into, self._alone(into))
        cite("RAGGED-22", "RAGGED-24")
        with uncited():
            into.free()
            rows, n = list(self.all[sequence]), len(self.all[sequence])
            if rows:
                into.restore(SavedTokens(into.kind, into.config, 0, n, rows, highest=n, whole=True), n)

    @property
    def _single(self) -> str:
        """The kind that a sequence of its own is."""
        return "growing" if self.window is None else "ring"

    def _alone(self, other: Any) -> bool:
        return other.kind == self._single and other.config.batch == 1 and not other.in_round

    def _demand(self, what: str, wanted: str, other: Any, right: bool) -> None:
        theirs, ours = (c.shape("k", 0)[1:] + c.shape("v", 0)[1:] for c in (other.config, self.config))
        kept = all(getattr(other.config, n) == getattr(self.config, n) for n in ("dtype", "form", "window"))
        if not right or theirs != ours or not kept:
            raise refusals_ragged.other("RAGGED-23", what, wanted, other.config)

    def sequences(self) -> list[int]:
        """How many rows each has."""
        return [len(rows) for rows in self.all]

    def read_sequence(self, sequence: int) -> list[int]:
        """The serials of its rows; over a window of those that its next query sees."""
        rows = self.all[sequence]
        if self.window is None:
            return list(rows)
        cite("RAGGED-32")
        return rows[max(0, len(rows) - self.window + 1) :]

    def positions(self) -> Array | None:
        """For each row of the last block its place among the rows of its sequence; -1 for padding."""
        if self.last is None:
            return None
        lengths, columns = self.last
        each = [
            self._padded(list(range(len(rows)))[len(rows) - n :], columns)
            for rows, n in zip(self.all, lengths, strict=True)
        ]
        return np.array(each, int).reshape(len(self.all), columns)

    def _padded(self, positions: list[int], columns: int) -> list[int]:
        padding = [-1] * (columns - len(positions))
        return padding + positions if self.config.padding == "left" else positions + padding

    def mask(self) -> list[list[list[Sees]]]:
        """Give what each query of the last block sees, for each sequence in one head. That is the rows up to its
        own, or as many of them as the window has."""
        positions = self.positions()
        assert positions is not None
        cite(*([] if self.window is None else ["RAGGED-31"]))
        back = positions.max(initial=0) if self.window is None else self.window - 1
        return [
            [[None if p < 0 else dict.fromkeys(rows[max(0, p - back) : p + 1], 0.0) for p in queries]]
            for rows, queries in zip(self.all, positions.tolist(), strict=True)
        ]


model = RaggedModel
