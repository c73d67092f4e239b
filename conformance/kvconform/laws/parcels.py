"""The law of parcels."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config
from kvspec.operations.table import caches_with
from kvspec.parcels import ORDERS

law = partial(register, compare=difference)


@law("MOVE-14", needs=("parcels",), kinds=caches_with("restore"))
def pack_unpack(draw: st.DrawFn, config: Config) -> Sides:
    """Packed, changed, carried in some order and unpacked, or left alone."""
    before, offset = start(draw)
    changes = draw(st.lists(st.sampled_from(("append 1", "append 3", "view", "free")), max_size=3))
    carried = f"carry p q axes={draw(st.sampled_from(ORDERS))} page={draw(st.integers(0, offset + 1))}"
    return Sides(trace(config, *before, "pack p", *changes, carried, "unpack q"), trace(config, *before))
