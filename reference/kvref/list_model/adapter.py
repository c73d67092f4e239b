"""The list model as an adapter: what opens its caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kvref import list_model
from kvref.list_model import forms, mem, rope
from kvref.list_model.attention import KnownRows
from kvref.list_model.attention_bound import Rows as KeyAndValue
from kvref.list_model.draft import RoundModel
from kvref.list_model.rope import Turned
from kvref.list_model.rows import Rows
from kvspec.contract import CHAPTERS, Claim, Rope
from kvspec.geometry import Array, Config
from kvspec.registry import LETTERS, objects


class ListModel:
    """The list model as an adapter. `claims`: those of the adapter that it must agree with. `rows`: the rows
    themselves by serial, if arrays were made."""

    def __init__(
        self, claims: Mapping[str, Claim] | None = None, rows: Mapping[int, KeyAndValue] | None = None
    ) -> None:
        self._claims = claims or {}
        claimed = self._claims.get(LETTERS["ROPE"], Claim("visible"))
        self._turns = rope.Declared(str(claimed.dialect("angles")), str(claimed.dialect("long")))
        tanh = str(self._claims.get(LETTERS["ATTN"], Claim("visible")).dialect("tanh"))
        self._known = KnownRows(rows, self._turns, tanh)

    def describe(self) -> dict[str, Any]:
        """What it is and claims."""
        return {"name": "list model", "chapters": dict.fromkeys(CHAPTERS, "visible")}

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache."""
        claim = self._claims.get(kind, Claim("visible"))
        forms.demand(config)
        return self.model(kind)(config, self._known, claim)

    def model(self, kind: str) -> Any:
        """The class of the caches of a kind. A model of a known deviation has others."""
        return _model(kind)

    def speculate(self, caches: Sequence[Any], isolated: bool) -> RoundModel:
        """A round over these caches, None for a layer that has none."""
        claim = self._claims.get(LETTERS["DRAFT"], Claim("visible"))
        return RoundModel(caches, isolated, claim.dialect("rounds") == "rows")

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        """How many sequences of this config fit into `free` bytes, and whether even one does."""
        return mem.fit(kind, config, free, reserve, most)

    def rotate(self, rows: Rows | Turned | None, positions: Array, rope_: Rope) -> Turned | None:
        """Rows turned each by its position."""
        return rope.rotate(rows, positions, rope_, self._turns)

    def fetch(self, rows: Rows) -> Rows:
        """There is no device: rows are where they are."""
        return rows


@cache
def _model(kind: str) -> Any:
    """The class of a kind, whose module is read when a cache of it is first opened."""
    return objects(list_model.__name__, "model", (kind,))[kind]
