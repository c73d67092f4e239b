"""Chooses the weights of a probe. All have at most eight significant bits, so that they are exact in bf16 and
f16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kvadapters.probe import heads
from kvadapters.probe.architecture import Architecture
from kvadapters.probe.arrays import Array
from kvadapters.probe.eight_bits import eight_bits
from kvadapters.probe.layout import CONSTANT, HEAD_DIM, TOKEN, Layout
from kvadapters.probe.linear import Linear
from kvadapters.probe.linear_weights import linear
from kvadapters.probe.network import Latent, Layer, Network, Rope
from kvadapters.probe.views import View

BALLAST = 16.0
"""The factor at the sums of weights, and at the constant of a latent row, where a norm follows."""
ONE_LOGIT, NEXT_LOGIT, WEIGHT_LOGIT, PRINT_LOGIT = 20.0, 24.0, 8.0, 2.0
"""Logits of the constant, of the next content id, of a weight of 1, and of a fingerprint of 1. Half of the
constant's is above all weights, so that both of its ids are always among the likeliest."""
SEED = 31


def network(architecture: Architecture, layout: Layout, sensitive: bool = False) -> Network:
    """Choose all weights. A `sensitive` output answers by content ids alone; see `reader.tokens`."""
    factor = layout.hidden**0.5 if architecture.scaled_embedding else 1.0
    embedding = np.zeros((layout.vocabulary, layout.hidden), np.float32)
    ids = np.arange(layout.ids)
    embedding[ids, ids] = eight_bits(TOKEN / factor)
    embedding[: layout.ids, layout.constant] = eight_bits(CONSTANT / factor)
    return Network(
        layout.heads,
        layout.kv_heads,
        architecture.eps,
        embedding,
        factor,
        [_layer(architecture, layout, number) for number in range(len(layout.layers))],
        _sensitive(layout) if sensitive else _output(layout),
    )


def _layer(architecture: Architecture, layout: Layout, number: int) -> Layer | Linear:
    if layout.layers[number].kind == "linear":
        return linear(layout, number, _values(layout, number))
    rope = _rope(architecture, layout.layers[number])
    query, key = heads.projections(architecture, layout, number, rope)
    values = _values(layout, number)
    gain = None
    if architecture.out_norm:
        gain = eight_bits(layout.ballast * (2 / layout.hidden) ** 0.5)
    layer = Layer(
        layout.layers[number],
        query,
        key,
        values,
        _out(layout, number),
        architecture.scale,
        rope,
        gains=heads.gains(architecture, layout) if architecture.norms == "before" else None,
        normed_after=architecture.norms == "after" and rope is not None,
        out_gain=gain,
        sink=architecture.sink,
    )
    return _with_latent_rows(layer, layout) if architecture.latent else layer


def _rope(architecture: Architecture, view: View) -> Rope | None:
    theta = architecture.theta[view.kind]
    return None if theta is None else Rope(theta, HEAD_DIM, architecture.neighbours)


def _values(layout: Layout, number: int) -> Array:
    """Choose values: the token one-hot, a 1, and the fingerprint of what the row's own query saw a layer below."""
    values = np.zeros((layout.kv_heads * HEAD_DIM, layout.hidden), np.float32)
    norm, ids = layout.norm(number), np.arange(layout.ids)
    values[ids, ids] = eight_bits(norm / TOKEN)
    values[layout.ids, layout.constant] = eight_bits(norm / CONSTANT)
    if number:
        below, prints = layout.block(number - 1), values[layout.ids + 1 :]
        prints[:, below.seen] = eight_bits(norm) * signs(layout)
        turned = np.roll(np.eye(layout.prints), 1, axis=1)
        prints[:, below.prints] = eight_bits(norm) * turned  # with it a fingerprint reaches down to the first layer
    return values


def signs(layout: Layout) -> Array:
    """Give the projection from what was seen to a fingerprint, +-1, [prints, ids]."""
    return np.random.default_rng(SEED).choice([-1.0, 1.0], (layout.prints, layout.ids)).astype(np.float32)


