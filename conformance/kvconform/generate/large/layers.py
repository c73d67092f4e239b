"""Large traces of drafts of several ways on in layers: many drafts, rows and layers, and the heads of released
models."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kvconform.generate.large.attention import HEADS, REAL_WIDTHS
from kvconform.generate.large.recipe import NARROW, Recipe, chunks, some, unseen

VIEWS = ("full", "window:3", "chunk:3", "sinks:1:2", "conv:3", "state")
"""What layers see of which there are many."""

MOST = 64
"""Numbers in a list."""


def _branches(n: int, random: Random) -> Iterator[str]:
    """Hand in n drafts, as many at once as there may be. Most hang on the newest, so that ways are long."""
    on = [i - 1 if random.randrange(32) else random.randrange(-1, i) for i in range(n)]
    for part in (on[i : i + MOST] for i in range(0, n, MOST)):
        yield f"branch {len(part)} on={','.join(map(str, part))}"


def _drafts(b: int, random: Random) -> str:
    """Hand in b drafts, and keep a way to one of the last."""
    drafts = "; ".join(_branches(b, random))
    of = f"full,window:{some(b, random, 3)},state"
    kept = max(0, b - random.choice((1, 2)))
    return f"layers {NARROW} of={of} layers=3: append 2; {drafts}; branch 1; settle {kept}; append 1"


def _behind(b: int, random: Random) -> str:
    """Reach b - 1 rows unseen. Then drafts pass the boundary of rows and windows on two ways; keep the longer."""
    window, chunk = (max(2, some(b, random, 4)) for _ in range(2))
    reach = unseen(*chunks(b - 2, random), "append 1") if b > 1 else ""
    of = f"full,window:{window},chunk:{chunk},conv:3"
    drafts = "branch 4 on=-1,-1,1,0; branch 1 on=2; settle 4"
    return f"layers {NARROW} of={of} layers=4: {reach}{drafts}; append 1; append 2"


def _layers(b: int, random: Random) -> str:
    """Drafts on b layers."""
    of = ",".join(random.choice(VIEWS) for _ in range(b))
    return f"layers {NARROW} of={of} layers={b}: append 3; branch 3 on=-1,-1,1; settle 2; append 1"


def _wide(b: int, random: Random) -> str:
    """Drafts with the heads of a released model; some are refused."""
    dtype, v_dim = random.choice(("f32", "f16", "bf16")), dict(REAL_WIDTHS)[b]
    start = (
        f"layers kv_heads={HEADS[b]} k_dim={b} v_dim={v_dim} dtype={dtype} of=full,window:4,share:0,conv:2 layers=3"
    )
    refused = f"settle 9; branch 1 on=9; branch 2 v_dim={v_dim + 1}"
    drafts = f"branch 4 on=-1,0,-1,2; {refused}; branch 1 on=0; branch 2 on=1,3"  # none of the second call is kept
    return f"{start}: append 5; {drafts}; settle 6; settle 0; append 2"


def _refused(b: int, random: Random) -> str:
    """Reach b rows unseen in layers that can go back. What is refused then changes neither these nor the drafts."""
    reach = unseen(*chunks(b, random))
    refused = f"branch 1 on=9; settle 7; branch 1 v_dim=3; append 1 v_dim=3; rewind {b + 9}"
    start = f"layers {NARROW} of=full,chunk:{2 * b + 9},share:0 layers=2"
    return f"{start}: {reach}branch 2 on=-1,-1; {refused}; branch 1 on=1; settle 2; settle 0; append 1"


RECIPES = (
    Recipe("layers", "drafts at once", _drafts, most=257),
    Recipe("layers", "rows before drafts", _behind, most=2049),
    Recipe("layers", "layers with drafts", _layers, most=65),
    Recipe("layers", "drafts of wide heads", _wide, at=tuple(HEADS)),
    Recipe("layers", "rows before what is refused", _refused, most=1025),
)
