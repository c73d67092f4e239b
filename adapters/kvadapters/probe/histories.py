"""Histories of an engine's cache: appends of many sizes, rewinds and copies, the shortest first.

Sizes lie around the end of a window, a chunk or a convolution, where engines change what they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvadapters.probe.views import CONVOLUTION, View


@dataclass(frozen=True)
class Step:
    """One operation of a history: `append` tokens, `rewind` by as many, or `copy`, which appends them to a copy and
    then drops the copy."""

    what: str
    tokens: int

    def __str__(self) -> str:
        return f"{self.what} {self.tokens}"


History = tuple[Step, ...]


def histories(layers: Sequence[View], most: int, abilities: frozenset[str]) -> list[History]:
    """Give histories of at most `most` tokens, the shortest first. `abilities` may hold `rewind` and `copy`."""
    each = sizes(layers)
    found = {h: None for h in (*_appends(each), *_with(each, abilities)) if 0 < _longest(h) <= most}
    return sorted(found, key=lambda h: (_longest(h), len(h)))


def sizes(layers: Sequence[View]) -> list[int]:
    """Give how many tokens are appended at once, for these layers."""
    ends = {CONVOLUTION.size if view.kind == "linear" else view.size for view in layers} - {0}
    around = {at for end in ends for at in (end - 1, end, end + 1)}
    return sorted({1, 5, 17, *around, *(2 * end + 1 for end in ends)} - {0})


def _appends(sizes: Sequence[int]) -> Iterator[History]:
    """Append one chunk, two, and one token at a time between them."""
    for first in sizes:
        yield (Step("append", first),)
        for second in (1, *sizes[-3:]):
            yield Step("append", first), Step("append", second)
        yield Step("append", first), *[Step("append", 1)] * 4, Step("append", sizes[-1])


def _with(sizes: Sequence[int], abilities: frozenset[str]) -> Iterator[History]:
    """Go on after a rewind, and after a copy that went on by itself."""
    for first in sizes:
        if "rewind" in abilities:
            for back in sorted({1, 2, first - 1} & set(range(1, first))):
                yield Step("append", first), Step("rewind", back), Step("append", 1), Step("append", sizes[-1])
            yield Step("append", first), Step("append", 2), Step("rewind", 1), Step("append", 3)
        if "copy" in abilities:
            yield Step("append", first), Step("copy", 3), Step("append", 1), Step("append", 3)


def _longest(history: History) -> int:
    """Give the length of the longest text of a history."""
    length = longest = 0
    for step in history:
        longest = max(longest, length + (step.tokens if step.what != "rewind" else 0))
        length += {"append": step.tokens, "rewind": -step.tokens, "copy": 0}[step.what]
    return longest
