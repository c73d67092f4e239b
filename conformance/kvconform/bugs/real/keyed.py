"""A bug of pages that are found by content, planted in the reference's pool."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.caches.keyed import History, Keyed, Running
from kvspec.geometry import Array


@planted("REUSE-14", breaks="KEY-30")
class HashKept(Keyed):
    """A page that is taken is found by what it held before, until it is full again."""

    before: tuple[tuple[int, list[History]], ...] = ()

    def _take(self) -> int:
        known = list(self.known)
        page = super()._take()
        self.before += ((page, known[page]),)
        return page

    def _write(self, one: Running, end: int, keys: Array, values: Array) -> None:
        super()._write(one, end, keys, values)
        for page, known in self.before:
            if len(self.known[page]) < self.size and known:
                self.known[page] = list(known)
        self.before = ()
