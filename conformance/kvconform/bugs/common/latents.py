"""Common bugs of latent rows: values that are no beginning of their keys, and RoPE that turns other elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.planting import Over, planted
from kvconform.bugs.real.forms import Coding, Laying, coded, without_the_rest
from kvref.abilities import rope
from kvref.caches.growing import Growing
from kvref.caches.ragged import Ragged
from kvref.caches.ring import Ring
from kvref.caches.store import Store
from kvref.memory.forms import Kept
from kvref.memory.rows import Rows
from kvspec.contract import Attention, Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config, still


@coded("keys-without-values", breaks="ROW-20")
class ValueFromTheEnd(Coding):
    """The value is taken from the end of the key, where another layout has the latent."""

    def latent(self, keys: Array) -> Pair:
        return Pair(keys, keys[..., self.config.k_dim - self.config.v_dim :].copy())


@coded("keys-without-values", breaks="ROW-20")
class ValueOneOff(Coding):
    """The value begins at the second element of the key."""

    def latent(self, keys: Array) -> Pair:
        return Pair(keys, np.roll(keys, -1, axis=-1)[..., : self.config.v_dim].copy())


class _Copied(Rows):
    """Rows with a copy of each latent, slot by slot."""

    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        if still(self.config):
            self.copies = self.__dict__.get("copies", {})
            values = super().shown(slice(slot, slot + new.keys.shape[2])).values
            self.copies |= {slot + i: values[:, :, i] for i in range(values.shape[2])}

    def shown(self, slots: list[int] | slice) -> Pair:
        rows = super().shown(slots)
        chosen = range(len(self))[slots] if isinstance(slots, slice) else slots
        for i, slot in enumerate(chosen if still(self.config) else ()):
            rows.values[:, :, i] = self.__dict__.get("copies", {}).get(slot, rows.values[:, :, i])
        return rows


@planted("keys-without-values", breaks="ROW-20 ROW-6")
class ValueKeptApart(Laying, Ring):
    """The value of a latent row is a copy by itself, which stays where it was when rows are put in order."""

    kind = Ring.kind
    lays = _Copied


class _OwnScale(Rows):
    """Rows whose values are decoded with scales of their own, which stay where they were written."""

    def write(self, slot: int, new: Pair) -> None:
        super().write(slot, new)
        form = self.kept.forms[0] if self.kept.forms is not None and still(self.config) else None
        if form is not None:
            n, end = new.keys.shape[2], form.code_bytes(self.config.k_dim)
            tails = np.asarray(self.keys[:, :, slot : slot + n, end:]).copy()
            self.tails = self.__dict__.get("tails", {}) | {slot + i: tails[:, :, i] for i in range(n)}

    def shown(self, slots: list[int] | slice) -> Pair:
        rows, form = super().shown(slots), self.kept.forms
        if form is None or not still(self.config):
            return rows
        keys = np.array(self.keys[:, :, slots])
        for i, slot in enumerate(range(len(self))[slots] if isinstance(slots, slice) else slots):
            keys[:, :, i, form[0].code_bytes(self.config.k_dim) :] = self.__dict__.get("tails", {}).get(slot, 0)
        return Pair(rows.keys, self.kept.decoded(Pair(keys, self.values[:, :, slots])).values)


@planted("wrong-scale", breaks="ROW-20 ROW-6")
class ScaleOfTheValueLeftBehind(Laying):
    """The value is decoded with a scale of its own, which does not move with the row."""

    lays = _OwnScale


class _Attended(Over):
    """A cache whose rows are read so by an attend alone."""

    rows: Rows
    reads: type[Kept] = Kept

    def attend(self, queries: Array, keys: Array, values: Array, how: Attention, *more: Any) -> Array:
        self.rows.kept = self.reads(self.config)
        try:
            return super().attend(queries, keys, values, how, *more)
        finally:
            self.rows.kept = Kept(self.config)


class _AttendsFromTheEnd(Kept):
    def latent(self, keys: Array) -> Pair:
        return Pair(keys, keys[..., self.config.k_dim - self.config.v_dim :].copy())


@planted("keys-without-values", breaks="ROW-24 ROW-16")
class AttendsToTheRest(_Attended):
    """An attend takes the value from the end of the key; what is read is right."""

    reads = _AttendsFromTheEnd


class _LatentOnly(Kept):
    def latent(self, keys: Array) -> Pair:
        shown = keys.copy()
        shown[..., self.config.v_dim :] = 0
        return Pair(shown, keys[..., : self.config.v_dim].copy())


@planted("wrong-weight", breaks="ROW-24 ROW-16")
class ScoresOfTheLatent(_Attended):
    """An attend takes the products of the latents alone, and leaves out those of the rest."""

    reads = _LatentOnly


class _Planning(Reference):
    """Plans with other bytes of rows in a form."""

    def counted(self, config: Config) -> Config:
        """A config whose plain rows have the bytes that are counted."""
        return config.changed(form=None)

    def fit(self, kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
        super().fit(kind, config, free, reserve, most)
        return super().fit(kind, self.counted(config), free, reserve, most)


@planted("miscounted-memory", breaks="ROW-31")
class FitsPlainRows(_Planning):
    """How many sequences fit is counted as if rows were plain."""


@planted("miscounted-memory", breaks="ROW-31")
class FitsLatentsTwice(_Planning):
    """How many sequences fit is counted as if latent values were kept beside their keys."""

    def counted(self, config: Config) -> Config:
        return config.changed(form=None) if config.form == "latent" else config


class _Turning(Over):
    """A cache that turns other elements of latent rows."""

    offset: int
    config: Config

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        """The queries and the keys of an attend, turned."""
        raise NotImplementedError

    def attend(self, queries: Array, keys: Array, values: Array, how: Attention, *more: Any) -> Array:
        if how.rope is None or not still(self.config) or not keys.size:
            return super().attend(queries, keys, values, how, *more)
        queries, keys = self.turned(queries, keys, how)
        return super().attend(queries, keys, keys[..., : self.config.v_dim], how._replace(rope=None), *more)

    def from_(self, first: int, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        """Both turned from this element on."""
        return rope.at_positions(how.rope, self.offset, queries, keys, first)


@planted("wrong-position", breaks="ROW-22")
class LatentTurned(_Turning):
    """RoPE turns all of a latent row, as it turns those of other caches."""

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        even = self.config.k_dim % 2
        return self.from_(even, queries, keys, how)


@planted("wrong-position", breaks="ROW-22")
class RestAPairWider(_Turning):
    """RoPE begins a pair before the rest."""

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        return self.from_(max(0, still(self.config) - 2), queries, keys, how)


@planted("wrong-position", breaks="ROW-22")
class FrequenciesOfTheRow(_Turning):
    """The rest is turned by the last frequencies of the whole row, and not as if it began there."""

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        first, even = still(self.config), self.config.k_dim % 2
        both = self.from_(even, queries, keys, how)
        for was, now in zip((queries, keys), both, strict=True):
            now[..., :first] = was[..., :first]
        return both


@planted("wrong-position", breaks="ROW-22")
class QueriesTurnedWhole(_Turning):
    """Keys are turned behind the latent, and queries from their first element on."""

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        whole, _ = self.from_(self.config.k_dim % 2, queries, keys, how)
        return whole, self.from_(still(self.config), queries, keys, how)[1]


@planted("needless-refusal", breaks="ROW-22")
class OddKeyRefused(_Turning):
    """An attend that turns an even rest is refused where the whole key is odd."""

    def turned(self, queries: Array, keys: Array, how: Attention) -> tuple[Array, Array]:
        if self.config.k_dim % 2:
            raise Refused("ROPE-12", "an odd key")
        return self.from_(still(self.config), queries, keys, how)


@planted("missing-refusal", breaks="ROW-19")
class WiderThanTheKey(Growing):
    """Values that are wider than their keys are cut down to these."""

    def __init__(self, config: Config) -> None:
        latent = (config.form or "").endswith("latent")
        super().__init__(config.changed(v_dim=min(config.k_dim, config.v_dim)) if latent else config)


@planted("needless-refusal", breaks="ROW-19")
class RestIsDemanded(Growing):
    """Keys that are all latent are refused."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if still(config) == config.k_dim:
            raise Refused("ROW-19", "no rest")


@planted("wrong-sequence", breaks="ROW-6 ROW-20")
class RestsOfOtherSequences(Ragged):
    """Sequences that take each other's places take their latents along, and leave the rests where they are."""

    def filter(self, order: Sequence[int]) -> None:
        before = [self._rows(s).keys.copy() for s in range(len(self.lengths))]
        super().filter(order)
        if self.kept.forms is None or not still(self.config):
            return
        first = self.kept.forms[0].code_bytes(self.config.v_dim)
        for s in range(len(self.lengths)):
            now, was = self._rows(s).keys, before[s]
            n = min(now.shape[1], was.shape[1])
            now[:, :n, first:] = was[:, :n, first:]


@planted("lost-rows", breaks="ROW-6 ROW-20")
class ScatteredWithoutTheRest(Store):
    """A sequence of a batch gets the latents of the store's rows, and zeros for the rest."""

    def _first(self, layer: int, n: int) -> Pair:
        rows = super()._first(layer, n)
        return Pair(without_the_rest(self.kept, rows.keys.copy()), rows.values)
