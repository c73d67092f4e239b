"""Common bugs of rows in a form: scales of other rows, and wrong arithmetic."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import planted
from kvconform.bugs.real.forms import Apart, Coding, Laying, coded, codes
from kvref.arithmetic import forms
from kvref.arithmetic.forms import Parts
from kvref.caches.growing import Growing
from kvspec.contract import Pair
from kvspec.forms import Form, grouped
from kvspec.geometry import Array, Config


@coded("wrong-scale", breaks="ROW-6")
class ScaleOfThePreviousGroup(Coding):
    """A group of a row is read with the scale of the group before it."""

    def read(self, form: Form, made: Parts) -> Array:
        moved = made if form.given else made._replace(scale=np.roll(made.scale, 1, axis=3))
        return super().read(form, moved)


@coded("wrong-scale", breaks="ROW-9 ROW-6 ROW-10")
class KeysScaleForValues(Coding):
    """Values are read with the scales of keys."""

    def both(self, taken: list[Parts]) -> list[Parts]:
        keys, values = taken
        same = keys.scale.shape == values.scale.shape
        return [keys, values._replace(scale=keys.scale)] if same else taken


class _KeptScales(Apart):
    def write(self, slot: int, new: Pair) -> None:
        old = Pair(self.keys.copy(), self.values.copy())
        written = getattr(self, "written", 0)
        super().write(slot, new)
        if self.kept.forms is None:
            return
        for now, was, end in zip((self.keys, self.values), old, codes(self.kept), strict=True):
            stop = min(written, slot + new.keys.shape[2])
            now[:, :, slot:stop, end:] = was[:, :, slot:stop, end:]
        self.written = max(written, slot + new.keys.shape[2])

    def _replace(self, slots: int, start: int, stop: int) -> None:
        super()._replace(slots, start, stop)
        self.written = stop - start


@planted("wrong-scale", breaks="ROW-6")
class ScaleOfTheRowBefore(Laying):
    """A row that takes the place of another gets the scale that lies there: after a rewind, or where a ring
    wraps."""

    lays = _KeptScales


@coded("wrong-scale", breaks="ROW-7 ROW-3")
class ScaleOfTheAppend(Coding):
    """All rows of an append share a scale."""

    def codes(self, form: Form, x: Array) -> Parts:
        axis = self.axis
        made = forms.encode(form, x)
        if form.given or form.of.affine or form.codes.startswith("q"):
            return made
        groups = grouped(form, x)
        scale = np.broadcast_to(made.scale.max(axis, keepdims=True), made.scale.shape)
        usable = np.broadcast_to(scale > 0, groups.shape)
        quotients = np.divide(groups, scale, where=usable, out=np.zeros_like(groups))
        codes = quotients if form.codes.startswith("e") else np.rint(quotients)
        return made._replace(codes=np.nan_to_num(codes).astype(form.of.dtype).reshape(x.shape), scale=scale)

    axis = 2


@coded("wrong-scale", breaks="ROW-7 ROW-3")
class ScaleOfAllHeads(ScaleOfTheAppend):
    """All heads of a row share a scale."""

    axis = 1


@coded("wrong-rounding", breaks="ROW-3")
class CutOff(Coding):
    """Quotients are cut off instead of rounded."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        if form.codes not in ("int8", "int4"):
            return made
        with np.errstate(all="ignore"):
            quotients = np.nan_to_num(grouped(form, x) / made.scale)
        return made._replace(codes=np.trunc(quotients).astype(np.int8).reshape(x.shape))


@coded("wrong-rounding", breaks="ROW-11")
class ZerosDivided(Coding):
    """A group of zeros is divided by its scale, and read as NaN."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        zero = np.abs(grouped(form, x)).max(-1, keepdims=True) == 0
        return made if form.given else made._replace(scale=np.where(zero, np.float32(np.nan), made.scale))


@coded("wrong-rounding", breaks="ROW-14")
class ScaleTooSmall(Coding):
    """A group is divided by a scale that became 0 when it was stored."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        lost = (made.scale == 0) & (np.abs(grouped(form, x)).max(-1, keepdims=True) > 0)
        return made if form.given else made._replace(scale=np.where(lost, np.float32(np.nan), made.scale))


