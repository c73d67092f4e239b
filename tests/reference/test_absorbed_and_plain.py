"""Latent rows at the geometry of DeepSeek-V3: both ways to attend agree within the bounds of both, and a cache that
is wrong is apart from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvadapters import find
from kvadapters.reference import Reference
from kvconform.bugs import planting
from kvref.abilities import rope
from kvref.caches.growing import Growing
from kvref.memory.forms import Kept
from kvspec.contract import Attention, Pair
from kvspec.contract.attention import Rope
from kvspec.geometry import Array
from support.bounds import latents
from support.slow import one_in

FORMS = [("latent", "f32"), ("latent", "bf16"), ("int8/32,latent", "bf16"), ("e4m3/t,latent", "f16")]


@pytest.mark.parametrize(("form", "dtype"), FORMS)
def test_strict_attention_in_both_ways(form: str, dtype: str) -> None:
    assert latents.apart("reference", Reference(), form, latents.model(70, dtype), heads=4).share <= 1


@pytest.mark.parametrize("name", ["opencl", "opencl-fast"])
@pytest.mark.parametrize(("form", "dtype"), one_in(2, FORMS))
def test_thousands_of_rows_on_a_device(form: str, dtype: str, name: str) -> None:
    assert latents.apart(name, find.load(name), form, latents.model(3000, dtype), heads=4).share <= 1


Latent = Callable[[Array, int], Pair]
"""Gives the keys and values of an attend, of the keys that a cache shows and the width of values."""


def from_the_end(keys: Array, width: int) -> Pair:
    """The value is no beginning of the key, but its end."""
    return Pair(keys, keys[..., -width:].copy())


def one_off(keys: Array, width: int) -> Pair:
    """The value begins at the second element of the key."""
    return Pair(keys, keys[..., 1 : width + 1].copy())


def of_one_row(keys: Array, width: int) -> Pair:
    """The value is a copy by itself, which the row before had."""
    return Pair(keys, np.roll(keys[..., :width], 1, axis=2))


def without_the_rest(keys: Array, width: int) -> Pair:
    """The part that RoPE turned is left out of the scores."""
    return Pair(np.where(np.arange(keys.shape[3]) < width, keys, 0), keys[..., :width].copy())


def of_less_rank(keys: Array, width: int) -> Pair:
    """The latent is taken to be narrower by a sixteenth, as if its end belonged to the rest."""
    rank = width - width // 16
    return Pair(keys, np.where(np.arange(width) < rank, keys[..., :width], 0))


def turned_from_the_first(keys: Array, width: int) -> Pair:
    """Keys are turned from their first element on, once more."""
    turned = rope.rotate(keys, np.arange(keys.shape[2]), Rope(dims=latents.REST))
    return Pair(turned, keys[..., :width].copy())


def having(latent: Latent) -> Reference:
    """The reference, whose attends read latent rows so."""

    class Reads(Kept):
        def latent(self, keys: Array) -> Pair:
            return latent(keys, self.config.v_dim)

    class Attends(Growing):
        def attend(self, *asked: Any) -> Array:
            self.rows.kept = Reads(self.config)
            try:
                return super().attend(*asked)
            finally:
                self.rows.kept = Kept(self.config)

    return planting.having(growing=Attends)()


class ScaledByTheWidth(Growing):
    """An attend scales by the width of the row, where a model means that of a plain key."""

    def attend(self, queries: Array, keys: Array, values: Array, how: Attention, *more: Any) -> Array:
        return super().attend(queries, keys, values, how._replace(scale=None), *more)


WRONG = (from_the_end, one_off, of_one_row, without_the_rest, of_less_rank, turned_from_the_first)


@pytest.mark.parametrize("latent", WRONG, ids=lambda latent: latent.__name__)
def test_a_cache_that_reads_latent_rows_wrongly_is_apart(latent: Latent) -> None:
    assert latents.apart("wrong", having(latent), "latent", latents.model(70, "f32"), heads=2).share > 1


def test_a_scale_of_the_width_of_the_row_is_apart() -> None:
    adapter = planting.having(growing=ScaledByTheWidth)()
    assert latents.apart("wrong", adapter, "latent", latents.model(70, "f32"), heads=2).share > 1
