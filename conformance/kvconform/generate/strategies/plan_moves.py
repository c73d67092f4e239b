"""Plans of covers: what they hold, how they are written in the notation, and moves that chapters share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from kvspec import notation
from kvspec.operations.table import Operation
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvspec.session.driver import Session

Ops = tuple[Operation, ...]

Texts: TypeAlias = "Callable[[Session], Iterable[str]]"
"""Gives texts of one or several operations each, for the state that a session is in."""


@dataclass(frozen=True)
class Plan:
    """What to cover: a configuration, the moves tried from each state, and what follows each move."""

    name: str
    start: Trace
    moves: Callable[[Session], Sequence[Ops]]
    continuations: Callable[[Session], Sequence[Ops]]
    snapshots: tuple[str, ...] = ()
    """Names of snapshots that belong to the state."""
    caches: tuple[str, ...] = ("A",)
    """The caches that belong to the state."""
    histories: bool = False
    """Whether the last append's number of queries belongs to the state, as it does for masks."""
    look: Ops = ({"op": "view"},)
    """Operations that show a state and do not change it."""
    only_staying: bool = False
    """Whether only moves that stay in their state are covered: another chapter's cover has the others."""


def plan(name: str, start: Trace, moves: Texts, continuations: Texts, look: str = "view", **more: Any) -> Plan:
    """Make a plan; `more` are its other fields."""
    parts = partial(_parsed, moves), partial(_parsed, continuations)
    return Plan(name, start, *parts, look=notation.operations(look), **more)


def _parsed(texts: Texts, session: Session) -> list[Ops]:
    return list(map(notation.operations, texts(session)))


def name(start: Trace, bound: int) -> str:
    """Name what is covered, in a few words."""
    window = f" window={start.config.window}" if start.config.window else f" offset<={bound}"
    return f"{start.kind}{window} step={start.config.step}"


def rewinds(offset: int, near: bool) -> list[str]:
    """Give rewinds to every target, or to those near either end, and to one beyond each end."""
    targets = {-1, 0, 1, offset - 1, offset, offset + 1} if near else set(range(-1, offset + 2))
    return [f"rewind {t}" for t in sorted(targets)]


def appends_after(session: Session) -> list[str]:
    """Give appends that distinguish states of a cache: one row and another, and two rows at once."""
    return ["append 1; append 1; view", "append 2; view"]
