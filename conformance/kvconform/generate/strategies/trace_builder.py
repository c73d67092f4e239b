"""Builds a trace operation by operation: the code that the strategies of all chapters share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from kvconform.oracle.expected import Expected
from kvconform.oracle.follow import ModelledTrace
from kvspec import notation
from kvspec.operations.table import OF_KIND, Operation
from kvspec.operations.texts import ORDERS
from kvspec.trace import Trace

T = TypeVar("T")

read = lru_cache(maxsize=1 << 14)(notation.operations)
"""Reads operations in the notation; most texts are drawn many times."""

integers = cache(st.integers)
"""The strategy of whole numbers: Hypothesis takes longer to find the one it made before than to draw a number."""


class Drawing(ModelledTrace):
    """Draws a trace. The list model performs the operations so far, and tells where the boundaries are.

    The method `_kind` of a subclass draws an operation of that kind, or a few that belong together, and gives them
    in the notation. A kind without a method is an operation without arguments.
    """

    cache = "A"
    """The cache that the next operation is for."""

    def __init__(self, draw: st.DrawFn, start: Trace) -> None:
        super().__init__(start)
        self.draw, self.start = draw, start

    @property
    def model(self) -> Any:
        """The list model of the cache."""
        return self.session.caches[self.cache]

    def of(self, *choices: T) -> T:
        """Draw one of these; earlier ones count as simpler."""
        return choices[self.number(0, len(choices) - 1)]  # a new `sampled_from` is validated, which takes longer

    def number(self, low: int, high: int) -> int:
        """Draw a number from low to high, both included."""
        return self.draw(integers(low, max(low, high)))

    def carried(self, rows: int) -> str:
        """Draw how the parcel p of so many rows is carried as q."""
        damage = self.of(*[""] * 8, " cut=1", f" flip={self.number(0, 99)}", " version=2")
        return f"carry x y axes={self.of(*ORDERS)} page={self.of(0, 1, 2, self.number(1, rows + 1))}{damage}"

    def through_ranks(self, heads: int, of: str = "") -> str:
        """Draw ranks to which the parcel x goes, and in which order what they pack is collected as w. Seldom a head
        is missing, or there twice."""
        cut = self.number(1, max(1, heads - 1))
        low = min(heads - 1, self.of(cut, cut, cut, cut - 1, cut + 1))
        parts = (0, cut), (low, heads - low)
        each = [
            f"open {x} kv_heads={n} rank={low}/{heads}; {x}: unpack x; {x}: pack {name}{of}"
            for x, name, (low, n) in zip("PQ", "kl", parts, strict=True)
        ]
        return f"{'; '.join(each)}; collect {self.of('k l', 'l k')} w"

    def add(self, kinds: Sequence[str]) -> None:
        """Draw one of these kinds, and add operations of this kind."""
        kind = self.of(*kinds)
        self.cache = self.choose_cache()
        texts = getattr(self, f"_{kind}", lambda: kind)()
        for text in (texts,) if isinstance(texts, str) else texts:
            self.do(text)

    def times(self, count: int, kinds: Sequence[str]) -> Trace:
        """Add operations this many times. Give the trace."""
        for _ in range(count):
            self.add(kinds)
        return self.trace()

    def until(self, length: int, kinds: Sequence[str]) -> Trace:
        """Add operations until there are this many. Give the trace."""
        while len(self.ops) < length:
            self.add(kinds)
        return self.trace()

    def choose_cache(self) -> str:
        """Choose the cache of the next operation."""
        return "A"

    def do(self, text: str) -> None:
        """Add operations in the notation, separated by `;`."""
        for op in read(text):
            self.follow(op)

    def follow(self, op: Operation) -> Expected:
        """Add an operation on the chosen cache, unless it names another or that one's kind lacks it, and have the
        list model do it."""
        there = self.cache != "A" and "cache" not in op and op["op"] in OF_KIND[self.session.kinds[self.cache]]
        return super().follow({**op, "cache": self.cache} if there else op)

    def trace(self) -> Trace:
        """Give the trace drawn so far."""
        return replace(self.start, ops=tuple(self.ops))


class DrawingOnCaches(Drawing):
    """Draws a trace on one or more caches of a kind."""

    def choose_cache(self) -> str:
        """Choose any open cache."""
        return self.of(*sorted(self.session.caches))
