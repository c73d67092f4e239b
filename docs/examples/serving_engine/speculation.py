"""Guesses tokens by looking them up in the text itself, and says which guesses were right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

LONGEST = 3
"""Tokens at the end of a text that are looked for further ahead in it; fewer, where these are not found."""


class Speculation:
    """Drafts at most `most` tokens a step."""

    def __init__(self, most: int, counts: Counter[str]) -> None:
        self.most, self.counts = most, counts

    def drafts(self, tokens: Sequence[int], most: int) -> list[int]:
        """Give what followed where the end of the text stood before, the last time: at most `most` tokens."""
        most = min(most, self.most)
        for size in range(min(LONGEST, len(tokens) - 1), 0, -1) if most > 0 else ():
            end = list(tokens[-size:])
            for start in range(len(tokens) - size - 1, -1, -1):
                if list(tokens[start : start + size]) == end:
                    return list(tokens[start + size : start + size + most])
        return []

    def verified(self, drafts: Sequence[int], chosen: Iterator[int]) -> Iterator[int]:
        """Give tokens that are chosen one after another, as long as each is the draft in its place: the next one
        was computed behind this draft. So there is one token more than drafts that are right."""
        for index, token in enumerate(chosen):
            right = index < len(drafts) and token == drafts[index]
            self.counts["drafts accepted"] += right
            yield token
            if not right:
                self.counts["drafts rejected"] += len(drafts) - index
                break