def _out(layout: Layout, number: int) -> Array:
    """Write what the heads give into the layer's block."""
    out = np.zeros((layout.hidden, layout.heads * HEAD_DIM), np.float32)
    block = layout.block(number)
    for element in range(layout.kv_heads * HEAD_DIM):
        head, dim = divmod(element, HEAD_DIM)
        seen = head * layout.group * HEAD_DIM + dim
        if element < layout.ids:
            out[block.seen.start + element, seen] = out[block.distance.start + element, seen + HEAD_DIM] = 1
            if layout.match:
                out[block.match.start + element, seen + 2 * HEAD_DIM] = 1
        elif element == layout.ids:
            out[block.sums[0], seen] = out[block.sums[1], seen + HEAD_DIM] = layout.ballast
        else:
            out[block.prints.start + element - layout.ids - 1, seen] = 1
    return out


SMALLER = 0.25
"""How much smaller fingerprints are in a latent row, so that they hardly change its norm."""


def _with_latent_rows(layer: Layer, layout: Layout) -> Layer:
    """Turn values into latent rows, one for all heads, and what makes values of them: each head takes its part."""
    latent, rank = layer.value.copy(), len(layer.value)
    latent[layout.ids] *= BALLAST
    latent[layout.ids + 1 :] *= SMALLER
    norm = eight_bits(((1 + BALLAST**2) / rank) ** 0.5)
    back = np.full(rank, norm, np.float32)
    back[layout.ids] /= BALLAST
    back[layout.ids + 1 :] /= SMALLER
    up = np.zeros((layout.heads * HEAD_DIM, rank), np.float32)
    for head in range(layout.heads):
        part = np.arange(HEAD_DIM) + head // layout.group * HEAD_DIM
        up[head * HEAD_DIM + np.arange(HEAD_DIM), part] = back[part]
    return replace(layer, value=latent, latent=Latent(up))


def _output(layout: Layout) -> Array:
    """Choose the output. Content id t is followed by t + 1, and every dimension of a block has an id."""
    output = np.zeros((layout.vocabulary, layout.hidden), np.float32)
    norm, ids = layout.norm(len(layout.layers)), np.arange(layout.ids)
    output[(ids + 1) % layout.ids, ids] = eight_bits(NEXT_LOGIT * norm / TOKEN)
    output[layout.one, layout.constant] = eight_bits(ONE_LOGIT * norm / CONSTANT)
    output[layout.one + 1, layout.constant] = output[layout.one, layout.constant] / 2
    blocks = np.arange(layout.ids + 1, layout.used)
    output[layout.id_of(0) + blocks, blocks] = eight_bits(WEIGHT_LOGIT * norm)
    for number in range(len(layout.blocks)):
        block = layout.block(number)
        for total in block.sums:
            output[layout.id_of(total), total] /= layout.ballast
        prints = np.arange(block.prints.start, block.prints.stop)
        output[layout.id_of(0) + prints, prints] *= PRINT_LOGIT / WEIGHT_LOGIT
    return output


SEEN_SHARE, PRINT_SHARE, AGAIN_SHARE = 40.0, 8.0, 640.0


def _sensitive(layout: Layout) -> Array:
    """Choose an output whose content ids answer to everything at once: random projections of all blocks. An id that
    was seen is made unlikely, or a text would soon repeat one."""
    output = np.zeros((layout.vocabulary, layout.hidden), np.float32)
    draw, norm, ids = np.random.default_rng(SEED), layout.norm(len(layout.layers)), np.arange(layout.ids)
    for number in range(len(layout.blocks)):
        block = layout.block(number)
        shown = ((block.seen, SEEN_SHARE), (block.distance, SEEN_SHARE), (block.match, SEEN_SHARE))
        for part, share in (*shown, (block.prints, PRINT_SHARE)):
            output[: layout.ids, part] = share * norm * draw.standard_normal((layout.ids, part.stop - part.start))
        output[ids, block.seen.start + ids] -= AGAIN_SHARE * norm
    mantissa, exponent = np.frexp(output)
    rounded: Array = np.ldexp(np.round(mantissa * 256), exponent - 8)
    return rounded
