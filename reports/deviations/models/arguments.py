"""What engines take though the spec refuses it, and what they make of it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from kvref.list_model.adapter import ListModel
from kvref.list_model.bounded import BoundedModel
from kvref.list_model.caches import CacheModel
from kvref.list_model.layer import Layer
from kvref.list_model.rows import Rows
from kvref.list_model.store import StoreModel
from kvref.list_model.unsaid import Unsaid, may
from kvspec.errors import Refused
from kvspec.geometry import Config

GEOMETRY = ("CACHE-2",)
"""The clauses that refuse rows of another geometry."""


class TakesSenselessSizes(ListModel):
    """A config that must be refused is taken: a window, a length or a step of 0, a batch of none."""

    def open(self, kind: str, config: Config) -> Any:
        with may("ok"):
            return super().open(kind, config)


class TakesOtherRows(CacheModel):
    """Rows of another geometry are taken: broadcast, cast, cut, or as they are."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        with may("ok", *GEOMETRY):
            super().demand_rows(keys, values)


class CountsRefusedRows(CacheModel):
    """An update that raises counts its rows."""

    def demand_rows(self, keys: Rows, values: Rows) -> None:
        with may("refused", *GEOMETRY):
            super().demand_rows(keys, values)

    def _demand_chunk(self, n: int) -> None:
        with may("refused", "BOUNDED-2", "BOUNDED-19"):
            super()._demand_chunk(n)


class RefusedRowsSpoil(BoundedModel):
    """An append without room is refused as it must be. From then on anything may come: its rows were counted."""

    def _demand_chunk(self, n: int) -> None:
        try:
            super()._demand_chunk(n)
        except Refused:
            raise Unsaid("refused") from None


class LayersCountRefusedRows(StoreModel):
    """transformers: a layer without room raises, and counts its rows; the layers before it have theirs."""

    def demand_rows(self, keys: Rows, values: Rows, layer: int | None, what: str) -> list[Layer]:
        with may("refused", "STORE-8"):
            return super().demand_rows(keys, values, layer, what)


class LayersBeforeKeepRows(StoreModel):
    """torchtune: a layer without room raises, and the layers before it have their rows."""

    def demand_rows(self, keys: Rows, values: Rows, layer: int | None, what: str) -> list[Layer]:
        with may("refused", "STORE-8") if self._before(layer, keys.n) else nullcontext():
            return super().demand_rows(keys, values, layer, what)

    def _before(self, layer: int | None, n: int) -> bool:
        """Whether the first layer has room."""
        return layer is None and self.layers[0].length + n <= self.room


class LayersQuietNaN(StoreModel):
    """EasyDeL: a signalling NaN in bfloat16 comes back as a quiet one, on a CPU."""

    def append(self, keys: Rows, values: Rows, layer: int | None = None) -> None:
        super().append(keys, values, layer)
        self._said(keys)

    def step(self, keys: Rows, values: Rows) -> None:
        super().step(keys, values)
        self._said(keys)

    def _said(self, keys: Rows) -> None:
        if keys.fill == "bits" and self.config.dtype == "bf16":
            raise Unsaid


class ScattersIntoTheLast(StoreModel):
    """EasyDeL: what is scattered into a place that there is not lands in the nearest one."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        with may("ok", "BATCH-9"):
            super().scatter(sequence, n, layer)


class TakesMoreThanItHolds(BoundedModel):
    """flax: past its length the newest row takes the place of the last one."""

    def _demand_chunk(self, n: int) -> None:
        with may("ok", "BOUNDED-2"):
            super()._demand_chunk(n)


class QuietsNaN(BoundedModel):
    """flax: a signalling NaN in bfloat16 comes back as a quiet one, on a CPU."""

    def append(self, keys: Rows, values: Rows) -> None:
        super().append(keys, values)
        if keys.fill == "bits" and self.config.dtype == "bf16":
            raise Unsaid
