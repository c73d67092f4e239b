"""A residual window on the device: copies of the newest rows as they were handed in, beside all rows in a form."""

from __future__ import annotations

from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.layout import Geometry, Place, behind, move, put
from kvspec.geometry import Config, newest


class Residual:
    """Holds copies of the positions from `over` to `end` - 1, at most `most`; that of position p lies in slot
    p % most."""

    def __init__(self, space: Workspace, config: Config) -> None:
        self.space, self.most = space, newest(config)
        self.geometry = Geometry.of(config.changed(form=None))
        self.rows: Rows | None = None
        self.over = self.end = 0

    @property
    def nbytes(self) -> int:
        """Count the bytes of the copies, once there are some."""
        return 0 if self.rows is None else self.rows.nbytes

    def take(self, source: Place, at: int) -> None:
        """Copy the newest of these rows, which are for the positions from `at` on. Memory must be reserved."""
        if not self.most:
            return
        end = at + source.slots
        self.over, self.end = max(min(self.over, at), end - self.most), min(self.end, at)
        while self.end < end:
            self.end = max(self.end, self.over)
            n = min(end - self.end, self.most - self.end % self.most)
            self._put(n, behind(source, self.geometry, self.end - at), self.end)
            self.end += n

    def reserve(self) -> None:
        """Allocate what the copies lie in."""
        if self.most and self.rows is None:
            self.rows = Rows(self.space.runtime, self.geometry, self.most)

    def _put(self, n: int, source: Place, position: int) -> None:
        assert self.rows is not None
        put(self.space.runtime, self.geometry, n, source, self.rows.place, position % self.most)

    def settle(self, offset: int) -> None:
        """Take all rows for gone over."""
        self.over = self.end = offset

    def free(self) -> None:
        """Give the memory back."""
        if self.rows is not None:
            self.rows.release()
        self.rows, self.over, self.end = None, 0, 0

    def lay(self, place: Place, first: int, n: int) -> None:
        """Write the copies over n decoded rows, the first of which has this position."""
        begin, end = max(first, self.over), min(first + n, self.end)
        if self.rows is None or begin >= end:
            return
        source = self.rows.place.span(turn=begin % self.most)
        move(self.space.runtime, self.geometry, end - begin, source, place.span(begin - first))
