"""vLLM: attention to parts of the rows, which `merge_attn_states` joins.

vLLM joins so what a prefix and the rest of a prompt come to. Torch's `flex_attention` attends to each part. The
rows lie where `KVCacheManager` says, in numpy arrays. What is said of the manager is judged of `vllm-bounded`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from kvadapters.attending import attending
from kvspec.contract import Attention
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    import vllm
    from vllm.v1.attention.ops.merge_attn_states import merge_attn_states

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.engines.flex import parts
    from kvadapters.engines.vllm.bounded import One
    from kvadapters.update import from_update
except ImportError as e:
    raise CannotRun(f"vLLM cannot be imported ({e}); pip install 'kvconform[vllm]'") from e

ROWS = 768
"""The blocks of the pool, each of one row."""


def make(config: Config) -> One:
    """Make a manager with so many blocks."""
    return One(config.changed(max_len=ROWS))


def attends(one: One, queries: Any, keys: Any, values: Any, how: Attention) -> Any:
    """Attend to each part, and join them one by one."""
    each = parts(to_engine(queries), to_engine(keys), to_engine(values), how)
    tokens = [(_by_token(output), lse.transpose(0, 1).flatten(1)) for output, lse in each]
    output, _ = reduce(_merged, tokens)
    batch, _, n, _ = queries.shape
    return from_engine(output.unflatten(0, (batch, n)).transpose(1, 2))


def _by_token(output: Any) -> Any:
    """An output `[batch, heads, n, v_dim]` as `[batch * n, heads, v_dim]`."""
    return output.transpose(1, 2).flatten(0, 1).contiguous()


def _merged(prefix: tuple[Any, Any], suffix: tuple[Any, Any]) -> tuple[Any, Any]:
    output, lse = torch.empty_like(prefix[0]), torch.empty_like(prefix[1])
    merge_attn_states(output, *prefix, *suffix, lse)
    return output, lse


joined = attending(
    from_update(
        "vllm-joined",
        kind="growing",
        to_engine=lambda array: array,
        from_engine=lambda array: array,
        make=make,
        update=One.append,
        length=lambda one: one.request.num_computed_tokens,
        reset=One.end,
        said={"version": vllm.__version__, "limits": {"rows": ROWS}},
    ),
    attends,
    ("scale", "parts", "sees nothing"),
)
