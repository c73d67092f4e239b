"""What drafts hang on in the list model: for each the number of another, -1 for none."""

from __future__ import annotations

from collections.abc import Sequence


def behind(there: int, n: int) -> list[int]:
    """What n more drafts hang on where nothing is said: each on the one before it."""
    return list(range(there - 1, there - 1 + n))


def proper(given: Sequence[int], n: int, there: int) -> bool:
    """Whether there is one for each of n more drafts, and each is there."""
    return len(given) == n and all(-1 <= other < there + i for i, other in enumerate(given))


def way(hung: Sequence[int], draft: int) -> list[int]:
    """The drafts on the way to one, and itself, by their numbers; none to -1."""
    found = list[int]()
    while draft != -1:
        found.append(draft)
        draft = hung[draft]
    return found[::-1]
