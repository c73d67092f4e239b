"""ROW over lists that forget nothing: a row is kept as the nearest of all the numbers that its form can say.

Written from the text of the chapter alone. Nothing is divided: of each group the table of its numbers is made, and
the nearest is looked up there, in float64.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from kvspec.errors import Unsupported
from support.engines.foreign import Foreign, latents, paging, remembering
from support.engines.foreign.demands import want

WHOLE = {"int8": (-127, 127), "int4": (-7, 7), "int8a": (0, 255), "int4a": (0, 15)}
WHOLE |= {"q8_0": (-127, 127), "q4_0": (-8, 7)}
"""The codes that are whole numbers: the first and the last."""

FLOATS = {"e4m3": (3, 7, 448.0), "e5m2": (2, 15, 57344.0)}
"""Digits behind the point, the bias of the exponent, and the largest number."""


def numbers(codes: str) -> Any:
    """All that a code can say, in order."""
    if codes in WHOLE:
        return np.arange(WHOLE[codes][0], WHOLE[codes][1] + 1.0)
    digits, bias, largest = FLOATS[codes]
    parts = product(range(2 * bias + 2), range(2**digits))
    positive = {((e > 0) + m / 2**digits) * 2.0 ** (max(e, 1) - bias) for e, m in parts}
    kept = sorted(number for number in positive if number <= largest)
    return np.array([*(-number for number in reversed(kept) if number), *kept])


class Form:
    """What is kept of keys, or of values."""

    def __init__(self, text: str, dim: int) -> None:
        self.codes, _, shared = text.partition("/")
        if self.codes == "latent":
            return
        scale, *given = shared.split(":") if shared else ("32",)
        self.table, self.given = numbers(self.codes), [float(number) for number in given]
        self.channels = scale == "c"
        if scale in ("t", "h", "c"):
            self.given, self.group = self.given or [1.0], dim
            able = self.codes in ("int8", "int4", *FLOATS)
            want(able and (scale != "t" or len(self.given) == 1), f"scales given in {text}")
            want(all(0 < np.float32(s) < np.inf for s in self.given), f"no such scale: {text}")
        else:
            want(not given and 1 <= int(scale) <= 1 << 16, f"no such form: {text}")
            self.group = dim if scale == "1" else int(scale)
            want(dim % self.group == 0, f"{dim} elements in {text}")

    def kept(self, rows: Any) -> Any:
        """Rows `[B, heads, n, dim]` as they are read."""
        if self.codes == "latent":
            return rows
        out = np.empty(rows.shape)
        for b, head in np.ndindex(rows.shape[:2]):
            groups = rows[b, head].astype(np.float64).reshape(-1, self.group)
            read = [self.group_kept(group, head) for group in groups]
            out[b, head] = np.array(read).reshape(rows.shape[2:])
        return out.astype(np.float32).astype(rows.dtype)

    def group_kept(self, group: Any, head: int) -> Any:
        """One group as it is read."""
        if self.given:
            return self.scaled(group, head)
        if not np.isfinite(group).all():
            return np.full(group.shape, np.nan)
        return self.nearest(group, self.sayable(group))

    def scaled(self, group: Any, head: int) -> Any:
        """One group as it is read with scales that are given: those of its channels, or that of its head. A NaN
        among whole codes is read as the largest of them."""
        if self.codes in WHOLE:
            group = np.where(np.isnan(group), np.inf, group)
        at = head * len(group) + np.arange(len(group)) if self.channels else [head] * len(group)
        scales = [np.float32(self.given[i % len(self.given)]) for i in at]
        return [self.nearest(x[None], self.table * scale)[0] for x, scale in zip(group, scales, strict=True)]

    def sayable(self, group: Any) -> Any:
        """The numbers that the codes of this group can say."""
        if self.codes.endswith("a"):
            return group.min() + self.table * self.stored((group.max() - group.min()) / self.table[-1])
        if self.codes == "q4_0":
            return np.sort(self.table * self.stored(group[np.abs(group).argmax()] / -8))
        return self.table * self.stored(np.abs(group).max() / self.table[-1])

    def stored(self, scale: Any) -> float:
        """The scale as it is kept."""
        with np.errstate(over="ignore"):
            return float(np.float16(scale) if self.codes.startswith("q") else np.float32(scale))

    def nearest(self, group: Any, table: Any) -> Any:
        """Of each element the nearest number of a table; NaN stays."""
        at = np.searchsorted(table, np.nan_to_num(group)).clip(1, len(table) - 1)
        low, high = table[at - 1], table[at]
        with np.errstate(invalid="ignore"):
            found = np.where(np.nan_to_num(group) - low < high - np.nan_to_num(group), low, high)
        return np.where(np.isnan(group), np.nan, found)


def forms_of(config: Any, form: Any = Form) -> list[Any]:
    """The forms of keys and of values; none of plain rows."""
    texts, dims = (config.form or "").split(","), (config.k_dim, config.v_dim)
    both = zip((texts[0], texts[-1]), dims, strict=True) if config.form else ()
    want(texts[-1] != "latent" or config.v_dim <= config.k_dim, f"values of {config.v_dim} in {config.k_dim}")
    return [form(text, dim) for text, dim in both]


def both_kept(forms: list[Any], keys: Any, values: Any) -> list[Any]:
    """Rows `[B, heads, n, dim]` as they are read; latent values are the beginnings of their keys."""
    kept = forms[0].kept(keys)
    return [kept, kept[..., : values.shape[3]] if forms[1].codes == "latent" else forms[1].kept(values)]


class Formed(remembering.Remembering):
    """A cache whose rows are what their form can say."""

    FORM: Any = Form

    def __init__(self, kind: str, config: Any) -> None:
        super().__init__(kind, config)
        self.forms = forms_of(config, self.FORM)

    def free(self) -> None:
        """Begin anew."""
        super().free()
        self.waiting = list[remembering.Row]()

    def append(self, keys: Any, values: Any) -> None:
        """Add rows, and round those that leave the residual window: the new ones if there is none. Of rows that
        wait the array that came is known again."""
        super().append(keys, values)
        if self.forms:
            self.waiting += self.rows[len(self.rows) - keys.shape[2] :]
            leave = self.rows[: max(0, len(self.rows) - self.window())]
            for p, row in enumerate(leave):
                if any(row is other for other in self.waiting):
                    self.rows[p] = self.rounded(*row)
            self.waiting = [row for row in self.rows[len(leave) :] if any(row is other for other in self.waiting)]

    def window(self) -> int:
        """How many of the newest rows are not rounded."""
        return int(self.config.residual or 0)

    def rounded(self, key: Any, value: Any) -> remembering.Row:
        """A key and a value `[B, heads, dim]` as they are read."""
        k, v = both_kept(self.forms, key[:, :, None], value[:, :, None])
        return k[:, :, 0], v[:, :, 0]


class FormedPool(paging.Pool):
    """A pool whose rows are what their form can say: they are rounded before they have a page."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.forms = forms_of(config)

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Add rows, rounded."""
        right = (keys.ndim, values.ndim) == (4, 4) and (keys.shape[3], values.shape[3]) == self.dims
        if self.forms and right:
            keys, values = both_kept(self.forms, keys, values)
        super().append(keys, values, sequence)

    @property
    def dims(self) -> tuple[int, int]:
        """The widths of its rows."""
        return self.config.k_dim, self.config.v_dim


class Nearest:
    """The adapter."""

    CACHE = Formed

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        kinds = ("growing", "ring", "bounded", "sink")
        chapters = dict.fromkeys((*kinds, "mask", "snapshot", "forms"), "visible")
        return {"name": "nearest", "chapters": {**chapters, **paging.Lists().describe()["chapters"]}}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache."""
        if kind == "page":
            return FormedPool(config)
        if kind not in remembering.KINDS:
            raise Unsupported(f"no kind {kind}")
        return self.CACHE(kind, config)


