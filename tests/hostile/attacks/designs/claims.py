"""What each design claims, and the designs as adapters."""

from __future__ import annotations

from typing import Any

from hostile.attacks.designs.layers import KeepsAll, LayerDicts, TokenList
from hostile.attacks.designs.one_sequence import Chain, HeadLists, RowList, SharedVersions
from hostile.attacks.designs.pages import DictPages
from hostile.attacks.designs.ragged import ListRagged
from hostile.attacks.designs.rows import demand
from hostile.attacks.designs.slots import SlotBuffer
from hostile.attacks.designs.store import ListStore
from hostile.attacks.designs.windows import ByPosition, DequeRing
from kvspec.geometry import Config

DRAFTS = ("branch", "settle", "tree")
"""What caches of layers without drafts leave out."""

CLAIMS: dict[type[Any], dict[str, Any]] = {
    RowList: {"growing": "visible", "mask": "visible"},
    HeadLists: {"growing": "visible", "mask": "visible"},
    Chain: {"growing": "visible", "mask": "visible"},
    SharedVersions: {"growing": "visible", "mask": "visible"},
    DequeRing: {"ring": {"level": "visible", "rewind": "never"}, "mask": "visible"},
    ByPosition: {"bounded": "visible", "mask": "visible"},
    ListStore: {"store": "visible"},
    DictPages: {"page": {"level": "visible", "without": ["gather", "peek"]}},
    ListRagged: {"ragged": {"level": "visible", "without": ["join", "extract", "attendblock"]}},
    SlotBuffer: {"copy": "visible"},
    TokenList: {"layers": "visible"},
    KeepsAll: {"layers": {"level": "visible", "spare": "all"}},
    LayerDicts: {
        "layers": {"level": "visible", "without": ["state", "conv", "cross", "encode", "branch", "settle", "tree"]}
    },
}
"""Each design, and what it claims."""


class Design:
    """One of these designs as an adapter."""

    def __init__(self, cache: type[Any]) -> None:
        self.cache = cache

    def describe(self) -> dict[str, Any]:
        """Its claims."""
        return {"name": self.cache.__name__, "chapters": CLAIMS[self.cache]}

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache. Raises ValueError for another kind."""
        demand(kind == self.cache.kind, f"no {kind}")
        return self.cache(config)
