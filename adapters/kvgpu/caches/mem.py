"""Planning memory on a device: the bytes of slots, and how many sequences fit."""

from __future__ import annotations

from kvgpu.memory import row_forms
from kvgpu.memory.cache_rows import Slots
from kvgpu.memory.layout import Geometry
from kvspec.geometry import Config
from kvspec.refusals import common as refusals

RESERVED = 3_500_000_000
"""Bytes left for other uses, by default."""

SEQUENCES = 32
"""Largest number of sequences, by default."""

TOP = 2**64 - 1
"""The largest product; larger ones become this."""

Plan = tuple[int, int]
"""Bytes held afterwards, and at most meanwhile."""


def planned(store: Slots, slots: int) -> Plan:
    """The bytes held when the buffer has this many slots. Another number takes another buffer; the old one is kept
    until the new one is filled."""
    then = slots * store.geometry.row_bytes + (store.config.beside_bytes if slots else 0)
    old = store.slots * store.geometry.row_bytes
    return (then, then) if slots == store.slots else (then, then + old)


def held(store: Slots) -> int:
    """Bytes of the rows that are allocated."""
    return 0 if store.rows is None else store.rows.nbytes + store.residual.nbytes


def fit(kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
    """The largest batch, at least 1, of a store of this config beside the reserve; and whether even one sequence
    fits."""
    if kind != "store" or config.layers is None or config.max_len is None:
        raise refusals.fit_kind("MEM-17", kind)
    bound = SEQUENCES if most is None else most
    if bound <= 0:
        raise refusals.fit_most("MEM-16", bound)
    row_forms.demand(config)
    each, left = _sequence(config), free - (RESERVED if reserve is None else reserve)
    count = bound if each == 0 else left // each if left > 0 else 0
    return max(1, min(count, bound)), count > 0


def _sequence(config: Config) -> int:
    """Count the bytes of one sequence, at most `TOP`."""
    assert config.layers is not None and config.max_len is not None
    product = 1
    for size in (Geometry.of(config.changed(batch=1)).row_bytes, config.max_len, config.layers):
        product = min(TOP, product * size)
    return product
