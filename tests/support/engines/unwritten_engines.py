"""An engine that writes drafts through: a cache whose drafts were all dropped counts as written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvadapters.reference import Reference
from kvref.abilities.draft import Round


class WritesThrough(Round):
    def commit(self, n: int) -> None:
        super().commit(n)
        for layer in self.layers.values():
            layer.cache.written = layer.cache.written or layer.drafts > 0


class EmptyAfterCommit(Reference):
    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        return WritesThrough(caches, isolated)
