"""Attention in the list model: when queries are refused, which rows each of them sees, and what the output is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from kvref.cite import cite
from kvref.list_model import attention_bound, forms, masks, rope
from kvref.list_model.attention_bound import Output
from kvref.list_model.rope import Turned
from kvref.list_model.rows import UNKNOWN, Added, Out, Queries, Rows
from kvref.list_model.views import View
from kvspec.contract.attention import Attention, Rope
from kvspec.geometry import DTYPES, Array, Config, heads_of, still
from kvspec.masks import Causal, Part, Window, overflowing
from kvspec.refusals import attention
from kvspec.rows.serials import ZEROED

TILE = 32
"""Rows of a tile, which splits part."""

FIRST_OF_ZEROS = -100
"""Serials from here down stand for rows that were never written, so that there can be several."""


class KnownRows:
    """The rows themselves, by serial, if arrays were made. `key_errors`: how far keys that RoPE turned may be off.
    `turns`: what is declared of RoPE. `tanh`: how exact the tanh of a softcap is."""

    def __init__(
        self,
        rows: Mapping[int, attention_bound.Rows] | None = None,
        turns: rope.Declared = rope.USUAL,
        tanh: str = "f32",
    ) -> None:
        self._made: Mapping[int, attention_bound.Rows] = {} if rows is None else rows
        self._turns, self._tanh = turns, attention_bound.TANH[tanh]
        self._turned: dict[int, attention_bound.Rows] = {}
        self.key_errors: dict[int, Array] = {}

    def get(self, serial: int) -> attention_bound.Rows | None:
        """Key and value row `[B, kv_heads, dim]` as a cache holds them; None where they were not made."""
        return self._turned.get(serial) or self._made.get(serial)

    def content(self, serial: int) -> Hashable:
        """What tells the content of a row from that of others; the serial where no rows were made."""
        rows = self.get(serial)
        return serial if rows is None else b"".join(np.ascontiguousarray(row).tobytes() for row in rows)

    def turn(self, queries: Queries, keys: Rows, how: Attention, first: int, config: Config) -> Turned | None:
        """The queries of an attend, turned by RoPE if the attend says so, with the new keys. `first`: the first
        query's position. None if there are no arrays."""
        if how.rope is not None:
            rope.demand((*keys.shape[:3], keys.shape[3] - still(config)), np.arange(keys.n), how.rope)
            cite(*["ROW-22"] * forms.latent(config))
            rope.cite_turned(keys, first + np.arange(keys.n), how.rope)
            cite("ROPE-19", "ROPE-21", "ROPE-23", *(() if how.rope.scaling is None else ("ROPE-37",)))
        if queries.array is None:
            return None
        asked = rope.exactly(queries.array, "f32")
        if how.rope is None or keys.array is None:
            return asked
        where = first + np.arange(keys.n)
        turned = _behind(still(config), rope.exactly(keys.array, config.dtype), where, how.rope, self._turns)
        rounded = forms.rounding(config, turned.middle, turned.bound)
        for i, serial in enumerate(keys.serials[0]):
            if serial not in self._made:
                continue  # a form rounded it
            self._turned[serial] = turned.middle[:, :, i], self._made[serial][1]
            self.key_errors[serial] = turned.bound[:, :, i] + rounded[:, :, i]
        return _behind(still(config), asked, where, how.rope, self._turns)

    def output(
        self,
        asked: Turned | None,
        sees: Sequence[Sequence[Sequence[Added]]],
        config: Config,
        how: Attention | None = None,
    ) -> Output | None:
        """What queries `[B, heads, L, k_dim]` make of what each sees, `[B][heads or 1][L]`; None if no arrays
        were made, or if an unknown row is seen."""
        if asked is None or not all(self._all_known(seen) for each in sees for queries in each for seen in queries):
            return None
        off = attention_bound.Off(asked.bound, self.key_errors)
        scoring = attention_bound.PLAIN if how is None else self._scoring(how)
        kept = _Kept(self, config)
        return attention_bound.outputs(asked.middle, sees, kept, config.dtype, config.v_dim, off, scoring)

    def _scoring(self, how: Attention) -> attention_bound.Scoring:
        return attention_bound.Scoring(how.scale, how.softcap, self._tanh, how.sinks or (), bool(how.parts))

    def _all_known(self, seen: Added) -> bool:
        """Whether all rows seen are known; those that a form rounded are not."""
        return UNKNOWN not in seen and all(s <= FIRST_OF_ZEROS or self.get(s) is not None for s in seen)

    def stacked(
        self,
        queries: Array | None,
        sees: Sequence[Sequence[Sequence[Sequence[Added]]]],
        config: Config,
        how: Attention | None = None,
    ) -> Output | None:
        """The outputs of queries `[n, B, heads, L, k_dim]` as one, for n layers or sequences that each have
        their own rows. None if one output is not known."""
        if queries is None:
            return None
        each = (rope.exactly(asked, "f32") for asked in queries)
        found = [self.output(asked, seen, config, how) for asked, seen in zip(each, sees, strict=True)]
        known = [output for output in found if output is not None]
        return Output(*(np.stack(p) for p in zip(*known, strict=True))) if len(known) == len(found) else None


