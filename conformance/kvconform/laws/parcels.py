"""The laws of parcels."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import layers
from kvconform.laws import layers as laws_of_layers
from kvconform.laws.caches import difference, start, trace
from kvconform.laws.law import Sides, register
from kvconform.laws.law import trace as law_trace
from kvconform.laws.layers import END
from kvspec.geometry import Config, encoded_layers
from kvspec.operations.table import caches_with
from kvspec.operations.texts import ORDERS

law = partial(register, compare=difference)


@law("MOVE-14", needs=("parcels",), kinds=caches_with("restore"))
def pack_unpack(draw: st.DrawFn, config: Config) -> Sides:
    """Packed, changed, carried in some order and unpacked, or left alone."""
    before, offset = start(draw)
    changes = draw(st.lists(st.sampled_from(("append 1", "append 3", "view", "free")), max_size=3))
    carried = f"carry p q axes={draw(st.sampled_from(ORDERS))} page={draw(st.integers(0, offset + 1))}"
    return Sides(trace(config, *before, "pack p", *changes, carried, "unpack q"), trace(config, *before))


@law("MOVE-14", needs=("layers", "parcels"), configs=layers.configs, compare=laws_of_layers.difference)
def pack_unpack_layers(draw: st.DrawFn, config: Config) -> Sides:
    """Layers packed, changed, carried in some order and unpacked, or left alone."""
    encodes = ["encode 2 fill=legible"] * bool(encoded_layers(config))
    before = [*encodes, *(f"append {n}" for n in draw(st.lists(st.integers(1, 5), max_size=3)))]
    changes = draw(st.lists(st.sampled_from(("append 1", "append 3", "rewind 0", "free")), max_size=3))
    axes, page = draw(st.sampled_from(ORDERS)), draw(st.integers(0, 6))
    turned = ",".join(map(str, draw(st.permutations(range(len((config.of or "").split(",")))))))
    carried = f"carry p q axes={axes} page={page} layers={turned}"
    moved = [*before, "pack p", *changes, carried, "unpack q", *END]
    return Sides(law_trace("layers", config, *moved), law_trace("layers", config, *before, *END))
