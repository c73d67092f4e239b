"""The requests of a log while they are alive: their tokens, the history of each of their rows, and their tables."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, field
from typing import Any

from kvconform.steps.log_file import LARGEST_NUMBER, Event, number, numbers, text
from kvspec.errors import BadInput

MOST_TOKENS = 1 << 22
"""Tokens that a request may have."""
MOST_MEDIA = 1 << 14


def named(word: str) -> int:
    """Give a number of 60 bits for a text: 0 for the empty one."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big") >> 4 if word else 0


@dataclass(eq=False)
class Request:
    """A request. `history[p]` names all that the row of position p depends on, `alone[p]` only the tokens. Both
    are as long as the text, and the same array if the rows depend on nothing else. The rows of its first `next`
    tokens are computed. `tables` are None while it has no pages; it holds those of each table from index `low` on.
    `drafts` were computed in its last step and await their tokens; None if none are awaited."""

    serial: int
    name: str
    salt: str
    adapter: str
    media: dict[int, int]
    history: array[int] = field(default_factory=lambda: array("q"))
    alone: array[int] = field(default_factory=lambda: array("q"))
    tables: list[list[int]] | None = None
    low: list[int] = field(default_factory=list)
    next: int = 0
    drafts: list[int] | None = None
    drafted: tuple[int, int] = (0, 0)
    """The positions of the rows of `drafts`: from, to."""
    finished: bool = False

    def __post_init__(self) -> None:
        if not self.adapter and not self.media:
            self.alone = self.history

    def extend(self, added: list[int]) -> None:
        """Put tokens behind its text. Raises BadInput if it gets too long."""
        if len(self.history) + len(added) > MOST_TOKENS:
            raise BadInput(f"{self.name} has more than {MOST_TOKENS} tokens")
        if len(added) == 1 and self.history and self.alone is self.history:  # the usual case
            self.history.append(hash((self.history[-1], added[0])))
            return
        history, alone = self.histories(added)
        self.history.extend(history)
        if self.alone is not self.history:
            self.alone.extend(alone)

    def histories(self, added: list[int]) -> tuple[list[int], list[int]]:
        """Give the histories of tokens that may follow its text: of all, and of the tokens alone."""
        history = self._chain(added, self.history, named(self.adapter), self.media)
        return history, history if self.alone is self.history else self._chain(added, self.alone, 0, {})

    def _chain(self, added: list[int], known: array[int], root: int, media: dict[int, int]) -> list[int]:
        last, made = known[-1] if known else root, list[int]()
        for at, token in enumerate(added, len(known)):
            last = hash((last, token))
            if at in media:
                last = hash((last, media[at], at))
            made.append(last)
        return made

    @property
    def begun(self) -> list[list[int]]:
        """Its tables, where it must have some."""
        assert self.tables is not None
        return self.tables


def request(serial: int, event: Event) -> Request:
    """Make a request of the event that adds it. Raises BadInput."""
    name, media = text(event["add"], "a request's name"), event.get("media", [])
    if not isinstance(media, list) or len(media) > MOST_MEDIA:
        raise BadInput(f"media is a list of at most {MOST_MEDIA} pairs of a position and a name")
    salt, adapter = text(event.get("salt", ""), "salt"), text(event.get("adapter", ""), "adapter")
    made = Request(serial, name, salt, adapter, dict(map(_medium, media)))
    tokens = numbers(event.get("tokens"), f"tokens of {name}", LARGEST_NUMBER)
    if not tokens:
        raise BadInput(f"{name} has no tokens")
    made.extend(tokens)
    return made


def _medium(pair: Any) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise BadInput(f"a medium is a position and a name, not {pair!r:.40}")
    return number(pair[0], "the position of a medium", 0, MOST_TOKENS), named(text(pair[1], "the name of a medium"))


def forked(serial: int, parent: Request, name: str) -> Request:
    """Make a request that goes on as another one does: it has its text and its tables."""
    child = Request(serial, name, parent.salt, parent.adapter, dict(parent.media))
    child.history = parent.history[:]
    child.alone = child.history if parent.alone is parent.history else parent.alone[:]
    child.tables, child.low, child.next = [list(t) for t in parent.begun], list(parent.low), parent.next
    child.drafts, child.drafted = parent.drafts, parent.drafted
    return child
