"""LAYER over one list of tokens: nothing is ever thrown away, and what a layer has dropped is a number.

Written from the text of the chapter alone.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, same_geometry
from support.engines.foreign.demands import want

Token = list[tuple[Any, Any]]
"""A key `[heads, k_dim]` and a value for each layer with rows."""


class View:
    """One word of `of`."""

    def __init__(self, word: str) -> None:
        self.name, *numbers = word.split(":")
        self.numbers = [int(number) for number in numbers]

    def seen(self, p: int) -> set[int]:
        """The positions that a query at p sees."""
        match self.name, self.numbers:
            case "window", [size]:
                return {p - i for i in range(size) if i <= p}
            case "chunk", [size]:
                return set(range(p // size * size, p + 1))
            case "sinks", [first, newest]:
                return {i for i in range(p + 1) if i < first or i > p - newest}
            case "conv", [size]:
                return {p - i for i in range(size)}
            case (("state" | "cross"), []):
                return set()
        return set(range(p + 1))

    def needed(self, n: int) -> set[int]:
        """What a layer needs at n: rows by position; the state of n tokens is -n."""
        if self.name == "state":
            return {-n} - {0}
        return {i for i in self.seen(n) if 0 <= i < n}

    @property
    def before(self) -> int:
        """How many rows of zeros stand before position 0."""
        return self.numbers[0] - 1 if self.name == "conv" else 0


class Saved:
    """What a cache was."""

    start = 0

    def __init__(self, cache: Tokens) -> None:
        self.config, self.tokens, self.stop = cache.config, [*cache.tokens], len(cache.tokens)
        self.has = {i: {*has} for i, has in cache.has.items()}
        self.source = cache.source

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that layers have, of whichever token."""
        each = ((i, block) for block, i in enumerate(self.has)) if self.tokens else ()
        rows = sum(a.nbytes for i, block in each for p in self.has[i] if p >= 0 for a in self.tokens[p][block])
        c, states = self.config, sum(p < 0 for has in self.has.values() for p in has)
        encoder = sum(a.nbytes for a in self.source or ()) if self.tokens else 0
        whole: int = rows + states * 4 * c.kv_heads * c.k_dim * c.v_dim + encoder
        return whole

    def close(self) -> None:
        """End it."""
        want(bool(self.tokens), "closed already")
        self.tokens = []


