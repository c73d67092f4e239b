"""ATTN with learned sinks by the attention of gpt-oss in transformers."""

from __future__ import annotations

from functools import cache as cached
from types import SimpleNamespace
from typing import Any

from kvspec.errors import Unsupported


class GptOss:
    """The eager attention of gpt-oss over a cache that joins tensors."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        import transformers

        attention = {"level": "visible", "with": ["attend", "scale", "learned sinks"]}
        growing = {"level": "visible", "with": ["offset", "step", "batch"]}
        chapters = {"growing": growing, "attention": attention}
        return {"name": "gpt-oss", "version": transformers.__version__, "chapters": chapters}

    def open(self, kind: str, config: Any) -> Any:
        """A fresh cache."""
        if kind != "growing":
            raise Unsupported(f"no kind {kind}")
        return eager_cache()(config)


@cached
def eager_cache() -> Any:
    """The class of its cache; torch and transformers are imported when one is opened."""
    import torch
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

    from support.engines.foreign import torch_sdpa

    class Eager(torch_sdpa.Cache):
        def attend(self, queries: Any, keys: Any, values: Any, how: Any, out: Any = None, of: Any = None) -> Any:
            """Append, then attend. A model without sinks is one whose sinks are minus infinity."""
            self.append(keys, values)
            heads, n, rows = queries.shape[1], queries.shape[2], self.rows.keys.shape[2]
            mask = sum((self.added(part, n, rows) for part in how.through), torch.zeros(1, 1, n, rows))
            sinks = torch.tensor([float("-inf")] * heads if how.sinks is None else how.sinks)
            layer = SimpleNamespace(
                sinks=sinks, num_key_value_groups=heads // self.rows.keys.shape[1], training=False
            )
            scale = queries.shape[3] ** -0.5 if how.scale is None else how.scale
            asked = torch.from_numpy(queries), *(a.float() for a in self.rows)
            return eager_attention_forward(layer, *asked, mask, scale)[0].transpose(1, 2).numpy()

    return Eager
