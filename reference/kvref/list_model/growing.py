"""Growing caches in the list model: a query sees all tokens."""

from __future__ import annotations

from typing import ClassVar

from kvref.list_model.caches import CacheModel


class GrowingModel(CacheModel):
    """Every token, for ever."""

    kind = "growing"
    appended: ClassVar[tuple[str, ...]] = ("GROW-1", "GROW-2")
    viewed = "GROW-4"
    rewound: ClassVar[tuple[str, ...]] = ("GROW-5", "CACHE-8")
    unmoved: ClassVar[tuple[str, ...]] = rewound
    drafted = "DRAFT-2"


model = GrowingModel
