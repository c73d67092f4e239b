"""Bugs of windows beside sinks that are more than another text in one method."""

from __future__ import annotations

from kvconform.bugs.planting import planted
from kvref.caches.sink import Sink
from kvspec.geometry import Array


@planted("ROPE-05", breaks="SINK-19")
class SecondShiftInPlaceOfTheFirst(Sink):
    """A second drop of rows moves the others by as many positions as it drops, from where the first had not moved
    them."""

    shift = 0

    def append(self, keys: Array, values: Array) -> None:
        before = self.offset - self.live
        super().append(keys, values)
        self.shift = self.offset - self.live - before

    def _places(self) -> list[int]:
        if not self.config.shifted:
            return super()._places()
        others = range(self.offset - self.live + self.sinks, self.offset)
        return [*range(min(self.sinks, self.live)), *(position - self.shift for position in others)]
