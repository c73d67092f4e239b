"""Known deviations of engines for tests, and the records of engines that are judged with them."""

from __future__ import annotations

from functools import cache

from kvconform.runner.verdict.known import KnownDeviation
from kvspec.records.run import Record
from support.engines import known_engines, second_bugs
from support.running import judging

ENTRY = '[[known]]\nclause = "RING-7"\nreason = "not counted"\nshows = "offset: expected 0, found 1"\n'
MODEL = '[[known]]\nclause = "RING-1"\nreason = "too wide"\nmodel = "x"\n'

WORDS = "ring kv_heads=1 window=1: append 1; rewind 0"
TRIM = KnownDeviation("RING-7", "a trim of the only row is not counted", shows="offset: expected 0, found 1")
TRACE = KnownDeviation("RING-7", "the same", trace=WORDS, shows=TRIM.shows, link="https://a.b")
WIDE = KnownDeviation("RING-1", "the window is one row too wide", model="WIN-04/OwnRowNotCounted")
RINGS = ("ring", "mask")


@cache
def judged(name: str, *entries: KnownDeviation, only: tuple[str, ...] = ()) -> Record:
    return judging.record_of(
        f"{known_engines.__name__}:{name}", ("growing", "ring", "mask"), traces=3, known=entries, only=only
    )


@cache
def behind(name: str, *entries: KnownDeviation, traces: int = 5) -> Record:
    """The engine of `docs/engine.md`, or one with a second bug."""
    return judging.record_of(f"{second_bugs.__name__}:{name}", RINGS, traces=traces, known=entries or (WIDE,))
