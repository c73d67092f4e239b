"""A batch of an engine as a ragged cache of the contract: sequences of unequal lengths, computed together.

Each row of a block becomes a token of its sequence, with an id that no other sequence has. So a query that sees
padding, or a row of another sequence, shows it. What a sequence holds is what a further token sees: a copy of the
whole batch is asked. An engine has no padded block to hand out, so the block is made here of what its queries saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.model import Batched
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.sessions.seen import Column, Rows, seen_in
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config


class Batch:
    """The ragged cache. At most `most` rows are held; the last id is left to what an engine pads with."""

    def __init__(self, config: Config, probe: Probe, precision: Precision, engine: Batched, most: int) -> None:
        self.config, self.probe, self.precision, self.engine, self.most = config, probe, precision, engine, most
        self.cache = engine.open(config.batch)
        self.texts = [list[int]() for _ in range(config.batch)]
        self.rows, self.fresh = dict[int, Rows](), list(range(probe.layout.ids - 1))
        self.fed: tuple[Array, Pair, Array] | None = None
        self.now: list[list[Column]] | None = None

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """Append the rows of each sequence as tokens. Raises ValueError for rows or lengths that no engine sees."""
        self._checked(keys, values, lengths)
        columns, before = keys.shape[2], self.sequences()
        owned = [self._owned(columns, n) for n in lengths]
        free = self._free(sum(lengths))
        new = [self._drawn(keys[s : s + 1], values[s : s + 1], own, free) for s, own in enumerate(owned)]
        answers = self.engine.feed(self.cache, new, self.config.padding or "left") if any(lengths) else new
        for text, tokens in zip(self.texts, new, strict=True):
            text += tokens
        self.now = None
        self.fed = self._block(
            columns, before, owned, [self._seen(*one) for one in zip(self.texts, answers, strict=True)]
        )

    def _checked(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        columns, config = keys.shape[2], self.config.changed(batch=len(self.texts))
        for part, array in (("k", keys), ("v", values)):
            if array.shape != config.shape(part, columns) or array.dtype != DTYPES[config.dtype]:
                raise ValueError("rows of another shape or dtype than the cache was opened with")
        if len(lengths) != len(self.texts) or not set(lengths) <= set(range(columns + 1)):
            raise ValueError(f"lengths {list(lengths)} of {len(self.texts)} sequences in {columns} columns")

    def _owned(self, columns: int, n: int) -> range:
        return range(columns - n, columns) if self.config.padding == "left" else range(n)

    def _free(self, n: int) -> list[int]:
        """Give ids that no sequence has, those that were not used for longest first. One for each sequence is left
        to ask it. Raises Unsupported where there are not so many."""
        held = {token for text in self.texts for token in text}
        free = [token for token in self.fresh if token not in held]
        if len(held) + n > self.most:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        return free

    def _drawn(self, keys: Array, values: Array, own: range, free: list[int]) -> list[int]:
        """Draw an id for each row."""
        tokens = [free.pop(0) for _ in own]
        self.fresh = [token for token in self.fresh if token not in tokens] + tokens
        for token, i in zip(tokens, own, strict=True):
            self.rows[token] = keys[:, :, i : i + 1], values[:, :, i : i + 1]
        return tokens

    def _seen(self, text: list[int], answers: Any) -> list[set[Column]]:
        return seen_in(self.probe, text, np.asarray(answers), self.precision) if len(answers) else []

    def _block(
        self, columns: int, before: list[int], owned: list[range], seen: list[list[set[Column]]]
    ) -> tuple[Array, Pair, Array]:
        """Make positions, the block and its mask. Behind a sequence's own rows stands what else its queries saw."""
        own = [[(token, 0) for token in text] for text in self.texts]
        shown = [mine + sorted(set().union(*sees) - {*mine}) for mine, sees in zip(own, seen, strict=True)]
        width = max(map(len, shown))
        mask = np.zeros((len(own), 1, columns, width), bool)
        positions = np.full((len(own), columns), -1)
        for s, (columns_of, sees) in enumerate(zip(owned, seen, strict=True)):
            positions[s, list(columns_of)] = range(before[s], before[s] + len(columns_of))
            for at, one in zip(columns_of, sees, strict=True):
                mask[s, 0, at, : len(shown[s])] = [column in one for column in shown[s]]
        config, dtype = self.config.changed(batch=len(own)), DTYPES[self.config.dtype]
        parts = [np.zeros(config.shape(part, width), dtype) for part in "kv"]
        for s, of in enumerate(shown):
            for part, rows in zip(parts, self._of(of), strict=True):
                part[s, :, : len(of)] = rows
        return positions, Pair(*parts), mask

    def _of(self, columns: Sequence[Column]) -> Rows:
        """Give the rows of columns, without the axis of the batch; zeros for what nobody appended."""
        one, dtype = self.config.changed(batch=1), DTYPES[self.config.dtype]
        none = tuple(np.zeros(one.shape(part, 1), dtype) for part in "kv")
        rows = [self.rows.get(token, none) if which == 0 else none for token, which in columns]
        made = [
            np.concatenate([np.zeros(one.shape(part, 0), dtype), *(row[i] for row in rows)], 2)[0]
            for i, part in enumerate("kv")
        ]
        return made[0], made[1]

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest tokens of each sequence."""
        if len(counts) != len(self.texts) or any(
            not 0 <= n <= len(text) for n, text in zip(counts, self.texts, strict=False)
        ):
            raise ValueError(f"counts {list(counts)} of sequences of {self.sequences()}")
        self.engine.trim(self.cache, counts)
        self.texts = [text[: len(text) - n] for n, text in zip(counts, self.texts, strict=True)]
        self.fed = self.now = None

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences, in this order."""
        if not order or not set(order) <= set(range(len(self.texts))):
            raise ValueError(f"sequences {list(order)} of {len(self.texts)}")
        self.cache = self.engine.arrange(self.cache, order)
        self.texts = [list(self.texts[s]) for s in order]
        self.fed = self.now = None

    def reorder(self, order: Sequence[int]) -> None:
        """Put sequences in the places of others."""
        if len(order) != len(self.texts):
            raise ValueError(f"{len(order)} places of {len(self.texts)}")
        self.filter(order)

    def repeat(self, times: int) -> None:
        """Repeat each sequence, side by side."""
        self.filter([s for s in range(len(self.texts)) for _ in range(times)])

    def sequences(self) -> list[int]:
        """Count the tokens of each sequence."""
        return [len(text) for text in self.texts]

    def read_sequence(self, sequence: int) -> Pair:
        """Give what a further token of a sequence sees."""
        if self.now is None:
            self.now = self._asked()
        return Pair(*self._of(self.now[sequence]))

    def _asked(self) -> list[list[Column]]:
        """Ask a copy for what a further token of each sequence sees."""
        held = {token for text in self.texts for token in text}
        free = [token for token in range(self.probe.layout.ids - 1) if token not in held]
        if len(free) < len(self.texts):
            raise Unsupported("more rows than the adapter declares that a cache is given")
        twin, new = self.engine.copy(self.cache), free[: len(self.texts)]
        answers = self.engine.feed(twin, [[token] for token in new], self.config.padding or "left")
        self.engine.drop(twin)
        found = []
        for text, token, of in zip(self.texts, new, answers, strict=True):
            at = {own: i for i, own in enumerate(text)}
            (seen,) = self._seen([*text, token], of)
            found.append(sorted(seen - {(token, 0)}, key=lambda column: (at.get(column[0], -1), *column)))
        return found

    def positions(self) -> Array | None:
        """Give the positions of the last block's rows, which are counted here."""
        return None if self.fed is None else self.fed[0]

    def history(self) -> Pair:
        """Give the block that the last queries saw."""
        assert self.fed is not None
        return self.fed[1]

    def starts(self) -> list[int]:
        """Give where sequences begin in it."""
        return [0 for _ in self.texts]

    def mask(self) -> Array:
        """Give who saw what of it."""
        assert self.fed is not None
        return self.fed[2]

    def __del__(self) -> None:
        if hasattr(self, "cache"):
            self.engine.drop(self.cache)


WITHOUT = (
    *("scribble", "windowed", "extend", "join", "extract"),
    *("attendblock", "nan", "checks", "back"),
)
"""What no batch has here: a window, rows of other batches, queries of their own, padding that is handed out."""
