"""Moves and continuations shared by the plans of all chapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvconform.generate.covers import Ops
from kvspec import notation
from kvspec.session.driver import Session
from kvspec.trace import Trace


def name(start: Trace, bound: int) -> str:
    """Name what is covered, in a few words."""
    window = f" window={start.config.window}" if start.config.window else f" offset<={bound}"
    return f"{start.kind}{window} step={start.config.step}"


def ops(*texts: str) -> Ops:
    """Parse operations from the compact notation, separated by `;`."""
    return tuple(notation.operation(o) for text in texts for o in text.split(";"))


def single(texts: Iterable[str]) -> list[Ops]:
    """Make one move of each text."""
    return [ops(t) for t in texts]


def rewinds(offset: int, near: bool) -> list[str]:
    """Give rewinds to every target, or to those near either end, and to one beyond each end."""
    targets = {-1, 0, 1, offset - 1, offset, offset + 1} if near else set(range(-1, offset + 2))
    return [f"rewind {t}" for t in sorted(targets)]


def appends_after(session: Session) -> Sequence[Ops]:
    """Give appends that distinguish states of a cache: one row and another, and two rows at once."""
    return [ops("append 1; append 1; view"), ops("append 2; view")]
