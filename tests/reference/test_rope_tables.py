"""The tables and the bound of RoPE against arithmetic that shares nothing with either of those who make them.

The angle of one position is turned into a complex number, and that is raised to the power of the position by
squaring: there is no pi in it, and no whole turn to be taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from kvgpu.memory import rope_angles as device_angles
from kvref.abilities import rope
from kvref.arithmetic import rope_angles, rope_tables
from kvref.list_model import rope as listed_rope
from kvspec.contract import Rope
from kvspec.geometry import DTYPES, Array
from kvspec.operations.arguments import PAIRINGS
from support.engines.rope_engines import Frequencies, by_exponential, by_power, by_running_product

PLACES = (0, 1, 2, 3, 7, 100, 4095, 65_536, 100_000, 1_000_003, (1 << 31) - 1, 1 << 40, (1 << 62) + 12_345)
POSITIONS = np.array([*PLACES, *(-p for p in PLACES[1:])], np.int64)
SORTS = ((8, 10_000), (8, 1), (6, 500_000), (64, 7), (2, 3), (10, (1 << 31) - 1))
"""Elements that are turned, and bases."""


def exact(position: int, pair: int, dims: int, base: int) -> tuple[Decimal, Decimal]:
    """Cosine and sine to some 100 digits."""
    with localcontext(Context(prec=140)):
        angle = (Decimal(base).ln() * -2 * pair / dims).exp()
        found, power = (Decimal(1), Decimal(0)), _cosine_and_sine(angle)
        for bit in reversed(bin(abs(position))[2:]):
            found = _times(found, power) if bit == "1" else found
            power = _times(power, power)
        return found[0], found[1] if position >= 0 else -found[1]


def _times(a: tuple[Decimal, Decimal], b: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _cosine_and_sine(x: Decimal) -> tuple[Decimal, Decimal]:
    parts, term = [Decimal(0), Decimal(0)], Decimal(1)
    for k in range(140):
        parts[k % 2] += term if k % 4 < 2 else -term
        term = term * x / (k + 1)
    return parts[0], parts[1]


def is_nearest(found: np.float32, wanted: Decimal) -> bool:
    """Whether neither neighbour is nearer."""
    neighbours = (np.nextafter(found, np.float32(side)) for side in (-2, 2))
    off = abs(Decimal(float(found)) - wanted)
    return all(off <= abs(Decimal(float(n)) - wanted) for n in neighbours)


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_cosines_and_sines_of_the_reference_are_the_nearest_there_are(sort: tuple[int, int]) -> None:
    dims, base = sort
    tables = rope_tables.table(POSITIONS, dims, base)
    for t, i in np.ndindex(len(POSITIONS), dims // 2):
        wanted = exact(int(POSITIONS[t]), i, dims, base)
        assert all(is_nearest(a[t, i], w) for a, w in zip(tables, wanted, strict=True)), (POSITIONS[t], i)


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_devices_are_handed_the_same(sort: tuple[int, int]) -> None:
    made = device_angles.table(POSITIONS, *sort)
    assert made.tobytes() == np.stack(rope_tables.table(POSITIONS, *sort), -1).tobytes()


def test_where_f64_cannot_tell_whole_numbers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = device_angles.table(POSITIONS, 8, 10_000)
    monkeypatch.setattr(device_angles, "DOUBT", 1 << 30)
    assert device_angles.table(POSITIONS, 8, 10_000).tobytes() == quick.tobytes()


def test_what_f64_decides_all_digits_say_too(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = rope_tables.table(POSITIONS, 64, 7)
    monkeypatch.setattr(rope_angles, "decided", lambda number: False)
    rope_angles.cosine_and_sine.cache_clear()
    for made, wanted in zip(quick, rope_tables.table(POSITIONS, 64, 7), strict=True):
        assert made.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("number", [0.5, -0.75, 1e-30])
def test_f64_decides_nothing_near_the_middle_of_two_f32_numbers(number: float) -> None:
    low = np.float32(number)
    middle = (float(low) + float(np.nextafter(low, np.float32(2)))) / 2
    for off in (0, 2.0**-52, -(2.0**-52), 2.0**-48, -(2.0**-48)):
        assert not rope_angles.decided(middle * (1 + off))
    assert rope_angles.decided(float(low)) and rope_angles.decided(middle * (1 + 2.0**-40))


def test_an_angle_in_f64_is_not_enough_for_far_positions_nor_one_in_f32_for_near_ones() -> None:
    """What the definition is for: with what libraries compute, the numbers would not be these."""

    def differing(positions: Array, dtype: type[np.floating]) -> int:
        pairs = np.arange(32, dtype=dtype)
        angle = positions.astype(dtype)[:, None] * dtype(10_000) ** (-2 * pairs / dtype(64))
        cosines, _ = rope_tables.table(positions, 64, 10_000)
        return int((np.cos(angle).astype(np.float32) != cosines).sum())

    assert differing(np.arange(100_000, 100_010), np.float32) > 100
    assert differing(np.arange(100_000, 100_010), np.float64) < 5
    assert differing(np.arange(1 << 40, (1 << 40) + 10), np.float64) > 100


@pytest.mark.parametrize("value", ["0.50000002980232238769531250001", "0.50000002980232238769531249999", "1e-9"])
def test_a_decimal_number_is_rounded_once(value: str) -> None:
    """The first two lie just above and just below the middle of two f32 numbers, which in f64 they are."""
    assert is_nearest(rope_angles.nearest(Decimal(value)), Decimal(value))


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_lie_within_the_bound_of_the_list_model_and_not_far_within(dtype: str, pairing: str) -> None:
    random = np.random.default_rng(3)
    rows = random.standard_normal((2, 3, 40, 16)).astype(np.float32).astype(DTYPES[dtype])
    how, positions = Rope(pairing), np.arange(40) * 2551  # type: ignore[arg-type]
    middle, bound, _ = listed_rope.turned(listed_rope.exactly(rows, dtype), positions, how)
    off = np.abs(rope.rotate(rows, positions, how).astype(np.float64) - middle)
    assert (off <= bound).all() and off.max() > bound.max() / 20


def in_f32(rows: Array, positions: Array, how: Rope) -> Array:
    """As many engines do it: angles in f32."""
    dims = rows.shape[-1]
    first, second = rope.pairs(how.pairing, dims)
    frequencies = np.float32(how.base) ** (-np.arange(0, dims, 2, dtype=np.float32) / np.float32(dims))
    angle = positions.astype(np.float32)[:, None] * frequencies
    made, wide = rows.copy(), rows.astype(np.float32)
    x, y, c, s = wide[..., first], wide[..., second], np.cos(angle), np.sin(angle)
    made[..., first], made[..., second] = (x * c - y * s).astype(rows.dtype), (x * s + y * c).astype(rows.dtype)
    return made


def in_f64(rows: Array, positions: Array, how: Rope) -> Array:
    """As is good enough: angles in f64, all else in f32, in another order."""
    dims = rows.shape[-1]
    first, second = rope.pairs(how.pairing, dims)
    angle = positions[:, None] * float(how.base) ** (-np.arange(0, dims, 2) / dims)
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    made, wide = rows.copy(), rows.astype(np.float32)
    x, y = wide[..., first], wide[..., second]
    made[..., first], made[..., second] = (c * x + -s * y).astype(rows.dtype), (y * c + x * s).astype(rows.dtype)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bound_leaves_room_for_angles_in_f64_and_none_for_f32(dtype: str) -> None:
    rows = np.random.default_rng(5).standard_normal((1, 2, 50, 64)).astype(np.float32).astype(DTYPES[dtype])
    positions, how = np.arange(100_000, 100_050), Rope()
    middle, bound, _ = listed_rope.turned(listed_rope.exactly(rows, dtype), positions, how)
    good, bad = (np.abs(f(rows, positions, how).astype(np.float64) - middle) for f in (in_f64, in_f32))
    assert (good <= bound).all()
    assert (bad > bound).any()


FREQUENCIES: dict[str, Callable[[Array, int, float], Array]] = {
    "of a natural logarithm": lambda i, d, base: np.exp(-np.log(base) * (2.0 * i / d)),
    "of its product": lambda i, d, base: np.exp(2.0 * i * -np.log(base) / d),
    "in powers of 2": lambda i, d, base: np.exp2(-np.log2(base) * 2.0 * i / d),
}
"""Ways to compute them in f64."""


@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("base", [10_000, 1 << 31])
def test_the_bound_leaves_room_for_any_way_to_compute_frequencies_in_f64(base: int, frequency: str) -> None:
    rows = np.random.default_rng(0).standard_normal((1, 1, 4, 450)).astype(np.float32)
    positions, how = np.array([1 << 31, 1 << 45, 1 << 53, (1 << 62) + 12_345]), Rope("neox", base)
    angle = positions.astype(np.float64)[:, None] * FREQUENCIES[frequency](np.arange(225), 450, float(base))
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    x, y = rows[..., :225], rows[..., 225:]
    found = np.concatenate([x * c - y * s, x * s + y * c], -1).astype(np.float64)
    middle, bound, _ = listed_rope.turned(listed_rope.exactly(rows, "f32"), positions, how)
    assert (np.abs(found - middle) <= bound).all()
    assert (np.abs(found - middle) > bound / 10).any()


@pytest.mark.parametrize("frequencies", [by_power, by_exponential, by_running_product])
@pytest.mark.parametrize("base", [7, 10_000, 500_000, 1 << 30])
def test_angles_in_f32_are_within_what_their_bound_allows(frequencies: Frequencies, base: int) -> None:
    positions = np.array([1, 2, 63, 4096, 50_000, 131_071, 1_000_003, 20_000_001])
    for dims in (2, 6, 64, 128, 518):
        exact_frequencies = [float(rope_angles.frequency(i, dims, base)) for i in range(dims // 2)]
        for pair, (found, frequency) in enumerate(zip(frequencies(base, dims), exact_frequencies, strict=True)):
            angle = positions * frequency
            in_f32 = (positions.astype(np.float32) * found).astype(np.float64)
            cosines = np.stack([np.abs(f(in_f32.astype(np.float32)) - f(angle)) for f in (np.cos, np.sin)])
            allowed = listed_rope.off_in_f32(angle, pair, dims, base)
            assert (np.abs(in_f32 - angle) <= allowed).all() and (cosines <= allowed).all()
