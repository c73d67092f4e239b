"""What the rows of an append, and queries, may hold: see `kvspec.rows`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod

import numpy as np

from kvspec.forms import Form
from kvspec.geometry import DTYPES, Array, Config
from kvspec.operations.arguments import ALIKE, IN_RUNS
from kvspec.rows.legible import axes_of, form_of, legible, owners_along, who
from kvspec.rows.serials import largest, places


def bits(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of arbitrary bits, a function of serial, kind, sequence, head and element alone."""
    sizes, dtype = axes_of(config, kind, n), DTYPES[config.dtype]
    words = _words if prod(sizes) <= FEW_WORDS else _words.__wrapped__
    return words(kind, first, *sizes).astype(f"u{dtype.itemsize}").view(dtype)


FEW_WORDS = 1 << 13
"""Most words of rows of arbitrary bits kept for reuse: small traces make the same rows again and again."""


@lru_cache(maxsize=512)
def _words(kind: str, first: int, batch: int, heads: int, n: int, dim: int) -> Array:
    """Words `[batch, heads, n, dim]` of 64 bits each (splitmix64)."""
    owner = who(kind, *owners_along(batch, heads)).astype(np.uint64)
    serial = np.arange(first, first + n, dtype=np.uint64)[None, None, :, None]
    beyond, others = ((at // 8).astype(np.uint64)[..., None] for at in owners_along(batch, heads))
    x: Array = (serial << np.uint64(20)) + (beyond << np.uint64(44)) + (others << np.uint64(54))
    x = x + (owner[..., None] << np.uint64(12)) + np.arange(dim, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x + np.uint64(0x9E3779B97F4A7C15)) if shift == 30 else x
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x


def edges(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of edges; twelve rows of two heads and dimensions 8 and 6 hold all of them."""
    batch, heads, n, dim = axes_of(config, kind, n)
    owners = owners_along(batch, heads)
    far = sum(at // 8 for at in owners)
    at = 13 * np.arange(first, first + n) + 8 * who(kind, *owners) + 3 * far
    with np.errstate(over="ignore", invalid="ignore"):
        made: Array = EDGES[(at[..., None] + np.arange(dim)) % len(EDGES)].astype(DTYPES[config.dtype])
    return made


OTHERS = 1 << 20
"""How many serials behind legible rows random ones are spelled in a form: the fills share no row."""


def random(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of numbers between -2 and 2 of 8 binary digits, which every dtype holds; made of the bits of `bits`.
    In a form those that are legible there."""
    if form_of(config, kind) is not None:
        return legible(config, kind, first + OTHERS, n)
    whole = bits(config.changed(dtype="f32"), kind, first, n).view(np.uint32)
    return numbers(whole).astype(DTYPES[config.dtype])


def numbers(bits: Array) -> Array:
    """f32 numbers between -2 and 2, multiples of 2^-6, from 32 random bits each."""
    return ((bits >> np.uint32(24)).astype(np.float32) - np.float32(127.5)) / np.float32(64)


def even(config: Config, kind: str, first: int, n: int) -> Array:
    """Keys of zeros, values that are all the number of the row."""
    serials = np.arange(first, first + n, dtype=np.float32)[None, None, :, None] + 1
    made = np.zeros(axes_of(config, kind, n), np.float32) + (serials if kind == "v" else np.float32(0))
    return made.astype(DTYPES[config.dtype])


def ramp(config: Config, kind: str, first: int, n: int) -> Array:
    """Keys of 1, 2, 3, ... whatever the row; values as of `even`."""
    if kind == "v":
        return even(config, kind, first, n)
    batch, heads, n, dim = axes_of(config, kind, n)
    made = np.arange(1, dim + 1, dtype=np.float32).astype(DTYPES[config.dtype])
    return np.broadcast_to(made, (batch, heads, n, dim)).copy()


def fine(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of numbers between -2 and 2 of as many binary digits as the dtype has."""
    whole = bits(config.changed(dtype="f32"), kind, first, n).view(np.uint32)
    return fine_numbers(whole).astype(DTYPES[config.dtype])


def fine_numbers(bits: Array) -> Array:
    """f32 numbers between -2 and 2 from 32 random bits each."""
    return (bits / 2.0**30 - 2).astype(np.float32)


HAY = np.float32(2.0**-24)
"""The least number that every dtype has; numbers of 8 digits times this are exact in each."""


def hay(config: Config, kind: str, first: int, n: int) -> Array:
    """Keys as of `random`; values that are next to nothing."""
    if kind == "k":
        return random(config, kind, first, n)
    return (legible(config.changed(dtype="f32"), kind, first, n) * HAY).astype(DTYPES[config.dtype])


def needle(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of `hay`, some with one element from 1,024 to 2,032; which element varies, and the number too."""
    made = hay(config, kind, first, n)
    if kind == "k" or not made.size:
        return made
    serials = np.arange(first, first + n)
    power = ((serials & (serials - 1)) == 0) | ((serials & (serials + 1)) == 0)
    at = np.flatnonzero((serials >= 15) & power | (serials == first) | (serials == first + n - 1))
    mixed = serials[at] * 0x9E3779B1 >> 15
    made[:, :, at, mixed % made.shape[3]] = (1024 + 8 * (mixed % 127)).astype(made.dtype)
    return made


def copies(config: Config, kind: str, first: int, n: int) -> Array:
    """Keys as of `random`; values that are the first elements of their keys, as of latent rows."""
    keys = random(config, "k", first, n)
    return keys if kind == "k" else beginnings(keys, config, n)


def beginnings(keys: Array, config: Config, n: int) -> Array:
    """Values `[B, H, n, v_dim]` that are the first elements of their keys; zeros where there are none."""
    made, part = np.zeros(axes_of(config, "v", n), keys.dtype), keys[:, :, : max(0, n), : max(0, config.v_dim)]
    made[:, :, : part.shape[2], : part.shape[3]] = part
    return made


REPEATED = (0, 1, 2, 3)
"""The serials of rows that are alike, one after another: a, b, c, d, and again a."""

RUNS = (0, 0, 0, 1, 1, 2, 3, 3)
"""Those of rows whose neighbours are equal: a, a, a, b, b, c, d, d, and again a. Each call begins with a."""


Part = Callable[[str, Array, Array, int], Array]
"""Tells of each head of each sequence, by the letter of keys or values, the sequences, the heads and their number,
whether it is equal to others."""

WHERE: dict[str, Part] = {
    "": lambda kind, sequence, head, heads: head >= 0,
    "keys_": lambda kind, sequence, head, heads: (head >= 0) & (kind == "k"),
    "values_": lambda kind, sequence, head, heads: (head >= 0) & (kind == "v"),
    "first_": lambda kind, sequence, head, heads: head == 0,
    "last_": lambda kind, sequence, head, heads: head == heads - 1,
    "but_key_": lambda kind, sequence, head, heads: (head < heads - 1) | (kind == "v"),
    "but_value_": lambda kind, sequence, head, heads: (head < heads - 1) | (kind == "k"),
    "sequence_": lambda kind, sequence, head, heads: (sequence == 0) & (head >= 0),
}
"""The parts of rows that are equal to others, by the beginning of a fill's name."""

PARTS: dict[str, tuple[tuple[int, ...], Part]] = {
    **{name: (REPEATED, WHERE[name.removesuffix("alike")]) for name in ALIKE},
    **{name: (RUNS, WHERE[name.removesuffix("in_runs")]) for name in IN_RUNS},
}
"""The serials of rows that are equal to others, and the parts in which they are, by fill."""


def equal(config: Config, kind: str, first: int, n: int, serials: tuple[int, ...], part: Part) -> Array:
    """Legible rows; in the part that is equal to others those of these serials, whatever rows came before."""
    own, heads = legible(config, kind, first, n), max(0, config.kv_heads)
    each = np.take(serials, np.arange(own.shape[2]) % len(serials))
    repeated = legible(config, kind, 0, max(serials) + 1).take(each, axis=2)
    there = part(kind, np.arange(own.shape[0])[:, None], np.arange(heads), heads)
    return np.where(there[..., None, None], repeated, own)


HUGE, TINY = np.float32(2.0**40), np.float32(2.0**-40)
"""Factors that make one row outweigh all others, or all weigh the same."""


def queries(what: str, first: int, batch: int, heads: int, n: int, dim: int) -> Array:
    """Queries `[batch, heads, n, dim]` in f32, those of the row of serial `first` first; `what` as in `QUERIES`."""
    config = Config(batch=max(batch, 0), kv_heads=max(heads, 0), k_dim=max(dim, 0), dtype="f32")
    whole = bits(config, "k", first + (1 << 24), n).view(np.uint32)
    if what == "fine":
        return fine_numbers(whole)
    return numbers(whole) * {"random": np.float32(1), "huge": HUGE, "tiny": TINY, "zero": np.float32(0)}[what]


MAKE: dict[str, Callable[[Config, str, int, int], Array]] = {
    "legible": legible,
    "bits": bits,
    "edges": edges,
    "random": random,
    "fine": fine,
    "hay": hay,
    "needle": needle,
    "copies": copies,
    "even": even,
    "ramp": ramp,
    **{name: partial(equal, serials=serials, part=part) for name, (serials, part) in PARTS.items()},
}
"""Functions that make rows, by an operation's `fill`."""


EXACT = ("legible", "random", "needle", "even", *PARTS)
"""The fills whose rows are kept to the bit in a form; there they are all made of codes."""


def with_tail(form: Form, plain: Array, tail: Array) -> Array:
    """Give rows that a form tells apart, with a tail of other numbers. The tail is the last group if there are
    several, or the last element where scales are given."""
    dim = plain.shape[-1]
    start = dim - 1 if form.given else dim - (form.group or dim)
    if form.given and plain.size:
        times = (16 if form.of.bits == 8 else 2) * min(form.given)
        plain = (plain.astype(np.float32) * np.float32(times)).astype(plain.dtype)
    if start > 0:
        plain[..., start:] = tail[..., start:]
    return plain


def tiny(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of the smallest numbers of their dtype: so small that most scales which are taken from them are 0."""
    dtype = DTYPES[config.dtype]
    least = np.uint32 if dtype.itemsize == 4 else np.uint16
    return (bits(config.changed(dtype="f32"), kind, first, n).view(np.uint32) % 8 + 1).astype(least).view(dtype)


def signed(config: Config, end: int) -> int:
    """Count the legible digits at the beginning of rows that could otherwise be equal: enough to name serials below
    `end`, and every sequence."""
    few = min(end, largest(3)) == end and config.batch <= places(3)[1]
    return 3 if few else 5


def settled(array: Array) -> Array:
    """Make all NaNs alike, because a cast may turn a NaN into any NaN. Whole numbers, such as the
    codes that a cache hands out in place of its rows, have none."""
    if array.dtype.kind in "biu":
        return array
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(array), array.dtype.type(np.nan), array)


def cast(array: Array, dtype: str) -> Array:
    """Cast the array to another dtype, rounding to nearest even, with NaNs settled."""
    with np.errstate(over="ignore", invalid="ignore"):
        return settled(array.astype(DTYPES[dtype]))


F16 = (
    0x33000000,  # half the least subnormal: a tie that goes down to zero
    0x33800000,  # the least subnormal
    0x33C00000,  # a tie that goes up
    0x387FC000,  # the largest subnormal
    0x387FE000,  # the tie between it and the least normal number
    0x38800000,  # the least normal number
    0x3F801000,  # a tie just above 1, that goes down
    0x3F803000,  # the next one, that goes up
    0x477FE000,  # the largest finite number, 65504
    0x477FF000,  # 65520, a tie that goes to infinity
    0x47800000,  # 65536
)
"""Bits of f32 values that matter to a cast to f16."""

BF16 = (
    0x00008000,  # half the least subnormal
    0x00010000,  # the least subnormal
    0x00018000,  # a tie that goes up
    0x007F0000,  # the largest subnormal
    0x007F8000,  # the tie between it and the least normal number
    0x00800000,  # the least normal number
    0x3F808000,  # a tie just above 1, that goes down
    0x3F818000,  # the next one, that goes up
    0x7F7F0000,  # the largest finite number
    0x7F7F8000,  # a tie that goes to infinity
)
"""Bits of f32 values that matter to a cast to bf16."""

BOTH = (
    0x00000000,  # zero
    0x3F800000,  # 1
    0x7F7FFFFF,  # the largest f32
    0x7F800000,  # infinity; next to it a NaN whose payload no narrower dtype can hold
    0x7FBFFFFF,  # a signalling NaN
    0x7FC00000,  # a quiet NaN
    0x7FFFFFFF,  # the NaN that a sum would carry over into the sign
)
"""Bits of f32 values that matter to every cast."""


def _table() -> Array:
    """Build the table: all edges with both their neighbours, then the same values negated."""
    near = {bits + by for bits in (*F16, *BF16, *BOTH) for by in (-1, 0, 1)}
    positive = np.array(sorted(bits for bits in near if 0 <= bits < 1 << 31), np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)


EDGES = _table()
"""Those values, their neighbours, and all of these negated, as f32."""
EDGES.flags.writeable = False
