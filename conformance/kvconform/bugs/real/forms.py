"""Bugs of rows in a form, planted in what growing caches and rings keep of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kvconform.bugs.planting import Over, planted
from kvref.arithmetic import forms
from kvref.arithmetic.forms import Parts
from kvref.caches.growing import Growing
from kvref.caches.ragged import Ragged
from kvref.caches.ring import Ring
from kvref.memory.forms import Kept, is_encoded
from kvref.memory.page_pool import Pool
from kvref.memory.rows import Rows
from kvspec.contract import Attention, Pair
from kvspec.forms import FLOATS, Form, grouped
from kvspec.geometry import DTYPES, Array, Config, still


class Coding(Kept):
    """What a cache keeps of its rows, with `codes` and `read` to be changed."""

    def encoded(self, rows: Pair, quiet: bool = False) -> Pair:
        made = super().encoded(rows, quiet)
        if self.forms is None or is_encoded(rows) or quiet or self.forms[0].plain:
            return made
        with np.errstate(all="ignore"):
            each = [(form, np.asarray(a).astype(np.float32)) for form, a in zip(self.forms, rows, strict=True)]
            kept = [forms.together(form, self.codes(form, x)) for form, x in each if not form.latent]
            kept = kept if len(kept) == len(rows) else [*kept, np.asarray(made.values)]
            return Pair(*(a.view(type(was)) for a, was in zip(kept, rows, strict=True)))

    def codes(self, form: Form, x: Array) -> Parts:
        """Codes and scales of rows in f32."""
        return forms.encode(form, x)

    def decoded(self, kept: Pair) -> Pair:
        if self.forms is None:
            return kept
        dims = self.config.k_dim, self.config.v_dim
        if self.forms[1].latent:
            return self.beginning(kept)
        taken = [forms.parts(f, np.asarray(a), dim) for f, a, dim in zip(self.forms, kept, dims, strict=True)]
        return Pair(*(self.read(f, made) for f, made in zip(self.forms, self.both(taken), strict=True)))

    def beginning(self, kept: Pair) -> Pair:
        """Latent rows."""
        assert self.forms is not None
        if self.forms[0].plain:
            return super().decoded(kept)
        keys = self.read(self.forms[0], forms.parts(self.forms[0], np.asarray(kept.keys), self.config.k_dim))
        return self.latent(keys)

    def both(self, taken: list[Parts]) -> list[Parts]:
        """Keys and values, taken apart."""
        return taken

    def read(self, form: Form, made: Parts) -> Array:
        """Rows of codes and scales."""
        return forms.read(form, made, DTYPES[self.config.dtype])


def codes(kept: Kept) -> tuple[int, int]:
    """How many bytes of a key row and of a value row are codes: scales lie behind them. All, of plain rows."""
    dims = kept.config.k_dim, kept.config.v_dim
    if kept.forms is None:
        return dims
    keys, values = (form.code_bytes(dim) for form, dim in zip(kept.forms, dims, strict=True))
    return keys, values


def leave(kept: Kept, to: Sequence[Array], was: Sequence[Array]) -> None:
    """Put scales that were there before back into rows `[..., bytes]`, keys and values."""
    for now, before, end in zip(to, was, codes(kept), strict=True):
        now[..., end:] = before[..., end:]


class Keeping(Over):
    """A cache that keeps its rows in such a way."""

    keeps: type[Kept] = Coding
    rows: Rows

    def _clear(self) -> None:
        super()._clear()
        self.rows.kept = self.keeps(self.config)


def coded(name: str, *, breaks: str) -> Callable[[type[Kept]], type[Kept]]:
    """Plant a cache that keeps its rows as the decorated class does, under the name of the class: see `planted`."""

    def plant(keeps: type[Kept]) -> type[Kept]:
        told = {"__doc__": keeps.__doc__, "__module__": keeps.__module__}
        planted(name, breaks=breaks)(type(keeps.__name__, (Keeping,), {**told, "keeps": keeps}))
        return keeps

    return plant


@planted("ROW-01", breaks="ROW-16")
class CodesWithoutScales(Over):
    """Attention reads codes as they are, without their scales."""

    rows: Rows

    def attend(self, queries: Array, keys: Array, values: Array, how: Attention, *more: Any) -> Array:
        self.rows.kept = _Unscaled(self.config)
        try:
            return super().attend(queries, keys, values, how, *more)
        finally:
            self.rows.kept = Kept(self.config)


class _Unscaled(Coding):
    def read(self, form: Form, made: Parts) -> Array:
        return super().read(form, made._replace(scale=np.ones_like(made.scale)))


class Apart(Rows):
    """Rows whose bytes can be told apart into codes and scales."""

    def scales_of(self, old: Pair, first: int = 0) -> None:
        """Put the scales of other rows beside the codes, slot by slot."""
        if self.kept.forms is None:
            return
        for now, was, end in zip((self.keys, self.values), old, codes(self.kept), strict=True):
            n = max(0, min(now.shape[2], was.shape[2]) - first)
            now[:, :, first : first + n, end:] = was[:, :, first : first + n, end:]


class Laying(Over):
    """A cache whose rows move in such a way."""

    lays: type[Rows] = Rows
    config: Config

    def _clear(self) -> None:
        super()._clear()
        self.rows = self.lays(self.config)


class _GrownWithoutScales(Apart):
    def grow(self, slots: int, live: int) -> None:
        super().grow(slots, live)
        if self.kept.forms is not None:
            for now, end in zip((self.keys, self.values), codes(self.kept), strict=True):
                now[:, :, :, end:] = 0


@planted("ROW-02", breaks="ROW-6 ROW-5")
class GrownWithoutScales(Laying):
    """Storage that grows takes the codes along, and lays out the scales anew."""

    lays = _GrownWithoutScales


@planted("ROW-02", breaks="ROW-6")
class PageWithoutScales(Pool):
    """A page that is copied before it is written to takes its codes along, and no scales."""

    def copied(self, page: int, rows: int) -> int:
        new = super().copied(page, rows)
        for array, end in zip((self.keys, self.values), codes(self.kept), strict=True):
            array[new][:, :rows, end:] = 0
        return new


class _TurnedWithoutScales(Apart):
    def turn(self, first: int) -> None:
        old = Pair(self.keys, self.values)
        super().turn(first)
        self.scales_of(old)

    def keep(self, start: int, stop: int) -> None:
        old = Pair(self.keys, self.values)
        super().keep(start, stop)
        self.scales_of(old)


@planted("ROW-03", breaks="ROW-6")
class ReorderedWithoutScales(Laying, Ring):
    """Putting rows in order moves their codes, and leaves the scales where they are."""

    kind = "ring"
    lays = _TurnedWithoutScales


@planted("ROW-03", breaks="ROW-6")
class SequencesWithoutScales(Ragged):
    """Sequences that take each other's places take their codes along, and leave the scales where they are."""

    def filter(self, order: Sequence[int]) -> None:
        before = [Pair(*(a.copy() for a in self._rows(s))) for s in range(len(self.lengths))]
        super().filter(order)
        for s in range(len(self.lengths)):
            both = zip(self._rows(s), before[s], strict=True)
            pairs = [(now[:, : was.shape[1]], was[:, : now.shape[1]]) for now, was in both]
            leave(self.kept, *zip(*pairs, strict=True))


