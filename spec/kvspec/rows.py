"""Legible rows: every row carries its own identity, exactly, in f32, f16 and bf16.

A row's elements are digits 1..128, which every dtype here holds exactly and which are never 0, NaN or
infinite. They spell, over and over along the head dimension,

check, serial mod 128, who, serial / 128 mod 128, serial / 128^2

where `who` tells keys from values and names head and sequence, both modulo 8, and `check` ties all of it together.
The serial is unique to each position ever appended in a trace, in each layer, so a row of a rejected draft differs
from the row that took its place, and a row of layer 33 from that of layer 1. Dimensions below 5 spell the first of
these only; below 3 a shorter code is used.

Heads and sequences from 8 on are named by the ranges in which the digits lie: sixteen ranges of 128 numbers, still
whole, and exact in every dtype. Digits 0, 2 and 4 spell head / 8, to the base 16; digits 1 and 3 sequence / 8.
So small caches have small numbers. How many serials, heads and sequences narrow rows can name is bounded
(`kvspec.serials`), and a trace that needs more is refused.

Legible rows are small whole numbers, which a lossy cache might store exactly by luck. `fill="bits"` makes
rows of arbitrary bits instead (NaN, infinities, subnormals and minus zero among them), and `fill="edges"` rows of
values at which casts go wrong (`kvspec.cast_edges`); both are known by their bytes, each in its own head and
sequence, as key or as value. What is to be cast, and rows of edges, begin with legible digits: many values are cast
to one, and no two rows may be alike afterwards. Rows of few arbitrary numbers may be alike by chance: of one f16
number, one pair in 2^16.

Rows of `fill="alike"` are a, b, c, d and again a: equal in all sequences and caches and at many positions, as where
many requests begin with the same words. Rows of the other fills in `ALIKE` are so in a part, and unlike all others
in the rest: `keys_alike` in keys alone, `values_alike` in values alone, `first_alike` and `last_alike` in one head,
`but_key_alike` and `but_value_alike` in all but the key, or the value, of the last head. They are known by their
content, no longer by their place, so what shares rows by content is exercised.

Attention is tried on `fill="random"`, numbers between -2 and 2 that every dtype holds exactly; and shown on
`fill="even"`: keys are zeros, so that every score is 0, and values are the number of the row, 1 for a, 2 for b, so
that the output is the mean of the numbers of the rows seen. Queries are random too, so large that one row
outweighs all others (`huge`), so small that none does (`tiny`), or `zero`. RoPE is shown on `fill="ramp"`, whose
keys are 1, 2, 3, ... from element to element, and whose values are those of `even`.

Rows of a cache in a form (`kvspec.forms`) are legible and random in another way: they are rows that the form
keeps to the bit, see `kvspec.form_rows`. Rows of other fills are rounded there; they are known by lying within
the step of what was handed in.

Numbers of 8 digits stay what they are if an engine cuts them to bf16 or TF32. So `fill="fine"` and queries that
are `fine` have as many digits as their dtype. Long caches are asked about with needles (ATTN-44): `fill="hay"` has
values that are next to nothing, legible numbers times 2^-24. With `fill="needle"` the first row of a call and the
last, and rows with serials at powers of two and one before, from 16 on, have one large element each; the others
are hay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from kvspec import form_rows
from kvspec.cast_edges import EDGES
from kvspec.forms import Form, Owed, owed
from kvspec.geometry import DTYPES, Array, Config, forms
from kvspec.operations.table import Operation, argument, overridden
from kvspec.row_contents import Contents
from kvspec.serials import BASE, ILLEGIBLE, POISONED, ZEROED, largest, letters, places


def who(kind: str, heads: Array, sequences: Array) -> Array:
    """Give the digit for keys or values, head and sequence, both modulo 8."""
    return np.asarray((kind == "v") + 2 * (heads % 8) + 16 * (sequences % 8))


def spell(kind: str, heads: Array, sequences: Array, serial: Array, dim: int) -> Array:
    """Give the numbers of the rows in f32, the head dimension last; arguments broadcast."""
    numbers = (_digits(who(kind, heads, sequences), serial, dim) + 1).astype(np.float32)
    ranges = _ranges(kind, heads, sequences, dim)
    return numbers if ranges is None else (numbers + BEYOND[ranges]) * SCALE[ranges]


def _digits(who_: Array, serial: Array, dim: int) -> Array:
    """Give the digits 0..127 of the rows, whatever range they lie in."""
    serial = serial % largest(dim)
    low, mid, high = serial % BASE, serial // BASE % BASE, serial // BASE**2
    check = (3 * who_ + 5 * low + 7 * mid + 11 * high) % BASE
    if dim == 1:
        cells = [(low + 37) % BASE]
    elif dim == 2:
        cells = [low, (who_ + 5 * low) % BASE]
    else:
        cells = [check, low, who_, mid, high][:dim]
    return _along(cells, dim)


def _along(cells: list[Array], dim: int) -> Array:
    code = np.stack(np.broadcast_arrays(*cells), -1)
    return np.tile(code, -(-dim // len(cells)))[..., :dim]


RANGES = 16
"""Ranges that a digit may lie in: 1..128, 129..256, 258..512 by twos and so on, each also negated."""

BEYOND = np.array([BASE * (r > 1) for r in range(RANGES)], np.float32)
"""What is added to a digit first, in each range."""

SCALE = np.array([(-1) ** r * 2 ** max(0, r // 2 - 1) for r in range(RANGES)], np.float32)
"""What it is multiplied by then. The largest number is 2^14, and no number has more than 8 binary digits."""


def _ranges(kind: str, heads: Array, sequences: Array, dim: int) -> Array | None:
    """Give the range of each element; None where all lie in the first. A single element tells by its range keys,
    which are negative, from values, and heads."""
    if dim == 1:
        return np.asarray(who("v" if kind == "k" else "k", heads, sequences) % RANGES)[..., None]
    if heads.max(initial=0) < 8 and sequences.max(initial=0) < 8:
        return None
    places = heads // 8, sequences // 8
    return _along([places[cell % 2] // RANGES ** (cell // 2) % RANGES for cell in range(min(dim, 5))], dim)


def _owners(batch: int, heads: int) -> tuple[Array, Array]:
    return np.arange(heads)[None, :, None], np.arange(batch)[:, None, None]


LARGEST_TABLE = 1 << 20
"""Most elements of rows kept for reuse."""


@lru_cache(maxsize=256)
def _table(kind: str, batch: int, heads: int, dim: int, dtype: str, size: int) -> Array:
    table = _spelled(kind, batch, heads, np.arange(size), dim, dtype)
    table.flags.writeable = False
    return table


def _spelled(kind: str, batch: int, heads: int, serials: Array, dim: int, dtype: str) -> Array:
    return spell(kind, *_owners(batch, heads), serials[None, None, :], dim).astype(DTYPES[dtype])


def _sizes(config: Config, kind: str, n: int) -> tuple[int, ...]:
    """Give batch, heads, rows, dim; none below 0, because a trace may name a config that no cache opens."""
    return tuple(max(0, size) for size in config.shape(kind, n))


def legible(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows `[batch, kv_heads, n, dim]` with serials first..first+n-1; `kind` is "k" or "v"."""
    batch, heads, _, dim = config.shape(kind, n)
    if min(batch, heads, n, dim) <= 0:
        return np.empty(_sizes(config, kind, n), DTYPES[config.dtype])
    if (form := form_of(config, kind)) is not None:
        owners = int(kind == "v"), *_owners(batch, heads)
        spelled = form_rows.spell(form, owners, np.arange(first, first + n)[None, None], dim)
        return spelled.astype(DTYPES[config.dtype])
    size = max(64, 1 << (first + n - 1).bit_length())
    if batch * heads * dim * size > LARGEST_TABLE:
        return _spelled(kind, batch, heads, np.arange(first, first + n), dim, config.dtype)
    return _table(kind, batch, heads, dim, config.dtype, size)[:, :, first : first + n].copy()


