"""A ring with a realistic bug, to show a failing report: a rewind forgets the write cursor.

kvconform run examples.stale_cursor:Adapter --report report/

The offset and every row are right until the next append: it writes a row to a slot where no query looks for it.
"""

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.caches.ring import Ring


class StaleCursor(Ring):
    """The reference's ring, except for one line."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset, but leave the write index where it was (the bug)."""
        index = self.index
        super().rewind(to)
        self.index = index


class Adapter(Reference):
    """What `kvconform run` opens."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ring": StaleCursor}

    def describe(self) -> dict[str, Any]:
        """Describe the reference, under another name."""
        return super().describe() | {"name": "stale-cursor"}
