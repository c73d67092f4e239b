"""Adapters whose attention is nearly strict: each as the reference, but for one thing."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.caches.growing import Growing
from kvref.caches.page import Pages
from kvspec.contract import Attention
from kvspec.errors import Refused
from kvspec.geometry import Array


class LastBit(Growing):
    """One bit of one element is another when there are several splits."""

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: Any = None
    ) -> Array:
        found = super().attend(queries, keys, values, how, out, of)
        if how.splits == 3 and found.size:
            found[0, 1, 0, 2] = np.nextafter(found[0, 1, 0, 2], np.float32(np.inf))
        return found


class OffByABit(Reference):
    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "growing": LastBit}


class Unwilling(Pages):
    """Refuses blocks of queries."""

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: Any = None
    ) -> Array:
        if queries.shape[2] == 3:
            raise Refused("ATTN-24", "three are too many")
        return super().attend(queries, keys, values, how, out, of)


class RefusesBlocks(Reference):
    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": Unwilling}


class ClaimsLess(Reference):
    """Says that its attention is good, not that it is strict."""

    def describe(self) -> dict[str, Any]:
        said = super().describe()
        return said | {"chapters": said["chapters"] | {"attention": "visible"}}
