"""Large traces of padded blocks whose columns ask: many rows, and the heads of released models."""

from __future__ import annotations

from random import Random

from kvconform.generate.large.attention import HEADS, REAL_WIDTHS
from kvconform.generate.large.recipe import NARROW, Recipe, some, unseen

MOST_HEADS = 64
"""Heads of queries that a trace has at most."""


def _padded(random: Random) -> str:
    return f"batch=2 padding={random.choice(('left', 'right'))}"


def _asking(b: int, random: Random) -> str:
    """Two sequences, one of b rows that all ask; then both ask behind them."""
    few, heads = random.choice((0, 1, 3)), random.choice((1, 2))
    block = f"attendblock {few},{b} fill=needle heads={heads}"
    return f"ragged {NARROW} {_padded(random)}: {block}; attendblock 1,2 fill=needle; attendblock 2,1 fill=needle"


def _asked(b: int, random: Random) -> str:
    """Columns that ask about b rows of one sequence, at times over a window, and about few of another."""
    window = random.choice(("", "", f" window={some(b, random, 100)}"))
    reach = unseen(f"feed 1,{max(1, b - 2)} fill=needle", "feed 1,0")
    asks = f"attendblock 1,2 fill=needle heads={random.choice((1, 2))}; attendblock 1,1 fill=needle"
    return f"ragged {NARROW} {_padded(random)}{window}: {reach}{asks}"


def _headed(b: int, random: Random) -> str:
    """Columns that ask in the heads of a released model."""
    heads, dtype = HEADS[b], random.choice(("f32", "f16", "bf16"))
    sizes = f"kv_heads={heads} k_dim={b} v_dim={dict(REAL_WIDTHS)[b]} dtype={dtype}"
    more = heads if heads > MOST_HEADS // 2 else 2 * heads
    refused = f"attendblock 2,1 heads={heads + 1}"
    asks = f"attendblock 3,17 heads={more}; {refused}; attendblock 3,2 fill=in_runs; attendblock 1,1"
    return f"ragged {sizes} {_padded(random)}: {asks}"


RECIPES = (
    Recipe("ragged", "rows of a block that asks", _asking, most=512),
    Recipe("ragged", "rows that a block asks about", _asked, most=4097),
    Recipe("ragged", "blocks of wide heads", _headed, at=tuple(HEADS)),
)
