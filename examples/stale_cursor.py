"""A ring with a real kind of bug, to see what a failing report looks like: a rewind forgets the write cursor.

    kvconform run examples.stale_cursor:Adapter --report report/

The offset is right, and so is every row, until the next append puts a row where no query will look for it.
"""

from typing import Any

from kvadapters.reference import Reference
from kvref.ring import Ring


class StaleCursor(Ring):
    """The reference's ring, but for one line."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset, and leave the index where it was."""
        index = self.index
        super().rewind(to)
        self.index = index


class Adapter(Reference):
    """What `kvconform run` opens."""

    caches = Reference.caches | {"ring": StaleCursor}

    def describe(self) -> dict[str, Any]:
        """As the reference, under another name."""
        return super().describe() | {"name": "stale-cursor"}
