"""Rows in a form: encoded once, where they are written, and decoded wherever they are read."""

from __future__ import annotations

from math import prod

import numpy as np

from kvref.arithmetic import forms
from kvref.cite import cite
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.forms import Form, grouped
from kvspec.geometry import DTYPES, Array, Config, not_a_form
from kvspec.geometry import forms as forms_of
from kvspec.refusals import forms as refusals


class Kept:
    """What a cache of this config keeps of its rows `[..., kv_heads, n, dim]`. Raises Refused for a form that it
    cannot have."""

    def __init__(self, config: Config) -> None:
        if config.form is not None and (why := not_a_form(config.form, config.k_dim, config.v_dim)):
            raise demanded(why)
        self.config, self.forms = config, forms_of(config)

    def none(self) -> Pair:
        """No rows."""
        plain = (np.empty(self.config.shape(kind, 0), DTYPES[self.config.dtype]) for kind in "kv")
        return self.encoded(Pair(*plain), quiet=True)

    def encoded(self, rows: Pair, quiet: bool = False) -> Pair:
        """Rows as they are kept; those that are already stay as they are."""
        if self.forms is None or is_encoded(rows):
            return rows
        if not quiet:
            cite_written(self.forms, rows)
        made = zip(self.forms, rows, strict=True)
        return Pair(*(_like(a, forms.encoded(form, _flat(a))).view(type(a)) for form, a in made))

    def decoded(self, kept: Pair) -> Pair:
        """Rows as they are read, of those that are kept."""
        if self.forms is None:
            return kept
        dims, dtype = (self.config.k_dim, self.config.v_dim), DTYPES[self.config.dtype]
        made = zip(self.forms, kept, dims, strict=True)
        if self.forms[1].latent:
            return self.latent(_like(kept.keys, forms.decoded(self.forms[0], _flat(kept.keys), dims[0], dtype)))
        return Pair(*(_like(a, forms.decoded(form, _flat(a), dim, dtype)) for form, a, dim in made))

    def latent(self, keys: Array) -> Pair:
        """Keys as they are read, and the values that are their first elements."""
        return Pair(keys, keys[..., : self.config.v_dim].copy())

    def cite_bytes(self) -> None:
        """Cite the clause on the bytes of rows."""
        cite(*["ROW-15"] * (self.forms is not None), *["ROW-21"] * is_latent(self.forms))


def _flat(rows: Array) -> Array:
    """Rows `[..., H, n, dim]`, with one axis in front of their heads."""
    return rows.reshape(prod(rows.shape[:-3]), *rows.shape[-3:])


def _like(rows: Array, made: Array) -> Array:
    """What was made of flat rows, with the axes that they had in front."""
    return made.reshape(*rows.shape[:-1], made.shape[-1])


def demanded(why: str) -> Refused:
    """The refusal of a form: of its width under the clause on widths, of what it says under that on texts."""
    return refusals.form("ROW-2" if "multiple" in why else "ROW-19" if "wider" in why else "ROW-32", why)


def cite_attended(config: Config) -> None:
    """Cite the clause on attention over rows in a form."""
    cite(*["ROW-16"] * (config.form is not None))


def is_encoded(rows: Pair) -> bool:
    """Whether these are rows as a cache in a form keeps them."""
    return bool(rows.keys.dtype == np.uint8)


def is_latent(kept: tuple[Form, Form] | None) -> bool:
    """Whether values are the first elements of their keys."""
    return kept is not None and kept[1].latent


def cite_written(kept: tuple[Form, Form], rows: Pair) -> None:
    """Cite the clauses that writing rows exercises."""
    latent = is_latent(kept)
    if kept[0].plain:
        cite("ROW-5", "ROW-6", "ROW-20")
        return
    cite("ROW-3", "ROW-4", "ROW-5", "ROW-6", "ROW-7", "ROW-8", *["ROW-20"] * latent)
    if kept[0] != kept[1] and not latent:
        cite("ROW-9")
    for form, array in zip(kept[: 2 - latent], rows, strict=False):
        _cite_content(form, np.asarray(array).astype(np.float32))


def _cite_content(form: Form, x: Array) -> None:
    """Cite the clauses on what is special in rows: given scales, zeros, NaN, numbers too large, scales too
    small."""
    if form.given:
        cite("ROW-10", *["ROW-33"] * form.whole_given, *["ROW-34"] * form.channels)
        with np.errstate(invalid="ignore", over="ignore"):
            beyond = np.abs(x) > form.of.top * max(form.given)
        without = "ROW-35" if form.whole_given else "ROW-12"
        cite(*["ROW-13"] * bool(beyond.any()), *[without] * bool(np.isnan(x).any()))
        return
    groups = grouped(form, x)
    cite(*["ROW-11"] * bool((groups == 0).all(-1).any()), *["ROW-12"] * (not np.isfinite(x).all()))
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.abs(groups).max(-1, initial=0) / form.of.top
        small = (scale > 0) & (scale.astype(form.of.scale) == 0)
    cite(*["ROW-14"] * bool(small.any()))
