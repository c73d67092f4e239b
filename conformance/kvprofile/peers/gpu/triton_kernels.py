"""Triton kernels: attention with the rows of a cache split over programs, the join of the splits, and an append.

Rows lie in place, `[B, kv_heads, rows, dim]`, where PAGE is 0; else in pages `[pages, kv_heads, PAGE, dim]`, which
a table lists for each sequence. `outer` is the stride of sequences or pages, `head` that of heads; rows have no
gaps. Arguments have no types: Triton reads annotations as its own.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _offsets(at, b, table, outer, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    """Find rows by their positions, before the offset of their head."""
    if PAGE == 0:
        return b.to(tl.int64) * outer + at.to(tl.int64) * WIDTH
    page = tl.load(table + at // PAGE)
    return page.to(tl.int64) * outer + (at % PAGE) * WIDTH


@triton.jit
def _dot(a, b):
    """Multiply without rounding f32 to TF32."""
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _asked(head, n, length, GROUP: tl.constexpr, ASKED: tl.constexpr):
    """Find the lines of the queries of a tile, which of them are real, and how many rows each sees."""
    m = tl.program_id(0) * ASKED + tl.arange(0, ASKED)
    i = tl.minimum(m // GROUP, n - 1)
    line = (head * GROUP + m % GROUP).to(tl.int64) * n + i
    return line, m < GROUP * n, length - n + i + 1


@triton.jit
def _query(queries, line, real, d, K: tl.constexpr):
    """Read these elements of the queries of a tile."""
    return tl.load(queries + line[:, None] * K + d[None, :], mask=real[:, None] & (d[None, :] < K), other=0.0)


@triton.jit
def _key(row, d, K: tl.constexpr):
    """Read these elements of the keys of a tile, turned."""
    return tl.load(row[None, :] + d[:, None], mask=d[:, None] < K, other=0.0)


@triton.jit
def _weighed(score, top, total):
    """Turn scores into weights below the new maximum. Give them, the factor of what was added before, the maximum
    and the sum of all weights."""
    higher = tl.maximum(top, tl.max(score, 1))
    base = tl.where(higher == float("-inf"), 0.0, higher)
    weight = tl.exp2(score - base[:, None])
    shrunk = tl.exp2(top - base)
    return weight, shrunk, higher, total * shrunk + tl.sum(weight, 1)


@triton.jit
def _put(out, sums, line, real, top, total, found, V: tl.constexpr, VALUE: tl.constexpr, SPLIT: tl.constexpr):
    """Write the outputs of a tile; with SPLIT the logarithms of its sums too."""
    e, total = tl.arange(0, VALUE), tl.where(total == 0.0, 1.0, total)  # a split may have no rows
    found /= total[:, None]
    if SPLIT:
        line = line * tl.num_programs(2) + tl.program_id(2)
        tl.store(sums + line, top + tl.log2(total), mask=real)
    kept = real[:, None] & (e[None, :] < V)
    tl.store(out + line[:, None] * V + e[None, :], found.to(out.dtype.element_ty), mask=kept)


@triton.jit
def attend(
    queries,  # [B, kv_heads * GROUP, n, K]
    keys,
    values,
    tables,  # [B, longest] of i32
    lengths,  # [B] of i32: the rows that the last query sees
    out,  # [B, kv_heads * GROUP, n, V]; with SPLIT f32 and [.., n, splits, V]
    sums,  # with SPLIT the logarithms of sums, [B, kv_heads * GROUP, n, splits]
    scale,  # log2(e) / sqrt(K): weights are powers of two
    n,
    kv_heads,
    longest,
    key_outer,
    key_head,
    value_outer,
    value_head,
    GROUP: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    MAIN: tl.constexpr,  # a key is read in two parts whose widths are powers of two
    REST: tl.constexpr,  # or 0
    VALUE: tl.constexpr,  # V, rounded up to a power of two
    PAGE: tl.constexpr,
    SPLIT: tl.constexpr,
    ASKED: tl.constexpr,  # queries of a tile: heads of a group side by side, query after query
    ROWS: tl.constexpr,  # rows of a tile
):
    """Attend with a tile of queries to one split of the rows of their key-value head."""
    b, head = tl.program_id(1) // kv_heads, tl.program_id(1) % kv_heads
    split, splits, length = tl.program_id(2), tl.num_programs(2), tl.load(lengths + b)
    line, real, seen = _asked(b * kv_heads + head, n, length, GROUP, ASKED)
    d, e, r = tl.arange(0, MAIN), tl.arange(0, VALUE), tl.arange(0, ROWS)
    q = _query(queries, line, real, d, K)
    if REST > 0:
        f = MAIN + tl.arange(0, REST)
        q_rest = _query(queries, line, real, f, K)

    each = tl.cdiv(tl.cdiv(length, splits), ROWS) * ROWS
    end = tl.minimum(tl.minimum(split * each + each, length), tl.max(seen, 0))
    keys += head.to(tl.int64) * key_head
    values += head.to(tl.int64) * value_head
    table = tables + b * longest

    top = tl.full([ASKED], float("-inf"), tl.float32)
    total = tl.zeros([ASKED], tl.float32)
    found = tl.zeros([ASKED, VALUE], tl.float32)
    for first in range(split * each, end, ROWS):
        at = tl.minimum(first + r, end - 1)  # rows behind the end are read as the last one, and weigh nothing
        row = keys + _offsets(at, b, table, key_outer, PAGE, K)
        score = _dot(q, _key(row, d, K))
        if REST > 0:
            score += _dot(q_rest, _key(row, f, K))
        score = tl.where((first + r)[None, :] < tl.minimum(seen, end)[:, None], score * scale, float("-inf"))

        weight, shrunk, top, total = _weighed(score, top, total)
        row = values + _offsets(at, b, table, value_outer, PAGE, V)
        v = tl.load(row[:, None] + e[None, :], mask=e[None, :] < V, other=0.0)
        found = found * shrunk[:, None] + _dot(weight.to(v.dtype), v)
    _put(out, sums, line, real, top, total, found, V, VALUE, SPLIT)


@triton.jit
def join(
    parts,  # [lines, splits, V] of f32
    sums,  # [lines, splits]
    out,  # [lines, V]
    splits,
    V: tl.constexpr,
    MOST: tl.constexpr,  # splits, at most
    WIDTH: tl.constexpr,  # elements of a program
):
    """Add the splits of one query, each by the weight of its sum."""
    line, s, e = tl.program_id(0).to(tl.int64), tl.arange(0, MOST), tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    some = s < splits
    total = tl.load(sums + line * splits + s, mask=some, other=float("-inf"))
    weight = tl.exp2(total - tl.max(total, 0))
    weight /= tl.sum(weight, 0)
    kept = some[:, None] & (e[None, :] < V)
    part = tl.load(parts + (line * splits + s)[:, None] * V + e[None, :], mask=kept, other=0.0)
    tl.store(out + line * V + e, tl.sum(part * weight[:, None], 0).to(out.dtype.element_ty), mask=e < V)


@triton.jit
def append(
    new_keys,  # [B, kv_heads, n, K], the last rows of their sequences
    new_values,
    keys,
    values,
    tables,
    lengths,
    n,
    longest,
    key_outer,
    key_head,
    value_outer,
    value_head,
    K: tl.constexpr,
    V: tl.constexpr,
    PAGE: tl.constexpr,
    WIDTH: tl.constexpr,  # a power of two, at least K and V
):
    """Write one new row of a key-value head, keys and values."""
    i, head, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at, table, d = tl.load(lengths + b) - n + i, tables + b * longest, tl.arange(0, WIDTH)
    line = ((b * tl.num_programs(1) + head) * n + i).to(tl.int64)
    key = _offsets(at, b, table, key_outer, PAGE, K) + head.to(tl.int64) * key_head
    value = _offsets(at, b, table, value_outer, PAGE, V) + head.to(tl.int64) * value_head
    tl.store(keys + key + d, tl.load(new_keys + line * K + d, mask=d < K), mask=d < K)
    tl.store(values + value + d, tl.load(new_values + line * V + d, mask=d < V), mask=d < V)
