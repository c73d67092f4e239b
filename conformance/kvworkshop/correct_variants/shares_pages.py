"""A paged cache whose sequences share every full page of equal rows, not those of forks alone."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.abilities.transfers import Numbered
from kvref.caches.page import Pages
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvworkshop.correct_variants.variant import Variant


class PagesShared(Pages):
    """A page that an append fills is given up for a full page of equal rows, if there is one."""

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Append rows, then share the pages that they filled."""
        begin = self.in_use[sequence].length // self.pool.size if sequence in self.in_use else 0
        super().append(keys, values, sequence)
        if sequence in self.in_use:
            self._share_filled(self.in_use[sequence], begin)

    def _share_filled(self, of: Numbered, begin: int) -> None:
        for i in range(begin, of.length // self.pool.size):
            mine = of.table[i]
            like = next((page for page in self._full() if page != mine and self.equal(page, mine)), mine)
            if like != mine:
                self.shared(like)
                self.pool.give([mine])
                of.table[i] = like

    def _full(self) -> list[int]:
        """The pages that some sequence has filled."""
        size = self.pool.size
        return sorted({page for one in self.in_use.values() for page in one.table[: one.length // size]})

    def equal(self, one: int, other: int) -> bool:
        """Whether two pages hold equal rows: keys and values of every head, to the bit."""
        return self.content(self.rows_of(one)) == self.content(self.rows_of(other))

    def rows_of(self, page: int) -> Pair:
        """All slots of a page, `[kv_heads, page_size, dim]`, where they are."""
        return Pair(self.pool.keys[page], self.pool.values[page])

    def content(self, rows: Pair) -> bytes:
        """The content of a page, `[kv_heads, page_size, dim]`."""
        return rows.keys.tobytes() + rows.values.tobytes()

    def shared(self, page: int) -> None:
        """Count one table more that has the page."""
        self.pool.share([page])


class SharesPages(Variant):
    """A paged cache that shares equal full pages, at level visible, and declares it."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": PagesShared}

    def describe(self) -> dict[str, Any]:
        """The reference's claims, with the dialect of pages."""
        said = super().describe()
        return said | {"chapters": said["chapters"] | {"page": {"level": "visible", "shares": "equal pages"}}}