class _EncodedAnew(Rows):
    def grow(self, slots: int, live: int) -> None:
        rows = self.shown(slice(live))
        super().grow(slots, live)
        if self.kept.forms is not None and live:
            turned = [np.ascontiguousarray(np.roll(np.asarray(a), 1, axis=-1)) for a in rows]
            again = self.kept.decoded(self.kept.encoded(Pair(*turned), quiet=True))
            back = Pair(*(np.roll(np.asarray(a), -1, axis=-1) for a in again))
            codes = self.kept.encoded(back, quiet=True)
            self.keys[:, :, :live], self.values[:, :, :live] = codes


@planted("ROW-04", breaks="ROW-5")
class EncodedAnew(Laying):
    """Storage that grows decodes its rows, and encodes them in other groups."""

    lays = _EncodedAnew


@coded("ROW-05", breaks="ROW-10")
class ScaleOfTheFirstHead(Coding):
    """The scale that is given for the first head serves all heads when rows are read."""

    def read(self, form: Form, made: Parts) -> Array:
        scale = np.broadcast_to(made.scale[:, :1], made.scale.shape) if form.given else made.scale
        return super().read(form, made._replace(scale=scale))


@coded("ROW-06", breaks="ROW-10")
class GivenScaleIgnored(Coding):
    """Rows are divided by the given scale, and it is not applied when they are read."""

    def read(self, form: Form, made: Parts) -> Array:
        return super().read(form, made._replace(scale=np.ones_like(made.scale)) if form.given else made)


