"""Requests whose rows are found again by content, and the methods of a pool that finds them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kvspec.contract.handles import Pool

Media = tuple[tuple[str, int], ...]
"""Items such as images by name, each with the position of the token that it stands behind."""


def tokens_in(text: str) -> tuple[int, ...]:
    """Read the tokens of an argument such as `x64y`. Each letter is a number, from 0 for a; `-` has no tokens."""
    found = re.findall("([a-z])([0-9]*)", text)
    return tuple(ord(letter) - ord("a") for letter, times in found for _ in range(int(times or 1)))


def media_in(text: str | None) -> Media:
    """Read the items of an argument, `p@2,q@5`."""
    items = (item.split("@") for item in (text or "").split(",") if item)
    return tuple(sorted((name, int(at)) for name, at in items))


class Request(NamedTuple):
    """All that the rows of a request depend on, and its salt, which keeps it apart from others with equal rows."""

    tokens: tuple[int, ...]
    adapter: str = ""
    """The adapter of weights that it runs under; none if it is empty."""
    salt: str = ""
    """Only requests of one salt share rows; none if it is empty."""
    media: Media = ()

    @classmethod
    def of(cls, op: Mapping[str, Any]) -> Request:
        """Read the request of an operation."""
        adapter, salt = op.get("adapter") or "", op.get("salt") or ""
        return cls(tokens_in(op["tokens"]), adapter, salt, media_in(op.get("media")))

    def longer(self, tokens: Sequence[int]) -> Request:
        """Make the request with more tokens behind."""
        return self._replace(tokens=(*self.tokens, *tokens))

    def depends(self, p: int) -> tuple[Any, ...]:
        """Give all that the row of position p depends on: the adapter, the tokens and the items up to p."""
        return self.adapter, self.tokens[: p + 1], tuple(item for item in self.media if item[1] <= p)


class PrefixCache(Pool, Protocol):
    """A pool opened as `keyed`. Rows that are handed in are `[1, kv_heads, n, dim]` for all n tokens of a request;
    the pool stores those of the tokens that it computes, and no others. `read_sequence` gives the rows of proposed
    tokens too."""

    def match(self, request: Request) -> int:
        """Say how many of the first tokens have rows that were computed for them; change nothing."""

    def request(self, request: Request, chunk: int | None, keys: Any, values: Any) -> tuple[int, int]:
        """Begin a sequence with the rows that are found, and compute the rest, at most `chunk` tokens of it. Return
        its number, the lowest not in use, and how many rows were found."""

    def compute(self, sequence: int, n: int, keys: Any, values: Any) -> None:
        """Compute the next n tokens of a request, or as many as are left."""

    def answer(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Add tokens to a request, and compute all that are not computed."""

    def propose(self, sequence: int, tokens: Sequence[int], keys: Any, values: Any) -> None:
        """Compute tokens behind those of a request that nobody has chosen yet."""

    def accept(self, sequence: int, n: int) -> None:
        """Make the first n proposed tokens tokens of the request; drop the others."""

    def finish(self, sequence: int) -> None:
        """End a sequence, and keep its rows as long as their pages are not needed."""

    def abort(self, sequence: int) -> None:
        """End a sequence; what no other sequence has of it is found by nobody."""

    def evict(self, n: int) -> None:
        """Make n pages that no sequence has forget their rows, or as many as there are."""

    def clear(self) -> None:
        """Make all pages forget their rows."""
