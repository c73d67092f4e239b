"""Traffic: the bytes of device memory that every implementation of an operation must move.

A rate is these bytes over the operation's time. So one rule measures all caches: a cache that moves rows twice is
slower, not busier. The rules:

- Every input element is read once, and every output element is written once.
- Rows count, `Config.row_bytes` a position. Lengths, indices and masks, a few bytes beside them, do not count.
- Rows that need not move do not count: a rewind has no traffic at all.

Each operation is compared with one of the limits of the device: how fast it reads, writes or copies, or how fast
bytes come from its memory to the host's. A device whose memory is the host's does not have the last one; there a
download is a copy. The rates of copies and downloads count both directions, so `bytes` is what was read and what
was written together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from kvspec.geometry import DTYPES, Config

Limit = Literal["read", "write", "copy", "download"]

LIMITS: tuple[Limit, ...] = get_args(Limit)
"""The limits of a device's memory; the last one only of a device that has memory of its own."""

QUERY = DTYPES["f32"].itemsize
"""Bytes of an element of queries and of attention's output: both are f32."""


class Traffic(NamedTuple):
    """Bytes read and written, floating-point operations, and the limit to compare with."""

    read: int
    written: int
    limit: Limit | None = "copy"
    flops: int = 0

    @property
    def bytes(self) -> int:
        """Bytes read and written together."""
        return self.read + self.written


NOTHING = Traffic(0, 0, None)
"""Operations that change lengths alone: rewind, rollback, reset."""


def moved(config: Config, rows: int) -> Traffic:
    """Count rows copied once: `rows * row_bytes` read, and as many written.

    Snapshots of n rows are this, and their restoration. Rows that go into pages are this as well: block tables do
    not count.
    """
    return Traffic(rows * config.row_bytes, rows * config.row_bytes)


def appended(config: Config, rows: int) -> Traffic:
    """Count rows handed in and kept: read in their dtype, written as they are kept, which is another number of
    bytes where the cache has a form.

    Rows that a ring moves to make room for a chunk (RING-24, RING-25) are not counted: with room to spare it moves
    none.
    """
    return Traffic(rows * config.changed(form=None).row_bytes, rows * config.row_bytes)


def downloaded(config: Config, rows: int) -> Traffic:
    """Count rows that come to the host: histories and views of n rows, or n rows gathered from pages. The W - 1
    rows of a wrapped ring are put in order. Rows are read as they are kept, and written in their dtype."""
    return Traffic(rows * config.row_bytes, rows * config.changed(form=None).row_bytes, "download")


def grown(config: Config, live: int, n: int) -> Traffic:
    """Count an append of n rows that needs new storage: the live rows move as well."""
    return moved(config, live + n)


def cast(config: Config, source: str, n: int) -> Traffic:
    """Count n rows cast into a buffer: read in the source dtype, written in the buffer's."""
    return Traffic(n * config.changed(dtype=source).row_bytes, n * config.row_bytes)


def layered(config: Config, n: int, sequences: int = 1) -> Traffic:
    """n rows in every layer of a store, of each of some sequences: an append, a step of a batch, a scatter.

    Of a bucketed cache it counts n rows of an encoder, and n past rows that come into the handles of another bound
    or to the host. The latter is a download. Padding is not counted: no query sees it, and only caches at level
    storage must write it.
    """
    assert config.layers is not None
    return moved(config, config.layers * sequences * n)


def zeroed(config: Config) -> Traffic:
    """Count zeroing a store: `layers * max_len * row_bytes` written, nothing read."""
    assert config.layers is not None and config.max_len is not None
    return Traffic(0, config.layers * config.max_len * config.row_bytes, "write")


def forked(config: Config, partly: int, n: int) -> Traffic:
    """n rows appended to a new sequence that shares the rows of another; `partly` of these lie in its last page,
    which is not full.

    That page is copied before it is written (PAGE-19): `partly` rows move, and the new ones. Pages that are full
    stay where they are, however many: a fork by itself moves no row.
    """
    return moved(config, partly + n)


def asked(config: Config, heads: int, n: int, rows: int) -> Traffic:
    """n queries of each of `heads` heads, for each sequence of the batch, over `rows` rows of it. All heads of a
    group share their rows and read them once.

    Queries `[batch, heads, n, k_dim]` and rows are read, `[batch, heads, n, v_dim]` is written. Every query takes a
    product with every key and adds every value to its sum: two operations an element each. The softmax between is
    left out; it is one operation for `k_dim + v_dim` others.
    """
    each = config.batch * heads * n
    read = each * config.k_dim * QUERY + rows * config.row_bytes
    flops = 2 * each * rows * (config.k_dim + config.v_dim)
    return Traffic(read, each * config.v_dim * QUERY, "read", flops)


def attended(config: Config, heads: int, n: int, rows: int) -> Traffic:
    """n rows appended, then n queries of each head over `rows` rows, the new ones among them: `asked`, and the new
    rows once more in and out. RoPE turns keys and queries in the same pass."""
    queried, new = asked(config, heads, n, rows), appended(config, n)
    return queried._replace(read=queried.read + new.read, written=queried.written + new.written)


def total(parts: Sequence[Traffic]) -> Traffic:
    """Add up the traffic of sequences that are worked on together, at least one; the limit is that of the first."""
    read, written, flops = (
        sum(counts) for counts in zip(*((p.read, p.written, p.flops) for p in parts), strict=True)
    )
    return Traffic(read, written, parts[0].limit, flops)


def stacked(config: Config) -> Config:
    """Count the rows of all layers as one batch, for a graph that runs all layers."""
    assert config.layers is not None
    return config.changed(batch=config.layers * config.batch)


def turned(config: Config, n: int) -> Traffic:
    """Count n key rows rotated (RoPE) into new ones: read once, written once. Angles do not count."""
    keys = n * config.changed(v_dim=0).row_bytes
    return Traffic(keys, keys)