class Tokens:
    """The cache."""

    def __init__(self, config: Any) -> None:
        sizes = (config.batch, config.kv_heads, config.k_dim, config.v_dim, config.step)
        want(min(sizes) >= 1 and config.batch == 1 and config.dtype in DTYPES, "sizes")
        want(bool(config.of) and config.layers is not None, "of and layers")
        self.views = [View(word) for word in config.of.split(",")]
        self.own = [i for i, view in enumerate(self.views) if view.name not in ("share", "cross")]
        self.asking = [i for i, view in enumerate(self.views) if view.name == "cross"]
        want(len(self.own) == config.layers, f"layers {config.layers}")
        want(all(number > 0 for i in self.own for number in self.views[i].numbers), "a size in of")
        self.reads = [view.numbers[0] if view.name == "share" else i for i, view in enumerate(self.views)]
        shown = [i for i in self.own if self.views[i].name not in ("state", "conv")]
        shares = [i for i, view in enumerate(self.views) if view.name == "share"]
        want(all(self.reads[i] < i and self.reads[i] in shown for i in shares), "shared layers")
        self.folds = [i for i in self.own if self.views[i].name == "state"]
        want(config.form is None or not self.folds, "states of rows in a form")
        self.config = config
        self.free()

    def free(self) -> None:
        """Forget everything."""
        self.tokens: list[Token] = []
        self.has: dict[int, set[int]] = {i: set() for i in self.own}
        self.source: Pair | None = None
        self.tree: list[tuple[int, Token]] = []
        self.queries = 0

    def encode(self, keys: Any, values: Any) -> None:
        """Keep the arrays of an encoder, backwards."""
        n, c = keys.shape[2] if keys.ndim == 4 else 1, self.config
        if n:
            shapes = [(len(self.asking), c.kv_heads, n, dim) for dim in (c.k_dim, c.v_dim)]
            want(bool(self.asking) and [keys.shape, values.shape] == shapes, f"rows {keys.shape} {values.shape}")
            want(keys.dtype == values.dtype == DTYPES[c.dtype], f"rows of {keys.dtype}")
            want(self.source is None, "an encoder was there already")
            self.source = Pair(keys[:, :, ::-1].copy(), values[:, :, ::-1].copy())
            self.tree = []
        self.queries = 0

    def append(self, keys: Any, values: Any) -> None:
        """Tokens behind the others."""
        new = self.made(keys, values)
        if new:
            self.grow(new)
            self.tree = []
        self.queries = len(new)

    def made(self, keys: Any, values: Any) -> list[Token]:
        """Tokens of rows that fit."""
        n, c = keys.shape[2] if keys.ndim == 4 else 1, self.config
        if n == 0:
            return []
        shapes = [(c.layers, c.kv_heads, n, dim) for dim in (c.k_dim, c.v_dim)]
        want([keys.shape, values.shape] == shapes, f"rows {keys.shape} {values.shape}")
        want(keys.dtype == values.dtype == DTYPES[c.dtype], f"rows of {keys.dtype}")
        return [[(keys[i, :, t].copy(), values[i, :, t].copy()) for i in range(c.layers)] for t in range(n)]

    def grow(self, more: list[Token]) -> None:
        """Have more tokens, and of each layer what it needs then."""
        self.tokens += more
        end = len(self.tokens)
        new = {*range(end - len(more), end), -end}
        self.has = {i: (has | new) & self.views[i].needed(end) for i, has in self.has.items()}

    def branch(self, keys: Any, values: Any, on: Any = None) -> None:
        """Leaves of a tree, each with the number of the one below it."""
        new, there = self.made(keys, values), len(self.tree)
        below = [there - 1 + i for i in range(len(new))] if on is None else [*on]
        want(len(below) == len(new), f"{below} for {len(new)} drafts")
        want(all(-1 <= number < there + i for i, number in enumerate(below)), f"{below} behind {there}")
        self.tree += zip(below, new, strict=True)
        self.queries = len(new)

    def path(self, number: int) -> list[int]:
        """From the root to a leaf."""
        return [*self.path(self.tree[number][0]), number] if number >= 0 else []

    def settle(self, draft: int) -> None:
        """Tokens from the root to a leaf; no tree any more."""
        want(-1 <= draft < len(self.tree), f"no draft {draft}")
        path = self.path(draft)
        if path:
            self.grow([self.tree[number][1] for number in path])
        self.tree, self.queries = [], 0

    def histories(self) -> list[Pair]:
        """All rows of each layer, of the newest token first, and zeros behind them."""
        each = ((self.shown(owner), self.views[owner].before) for owner in self.reads)
        return [Pair(*(np.pad(a, [(0, 0), (0, 0), (0, n), (0, 0)]) for a in rows)) for rows, n in each]

    def states(self) -> dict[int, Any]:
        """Each token on top of half of those before it."""
        c = self.config
        found = {i: np.zeros((c.kv_heads, c.k_dim, c.v_dim), np.float32) for i in self.folds}
        with np.errstate(all="ignore"):
            for i, token in ((i, token) for i in found for token in self.tokens):
                key, value = (row.astype(np.float32) for row in token[self.own.index(i)])
                found[i] = found[i] / 2 + np.einsum("hi,hj->hij", key, value)
        return found

    def shown(self, i: int) -> Pair:
        """The rows that layer i of the model shows, of tokens or of the encoder."""
        if i in self.own:
            return self.stacked(self.own.index(i))
        if self.source is None:
            c = self.config
            return Pair(*(np.zeros((1, c.kv_heads, 0, dim), DTYPES[c.dtype]) for dim in (c.k_dim, c.v_dim)))
        which = self.asking.index(i)
        return Pair(*(a[which : which + 1] for a in self.source))

    def stacked(self, block: int) -> Pair:
        """Rows of a layer as arrays `[1, heads, n, dim]`."""
        rows = [token[block] for token in reversed([*self.tokens, *(token for _, token in self.tree)])]
        return Pair(*(np.stack([row[side] for row in rows], axis=1)[None] for side in (0, 1)))

    def mask(self) -> Any:
        """What each query sees of these."""
        end, encoded = len(self.tokens), 0 if self.source is None else self.source.keys.shape[2]
        every = end + len(self.tree)
        widest = max(encoded, every + max(view.before for view in self.views))
        found = np.zeros((len(self.views), 1, self.queries, widest), bool)
        found[self.asking, :, :, :encoded] = True
        for q, path in enumerate(self.asked()):
            line = [*range(end), *(end + number for number in path)] if self.tree else path
            for i, owner in enumerate(self.reads):
                shown = (p if p < 0 else line[p] for p in self.views[owner].seen(len(line) - 1))
                found[i, 0, q, [every - 1 - place for place in shown]] = True
        return found

    def asked(self) -> list[list[int]]:
        """Of each query the leaves on its path, or all tokens up to it."""
        end, leaves = len(self.tokens), len(self.tree)
        if leaves:
            return [self.path(number) for number in range(leaves - self.queries, leaves)]
        return [[*range(p + 1)] for p in range(end - self.queries, end)]

    def lengths(self) -> Lengths:
        """The offset."""
        return Lengths(len(self.tokens))

    def can_rewind(self, to: int) -> bool:
        """Whether every layer has what it needs there."""
        end = len(self.tokens)
        return to == end or (0 <= to < end and all(self.views[i].needed(to) <= has for i, has in self.has.items()))

    def rewind(self, to: int) -> None:
        """Fewer tokens."""
        want(self.can_rewind(to), f"rewind to {to}")
        del self.tokens[to:]
        self.has = {i: {p for p in has if -to <= p < to} for i, has in self.has.items()}
        self.tree, self.queries = [], 0

    def snapshot(self, start: int) -> Saved | None:
        """What it is now."""
        return Saved(self) if max(0, start) < len(self.tokens) else None

    def can_append(self, n: int) -> bool:
        """Lists have room."""
        return True

    def can_restore(self, saved: Saved | None, to: int) -> bool:
        """Whether a copy of it can do it."""
        try:
            deepcopy(self).restore(saved, to)
        except ValueError:
            return False
        return True

    def restore(self, saved: Saved | None, to: int) -> None:
        """Become what it was, if it can then be where it shall."""
        if saved is None:
            return self.rewind(to)
        want(isinstance(saved, Saved) and bool(saved.tokens), "no snapshot, or a closed one")
        want(same_geometry(saved.config, self.config), "a snapshot of another geometry")
        was = Tokens(self.config)
        was.tokens, was.has = [*saved.tokens], {i: {*has} for i, has in saved.has.items()}
        was.rewind(to)
        self.tokens, self.has, self.queries, self.source = was.tokens, was.has, 0, saved.source
        self.tree = []
        return None


SAVES = {"level": "visible", "without": ["start", "merge", "split"]}
"""What it does of snapshots."""


class Remembered:
    """The adapter."""

    CACHE = Tokens

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {
            "name": "remembered-layers",
            "chapters": {"layers": "visible", "snapshot": SAVES, "questions": "visible"},
        }

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache."""
        if kind != "layers":
            raise Unsupported(f"no kind {kind}")
        return self.CACHE(config)