@coded("ROW-07", breaks="ROW-3 ROW-7")
class ScaleOfAPart(Coding):
    """The scale is taken from the first half of what it serves, and the other half is cut off."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        if form.given or form.of.affine or form.codes.startswith("q"):
            return made
        groups = grouped(form, x)
        part = groups[..., : max(1, groups.shape[-1] // 2)]
        scale = (np.abs(part).max(-1, keepdims=True) / np.float32(form.of.top)).astype(np.float32)
        usable = np.broadcast_to(scale > 0, groups.shape)
        quotients = np.divide(groups, scale, where=usable, out=np.zeros_like(groups))
        cut = np.clip(quotients if form.codes.startswith("e") else np.rint(quotients), -form.of.top, form.of.top)
        return made._replace(codes=np.nan_to_num(cut).astype(form.of.dtype).reshape(x.shape), scale=scale)


@coded("ROW-08", breaks="ROW-12")
class NaNLost(Coding):
    """A NaN becomes a number when it is encoded."""

    def codes(self, form: Form, x: Array) -> Parts:
        return forms.encode(form, np.nan_to_num(x, nan=0, posinf=np.inf, neginf=-np.inf))


@planted("ROW-09", breaks="ROW-32", anomaly="missing-refusal")
class ScaleOfOne(Growing):
    """Given scales that cannot be used are replaced by 1."""

    def __init__(self, config: Config) -> None:
        bad = config.form and any(scale in config.form for scale in (":0", ":-", ":inf", ":nan"))
        usable = config.form and not any(scale in config.form for scale in (":0.", ":-0."))
        super().__init__(config.changed(form=config.form.partition(":")[0]) if bad and usable else config)


@coded("ROW-07", breaks="ROW-3 ROW-7")
class ScaleOfTheLatent(Coding):
    """The scale of a latent row is taken from the latent alone, and the rest behind it is cut off."""

    def codes(self, form: Form, x: Array) -> Parts:
        made, width = forms.encode(form, x), still(self.config)
        if not width or form.group or form.codes not in FLOATS or form.given:
            return made
        latent = forms.encode(form, x[..., :width])
        with np.errstate(all="ignore"):
            quotients = np.nan_to_num(np.clip(x / latent.scale[..., 0], -form.of.top, form.of.top))
        return made._replace(codes=quotients.astype(form.of.dtype), scale=latent.scale)


@planted("ROW-10", breaks="ROW-21", anomaly="miscounted-memory")
class BytesOfKeysAndValues(Growing):
    """The bytes of latent rows are counted as those of keys and of values."""

    def held(self) -> int:
        latent = still(self.config) > 0
        return self.rows.nbytes if not latent else len(self.rows) * self.config.changed(form=None).row_bytes


@planted("ROW-11", breaks="ROW-21", anomaly="miscounted-memory")
class PlaceForValues(Ring):
    """A ring of latent rows takes the bytes of values too, though nothing is written there."""

    kind = "ring"

    def held(self) -> int:
        return self.rows.nbytes + len(self.rows) * still(self.config) * self.config.kv_heads * self.config.batch


class _WithoutTheRest(Rows):
    def copy(self, start: int, stop: int) -> Pair:
        made = super().copy(start, stop)
        return Pair(without_the_rest(self.kept, made.keys), made.values)


def without_the_rest(kept: Kept, keys: Array) -> Array:
    """Bytes of latent keys `[..., row bytes]` without those of the codes behind the latent, in place."""
    if kept.forms is not None and still(kept.config):
        form = kept.forms[0]
        keys[..., form.code_bytes(kept.config.v_dim) : form.code_bytes(kept.config.k_dim)] = 0
    return keys


@planted("ROW-12", breaks="ROW-20 ROW-5 ROW-6", anomaly="lost-rows")
class SnapshotOfTheLatent(Laying):
    """A snapshot of latent rows has the latents alone: the rest, which another object held, comes back as zeros."""

    lays = _WithoutTheRest


@planted("ROW-13", breaks="ROW-20 ROW-6 ROW-5", anomaly="lost-rows")
class PageOfTheLatent(Pool):
    """A page that is copied before it is written to is copied by the width of values, without the rest of keys."""

    def copied(self, page: int, rows: int) -> int:
        new = super().copied(page, rows)
        without_the_rest(self.kept, self.keys[new][:, :rows])
        return new
