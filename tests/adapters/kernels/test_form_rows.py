"""Fast attention on CPUs over rows in a form, which its kernel decodes where they lie: every code, every sum."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from kvgpu.adapters import OpenCLFast
from kvgpu.runtimes import opencl_devices
from kvgpu.runtimes.fast import form_rows, opencl_fast, row_attention
from kvspec.contract import Attention
from kvspec.forms import FINFO, parsed
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit
from support.device.row_bound import weighed
from support.slow import one_in

CODED = ["int8/256", "int8/1", "q8_0", "e4m3/t:33", "e4m3/t:0.5", "e5m2/h:2:0.3", "e5m2/t", "e4m3/32"]
"""Forms of values whose codes are all met by rows that take every code; 33 times one may lie amid two of bf16."""


@pytest.fixture(scope="module")
def adapter() -> OpenCLFast:
    return OpenCLFast(checks=True)


def rows(config: Config, n: int, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(config.shape(kind, n)).astype(DTYPES[config.dtype]) for kind in "kv"]


def coded(form: str, dtype: str) -> Array:
    """Rows `[1, 2, 1, 256]` that take every code, NaN among them where a code is NaN."""
    of = parsed(form)[1]
    scale = np.array(of.given or (0.01,), np.float32)[np.arange(2) % max(1, len(of.given))]
    codes = np.arange(256, dtype=np.uint8).view(of.of.dtype).astype(np.float32)
    with np.errstate(over="ignore"):
        found: Array = (scale[:, None] * codes).astype(DTYPES[dtype])[None, :, None]
    return found


@pytest.mark.parametrize(("form", "dtype"), one_in(5, list(product(CODED, ("f16", "bf16", "f32")))))
def test_every_code_is_worth_what_a_read_shows(adapter: OpenCLFast, form: str, dtype: str) -> None:
    """Attention to a single row is that row, to the bit."""
    config = Config(1, 2, 8, 256, dtype, form=f"int8/1,{form}", step=4)
    cache: Any = adapter.open("growing", config)
    out = cache.attend(np.ones((1, 4, 1, 8), np.float32), rows(config, 1, 0)[0], coded(form, dtype), Attention())
    shown = cache.read("view").values.astype(np.float32)
    assert np.isnan(shown).any() == np.isnan(coded(form, dtype).astype(np.float32)).any()
    assert np.array_equal(out, np.repeat(shown, 2, axis=1), equal_nan=True)


SIZES = [
    ("q8_0", "f16", 96, False), ("q8_0", "f16", 64, True), ("e4m3/1", "f32", 17, True),
    ("e4m3/1", "f32", 33, False), ("int8/4", "bf16", 36, True), ("int8/4", "bf16", 52, False),
    ("e5m2/t:2", "f16", 52, False), ("e5m2/t:2", "f16", 36, True),
]  # fmt: skip
"""Forms, dtypes, widths, and whether the processor converts f16 where it can."""


@pytest.mark.parametrize(("form", "dtype", "dim", "converts"), one_in(2, SIZES))
def test_elements_of_any_size_are_worth_what_a_read_shows(
    adapter: OpenCLFast, monkeypatch: pytest.MonkeyPatch, form: str, dtype: str, dim: int, converts: bool
) -> None:
    """Scales of zero, subnormal ones, NaN; products that f16 and bf16 cannot hold."""
    if not converts:
        source = row_attention.source
        monkeypatch.setattr(row_attention, "source", lambda *given: "#undef __F16C__\n" + source(*given))
    config = Config(1, 2, 8, dim, dtype, form=f"int8/1,{form}", step=4)
    for values in sized(config):
        cache: Any = adapter.open("growing", config)
        out = cache.attend(np.ones((1, 4, 1, 8), np.float32), rows(config, 1, 0)[0], values, Attention())
        shown = cache.read("view").values.astype(np.float32)
        assert np.array_equal(out, np.repeat(shown, 2, axis=1), equal_nan=True)


def sized(config: Config) -> Iterator[Array]:
    """Values `[1, 2, 1, v_dim]`: zeros, the smallest and largest numbers of the dtype, infinities, NaN."""
    info, plain = FINFO(DTYPES[config.dtype]), np.clip(rows(config.changed(dtype="f32"), 1, 5)[1], -1, 1)
    smallest, normal, largest = map(float, (info.smallest_subnormal, info.smallest_normal, info.max))
    with np.errstate(over="ignore", under="ignore"):
        for size in (0, smallest, 100 * smallest, normal, 200 * normal, largest / 2, largest):
            yield (plain.astype(np.float64) * size).astype(DTYPES[config.dtype])
        for strange in (np.inf, -np.inf, np.nan):
            yield np.where(np.arange(config.v_dim) == 3, strange, plain).astype(DTYPES[config.dtype])


FORMS = [
    ("q8_0", "f16", 128, 128), ("int8/32,e4m3/t:0.7", "bf16", 64, 96), ("e5m2/4", "f16", 20, 12),
    ("e4m3/h:1:0.3:2", "f32", 17, 5), ("int8/2", "bf16", 6, 10), ("int8/1,q8_0", "f16", 5, 32),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["growing", "ring", "page"])
@pytest.mark.parametrize(("form", "dtype", "k_dim", "v_dim"), one_in(3, FORMS))
def test_every_element_is_within_the_bound_of_plain_rows(
    adapter: OpenCLFast, form: str, dtype: str, k_dim: int, v_dim: int, kind: str
) -> None:
    more: dict[str, Any] = {"page": {"page_size": 5, "pages": 40}, "ring": {"window": 60}}.get(kind, {})
    config = Config(1, 2, k_dim, v_dim, dtype, form=form, **more)
    cache: Any = adapter.open(kind, config)
    if kind == "page":
        cache.admit()
    for held, n in ((150, 1), (151, 3)):
        if held == 150:
            cache.append(*rows(config, held, 1))
        queries = np.random.default_rng(n).standard_normal((1, 6, n, k_dim)).astype(np.float32)
        out = cache.attend(queries, *rows(config, n, n), Attention())
        demand_bound(queries, out, seen(cache, kind), 60 if kind == "ring" else 1 << 30)


@pytest.mark.parametrize("held", [0, 1, 2, 126, 127, 128, 129])
def test_lengths_around_a_block_of_a_width_that_is_no_multiple_of_lanes(adapter: OpenCLFast, held: int) -> None:
    config = Config(1, 3, 12, 17, "f16", form="int8/4,e5m2/17")
    for n in (1, 3):
        cache: Any = adapter.open("growing", config)
        cache.append(*rows(config, held, 1))
        queries = np.random.default_rng(n).standard_normal((1, 15, n, 12)).astype(np.float32)
        out = cache.attend(queries, *rows(config, n, n), Attention())
        demand_bound(queries, out, cache.read("view"))


def demand_bound(queries: Array, out: Array, held: Any, window: int = 1 << 30) -> None:
    """Demand that every element is within its bound: the queries stand at the ends of the rows that are held."""
    keys, values = (a.reshape(-1, *a.shape[-2:]).astype(np.float64) for a in held)
    (_, heads, n, _), (kv_heads, end, _) = queries.shape, keys.shape
    for h, i in np.ndindex(heads, n):
        last, of = end - n + i + 1, h * kv_heads // heads
        first = max(0, last - window)
        right, bound = weighed(queries[0, h, i].astype(np.float64), keys[of, first:last], values[of, first:last])
        assert (np.abs(out[0, h, i] - right) <= bound).all(), (h, i)


def test_stores_and_their_batches_are_read_in_place(adapter: OpenCLFast, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(1, 2, 32, 64, "f16", form="q8_0,e4m3/t:0.7", layers=2, max_len=50)
    cache: Any = adapter.open("store", config)
    cache.append(*rows(config.changed(batch=2), 40, 3))
    names = launched(monkeypatch, adapter)
    queries = np.random.default_rng(4).standard_normal((1, 6, 1, 32)).astype(np.float32)
    found = [cache.attend(queries, *rows(config, 1, 5), Attention(), None, 1)[0]]
    cache.batch(2)
    for sequence in range(2):
        cache.scatter(sequence, 40)
    found += list(cache.attend_batch(np.repeat(queries, 2, 0), 1))
    assert "decode" not in names
    for out, held in zip(found, (41, 40, 40), strict=True):
        demand_bound(queries, out[None], [a[:, :held] for a in cache.read(1)])


def seen(cache: Any, kind: str) -> Any:
    """The rows that the last append's queries see, oldest first."""
    if kind == "page":
        return cache.read_sequence(0)
    return cache.store.read(cache.filled, *newest(cache)) if kind == "ring" else cache.read("view")


