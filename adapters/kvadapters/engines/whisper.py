"""OpenAI's whisper: the rows that the hooks of `install_kv_cache_hooks` keep, of its decoder and of its encoder.

Each layer is one of whisper's own `MultiHeadAttention`, whose projections are replaced by what hands rows through.
Like projections they give rows of one geometry and type, and raise for others. A layer of cross-attention asks
whether its rows are kept, and then makes no others. Rewinding and saving are not claimed, because whisper's
decoding does neither. An encoder without rows is not claimed, because there is none. Who owns arrays is not claimed
either, because no caller gets one.
"""

from __future__ import annotations

from typing import Any

from kvadapters.layered import LayeredCache, views
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from torch.nn.attention.bias import causal_upper_left
    from whisper.model import ModelDimensions, MultiHeadAttention, Whisper

    from kvadapters.engines.torch import DTYPES, adapter
except ImportError as e:
    raise CannotRun(f"whisper cannot be imported ({e}); pip install 'kvconform[whisper]'") from e

CONTEXT = 448
"""The tokens of a text, in every released model. A step with more of them would take the place of the others."""

VIEWS = {"full": "attn", "cross": "cross_attn"}
"""What the attention of a layer is called in a block of the decoder."""


class Part(torch.nn.Module):  # type: ignore[misc]
    """Stands for a projection: hands on keys, or values, of `[batch, rows, heads * (k_dim + v_dim)]`."""

    def __init__(self, config: Config, values: bool) -> None:
        super().__init__()
        self.keys, self.type = config.kv_heads * config.k_dim, DTYPES[config.dtype]
        self.all, self.values = config.kv_heads * (config.k_dim + config.v_dim), values

    def forward(self, x: Any) -> Any:
        """Take a part. Raises ValueError for rows that this projection cannot be given."""
        if x.dtype != self.type or x.shape[2] != self.all:
            raise ValueError(f"rows of {x.shape[2]} numbers of {x.dtype} for {self.all} of {self.type}")
        return x[..., self.keys :] if self.values else x[..., : self.keys]


class Attention(MultiHeadAttention):  # type: ignore[misc]
    """Whisper's attention, which shows the keys and values that it would attend to."""

    def __init__(self, config: Config) -> None:
        super().__init__(1, 1)
        self.key, self.value = Part(config, values=False), Part(config, values=True)
        self.query = self.out = torch.nn.Identity()

    def qkv_attention(self, q: Any, k: Any, v: Any, mask: Any = None) -> tuple[Any, Any]:
        """Give the keys and values in the place of what they come to."""
        return (k, v), None


class Model:
    """A model of these layers, and the cache that its hooks write."""

    def __init__(self, config: Config) -> None:
        self.of, self.heads = [name for name, _ in views(config, *VIEWS)], config.kv_heads
        self.at = [self.of[:i].count(name) for i, name in enumerate(self.of)]
        blocks = max(self.at) + 1
        self.whisper = Whisper(ModelDimensions(1, 1, 4, 1, 0, 1, CONTEXT, 4, 1, blocks))
        for block in self.whisper.decoder.blocks:
            block.attn, block.cross_attn = Attention(config), Attention(config)
        self.cache, self.hooks = self.whisper.install_kv_cache_hooks()

    def attention(self, layer: int) -> Any:
        """The attention of a layer."""
        return getattr(self.whisper.decoder.blocks[self.at[layer]], VIEWS[self.of[layer]])

    def rows(self, found: Any) -> tuple[Any, Any]:
        """Rows by head, as whisper's attention looks at them."""
        keys, values = (a.view(*a.shape[:2], self.heads, -1).permute(0, 2, 1, 3) for a in found)
        return keys, values

    def append(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Do what the self-attention of a layer does for these tokens."""
        return self.rows(self.attention(layer)(side_by_side(keys, values), kv_cache=self.cache)[0])

    def encode(self, layer: int, keys: Any, values: Any) -> None:
        """Do what the cross-attention of a layer does, which is given the encoder's output at each step."""
        xa = side_by_side(keys, values)
        self.attention(layer)(xa[:, :0], xa, kv_cache=self.cache)

    def encoded(self, layer: int) -> tuple[Any, Any] | None:
        """The rows of the encoder that a layer keeps."""
        attention = self.attention(layer)
        kept = [self.cache.get(part) for part in (attention.key, attention.value)]
        return None if kept[0] is None else self.rows(kept)

    def length(self) -> int | None:
        """The tokens that are kept: those of the first self-attention."""
        first = next((i for i, name in enumerate(self.of) if name == "full"), None)
        if first is None:
            return None
        kept = self.cache.get(self.attention(first).key)
        return 0 if kept is None else int(kept.shape[1])

    def mask(self, layer: int, n: int) -> Any:
        """The mask of `scaled_dot_product_attention`, whose `is_causal` whisper sets for more than one token."""
        if self.of[layer] == "cross" or n == 1:
            return None
        return causal_upper_left(n, (self.length() or 0) + n)._materialize()

    def reset(self) -> None:
        """Take the hooks away, and install others, as for the next segment of speech."""
        for hook in self.hooks:
            hook.remove()
        self.cache, self.hooks = self.whisper.install_kv_cache_hooks()


def side_by_side(keys: Any, values: Any) -> Any:
    """Keys and values of `[batch, heads, rows, width]` as the one array of which projections make them."""
    return torch.cat([a.permute(0, 2, 1, 3).flatten(2) for a in (keys, values)], 2)


layers = adapter(
    "whisper",
    "openai-whisper",
    {"rows": CONTEXT},
    kind="layers",
    cache=LayeredCache,
    make=Model,
    update=Model.append,
    length=Model.length,
    mask=Model.mask,
    encode=Model.encode,
    encoded=Model.encoded,
    reset=Model.reset,
    also=("full", "cross", "unlike", "encode"),
    dialect={"layers.again": "kept"},
)