def _behind(first: int, rows: Turned, where: Array, asked: Rope, turns: rope.Declared) -> Turned:
    """Rows turned by RoPE from their element `first` on."""
    rest = Turned(rows.middle[..., first:], rows.bound[..., first:], rows.dtype)
    made = rope.turned(rest, where, asked, turns)
    middle, bound = (
        np.concatenate((was[..., :first], now), -1) for was, now in zip(rows[:2], made[:2], strict=True)
    )
    return Turned(middle, bound, rows.dtype)


class _Kept:
    """Rows by serial; a row that was never written is zeros."""

    def __init__(self, known: KnownRows, config: Config) -> None:
        self._known, self._config = known, config

    def __getitem__(self, serial: int) -> attention_bound.Rows:
        found = self._known.get(serial)
        if found is None and serial <= FIRST_OF_ZEROS:
            keys, values = (np.zeros(self._config.shape(kind, 1))[:, :, 0] for kind in "kv")
            return keys, values
        assert found is not None, f"row {serial} was seen, and never made"
        if self._config.rank is None:
            return found
        own = slice(*heads_of(self._config)[:2])
        return found[0][:, own], found[1][:, own]


def apart(tokens: Sequence[int]) -> list[int]:
    """The serials, rows of zeros with serials of their own."""
    return [FIRST_OF_ZEROS - i if s == ZEROED else s for i, s in enumerate(tokens)]


