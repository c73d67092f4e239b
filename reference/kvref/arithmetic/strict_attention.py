"""Strict attention: softmax(q k / sqrt(dim)) v with every rounding fixed, so that one result is right to the bit.

All numbers are f32; `fma` rounds once. Rows are dealt with by tiles of `TILE` consecutive positions, tile t holding
positions `t * TILE` to `t * TILE + TILE - 1` whatever the query and wherever the rows lie:

1. The query is scaled: q[d] * `scale(k_dim)`, rounded.
2. A row's score is the chain s = fma(k[d], q[d], s) for d = 0, 1, ... from 0; where a mask adds to it, then
   fma(added, LOG2E, s). A row that the query may not see has the score minus infinity, and no arithmetic is done on
   it.
3. A tile's maximum m is the largest of its scores, NaN where one is. If it is minus infinity the tile is left out.
4. A row's weight is p = exp2(s - m); the tile's sum l is a tree over all TILE weights (`tree`).
5. The tile's value is, for each element, the chain a = fma(p, v, a) from 0 over its rows in position order, those
   of score minus infinity left out.
6. Tiles are joined in order by `joined`, from (minus infinity, 0, 0); tiles count from the first position that the
   query's windows leave to its last. A split is a run of `ceil(tiles / splits)` of them. Each split is joined by
   itself, then all splits are joined in order by the same `joined`. A learned sink is one more tile, behind the
   last one of the first split. Its maximum is the sink times LOG2E, rounded; its sum is 1 and its values are 0.
   Where rows are cut into parts, all this is done for each part, as if a mask hid the rows of the others. The
   results of the parts are joined in order by `joined`. A sink is in the first part.
7. The output is a / l, rounded; zeros where nothing was joined.

So the result depends only on the rows seen and their positions. It does not depend on storage, on the number of
queries asked together, or on rows that are not seen. Here all arrays are f64 and hold f32 numbers, unless they
say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kvspec.geometry import Array

TILE = 32
"""Positions of a tile."""

LOG2E = np.float32(1.4426950408889634)
"""Log2 of e: scores are counted in powers of 2."""

SHIFT = np.float32(12582912.0)
"""1.5 times 2^23: adding it and subtracting it again rounds a number to the nearest whole one, ties to even."""

LEAST = np.float32(-125.0)
"""Smaller powers of 2 count as zero: below this, results would be subnormal."""

COEFFICIENTS = tuple(
    np.float32(c)
    for c in (
        1.5403530393381610e-4,
        1.3333558146428443e-3,
        9.6181291076284770e-3,
        5.5504108664821580e-2,
        2.4022650695910072e-1,
        6.9314718055994531e-1,
        1.0,
    )
)
"""Coefficients of the polynomial for 2^f, |f| <= 1/2: ln(2)^i / i!, from the sixth power down."""


def scale(k_dim: int) -> np.float32:
    """The factor of queries: log2(e) / sqrt(k_dim), computed in f64, rounded to f32."""
    return np.float32(1.4426950408889634 / float(np.sqrt(np.float64(k_dim))))


TIE, BELOW = np.int64(1 << 28), np.int64((1 << 29) - 1)
"""The pattern of the f64 digits beyond those of f32, in a number halfway between two f32 numbers; and a mask for
them."""

NORMAL = 2.0**-126
"""The least normal f32 number: smaller numbers have fewer digits."""


Number = Array | np.float64


def fma(a: Array, b: Array, c: Number) -> Array:
    """a * b + c, rounded once; arrays broadcast.

    The product is exact in f64: 48 digits of 53, and no exponent too small. Rounding the sum to f64 and then to
    f32 is rounding once, except where f32 rounds to the other side. That is halfway between two f32 numbers, or
    among the subnormal ones, whose halves lie elsewhere. There the f64 sum is made odd, towards the exact sum.
    """
    return _once(a * b, c)


def _once(product: Array, c: Number) -> Array:
    """An exact product + c, rounded once."""
    total = np.asarray(product + c)
    twice = _twice(total)
    if twice.any():
        parts = (np.broadcast_to(x, total.shape)[twice] for x in (product, c))
        total[twice] = _odd(total[twice], *parts)
    return _f32(total)


def _twice(total: Array) -> Array:
    """Where rounding an f64 sum to f32 may be rounding twice; a sum of 0 is exact."""
    twice = (total.view(np.int64) & BELOW) == TIE
    small = np.abs(total) < NORMAL
    return np.asarray(twice | (small & (total != 0)) if small.any() else twice)


def _odd(total: Array, product: Array, c: Number) -> Array:
    """The f64 sum rounded to odd: f32 numbers are then never mistaken (Boldo and Melquiond, 2008)."""
    error, bits = _error(total, product, c), total.view(np.int64)
    inexact = np.isfinite(error) & (error != 0) & ((bits & 1) == 0)
    towards = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, bits + towards, bits).view(np.float64)


def _error(total: Array, product: Array, c: Number) -> Array:
    """What rounding a sum to f64 left out; NaN where the sum is not finite (Knuth)."""
    back = total - product
    return np.asarray((product - (total - back)) + (c - back))


def _f32(x: Array) -> Array:
    """Round to f32. A sum, difference, product or quotient of f32 numbers was rounded to f64 before. The result is
    the same as rounding once, subnormal numbers included (Figueroa, 1995)."""
    return np.asarray(x, np.float32).astype(np.float64)


def exp2(x: Array) -> Array:
    """2^x for x <= 0. It is 0 below `LEAST`, and NaN for NaN. Else it is a polynomial in the distance to the
    nearest whole number."""
    far = ~(x >= LEAST)
    near = np.where(far, 0.0, x)
    whole = _f32(near + SHIFT) - SHIFT
    rest, found = near - whole, np.asarray(COEFFICIENTS[0], np.float64)
    for c in COEFFICIENTS[1:]:
        found = fma(found, rest, np.float64(c))
    return np.where(far, np.where(np.isnan(x), x, 0.0), np.ldexp(found, whole.astype(np.int32)))


def tree(x: Array) -> Array:
    """The sum of the last axis, `TILE` long, halved until one is left: element i and element i + half, rounded."""
    x = x.astype(np.float32)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0].astype(np.float64)


class Part(NamedTuple):
    """What attention to some rows gives: the maximum of their scores, the sum of their weights, their weighted
    values."""

    m: Array
    l: Array  # noqa: E741 - the letters of the chapter
    a: Array


def joined(parts: Part) -> Part:
    """Parts in a row, the last axis of `m` and `l` and the last but one of `a`, joined one after another.

    Each makes l = fma(2^(its m - m), its l, 2^(m before - m) * l before), and `a` alike; m is the larger of both. A
    part with the maximum minus infinity leaves what was joined before as it is. Maxima and powers are computed for
    all parts at once, which leaves two roundings for each step of the chain.
    """
    m = np.maximum.accumulate(parts.m, axis=-1)
    before = np.concatenate([np.full_like(m[..., :1], -np.inf), m[..., :-1]], -1)
    mine, its = exp2(_difference(before, m)), exp2(_difference(parts.m, m))
    gone = parts.m == -np.inf
    more = its[..., None] * np.concatenate([parts.l[..., None], parts.a], -1)
    more, mine = (np.moveaxis(x, -2, 0) for x in (more, np.where(gone, 1.0, mine)[..., None]))
    more = np.where(np.moveaxis(gone, -1, 0)[..., None], -0.0, more)  # adding it keeps even minus 0
    last = _chained(len(more), lambda part: more[part], np.zeros(more.shape[1:]), mine)
    return Part(m[..., -1], last[..., 0], last[..., 1:])


TOGETHER, MOST = 16, 1 << 14
"""Links of a chain that are looked at together, and the elements that these have at most."""


def _chained(links: int, products: Callable[[slice], Array], x: Array, factors: Array | None = None) -> Array:
    """x = products[i] + x for each i, rounded once; with factors products[i] + rounded(factors[i] * x). `products`
    gives those of a part of the links."""
    together = max(1, min(TOGETHER, MOST // max(1, x.size)))
    for first in range(0, links, together):
        part = slice(first, first + together)
        x = _links(products(part), x, None if factors is None else factors[part])
    return x


def _links(products: Array, start: Array, factors: Array | None) -> Array:
    """Some links of the chain; step by step if a sum among them is rounded twice, and not exact."""
    links = len(products)
    totals, sums = np.empty_like(products), np.empty((links + 1, *start.shape))
    sums[0], rounded = start, np.empty(start.shape, np.float32)  # arrays that are made anew each time take longer
    for i, (product, total, before, after) in enumerate(zip(products, totals, sums, sums[1:], strict=False)):
        if factors is not None:
            before[...] = _scaled(before, factors, i)
        np.add(product, before, out=total)
        rounded[...] = total
        after[...] = rounded
    twice = _twice(totals)
    if not twice.any() or not _error(totals[twice], products[twice], sums[:links][twice]).any():
        return np.asarray(sums[-1])
    x = start
    for i, product in enumerate(products):
        x = _once(product, _scaled(x, factors, i))
    return x


def _scaled(x: Array, factors: Array | None, link: int) -> Array:
    """A sum as a link of the chain takes it over."""
    return x if factors is None else _f32(factors[link] * x)


def _difference(x: Array, m: Array) -> Array:
    """x - m, rounded; minus infinity stays minus infinity, also when m is minus infinity."""
    return np.asarray(np.where(x == -np.inf, -np.inf, _f32(x - m)))


class Asked(NamedTuple):
    """What each query may see. `added` `[B, heads, L, K]` is added to its scores, minus infinity where it may not
    see. Its tiles and splits are counted in the positions `low` to `high - 1`, `[L]` each."""

    added: Array
    low: Array
    high: Array


Sinks = tuple[float, ...] | None
"""The learned sink of each query head, if there are any."""


def attend(
    queries: Array,
    keys: Array,
    values: Array,
    first: int,
    asked: Asked,
    splits: int = 1,
    sinks: Sinks = None,
    parts: tuple[int, ...] = (),
) -> Array:
    """Outputs `[B, heads, L, v_dim]` in f32 of queries `[B, heads, L, k_dim]` in f32 over rows `[B, kv_heads, K,
    dim]`, which stand in the order of their positions from `first` on. Query head h reads kv head
    h // (heads / kv_heads)."""
    if not keys.shape[2]:
        return np.zeros((*queries.shape[:3], values.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        found = [
            _part((queries, keys, values), first, asked._replace(added=added), splits, None if i else sinks)
            for i, added in enumerate(_cut(asked.added, parts))
        ]
        whole = joined(_stacked(found)) if parts else found[0]
        nothing = (whole.m == -np.inf)[..., None]
        output = np.where(nothing, 0.0, whole.a / np.where(nothing, 1.0, whole.l[..., None]))
        return output.reshape(*queries.shape[:3], values.shape[-1]).astype(np.float32)


def _cut(added: Array, parts: tuple[int, ...]) -> Iterator[Array]:
    """What is added to scores in each part: minus infinity beyond its rows."""
    if not parts:
        yield added
        return
    column, rows = np.arange(added.shape[-1]), added.shape[-1]
    for begin, end in pairwise((0, *parts, rows)):
        yield np.where((begin <= column) & (column < end), added, -np.inf)


def _part(arrays: tuple[Array, Array, Array], first: int, asked: Asked, splits: int, sinks: Sinks) -> Part:
    """What attention to the rows of a part comes to."""
    tiles = _tiles(*arrays, first % TILE, asked.added)
    owner = _splits(asked, first // TILE, tiles.m.shape[-1], splits)
    if splits == 1:
        whole = _with_sinks(joined(_mine(tiles, owner == 0)), sinks)
        return whole._replace(a=whole.a + 0.0)  # as if it were joined to nothing: minus 0 becomes 0
    seen = np.unique(owner[owner >= 0])
    each = {s: joined(_mine(tiles, owner == s)) for s in (seen if len(seen) else [0])}
    return joined(_stacked([_with_sinks(part, None if s else sinks) for s, part in each.items()]))


def _with_sinks(part: Part, sinks: Sinks) -> Part:
    """What a part comes to with a tile behind it that is nothing but each head's sink."""
    if sinks is None:
        return part
    m = _f32(np.array(sinks) * np.float64(LOG2E)).reshape(*part.m.shape[1:3], 1)
    alone = Part(np.broadcast_to(m, part.m.shape), np.ones(part.l.shape), np.zeros(part.a.shape))
    return joined(_stacked([part, alone]))


def _mine(tiles: Part, mine: Array) -> Part:
    """The tiles of a split, `[L, tiles]`, from the first that some query has to the last; of others nothing."""
    some = np.flatnonzero(mine.any(0))
    span = slice(some[0], some[-1] + 1) if len(some) else slice(0, 1)
    m = np.where(mine, tiles.m, -np.inf)
    return Part(m[..., span], tiles.l[..., span], tiles.a[..., span, :])


def _stacked(parts: list[Part]) -> Part:
    """Several parts in a row."""
    m, sums, values = zip(*parts, strict=True)
    return Part(np.stack(m, -1), np.stack(sums, -1), np.stack(values, -2))


def _splits(asked: Asked, first_tile: int, tiles: int, splits: int) -> Array:
    """The split that each tile belongs to, `[L, tiles]`; -1 where the query sees nothing in the tile."""
    begin, end = asked.low // TILE, -(-asked.high // TILE)
    each = np.maximum(-(-(end - begin) // splits), 1)
    tile = first_tile + np.arange(tiles)
    owner = (tile[None] - begin[:, None]) // each[:, None]
    return np.where((tile[None] >= begin[:, None]) & (tile[None] < end[:, None]), owner, -1)


def _tiles(queries: Array, keys: Array, values: Array, before: int, added: Array) -> Part:
    """Each tile by itself, the first row in place `before` of the first one: m and l `[B, kv_heads, group, L,
    tiles]`, a `[B, kv_heads, group, L, tiles, v_dim]`."""
    batch, heads, length, _ = queries.shape
    kv_heads, rows = keys.shape[1:3]
    shape = batch, kv_heads, heads // kv_heads, length
    scores = _scores(queries.reshape(*shape, -1), keys[:, :, None, None], added.reshape(*shape, rows))
    scores = _tiled(scores, -1, before, -np.inf)
    m = scores.max(-1)
    weights = exp2(_difference(scores, m[..., None]))
    return Part(
        m, tree(weights), _weighted(scores != -np.inf, weights, _tiled(values[:, :, None, None], -2, before, 0.0))
    )


def _tiled(array: Array, axis: int, before: int, rest: float) -> Array:
    """Split the axis of rows into tiles and the rows of each tile; `rest` fills places without a row."""
    *front, rows = array.shape[: array.ndim + axis + 1]
    behind = array.shape[array.ndim + axis + 1 :]
    whole = np.full((*front, -(-(before + rows) // TILE) * TILE, *behind), np.float64(rest))
    np.moveaxis(whole, axis, 0)[before : before + rows] = np.moveaxis(array, axis, 0)
    return whole.reshape(*front, -1, TILE, *behind)


def _scores(queries: Array, keys: Array, added: Array) -> Array:
    """The score of each row, `[B, kv_heads, group, L, K]`."""
    dim = queries.shape[-1]
    k, q = keys.astype(np.float64), _f32(queries.astype(np.float64) * np.float64(scale(dim)))
    k, q = np.moveaxis(k, -1, 0), np.moveaxis(q, -1, 0)[..., None]
    s = _chained(dim, lambda part: k[part] * q[part], np.zeros(added.shape))
    if added.any():
        s = np.where(added == -np.inf, -np.inf, fma(added, np.asarray(LOG2E, np.float64), s))
    return s


def _weighted(seen: Array, weights: Array, v: Array) -> Array:
    """Sum over each tile's rows in order, without the rows that the query does not see."""
    rows = np.flatnonzero(seen.any(tuple(range(seen.ndim - 1))))
    p, shown, values = (np.moveaxis(x, -2, 0) for x in (weights[..., None], seen[..., None], v))
    whole = bool(seen.all())

    def products(part: slice) -> Array:
        each = p[rows[part]] * values[rows[part]]
        return each if whole else np.where(shown[rows[part]], each, -0.0)  # adding it keeps even minus 0

    return _chained(len(rows), products, np.zeros((*weights.shape[:-1], v.shape[-1])))
