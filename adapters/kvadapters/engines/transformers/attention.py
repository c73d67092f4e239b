"""Hugging Face transformers: attention over a `DynamicCache`, by the functions that its models call.

`sdpa` is the default of nearly all models, here with their rotary embeddings. Gemma 2 caps scores and gpt-oss has
learned sinks, both in functions of their own, which are called "eager". Causal masks are those of `masking_utils`.
Others are handed in with four axes, as a model takes them from its caller. Queries are f32, so keys and values,
which are kept in their own type, become f32 as they are attended to. What is said of the cache itself is judged of
`transformers-dynamic`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from kvadapters.attending import AttendingAdapter, attending, scores
from kvadapters.engines.transformers import caches
from kvadapters.engines.transformers.rope import turned
from kvspec.contract import Attention
from kvspec.errors import CannotRun

try:
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.models.gemma2 import modeling_gemma2
    from transformers.models.gpt_oss import modeling_gpt_oss

    from kvadapters.engines.torch import adapter as torch_adapter
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

Forward = Callable[..., Any]
"""An attention function of transformers, of a module, queries, keys, values and a mask."""


def attends(forward: Forward, **own: Callable[[Attention], Any]) -> Callable[..., Any]:
    """What a model does around its attention function; `own` gives what is the model's own."""

    def attend(cache: Any, queries: Any, keys: Any, values: Any, how: Attention) -> Any:
        heads, n = queries.shape[1:3]
        module = SimpleNamespace(
            num_key_value_groups=heads // keys.shape[1],
            training=False,
            is_causal=True,
            head_dim=queries.shape[3],
            sinks=torch.full((heads,), -torch.inf) if how.sinks is None else torch.tensor(how.sinks),
        )
        mask = torch.from_numpy(scores(how.through, n, keys.shape[2]))
        scaling = queries.shape[3] ** -0.5 if how.scale is None else how.scale
        given = {name: of(how) for name, of in own.items()}
        return forward(module, queries, keys.float(), values.float(), mask, scaling=scaling, **given)[0].transpose(
            1, 2
        )

    return attend


def adapter(name: str, forward: Callable[..., Any], *able: str, **given: Any) -> AttendingAdapter:
    """Make the adapter of one attention function."""
    plain = torch_adapter(
        f"transformers-{name}",
        "transformers",
        kind="growing",
        make=caches.dynamic,
        update=lambda cache, keys, values: cache.cache.update(keys, values, 0),
        length=lambda cache: cache.cache.get_seq_length(),
        dialect={"growing.shape": "first append"},
    )
    return attending(plain, forward, able, **given)


SDPA = attends(sdpa_attention_forward)

sdpa = adapter("sdpa", SDPA, "scale", "sees nothing")
gemma2 = adapter(
    "gemma2",
    attends(modeling_gemma2.eager_attention_forward, softcap=lambda how: how.softcap or None),
    "scale",
    "softcap",
)
gpt_oss = adapter("gpt-oss", attends(modeling_gpt_oss.eager_attention_forward), "scale", "learned sinks")
turning = adapter(
    "rope",
    SDPA,
    "scale",
    turns=turned,
    tables=("rotate", "linear", "llama3", "yarn", "exact", "longrope", "sections", "interleaved"),
    dialect={"rope.angles": "f32", "rope.long": "call"},
)
rope = replace(turning, said={**turning.said, "dtypes": ["f32"]})
"""Rows of 16 bits are left out: models round cosines and sines to the type of the rows, far beyond the bound."""
