"""What engines make of no rows where these are turned, and of parts of which a query sees nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvref.list_model import masks
from kvref.list_model.adapter import ListModel
from kvref.list_model.caches import CacheModel
from kvref.list_model.rows import Out, Queries, Rows
from kvref.list_model.unsaid import Unsaid
from kvspec.contract import Attention, Rope
from kvspec.geometry import Array


class TurnsNoEmptyRows(ListModel):
    """transformers: what multiplies arrays, or looks for the largest position, may raise for none."""

    def rotate(self, rows: Any, positions: Array, rope_: Rope) -> Any:
        turned = super().rotate(rows, positions, rope_)
        if rows is not None and 0 in rows.shape:
            raise Unsaid("ok error", kept=True)
        return turned


class JoinsUnseenFirst(CacheModel):
    """torch: three parts come to NaN for a query that sees nothing of the first."""

    def attend(
        self, queries: Queries, keys: Rows, values: Rows, how: Attention, out: Out = None, of: int | None = None
    ) -> Any:
        output = super().attend(queries, keys, values, how, out, of)
        ends = sorted({0, *how.parts, self.offset})
        if len(ends) > 3 and not all(self._seen(queries, how, ends[1])):
            raise Unsaid
        return output

    def _seen(self, queries: Queries, how: Attention, end: int) -> Iterator[bool]:
        """Whether each query sees a row before this one."""
        batch, heads, n, _ = queries.shape
        for each in masks.sees(how.through, (batch, heads, n), range(self.offset)):
            yield from (min(seen, default=end) < end for queries in each for seen in queries)