@coded("wrong-rounding", breaks="ROW-13")
class TooLargeIsNaN(Coding):
    """What is larger than a given scale allows becomes NaN."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        if not form.given or form.whole_given:
            return made
        beyond = np.abs(x) > form.of.top * made.scale[:, :, :, 0]
        return made._replace(codes=np.where(beyond, np.float32(np.nan), made.codes).astype(form.of.dtype))


@coded("wrong-rounding", breaks="ROW-13")
class TooLargeWraps(Coding):
    """What is larger than a given scale allows for whole codes begins anew on the other side."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        if not form.whole_given:
            return made
        half = 1 << (form.of.bits - 1)
        whole = np.clip(np.nan_to_num(np.rint(x / made.scale[:, :, :, 0])), -(2.0**40), 2.0**40).astype(np.int64)
        return made._replace(codes=((whole + half) % (2 * half) - half).astype(np.int8))


@coded("wrong-rounding", breaks="ROW-35")
class NaNTakesTheRow(Coding):
    """Of a row with a NaN all whole codes are 0."""

    def codes(self, form: Form, x: Array) -> Parts:
        made = forms.encode(form, x)
        lost = np.isnan(x).any(-1, keepdims=True)
        return made._replace(codes=np.where(lost, 0, made.codes).astype(np.int8)) if form.whole_given else made


@coded("wrong-scale", breaks="ROW-34 ROW-10")
class ScaleOfTheFirstChannel(Coding):
    """The scale of the first channel of a head serves all of it when rows are read."""

    def read(self, form: Form, made: Parts) -> Array:
        first = np.broadcast_to(made.scale[..., :1], made.scale.shape) if form.channels else made.scale
        return super().read(form, made._replace(scale=first))


@coded("wrong-scale", breaks="ROW-34 ROW-10")
class ChannelsOfEachHeadAnew(Coding):
    """Channels of each head are counted from the first scale on, in writing and in reading."""

    def codes(self, form: Form, x: Array) -> Parts:
        each = [forms.encode(form, x[:, head : head + 1]) for head in range(x.shape[1] if form.channels else 0)]
        if not each:
            return forms.encode(form, x)
        return each[0]._replace(codes=np.concatenate([made.codes for made in each], 1))

    def read(self, form: Form, made: Parts) -> Array:
        return super().read(form, made._replace(scale=made.scale[:, :1]) if form.channels else made)


@coded("wrong-scale", breaks="ROW-33 ROW-10 ROW-6")
class ScaleOfTheNewestCache(Coding):
    """Rows are read with the given scales of the cache that was opened last."""

    newest: tuple[Form, Form] | None = None

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        type(self).newest = self.forms

    def read(self, form: Form, made: Parts) -> Array:
        like = [of for of in type(self).newest or () if of.given and of.codes == form.codes]
        if not form.given or not like or form in like:
            return super().read(form, made)
        heads, dim = made.codes.shape[1], made.codes.shape[3]
        return super().read(form, made._replace(scale=like[0].scales(heads, dim)[None, :, None, None]))


@coded("wrong-rounding", breaks="ROW-3")
class HalvesSwapped(Coding):
    """Codes of 4 bits are read in another order than they were written."""

    def read(self, form: Form, made: Parts) -> Array:
        if form.of.bits == 8 or form.codes.startswith("q"):
            return super().read(form, made)
        pairs = made.codes.shape[-1] // 2 * 2
        codes = made.codes.copy()
        codes[..., :pairs:2], codes[..., 1:pairs:2] = made.codes[..., 1:pairs:2], made.codes[..., :pairs:2]
        return super().read(form, made._replace(codes=codes))


@planted("miscounted-memory", breaks="ROW-15")
class BytesOfPlainRows(Growing):
    """The bytes held are counted as if rows were plain."""

    def held(self) -> int:
        return len(self.rows) * self.config.changed(form=None).row_bytes


@coded("wrong-scale", breaks="ROW-7 ROW-5")
class RunningScale(Coding):
    """A scale that grows with the rows that come is used for the rows that are there too."""

    def read(self, form: Form, made: Parts) -> Array:
        if form.given or not made.scale.size:
            return super().read(form, made)
        scale = np.broadcast_to(np.nan_to_num(made.scale).max(2, keepdims=True), made.scale.shape)
        return super().read(form, made._replace(scale=scale))


@planted("missing-refusal", breaks="ROW-2")
class TailOfAGroup(Growing):
    """A width that is no multiple of the group is taken as one with fewer elements to a scale."""

    def __init__(self, config: Config) -> None:
        try:
            super().__init__(config)
        except Exception:
            if not (config.form or "").startswith("int8/3"):
                raise
            super().__init__(config.changed(form="int8/1"))
