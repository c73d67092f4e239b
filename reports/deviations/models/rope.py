"""What engines make of rows that hold nothing, where these are turned."""

from __future__ import annotations

from typing import Any

from kvref.list_model.adapter import ListModel
from kvref.list_model.unsaid import Unsaid
from kvspec.contract import Rope
from kvspec.geometry import Array


class TurnsNoEmptyRows(ListModel):
    """transformers: what multiplies arrays, or looks for the largest position, may raise for none."""

    def rotate(self, rows: Any, positions: Array, rope_: Rope) -> Any:
        turned = super().rotate(rows, positions, rope_)
        if rows is not None and 0 in rows.shape:
            raise Unsaid("ok error", kept=True)
        return turned