class Early(Formed):
    """The oldest row of the residual window is rounded too."""

    def window(self) -> int:
        return max(0, super().window() - 1)


class NearestEarly(Nearest):
    CACHE = Early


class OneScale(Form):
    """All groups of a row have the scale of the largest."""

    def kept(self, rows: Any) -> Any:
        if self.given or self.codes.startswith("q"):
            return super().kept(rows)
        self.group = rows.shape[-1]
        return super().kept(rows)


class OneForAll(Formed):
    FORM = OneScale


class NearestOneForAll(Nearest):
    CACHE = OneForAll


class FromTheEnd(Formed):
    """A latent value is the end of its key."""

    def rounded(self, key: Any, value: Any) -> remembering.Row:
        k, v = super().rounded(key, value)
        return k, k[..., k.shape[-1] - v.shape[-1] :] if self.forms[1].codes == "latent" else v


class NearestFromTheEnd(Nearest):
    CACHE = FromTheEnd


FOREIGN = (
    Foreign("forms:Nearest", ("forms",), "the nearest of all the numbers that a form can say"),
    *latents.FOREIGN,
)
WRONG = {
    "forms:NearestOneForAll": ["ROW-7"],
    "forms:NearestEarly": ["ROW-25"],
    "forms:NearestFromTheEnd": ["ROW-20"],
    **latents.WRONG,
}
