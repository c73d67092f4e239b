"""The laws of bounded caches: it equals a growing cache up to the bound, and a refused append changes nothing."""

from __future__ import annotations

from hypothesis import strategies as st

from kvconform.laws import law
from kvconform.laws.caches import END, difference
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config
from kvspec.registry import fitted

MOST = 4
"""Rows that the end of a side appends."""


def _begun(draw: st.DrawFn) -> tuple[list[str], int]:
    """Appends and rewinds to begin with, and the most rows that are held meanwhile or at the end of a side."""
    texts, offset, highest = list[str](), 0, 0
    for n in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        offset += n
        highest, to = max(highest, offset), draw(st.integers(0, offset))
        texts.append(f"append {n}")
        if draw(st.booleans()):
            texts.append(f"rewind {to}")
            offset = to
    return texts, max(highest, offset + MOST)


@register("BOUNDED-18", needs=("bounded", "growing"), compare=difference)
def growing(draw: st.DrawFn, config: Config) -> Sides:
    """A bounded cache that has room for all, or a growing one."""
    texts, highest = _begun(draw)
    config = config.changed(max_len=highest + draw(st.integers(0, 2)))
    left = law.trace("bounded", config, *texts, *END)
    return Sides(left, law.trace("growing", fitted("growing", config), *texts, *END))


@register("BOUNDED-19", needs=("bounded",), compare=difference)
def refused(draw: st.DrawFn, config: Config) -> Sides:
    """Appends beyond the room in between, or none."""
    texts, highest = _begun(draw)
    config = config.changed(max_len=highest)
    more = [f"append {highest + draw(st.integers(1, 3))}" for _ in texts]
    mixed = [text for both in zip(texts, more, strict=True) for text in both]
    return Sides(law.trace("bounded", config, *mixed, *END), law.trace("bounded", config, *texts, *END))