def form_of(config: Config, kind: str) -> Form | None:
    """Give the form of keys or of values; None for plain rows."""
    both = forms(config)
    return None if both is None else both["kv".index(kind)]


def bits(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of arbitrary bits, a function of serial, kind, sequence, head and element alone."""
    sizes, dtype = _sizes(config, kind, n), DTYPES[config.dtype]
    words = _words if prod(sizes) <= FEW_WORDS else _words.__wrapped__
    return words(kind, first, *sizes).astype(f"u{dtype.itemsize}").view(dtype)


FEW_WORDS = 1 << 13
"""Most words of rows of arbitrary bits kept for reuse: small traces make the same rows again and again."""


@lru_cache(maxsize=512)
def _words(kind: str, first: int, batch: int, heads: int, n: int, dim: int) -> Array:
    """Words `[batch, heads, n, dim]` of 64 bits each (splitmix64)."""
    owner = who(kind, *_owners(batch, heads)).astype(np.uint64)
    serial = np.arange(first, first + n, dtype=np.uint64)[None, None, :, None]
    beyond, others = ((at // 8).astype(np.uint64)[..., None] for at in _owners(batch, heads))
    x: Array = (serial << np.uint64(20)) + (beyond << np.uint64(44)) + (others << np.uint64(54))
    x = x + (owner[..., None] << np.uint64(12)) + np.arange(dim, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x + np.uint64(0x9E3779B97F4A7C15)) if shift == 30 else x
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x


def edges(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of edges; twelve rows of two heads and dimensions 8 and 6 hold all of them."""
    batch, heads, n, dim = _sizes(config, kind, n)
    owners = _owners(batch, heads)
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
    made = np.zeros(_sizes(config, kind, n), np.float32) + (serials if kind == "v" else np.float32(0))
    return made.astype(DTYPES[config.dtype])


def ramp(config: Config, kind: str, first: int, n: int) -> Array:
    """Keys of 1, 2, 3, ... whatever the row; values as of `even`."""
    if kind == "v":
        return even(config, kind, first, n)
    batch, heads, n, dim = _sizes(config, kind, n)
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


REPEATED = 4
"""The number of different rows among rows that are alike: a, b, c and d."""


Part = Callable[[str, Array, int], Array]
"""Tells of each head, by the letter of keys or values, the heads and their number, whether it is alike."""

ALIKE: dict[str, Part] = {
    "alike": lambda kind, head, heads: head >= 0,
    "keys_alike": lambda kind, head, heads: (head >= 0) & (kind == "k"),
    "values_alike": lambda kind, head, heads: (head >= 0) & (kind == "v"),
    "first_alike": lambda kind, head, heads: head == 0,
    "last_alike": lambda kind, head, heads: head == heads - 1,
    "but_key_alike": lambda kind, head, heads: (head < heads - 1) | (kind == "v"),
    "but_value_alike": lambda kind, head, heads: (head < heads - 1) | (kind == "k"),
}
"""The parts of rows that are alike, by fill."""


def alike(config: Config, kind: str, first: int, n: int, part: Part) -> Array:
    """Legible rows; in the heads that are alike a, b, c, d, a, b and so on, whatever rows came before."""
    own, heads = legible(config, kind, first, n), max(0, config.kv_heads)
    repeated = legible(config, kind, 0, REPEATED).take(np.arange(own.shape[2]) % REPEATED, axis=2)
    return np.where(part(kind, np.arange(heads), heads)[:, None, None], repeated, own)


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
    "even": even,
    "ramp": ramp,
    **{name: partial(alike, part=part) for name, part in ALIKE.items()},
}
"""Functions that make rows, by an operation's `fill`."""


