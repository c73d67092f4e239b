"""Right caches of several layers, oddly designed: tokens in one list, rows in dictionaries, rows never dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Pair
from support.engines.foreign.layering import Tokens

Held = dict[int, tuple[Any, Any]]
"""The rows of a layer by position: keys and values `[heads, dim]`."""


class TokenList(Tokens):
    """One list of tokens for all layers."""

    kind = "layers"


class KeepsAll(TokenList):
    """No layer drops a row, and masks alone hide them: it goes back anywhere."""

    def can_rewind(self, to: int) -> bool:
        """Any position that was reached, but for states: they go back to 0 alone."""
        return 0 <= to <= len(self.tokens) and (not self.folds or to in (0, len(self.tokens)))


class LayerDicts(TokenList):
    """A dictionary of rows for each layer, handed out in no order. Dropped rows are gone at the next append."""

    def free(self) -> None:
        super().free()
        self.rows: list[Held] = [{} for _ in self.own]

    def append(self, keys: Any, values: Any) -> None:
        """Add the rows of each layer, and leave no token behind."""
        kept, first = [self.has[i] for i in self.own], len(self.tokens)
        super().append(keys, values)
        new, self.tokens[first:] = self.tokens[first:], [[] for _ in self.tokens[first:]]
        for block, (rows, has) in enumerate(zip(self.rows, kept, strict=True)):
            left = {p: row for p, row in rows.items() if p in has or not new}
            self.rows[block] = left | {first + n: token[block] for n, token in enumerate(new)}

    def order(self, block: int) -> list[int]:
        """The positions of a layer as they are handed out: odd ones first."""
        return sorted(self.rows[block], key=lambda p: (p % 2 == 0, p))

    def stacked(self, block: int) -> Pair:
        """Rows of a layer as arrays `[1, heads, n, dim]`."""
        rows = [self.rows[block][p] for p in self.order(block)]
        return Pair(*(np.stack([row[side] for row in rows], axis=1)[None] for side in (0, 1)))

    def mask(self) -> Any:
        """What each query sees of these."""
        orders, end = [self.order(self.own.index(owner)) for owner in self.reads], len(self.tokens)
        found = np.zeros((len(orders), 1, self.queries, max(map(len, orders))), bool)
        for layer, (owner, order) in enumerate(zip(self.reads, orders, strict=True)):
            for q in range(self.queries):
                seen = self.views[owner].seen(end - self.queries + q)
                found[layer, 0, q, : len(order)] = [p in seen for p in order]
        return found

    def rewind(self, to: int) -> None:
        """Fewer rows of each layer."""
        super().rewind(to)
        self.rows = [{p: row for p, row in rows.items() if p < to} for rows in self.rows]
