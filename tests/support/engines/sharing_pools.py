"""Pools that share equal pages: right ones, and ones that are wrong where rows are equal, whole or in a part."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.caches.page import Numbered, Pages
from kvspec.contract import Pair
from kvspec.geometry import Array, Config
from kvworkshop.correct_variants.shares_pages import PagesShared, SharesPages


def pool(pages: type[Pages], declares: bool = False, level: str = "visible") -> Any:
    """The reference with these pages; at level visible, it may declare that it shares equal ones."""

    class Made(SharesPages if declares else Reference):  # type: ignore[misc]
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "page": pages}

        def describe(self) -> dict[str, Any]:
            said = super().describe()
            return said if declares else said | {"chapters": dict.fromkeys(said["chapters"], level)}

    return Made()


class Remembers(Pages):
    """Finds pages by their content, and does not forget a page that was given back: rows that it knows are not
    written again."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.known: dict[bytes, int] = {}

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        super().append(keys, values, sequence)
        one, size = self.in_use.get(sequence), self.pool.size
        for page in one.table[: one.length // size] if one else ():
            content = self.pool.keys[page].tobytes() + self.pool.values[page].tobytes()
            first = self.known.setdefault(content, page)
            for array in (self.pool.keys, self.pool.values):
                array[page] = array[first]


class ByKeys(PagesShared):
    """Pages of equal keys are taken for equal."""

    def content(self, rows: Pair) -> bytes:
        return rows.keys.tobytes()


class ByValues(PagesShared):
    """Pages of equal values are taken for equal."""

    def content(self, rows: Pair) -> bytes:
        return rows.values.tobytes()


class ByFirstHead(PagesShared):
    """Pages whose first heads are equal are taken for equal."""

    def content(self, rows: Pair) -> bytes:
        return b"".join(array[0].tobytes() for array in rows)


class ByLastHead(PagesShared):
    """Pages whose last heads are equal are taken for equal."""

    def content(self, rows: Pair) -> bytes:
        return b"".join(array[-1].tobytes() for array in rows)


class AllButOneValue(PagesShared):
    """Of the last head only keys are compared."""

    def content(self, rows: Pair) -> bytes:
        return rows.keys.tobytes() + rows.values[:-1].tobytes()


class AllButOneKey(PagesShared):
    """Of the last head only values are compared."""

    def content(self, rows: Pair) -> bytes:
        return rows.keys[:-1].tobytes() + rows.values.tobytes()


class Uncounted(PagesShared):
    """A page that is shared is free as soon as one of its sequences gives it up."""

    def shared(self, page: int) -> None:
        pass

    def free_pages(self) -> int:
        return len(self.pool.counts) - len({page for one in self.in_use.values() for page in one.table})

    def references(self) -> list[int]:
        every = [page for one in self.in_use.values() for page in one.table]
        return [every.count(page) for page in range(len(self.pool.counts))]


class AskedFirst(PagesShared):
    """Looks for equal pages before it takes new ones, so an append may find room in a pool that is full."""

    def _appendable(self, new: Pair, to: Numbered) -> None:
        if not self._fits(new) or to.length % self.pool.size or self._like(new) is None:
            super()._appendable(new, to)

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        to, new = self.in_use.get(sequence), Pair(keys, values)
        like = self._like(new) if to and self._fits(new) and to.length % self.pool.size == 0 else None
        if to is None or like is None:
            super().append(keys, values, sequence)
            return
        to.table.append(like)
        to.length += self.pool.size
        self.shared(like)

    def _fits(self, new: Pair) -> bool:
        shapes = ((1, self.config.kv_heads, self.pool.size, d) for d in (self.config.k_dim, self.config.v_dim))
        dtype = self.pool.keys.dtype
        return all(a.shape == s and a.dtype == dtype for a, s in zip(new, shapes, strict=True))

    def _like(self, new: Pair) -> int | None:
        content = self.content(Pair(*(np.ascontiguousarray(a[0]) for a in new)))
        return next((p for p in self._full() if self.content(self.rows_of(p)) == content), None)


class ByPrefix(PagesShared):
    """Shares a page only where the sequence shares all pages before it, as prefix caches do."""

    def _share_filled(self, of: Numbered, begin: int) -> None:
        for other in [one for one in self.in_use.values() if one is not of]:
            for i in range(min(of.length, other.length) // self.pool.size):
                if of.table[:i] != other.table[:i] or not self.equal(of.table[i], other.table[i]):
                    break
                if i >= begin and of.table[i] != other.table[i]:
                    self.shared(other.table[i])
                    self.pool.give([of.table[i]])
                    of.table[i] = other.table[i]
