"""What the queries of a group of layers see, in the words of a log's header: `full`, `window 128`, `chunk 8192`,
`state`."""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.errors import BadInput

KINDS = {"full": False, "window": True, "chunk": True, "state": False}
"""The views there are, and whether they have a size."""

MOST = 1 << 24
"""Positions that a window or a chunk may have."""


@dataclass(frozen=True)
class View:
    """`size` counts the positions of a window, with the query's own, or of a chunk; it is 0 for the others."""

    kind: str
    size: int = 0

    def first(self, at: int) -> int:
        """Give the first position that a query at `at`, or a later one, sees. A state is seen as the row before
        the query: it stands for all tokens up to there."""
        if self.kind == "window":
            return max(0, at - self.size + 1)
        if self.kind == "chunk":
            return at - at % self.size
        return max(0, at - 1) if self.kind == "state" else 0

    def __str__(self) -> str:
        return f"{self.kind} {self.size}" if self.size else self.kind


def view(text: object) -> View:
    """Read a view. Raises BadInput."""
    words = text.split() if isinstance(text, str) else [""]
    kind, size = (words[0], words[1:]) if words else ("", [])
    if kind not in KINDS or len(size) != KINDS[kind]:
        raise BadInput(f"a view is full, window N, chunk N or state, not {text!r:.60}")
    if not size:
        return View(kind)
    if not size[0].isdecimal() or len(size[0]) > 9 or not 1 <= int(size[0]) <= MOST:
        raise BadInput(f"the size of a {kind} is from 1 to {MOST}, not {size[0]:.20}")
    return View(kind, int(size[0]))
