"""The record of the chapter RING."""

from __future__ import annotations

from kvspec.chapters.record import Chapter, Kind

CHAPTER = Chapter(
    "RING",
    kind=Kind(
        needs=("window",),
        sequence=True,
        also=("append", "view", "ask", "rewind", "free", "scribble", "plan", "fit", "attend", "rotate"),
        tried={"window": 4},
        ownership="RING-16",
        bits="RING-15",
    ),
    extra_states=1,
)