class Asked:
    """Queries, and what goes with them."""

    def __init__(self, queries: Queries, how: Attention, out: Out = None) -> None:
        self.queries, self.how, self.out = queries, how, out
        self.batch, self.heads, self.n, _ = queries.shape
        self.logical = how.through
        self.rows = 0
        """How many rows are held by then, if that is the same for all queries."""

    def demand(self, config: Config, batch: int, n: int, rows: int, heads: int | None = None) -> None:
        """Refuse queries, or a mask, that do not fit n queries of each of `batch` sequences over `rows` rows. If
        `heads` is None, any number of heads fits."""
        wanted = batch, heads, n, config.k_dim
        right = all(w in (None, size) for size, w in zip(self.queries.shape, wanted, strict=True))
        if not right or self.queries.dtype != "f32":
            found = SimpleNamespace(shape=self.queries.shape, dtype=DTYPES[self.queries.dtype])
            raise attention.queries("ATTN-24", found, tuple(w or "heads" for w in wanted))
        demand_how(config, self.heads, self.how.splits)
        demand_scoring(self.how, self.heads)
        demand_parts(self.how, rows)
        self.rows = rows
        for array in masks.demand(self.logical, self.batch, self.n, rows):
            if array.shape[1] not in (1, self.heads):
                raise attention.mask_heads("ATTN-27", array, self.heads)
        room = self.out
        if room is not None and room != ((*self.queries.shape[:3], config.v_dim), "f32", True):
            found = SimpleNamespace(shape=room.shape, dtype=DTYPES[room.dtype])
            raise attention.output("ATTN-28", found, (*self.queries.shape[:3], config.v_dim))

    def sees(self, batch: int, tokens: Sequence[int], view: View = masks.ALL) -> list[list[list[Added]]]:
        """For each sequence, head and query what it sees of the tokens: see `masks.sees`."""
        whole = masks.sees(self.logical, (batch, self.heads, self.n), tokens, view)
        if any(not seen for each in whole for queries in each for seen in queries):
            cite("ATTN-10")
        return whole

    def cite(self, *more: str) -> None:
        """Cite the clauses of every attend that is not refused, and more."""
        cite("ATTN-1", *more)
        self.cite_common()

    def cite_common(self) -> None:
        """Cite the clauses of all queries that are answered."""
        cite("ATTN-2", "ATTN-45", "ATTN-15", "ATTN-44", "ATTN-13" if self.out is None else "ATTN-14")
        cite("ATTN-3" if self.how.scale is None else "ATTN-38")
        cite(*(["ATTN-48"] if 0 < self.rows <= TILE * (self.how.splits - 1) else []))
        cite(*(["ATTN-39", "ATTN-40"] if self.how.softcap > 0 else []))
        if self.how.sinks is not None:
            cite("ATTN-53", "ATTN-54", "ATTN-55", *(["ATTN-56"] if self.how.splits > 1 else []))
        cite(*(["ATTN-62", "ATTN-63"] if self.how.parts else []))
        cite(
            *(c for p in self.logical for c in self._clauses(p)),
            *(["ATTN-52"] if overflowing(self.logical) else []),
        )

    def _clauses(self, part: Part) -> Iterator[str]:
        if isinstance(part, Causal):
            yield "ATTN-4"
        elif isinstance(part, Window):
            yield "ATTN-5"
        else:
            yield "ATTN-7" if part.array.dtype == bool else "ATTN-51"
            if stands_for_all(part.array, (self.batch, self.heads, self.rows)):
                yield "ATTN-9"


def stands_for_all(array: Array, sizes: tuple[int, int, int]) -> bool:
    """Whether a size of 1 of a mask stands for several sequences, heads or columns, or it has heads of its own."""
    own = array.shape[0], array.shape[1], array.shape[3]
    return own[1] > 1 or any(size == 1 < every for size, every in zip(own, sizes, strict=True))


def demand_how(config: Config, heads: int, splits: int) -> None:
    """Refuse query heads that are no multiple of the kv heads, and splits below 1."""
    if heads not in range(config.kv_heads, heads + 1, config.kv_heads):
        raise attention.heads("ATTN-25", heads, config.kv_heads)
    if splits <= 0:
        raise attention.splits("ATTN-47", splits)


def demand_scoring(how: Attention, heads: int) -> None:
    """Refuse a scale that is not above 0, a softcap below 0, and sinks that are not one for each query head."""
    if how.scale is not None and not how.scale > 0:
        raise attention.scale("ATTN-41", how.scale)
    if how.softcap < 0:
        raise attention.softcap("ATTN-41", how.softcap)
    if how.sinks is not None and len(how.sinks) != heads:
        raise attention.sinks("ATTN-57", len(how.sinks), heads)


def demand_parts(how: Attention, rows: int) -> None:
    """Refuse cuts that do not rise from 0 to the number of rows."""
    if any(cut not in range(before, rows + 1) for before, cut in pairwise((0, *how.parts))):
        raise attention.parts("ATTN-64", how.parts, rows)


def nothing(queries: Queries, keys: Rows) -> bool:
    """Whether an attend has neither rows nor queries."""
    return keys.n == 0 and queries.shape[2] == 0


def no_output(known: KnownRows, queries: Queries, config: Config) -> Output | None:
    """The output of no queries."""
    cite("ATTN-12")
    asked = None if queries.array is None else rope.exactly(queries.array, "f32")
    return known.output(asked, [[[]]] * queries.shape[0], config)