EXACT = ("legible", "random", "needle", "even", *ALIKE)
"""The fills whose rows are kept to the bit in a form; there they are all made of codes."""


def _with_tail(form: Form, plain: Array, tail: Array) -> Array:
    """Rows that a form tells apart, with a tail of other numbers: the last group if there are several; where scales
    are given, the last element."""
    dim = plain.shape[-1]
    start = dim - 1 if form.given else dim - (form.group or dim)
    if form.given and plain.size:
        plain = (plain.astype(np.float32) * np.float32(16 * min(form.given))).astype(plain.dtype)
    if start > 0:
        plain[..., start:] = tail[..., start:]
    return plain


def _tiny(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows of the smallest numbers of their dtype: so small that most scales which are taken from them are 0."""
    dtype = DTYPES[config.dtype]
    least = np.uint32 if dtype.itemsize == 4 else np.uint16
    return (bits(config.changed(dtype="f32"), kind, first, n).view(np.uint32) % 8 + 1).astype(least).view(dtype)


def _far(row: Array, read: Array) -> float:
    """How far all of a row is from what was read."""
    with np.errstate(all="ignore"):
        off = np.abs(row - read.astype(np.float64))
        return float(np.nan_to_num(off, posinf=0).sum())


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


FEW_BYTES = 1 << 12
"""Most bytes of rows whose serials are kept: traces begin alike, so the same few rows are read again and again."""


def read(array: Array, kind: str) -> Array:
    """Read the serials of legible rows `[B, H, n, dim]`, as whole numbers `[B, H, n]`; not to be written on."""
    if array.nbytes > FEW_BYTES:
        return _read(array, kind)
    return _read_again(array.tobytes(), array.dtype, array.shape, kind)


@lru_cache(maxsize=4096)
def _read_again(raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], kind: str) -> Array:
    serials = _read(np.frombuffer(raw, dtype).reshape(shape), kind)
    serials.flags.writeable = False
    return serials


def _read(array: Array, kind: str) -> Array:
    batch, heads, n, dim = array.shape
    if not array.size:
        return np.full((batch, heads, n), ILLEGIBLE)
    owners = _owners(batch, heads)
    ranges = _ranges(kind, *owners, dim)
    with np.errstate(invalid="ignore"):
        values = array.astype(np.float32)
        plain = values if ranges is None else values / SCALE[ranges] - BEYOND[ranges]
        digits = np.where((plain >= 1) & (plain <= BASE), plain, 0).astype(np.int64) - 1
    serial = _serial(digits, dim)
    right = (spell(kind, *owners, serial, dim) == values).all(-1)
    out = np.where(right, serial, ILLEGIBLE)
    out = np.where((values == 0).all(-1), ZEROED, out)
    return np.where(np.isnan(values).all(-1), POISONED, out)


def _serial(digits: Array, dim: int) -> Array:
    if dim == 1:
        return np.asarray((digits[..., 0] - 37) % BASE)
    if dim == 2:
        return np.maximum(digits[..., 0], 0)
    parts = [digits[..., i] for i in (1, 3, 4) if i < dim]
    return np.asarray(np.sum([np.maximum(p, 0) * BASE**i for i, p in enumerate(parts)], axis=0))


Place = tuple[str, int, int]
"""Where a row is handed in: `k` or `v`, head, sequence."""


class Name(NamedTuple):
    """Whose a row is, and which."""

    kind: str
    """`k` or `v`."""
    head: int
    sequence: int
    serial: int


def name(row: Array) -> Name | None:
    """Read the name of a legible row `[dim]`, wherever it lies; None for any other."""
    with np.errstate(invalid="ignore", over="ignore"):
        values = row.astype(np.float32)
        plain = values[:5, None] / SCALE - BEYOND
    inside = (plain >= 1) & (plain <= BASE)
    if not inside.any(1).all():
        return None
    ranges = inside.argmax(1)
    digits = np.take_along_axis(plain, ranges[:, None], 1)[:, 0].astype(np.int64) - 1
    found = _named(digits, ranges, len(row))
    head, sequence, serial = map(np.asarray, found[1:])
    return found if (spell(found.kind, head, sequence, serial, len(row)) == values).all() else None


def _named(digits: Array, ranges: Array, dim: int) -> Name:
    who_ = ranges[0] ^ 1 if dim == 1 else (digits[1] - 5 * digits[0]) % BASE if dim == 2 else digits[2]
    far = [0, 0]
    for cell, each in enumerate(ranges if dim > 1 else ()):
        far[cell % 2] += int(each) * RANGES ** (cell // 2)
    head, sequence = int(who_) // 2 % 8 + 8 * far[0], int(who_) // 16 + 8 * far[1]
    return Name("kv"[int(who_) % 2], head, sequence, int(_serial(digits, dim)))


class SerialBook:
    """Hands out the rows of one trace, a new serial to each position, and reads them back."""

    def __init__(self, any_nan: bool = False) -> None:
        self.next, self.any_nan = 0, any_nan
        """The next serial; and whether any NaN is as good as another, as in caches in a form."""
        self.kept: dict[int, tuple[Array, Array]] | None = None
        """Key and value row `[B, H, dim]` of each serial, in the cache's dtype, if needed later."""
        self.by_value: set[int] = set()
        """Serials of rows known by their values alone, because their keys are zeros or were rotated by RoPE."""
        self.settled: set[int] = set()
        """Serials of rows that were cast: their NaN may have any bits."""
        self._known: dict[bytes, dict[Place, int]] = {}
        self._cast: dict[bytes, dict[Place, int]] = {}
        self._rounded: list[tuple[str, int, Owed]] = []
        """Rows that a form rounds: keys or values, the first serial, and what may be read of them."""
        self._times = 1
        """How often rows may have been rounded."""
        self._unread: list[Callable[[], None]] = []
        self._contents: Contents | None = None
        self._made_to = 0
        """The serial behind those of the rows that were made last."""

    @property
    def contents(self) -> Contents | None:
        """The names of all rows taken so far, by their content; None where rows are not kept."""
        if self._contents is None and self.kept is not None:
            self._contents = Contents(self.kept, self.settled, self.by_value, settled)
        if self._contents is not None:
            self._contents.enter(self.next)
        return self._contents

    @contextmanager
    def handed_in(self) -> Iterator[None]:
        """Meanwhile the rows that were made last have names too, though it is not known yet if they are taken."""
        if self.contents is not None:
            self.contents.enter(self._made_to)
        yield
        if self._contents is not None:
            self._contents.leave(self.next)

    def named(self, serials: Iterable[int], sequence: int = 0) -> list[int]:
        """The names of rows of a sequence of a batch: equal rows have one name, where rows are kept."""
        return self.contents.named(serials, sequence) if self.contents else list(serials)

    def rows(self, op: Operation, config: Config, n: int, ahead: int = 0) -> tuple[Array, Array]:
        """Make n key and value rows for an operation on a cache of this config, `ahead` serials on."""
        shape, first = overridden(config, op), self.next + ahead
        self._made_to = first + n
        self._rounded = [each for each in self._rounded if each[1] < first]  # others were refused
        n_values = op.get("values")
        for refused in (self.settled, self.by_value):
            refused.difference_update(range(first, first + n) if refused else ())
        keys, values = (
            self._made(op, config, shape, kind, first, rows)
            for kind, rows in (("k", n), ("v", n if n_values is None else n_values))
        )
        exact = forms(config) is None or argument(op, "fill") in EXACT
        if self.kept is not None:
            for serial in range(first, first + n):
                self.kept.pop(serial, None)  # rows that were refused had these serials
            if keys.shape[:3] == values.shape[:3] and exact:
                self._keep(first, config.dtype, keys, values)
        return keys, values

    def of_serials(self, config: Config, serials: list[int]) -> tuple[Array, Array]:
        """Make legible key and value rows with these serials, which need not follow each other."""
        shape, each = config.changed(batch=1), np.array(serials, np.int64)
        keys, values = (
            _spelled(kind, 1, shape.kv_heads, each, shape.shape(kind, 0)[3], shape.dtype) for kind in "kv"
        )
        return keys, values

    def _keep(self, first: int, dtype: str, *rows: Array) -> None:
        """Keep copies of rows as the cache will hold them: a scribble overwrites what was handed in."""
        keys, values = (a.copy() if a.dtype == DTYPES[dtype] else cast(a, dtype) for a in rows)
        assert self.kept is not None
        self.kept |= {first + i: (keys[:, :, i], values[:, :, i]) for i in range(keys.shape[2])}

    def _made(self, op: Operation, config: Config, shape: Config, kind: str, first: int, n: int) -> Array:
        fill = argument(op, "fill")
        if (form := form_of(shape, kind)) is not None:
            return self._in_form(form, fill, shape, kind, first, n, config.dtype)
        made = MAKE[fill](shape, kind, first, n)
        if fill in ALIKE:
            return made
        if fill in ("even", "ramp") and kind == "k":
            self.by_value |= set(range(first, first + n))
        elif fill != "legible":
            if fill == "edges" or shape.dtype != config.dtype:
                digits = signed(shape, first + n)
                made[..., :digits] = legible(shape, kind, first, n)[..., :digits]
            if made.dtype != DTYPES[config.dtype]:
                self.settled |= set(range(first, first + n))
            self._unread.append(partial(self._remember, kind, first, config.dtype, made.copy()))
        return made

    def _in_form(self, form: Form, fill: str, shape: Config, kind: str, first: int, n: int, dtype: str) -> Array:
        """Make rows for a cache in a form, and note them in its dtype: those that it keeps to the bit, or those
        that it rounds."""
        zeros = fill == "even" and kind == "k"
        if fill in ("even", "ramp") and kind == "k":
            self.by_value |= set(range(first, first + n))
        if fill in EXACT or (fill == "ramp" and kind == "v"):
            made = MAKE[fill if fill in (*ALIKE, "random") or zeros else "legible"](shape, kind, first, n)
            self._unread.append(partial(self._remember, kind, first, dtype, made.copy()))
            return made
        made = (_tiny if fill == "hay" else MAKE[fill])(shape, kind, first, n)
        if fill in ("bits", "edges", "hay"):
            made = _with_tail(form, fine(shape, kind, first, n), made)
        self._rounded.append((kind, first, owed(form, made if made.dtype == DTYPES[dtype] else cast(made, dtype))))
        return made

    def stacked(self, op: Operation, config: Config, n: int, layers: int) -> tuple[Array, Array]:
        """Make n rows for each layer, `[layers, H, n, dim]`; the first layer has the first serials."""
        if layers == 1:
            return self.rows(op, config, n)
        each = [self.rows(op, config, n, layer * n) for layer in range(layers)]
        keys, values = zip(*each, strict=True)
        return np.concatenate(keys), np.concatenate(values)

    def rounded_again(self) -> None:
        """Note that rows of a cache in a form were rounded once more, those that were loaded: by ROW-18 each may be
        a step further off."""
        self._times += 1

    def took(self, n: int) -> None:
        """Use up n serials, because the cache accepted their rows."""
        self.next += n

    def _remember(self, kind: str, first: int, dtype: str, made: Array) -> None:
        """Remember these rows, in the cache's dtype, to recognise them later."""
        known, rows = self._known, made
        if made.dtype != DTYPES[dtype]:
            known, rows = self._cast, cast(made, dtype)
        for sequence, head, n in np.ndindex(rows.shape[:3]):
            places = known.setdefault(rows[sequence, head, n].tobytes(), {})
            places.setdefault((kind, head, sequence), first + n)

    def _recall(self) -> None:
        """Remember all rows that were made: few traces ask, and a long one has many rows."""
        for remember in self._unread:
            remember()
        self._unread.clear()

    def alike(self, a: Array, b: Array) -> bool:
        """Tell whether two rows are equal to the bit. In rows that were cast, rotated or encoded a NaN is any."""
        self._recall()
        settled_ = settled(a).tobytes()
        changed = self.any_nan or settled_ in self._cast or (bool(self.by_value) and a.tobytes() not in self._known)
        return a.tobytes() == b.tobytes() or (changed and settled_ == settled(b).tobytes())

    def places(self, row: Array) -> Mapping[Place, int]:
        """Give the serials of a row that is known by its bytes, by the places where it was handed in."""
        return self._known.get(row.tobytes()) or self._cast.get(settled(row).tobytes()) or self._near(row)

    def _serial(self, row: Array, place: Place, otherwise: int) -> int:
        """Give the serial of a row that is known by its bytes, or by lying near one, and was handed in at this
        place."""
        known = self._known.get(row.tobytes()) or self._cast.get(settled(row).tobytes())
        if known or not self._rounded:
            return (known or {}).get(place, otherwise)
        near = self._nearest(row, place)
        return otherwise if near == ILLEGIBLE else near

    def _near(self, row: Array) -> dict[Place, int]:
        """Give the serials of rows in a form that may be read as this, by the places where they were handed in."""
        heads = {(kind, h, s) for kind, _, made in self._rounded for s, h in np.ndindex(made.rows.shape[:2])}
        found = ((place, self._nearest(row, place)) for place in heads)
        return {place: serial for place, serial in found if serial >= 0}

    def _nearest(self, row: Array, place: Place) -> int:
        """Give the serial of the row in a form, handed in at this place, that may be read as this; of several
        that of the nearest. ILLEGIBLE if there is none."""
        kind, head, sequence = place
        near = list[tuple[float, int]]()
        for part, first, made in self._rounded:
            if part != kind or made.rows.shape[-1] != row.shape[-1] or made.rows.shape[0] <= sequence:
                continue
            if head < made.rows.shape[1]:
                here = made.at(sequence, head)
                here = here._replace(step=here.step * self._times * (1 + 2.0**-8 * (self._times > 1)))
                near += (
                    (_far(here.rows[n], row), first + int(n)) for n in np.flatnonzero(here.allows(row).all(-1))
                )
        return min(near)[1] if near else ILLEGIBLE

    def lost(self, array: Array, kind: str) -> bool:
        """Tell whether a row `[B, H, n, dim]` is there that was handed in nowhere, and is neither zeros nor NaN."""
        illegible = np.argwhere(self.read(array, kind) == ILLEGIBLE)
        rows = (array[tuple(at)] for at in illegible)
        return any(not self.places(row) and name(row) is None for row in rows)

    def read(self, array: Array, kind: str) -> Array:
        """Read the serials `[B, H, n]` of rows made by this book; ILLEGIBLE or POISONED for others."""
        out = read(array, kind)
        self._recall()
        if self._known or self._cast or self._rounded:
            out = out.copy()
            for at in zip(*np.nonzero(out < 0), strict=True):
                sequence, head = map(int, at[:2])
                out[at] = self._serial(array[at], (kind, head, sequence), int(out[at]))
        return out


def describe(array: Array, kind: str, place: tuple[int, int, int], book: SerialBook | None = None) -> str:
    """Describe the row at (sequence, head, slot) in words: its letter, and its head and sequence."""
    serial = int((book.read if book else read)(array, kind)[place])
    if serial >= 0:
        return f"row {letters(serial)}"
    if serial in (POISONED, ZEROED):
        return "an unwritten row (NaN)" if serial == POISONED else "a row of zeros"
    row = np.asarray(array[place])
    handed_in = [Name(*place, serial) for place, serial in (book.places(row) if book else {}).items()]
    for found in filter(None, [*handed_in, name(row)]):
        which = {"k": "key", "v": "value"}[found.kind]
        return f"the {which} of row {letters(found.serial)} of head {found.head}, sequence {found.sequence}"
    return "a row that was never appended"
