"""mlx-lm: attention over a `KVCache`, by the functions that its models call, with its rotary embeddings.

A causal mask is the word that mlx-lm's caches give, of which the kernel makes one. Others are handed in as arrays.
Rows are turned at positions that follow each other, by what `initialize_rope` makes. LongRoPE takes its long list
for every position. Not claimed: turning rows that are handed in, since positions are no array here. What is said of
the cache itself is judged of `mlx-growing`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from kvadapters.attending import attending, scores
from kvadapters.engines.mlx.caches import LENGTH, SAID, stepping
from kvadapters.rope_words import rope_words
from kvadapters.update import from_update
from kvspec.contract import Attention, Rope
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Array
from kvspec.masks import CAUSAL
from kvspec.rope.scaling import LongRoPE, YaRN

try:
    import mlx.core as mx
    from mlx_lm.models import cache as caches
    from mlx_lm.models.base import scaled_dot_product_attention
    from mlx_lm.models.rope_utils import SuScaledRoPE, initialize_rope
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


def attend(cache: Any, queries: Any, keys: Any, values: Any, how: Attention) -> Any:
    """What a model does once its cache has the rows."""
    n, rows = queries.shape[2], keys.shape[2]
    mask = cache.make_mask(n, window_size=None, return_array=False)
    if how.through != CAUSAL:
        mask = mx.array(scores(how.through, n, rows))
    sinks = None if how.sinks is None else mx.array(how.sinks)
    scale = queries.shape[3] ** -0.5 if how.scale is None else how.scale
    return scaled_dot_product_attention(queries, keys, values, cache, scale, mask, sinks)


@lru_cache(maxsize=64)
def embedding(rope: Rope, dims: int) -> Any:
    """The rotary embedding of a model whose heads have this width."""
    traditional, base = rope.pairing == "norm", float(rope.base)
    match rope.scaling:
        case YaRN(exact=True):
            raise Unsupported("its ramp is rounded")
        case YaRN(factor, attention_factor=attention):
            more: dict[str, Any] = {"mscale": mscale(factor, attention)}
        case LongRoPE(factor, original, short, long, attention):
            if traditional:
                raise Unsupported("its LongRoPE turns halves alone")
            lists = {"short_factor": list(short), "long_factor": list(long)}
            return SuScaledRoPE(dims, base, factor * original, original, **lists, long_mscale=attention)
        case _:
            more = {}
    told = rope_words(rope.scaling) | more
    return initialize_rope(dims, base, traditional, told, 1 << 20)


def mscale(factor: float, attention: float | None) -> float:
    """What mlx-lm multiplies the logarithm by, for an attention factor."""
    return 1.0 if attention is None else (attention - 1) / (0.1 * math.log(factor))


def turned(rows: Any, positions: Array, rope: Rope) -> Any:
    """Turn rows from a position on."""
    return embedding(rope, rows.shape[3])(rows, offset=int(positions[0])) if len(positions) else rows


plain = from_update(
    "mlx-attention",
    kind="growing",
    make=lambda config: stepping(caches.KVCache(), config),
    update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
    arrays="mlx",
    also=("batch", "step"),
    dialect={"growing.shape": "first append"},
    said=SAID,
    **LENGTH,
)
attention = attending(
    plain,
    attend,
    ("scale", "learned sinks"),
    turned,
    ("linear", "llama3", "yarn", "longrope"),
    {"rope.angles": "f32", "rope.long": "always"},
)
