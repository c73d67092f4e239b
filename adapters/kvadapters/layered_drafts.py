"""Layers that take drafts, one way on: the engine appends them to all layers, and crops those that are not kept.

How many of the newest rows are drafts is known here alone, as it is to whoever speculates. `begin` has the engine
keep from then on what it takes to drop rows, and `commit` drops some and ends that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kvadapters.layered import LayeredCache
from kvadapters.update import Saved
from kvspec.errors import Unsupported
from kvspec.geometry import Array


class DraftedLayers(LayeredCache):
    """The caches of all layers, whose newest rows may be drafts."""

    _drafts = 0

    @property
    def _offset(self) -> int:
        return super()._offset - self._drafts

    def branch(self, keys: Array, values: Array, on: Sequence[int] | None = None) -> None:
        """Append drafts, each behind the one before it. Raises Unsupported for several ways on."""
        if on is not None:
            raise Unsupported("no drafts of several ways on")
        before, had = self.engine_copy(), self._drafts
        try:
            if not had and self.engine.begin:
                self.engine.begin(self.cache)
            super().append(keys, values)
            self._drafts = had + keys.shape[2]
        except Exception:
            self.cache = before
            raise

    def settle(self, draft: int) -> None:
        """Drop the drafts behind this one. Raises ValueError for one that is not there."""
        if not -1 <= draft < self._drafts:
            raise ValueError(f"draft {draft} of {self._drafts}")
        self._settle(self._drafts - 1 - draft)
        self._queries, self._returned = 0, None

    def _settle(self, drop: int) -> None:
        if self._drafts:
            self._commit(self.cache, drop)
            self._counted, self._drafts = self._counted - drop, 0

    def _commit(self, cache: Any, drop: int) -> None:
        if self.engine.commit is None:
            raise Unsupported("no commit")
        self.engine.commit(cache, drop)

    def _instead(self, do: Callable[[], None]) -> None:
        """Do this without the drafts. They are there again if it is refused."""
        before, drafts = (self.engine_copy() if self._drafts else None), self._drafts
        try:
            self._settle(drafts)
            do()
        except Exception:
            if before is not None:
                self.cache, self._drafts, self._counted = before, drafts, self._counted + drafts
            raise

    def append(self, keys: Array, values: Array) -> None:
        """Append rows in the place of the drafts."""
        if keys.shape[2]:
            self._instead(lambda: super(DraftedLayers, self).append(keys, values))
        else:
            super().append(keys, values)

    def rewind(self, to: int) -> None:
        """Trim rows once the drafts are gone."""
        self._instead(lambda: super(DraftedLayers, self).rewind(to))

    def free(self) -> None:
        """Empty all layers, and end what was begun for drafts."""
        self._settle(self._drafts)
        super().free()

    def snapshot(self, start: int) -> Saved | None:
        """Save a copy without the drafts."""
        if self.engine.state is None:
            raise Unsupported("no state")
        return Saved(self.config, self.engine.state(self._copy()), self._offset) if self._offset else None

    def restore(self, saved: Saved | None, to: int) -> None:
        """Put all layers back; they replace those with the drafts."""
        super().restore(saved, to)
        self._drafts = 0

    def engine_copy(self) -> Any:
        """A copy of what the engine has, drafts and all."""
        return super()._copy()

    def _copy(self) -> Any:
        twin = self.engine_copy()
        if self._drafts:
            self._commit(twin, self._drafts)
        return twin
