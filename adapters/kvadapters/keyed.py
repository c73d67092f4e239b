"""Pools of the chapter KEY. An engine either decides where rows lie (`Mapped`), or keeps rows and has no sequences
(`Stored`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvadapters.pools import Pool
from kvspec.contract import Pair, Request
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config


class Keyed(Pool):
    """A pool that finds whole pages by their tokens."""

    tokens: Callable[[Any], int]
    """Counts the tokens of a request."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if config.granule == "row" and self.size > 1:
            raise Unsupported("the engine finds whole pages")

    def found(self, wanted: Request) -> tuple[Any, int]:
        """Make a request of the engine, and look up how many of its tokens there are rows for."""
        raise NotImplementedError

    def more(self, of: Any, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        """Compute a request up to its token `end`; `tokens` become its own. Refused, nothing is done."""
        raise NotImplementedError

    def begin(self, new: Any, hit: int, end: int, rows: Sequence[Array]) -> None:
        """Take the rows that were found, and compute a request up to its token `end`. Refused, nothing is done."""
        self.more(new, end, rows)

    def match(self, wanted: Request) -> int:
        """Look a request up, and forget it."""
        return self._found(wanted)[1]

    def _found(self, wanted: Request) -> tuple[Any, int]:
        """The same. Refuses a request that has no tokens, or an item behind its last one."""
        if not wanted.tokens or any(at >= len(wanted.tokens) for _, at in wanted.media):
            raise ValueError(f"a request of {len(wanted.tokens)} tokens with items {wanted.media}")
        return self.found(wanted)

    def request(self, wanted: Request, chunk: int | None, *rows: Array) -> tuple[int, int]:
        """Begin a sequence."""
        new, hit = self._found(wanted)
        tokens = len(wanted.tokens)
        self.begin(new, hit, min(tokens, hit + (chunk or tokens)), rows)
        return self.added(new), hit

    def compute(self, sequence: int, n: int, *rows: Array) -> None:
        """Compute tokens that the request has."""
        of = self.all[sequence]
        self.more(of, min(self.length(of) + n, self.tokens(of)), rows)

    def answer(self, sequence: int, tokens: Sequence[int], *rows: Array) -> None:
        """Add tokens to the request, and compute all."""
        of = self.all[sequence]
        self.more(of, self.tokens(of) + len(tokens), rows, tokens)

    def clear(self) -> None:
        """Forget all, once there is no sequence."""
        if self.all:
            raise ValueError("sequences are in use")
        self.forget()

    def forget(self) -> None:
        """Have the engine forget all."""
        raise NotImplementedError


class Mapped(Keyed):
    """A pool of an engine that decides where rows lie, and has none: they are numpy arrays by slot."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        slots, widths = (self.pages + 1) * self.size, (config.k_dim, config.v_dim)
        self.rows = [np.zeros((slots, config.kv_heads, d), DTYPES[config.dtype]) for d in widths]

    def slots(self, of: Any) -> Array:
        """The slots of a request's rows, where the engine says. It never uses its first page, or its last."""
        raise NotImplementedError

    def write(self, of: Any, begin: int, rows: Sequence[Array]) -> None:
        """Write the rows of a request from `begin` on."""
        slots = self.slots(of)[begin:]
        for whole, new in zip(self.rows, rows, strict=True):
            whole[slots] = new[0, :, begin : begin + len(slots)].swapaxes(0, 1)

    def read_sequence(self, sequence: int) -> Pair:
        """The rows in the slots of a request."""
        slots = self.slots(self.all[sequence])
        return Pair(*(whole[slots].swapaxes(0, 1) for whole in self.rows))


@dataclass
class Text:
    """A sequence over a store: its tokens, how they are found, how many were, and its rows on the device."""

    tokens: list[int]
    name: Any
    found: int
    rows: Any


class Stored(Keyed):
    """A pool over a store. Its sequences are kept here, and refused where they need more pages than there are."""

    @staticmethod
    def tokens(of: Text) -> int:
        """Those that it was given."""
        return len(of.tokens)

    def load(self, new: Text) -> None:
        """Have the store give the rows that were found."""
        raise NotImplementedError

    def store(self, of: Text, end: int, rows: Sequence[Array]) -> None:
        """Add rows behind those that a sequence has, and store them."""
        raise NotImplementedError

    def _demand_room(self, begin: int, end: int) -> None:
        """Refuse rows for which there are no pages: those that were found need none."""
        used = sum(self.needs(each.found, self.length(each)) for each in self.all.values())
        if used + self.needs(begin, end) > self.pages:
            raise ValueError(f"no pages for {end - begin} tokens")

    def begin(self, new: Text, hit: int, end: int, rows: Sequence[Array]) -> None:
        """Load rows once there are pages for the others."""
        self._demand_room(hit, end)
        self.load(new)
        self._computed(new, end, rows)

    def more(self, of: Text, end: int, rows: Sequence[Array], tokens: Sequence[int] = ()) -> None:
        """Add tokens to the request once there are pages."""
        self._demand_room(self.length(of), end)
        of.tokens = [*of.tokens, *tokens]
        self._computed(of, end, rows)

    def _computed(self, of: Text, end: int, rows: Sequence[Array]) -> None:
        if end > self.length(of):
            self.store(of, end, rows)

    def finish(self, sequence: int) -> None:
        """Let the rows on the device go."""
        del self.all[sequence]
