"""Attention on growing caches and rings: append, then strict attention over the rows in position order.

All kinds of caches share this file: what is refused, what each query may see, where the output goes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kvref.abilities import masks, rope
from kvref.arithmetic import scored_attention
from kvref.arithmetic import strict_attention as strict
from kvref.cite import cite
from kvref.memory import forms, meter
from kvref.memory.rows import Rows, count
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array, Config, still
from kvspec.masks import Causal, Explicit, Logical, Part, Window, overflowing
from kvspec.refusals import attention as refusals


class Answering:
    """Mixin of every cache with attention."""

    config: Config

    def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
        """The output of queries over the rows held, in position order."""
        return attended(queries, held, seen, splits)

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        """The same with another scale, a softcap or learned sinks."""
        return scored(queries, held, seen, how)

    def answered(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        """The output by whatever the call says of scores."""
        if plain(how):
            return self.attended(queries, held, seen, how.splits)
        return self.scored(queries, held, seen, how)


class Attending(Answering):
    """Mixin of growing caches and rings: they know the slots of their rows in position order."""

    rows: Rows
    offset: int

    def in_order(self) -> list[int]:
        """The slots of all rows held, oldest first."""
        raise NotImplementedError

    def held_after(self, n: int) -> int:
        """How many rows are held after an append of n rows."""
        raise NotImplementedError

    def demand_rows(self, new: Pair) -> None:
        """Refuse rows of another geometry."""
        raise NotImplementedError

    def append(self, keys: Array, values: Array) -> None:
        """Append rows."""
        raise NotImplementedError

    def attend(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        how: Attention,
        out: Array | None = None,
        of: int | None = None,
    ) -> Array:
        """Append n rows, and have n queries `[B, heads, n, k_dim]` attend: the output `[B, heads, n, v_dim]`."""
        if nothing(queries, keys):
            self.append(keys, values)
            return empty(self.config, queries, out)
        self.demand_rows(Pair(keys, values))
        n, window = keys.shape[2], self.config.window
        seen = Seen((*how.through, *([Window(window)] if window else [])), self.held_after(n), self.offset + n)
        demand(self.config, queries, (self.config.batch, None, n), how, seen.rows, out)
        queries, keys = rope.at_positions(how.rope, self.offset, queries, keys, still(self.config))
        cite(*(["ROPE-20"] if how.rope and window else []))
        self.append(keys, values)
        slots = self.in_order()
        cite(
            "ATTN-1",
            "ATTN-13" if out is None else "ATTN-14",
            *(["ATTN-6"] if window and self.offset > window else []),
        )
        forms.cite_attended(self.config)
        held = self.rows.shown(slots)
        return given(out, self.answered(queries, held, seen, how), queries)


class Seen:
    """A mask in position order over `rows` rows that are held, the newest at position `end` - 1."""

    def __init__(self, logical: Logical, rows: int, end: int) -> None:
        self.logical, self.rows, self.end = logical, rows, end

    def asked(self, batch: int, heads: int, n: int) -> strict.Asked:
        """The rows that each of the n newest positions sees, in every head of every sequence."""
        position = np.arange(self.end - n, self.end)[:, None]
        added = np.zeros((batch, heads, n, self.rows), np.float32)
        hidden = np.zeros(added.shape, np.bool_)
        for part in self.logical:
            _cite_sizes(part, (batch, heads, self.rows))
            more, hides = self._part(part, position)
            with np.errstate(over="ignore", invalid="ignore"):
                added, hidden = added + more, hidden | hides
        sizes = [p.size for p in self.logical if isinstance(p, Window)]
        low = np.maximum(0, position[:, 0] - min(sizes) + 1) if sizes else np.zeros(n, np.int64)
        causal = any(isinstance(p, Causal) for p in self.logical)
        seen = np.where(hidden, -np.inf, added)
        cite(*(["ATTN-52"] if overflowing(self.logical) else []))
        _cite_seen(seen)
        return strict.Asked(seen, low, position[:, 0] + 1 if causal else np.full(n, self.end))

    def _part(self, part: Part, position: Array) -> tuple[Array, Array]:
        """What a part adds to scores, and what it hides."""
        column, none = np.arange(self.end - self.rows, self.end), np.zeros((), np.float32)
        if isinstance(part, Causal):
            cite("ATTN-4")
            return none, column > position
        if isinstance(part, Window):
            cite("ATTN-5")
            return none, column <= position - part.size
        _cite_array(part.array)
        return (none, ~part.array) if part.array.dtype == bool else (part.array, np.isneginf(part.array))


def _cite_array(array: Array) -> None:
    cite("ATTN-7" if array.dtype == bool else "ATTN-51")


def _cite_sizes(part: Part, sizes: tuple[int, int, int]) -> None:
    """Cite the clause on sizes of 1, if one stands for several sequences, heads or columns, or heads are named."""
    shape = part.array.shape if isinstance(part, Explicit) else ()
    own = (shape[0], shape[1], shape[3]) if shape else sizes
    if any(size == 1 < every for size, every in zip(own, sizes, strict=True)) or (shape and own[1] > 1):
        cite("ATTN-9")


def _cite_seen(added: Array) -> None:
    if (added == -np.inf).all(-1).any():
        cite("ATTN-10")


def nothing(queries: Array, keys: Array) -> bool:
    """Whether there are neither rows nor queries."""
    return queries.ndim == keys.ndim == 4 and queries.shape[2] == count(Pair(keys, keys)) == 0


def empty(config: Config, queries: Array, out: Array | None) -> Array:
    """The output of no queries."""
    cite("ATTN-12")
    shape = (*queries.shape[:2], 0, config.v_dim)
    return np.zeros(shape, np.float32) if out is None else out


Sizes = tuple[int, int | None, int]
"""Batch, query heads (None: any), and queries of each."""


def demand(config: Config, queries: Array, sizes: Sizes, how: Attention, rows: int, out: Array | None) -> None:
    """Refuse queries, a mask over `rows` rows, or an output that do not fit."""
    batch, heads, n = sizes
    wanted = batch, "heads" if heads is None else heads, n, config.k_dim
    fits = queries.ndim == 4 and all(w in ("heads", size) for size, w in zip(queries.shape, wanted, strict=True))
    if not fits or queries.dtype != np.float32:
        raise refusals.queries("ATTN-24", queries, wanted)
    demand_how(config, queries.shape[1], how.splits)
    demand_scoring(how, queries.shape[1])
    demand_parts(how, rows)
    masks.demand(how.through, batch, n, rows)
    for part in how.through:
        if isinstance(part, Explicit) and part.array.shape[1] not in (1, queries.shape[1]):
            raise refusals.mask_heads("ATTN-27", part.array, queries.shape[1])
    if out is not None:
        _demand_output(out, (*queries.shape[:3], config.v_dim))


def _demand_output(out: Array, shape: tuple[int, ...]) -> None:
    """Refuse an output of another shape or dtype, then one that can only be read."""
    if out.shape != shape or out.dtype != np.float32:
        raise refusals.output("ATTN-28", out, shape)
    if not out.flags.writeable:
        raise refusals.read_only("ATTN-28")


def demand_how(config: Config, heads: int, splits: int) -> None:
    """Refuse query heads that are no multiple of the kv heads, and splits below 1."""
    if heads == 0 or heads % config.kv_heads:
        raise refusals.heads("ATTN-25", heads, config.kv_heads)
    if splits < 1:
        raise refusals.splits("ATTN-47", splits)


def demand_scoring(how: Attention, heads: int) -> None:
    """Refuse a scale that is not above 0, a softcap below 0, and sinks that are not one for each query head."""
    if how.scale is not None and how.scale <= 0:
        raise refusals.scale("ATTN-41", how.scale)
    if how.softcap < 0:
        raise refusals.softcap("ATTN-41", how.softcap)
    if how.sinks is not None and len(how.sinks) != heads:
        raise refusals.sinks("ATTN-57", len(how.sinks), heads)


def demand_parts(how: Attention, rows: int) -> None:
    """Refuse cuts that do not rise from 0 to the number of rows."""
    ends = 0, *how.parts, rows
    if how.parts and list(ends) != sorted(ends):
        raise refusals.parts("ATTN-64", how.parts, rows)


def plain(how: Attention) -> bool:
    """Whether neither a scale nor a softcap nor sinks nor parts are given."""
    return how.sinks is None and not how.parts and not scored_attention.wanted(how)


def scored(queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
    """The output of queries over the rows held, in position order, with another scale, a softcap or sinks."""
    made = scored_attention.wanted(how)
    cite("ATTN-2", "ATTN-45", "ATTN-15", "ATTN-29", "ATTN-30", "ATTN-44", *(["ATTN-42"] if made else []))
    cite(*(["ATTN-48"] if seen.rows <= strict.TILE * (how.splits - 1) else []))
    cite(*(["ATTN-31"] if how.splits > 1 else []), *(["ATTN-3"] if how.scale is None else ["ATTN-38"]))
    cite(*(["ATTN-39", "ATTN-40"] if how.softcap > 0 else []))
    if how.sinks is not None:
        cite("ATTN-53", "ATTN-54", "ATTN-55", "ATTN-59", *(["ATTN-56"] if how.splits > 1 else []))
    cite(*(["ATTN-62", "ATTN-63", "ATTN-66"] if how.parts else []))
    for array in arrays(seen.logical):
        meter.taken(array)
    keys, values = (np.asarray(a) for a in held)
    asked, first = seen.asked(*queries.shape[:3]), seen.end - seen.rows
    if made:
        return scored_attention.attend(meter.taken(queries), Pair(keys, values), first, asked, how)
    return strict.attend(meter.taken(queries), keys, values, first, asked, how.splits, how.sinks, how.parts)


def attended(queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
    """The output of queries over the rows held, in position order."""
    cite("ATTN-2", "ATTN-3", "ATTN-45", "ATTN-15", "ATTN-29", "ATTN-30", "ATTN-44")
    cite(*(["ATTN-31"] if splits > 1 else []), *(["ATTN-48"] if seen.rows <= strict.TILE * (splits - 1) else []))
    batch, heads, n, _ = queries.shape
    for array in arrays(seen.logical):
        meter.taken(array)
    keys, values = (np.asarray(a) for a in held)
    asked = seen.asked(batch, heads, n)
    return strict.attend(meter.taken(queries), keys, values, seen.end - seen.rows, asked, splits)


def given(out: Array | None, found: Array, queries: Array | None = None) -> Array:
    """The output where the caller wants it: in its own array, or in new memory beside the queries."""
    return meter.handed(out, found, isinstance(queries, meter.Resident))


def arrays(logical: Logical) -> Iterable[Array]:
    """The explicit arrays of a mask."""
    return (p.array for p in logical if isinstance(p, Explicit))
