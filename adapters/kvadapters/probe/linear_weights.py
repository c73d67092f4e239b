"""Chooses the weights of a linear layer. Two heads show its state: in one all rows weigh the same, in the other
older rows weigh less. Two more show the window of its convolution in the same way."""

from __future__ import annotations

import math

import numpy as np

from kvadapters.probe.arrays import Array
from kvadapters.probe.eight_bits import eight_bits
from kvadapters.probe.layout import CONSTANT, HEAD_DIM, Layout
from kvadapters.probe.linear import Head, Linear
from kvadapters.probe.views import CONVOLUTION

RISE, GATE = 32.0, 32.0
"""Factors of rows and of gates: so large that what is above 0 passes `silu` as it is. What may be below 0 passes it
twice, with both signs: `silu(x) - silu(-x)` is x."""
BALLAST = 16.0
"""The factor at the 1 of a row, which keeps a head's norm almost constant."""
KEEPS, FADES, FORGETS = eight_bits(-40.0), eight_bits(math.log(0.125 / math.log(2))), eight_bits(5.0)
"""The logarithms that say how fast a head's state fades: not at all, by an eighth a token, at once."""
HALVES = math.log(2)
"""By this much a row's weight falls with each token in the convolution of the last head."""


def decay(log: float) -> float:
    """Give by how much the logarithm of a row's weight falls with each token."""
    return math.exp(log) * math.log(2)


def heads(layout: Layout) -> tuple[Head, Head, Head, Head]:
    """Describe the heads: the state and its distances, the convolution and its distances."""
    once = (HEAD_DIM * layout.kv_heads) ** -0.5  # queries are normed, then divided by the root of their width
    state = once * layout.ids**-0.5
    return (
        Head(True, decay(KEEPS), state),
        Head(True, decay(FADES), state),
        Head(False, 0.0, 1.0),
        Head(False, HALVES, 2.0 ** (CONVOLUTION.size - 1)),
    )


def linear(layout: Layout, number: int, value: Array) -> Linear:
    """Choose a linear layer whose rows are made by `value`."""
    block = layout.blocks.index((number, CONVOLUTION))
    spread = _spread(layout)
    return Linear(
        layout.layers[number],
        CONVOLUTION,
        block,
        value,
        spread,
        _out(layout, (number, block), len(spread)),
        heads(layout),
        layout.ids,
        eight_bits(BALLAST / len(spread) ** 0.5),
        eight_bits(GATE * layout.norm(number) / CONSTANT),
    )


def _spread(layout: Layout) -> Array:
    """Make of a row what a head holds: larger, the 1 as ballast, and the fingerprint with both signs."""
    row = np.eye(HEAD_DIM * layout.kv_heads, dtype=np.float32) * RISE
    row[layout.ids] *= BALLAST
    return np.concatenate([row, -row[layout.ids + 1 :]])


def _out(layout: Layout, blocks: tuple[int, int], width: int) -> Array:
    """Write what the heads give into the two blocks, [hidden, 4 * width]."""
    out = np.zeros((layout.hidden, 4 * width), np.float32)
    ids, prints = np.arange(layout.ids), np.arange(layout.prints)
    for at, number in zip((0, 2 * width), blocks, strict=True):
        block = layout.block(number)
        for part, total, first in zip((block.seen, block.distance), block.sums, (at, at + width), strict=True):
            out[part.start + ids, first + ids] = 1 / GATE
            out[total, first + layout.ids] = layout.ballast / BALLAST / GATE
        signed = at + layout.ids + 1 + prints
        out[block.prints.start + prints, signed] = 1 / GATE
        out[block.prints.start + prints, signed + layout.prints] = -1 / GATE
    return out


def rows(layout: Layout) -> int:
    """Count the rows of a layer's projections: of queries, keys, values and gates, and what the heads give."""
    row = HEAD_DIM * layout.kv_heads
    return 4 * row + 3 * 4 * (row + layout.prints)
