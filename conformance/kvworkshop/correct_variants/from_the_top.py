"""A paged cache whose pool gives its highest page first."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.caches.page import Pages
from kvref.cite import cite
from kvref.memory.page_pool import Pool
from kvspec.geometry import Config
from kvworkshop.correct_variants.variant import Variant


class PoolFromTheTop(Pool):
    """A pool that takes the highest page that is free."""

    def take(self) -> int:
        """The highest page that no table has, for one."""
        cite("PAGE-12")
        page = len(self.counts) - 1 - self.counts[::-1].index(0)
        self.counts[page] = 1
        return page


class PagesFromTheTop(Pages):
    """A paged cache over such a pool."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pool = PoolFromTheTop(config)


class FromTheTop(Variant):
    """A paged cache that takes the highest free page first, at level visible."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": PagesFromTheTop}
    visible = ("page",)