def newest(cache: Any) -> tuple[int, int, int]:
    span = cache.newest(cache.filled)
    return span.first, span.turn, span.wrap


def launched(monkeypatch: pytest.MonkeyPatch, adapter: OpenCLFast) -> list[str]:
    names: list[str] = []
    launch = adapter.runtime.launch

    def noted(kernel: str, *given: Any) -> None:
        names.append(kernel)
        launch(kernel, *given)

    monkeypatch.setattr(adapter.runtime, "launch", noted)
    return names


@pytest.mark.parametrize(
    ("form", "how", "decodes"),
    [
        ("q8_0", Attention(), False),
        ("int4/32", Attention(), True),
        ("q8_0,int8a/32", Attention(), True),
        ("q8_0", Attention(scale=0.5), True),
        ("q8_0", Attention(sinks=(0.5, -1.0)), True),
        ("q8_0", Attention(through=(Causal(), Explicit(np.zeros((1, 1, 1, 9), np.float32)))), True),
    ],
)
def test_what_is_decoded_to_another_place(
    adapter: OpenCLFast, monkeypatch: pytest.MonkeyPatch, form: str, how: Attention, decodes: bool
) -> None:
    config = Config(1, 2, 32, 32, "f16", form=form)
    cache: Any = adapter.open("growing", config)
    cache.append(*rows(config, 8, 1))
    names = launched(monkeypatch, adapter)
    cache.attend(np.ones((1, 2, 1, 32), np.float32), *rows(config, 1, 2), how)
    assert ("decode" in names) == decodes


def test_which_forms_are_readable() -> None:
    config = Config(1, 1, 32, 32, "f16")
    assert all(form_rows.readable(config.changed(form=form)) for form in CODED[1:])
    assert not form_rows.readable(config.changed(form="int4/32")) and not form_rows.readable(
        config.changed(form="q4_0")
    )
    assert opencl_fast.shared(os.environ.get(opencl_devices.SELECT, "")).reads_form(config.changed(form="q8_0"))


@pytest.mark.parametrize(
    ("form", "dtype", "exact"),
    [
        ("e4m3/t:0.5", "f16", True),
        ("e4m3/t:0.7", "f16", False),
        ("e4m3/t:0.7", "bf16", False),
        ("e4m3/t:512", "f16", False),
        ("e4m3/t:512", "bf16", True),
        ("e4m3/h:1:3", "f16", True),
        ("e4m3/1", "f16", False),
        ("int8/1", "f16", False),
        ("e5m2/t", "f16", True),
        ("e5m2/t:0.5", "f16", True),
        ("e5m2/t:2", "f16", False),
    ],
)
def test_products_that_need_no_rounding(form: str, dtype: str, exact: bool) -> None:
    assert form_rows.exact_in(dtype, parsed(form)[0]) == exact
