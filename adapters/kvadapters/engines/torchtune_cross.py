"""torchtune: the caches of a decoder with layers of cross-attention, as Llama 3.2 Vision's has them.

Each layer is one of torchtune's own `MultiHeadAttention`, with a cache from `setup_cache`. Its projections are
replaced by what hands rows through. A layer of cross-attention appends the rows of each image, and shows its whole
buffer. The mask of its caller hides the rest. Rewinding and saving are not claimed, because torchtune does neither.
Who owns arrays is not claimed either: what the buffers do is judged of `torchtune`.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.limits import one_width
from kvadapters.layered import LayeredCache, views
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from torchtune.generation import get_causal_mask_from_padding_mask
    from torchtune.modules import MultiHeadAttention

    from kvadapters.engines.torch import DTYPES, adapter
except ImportError as e:
    raise CannotRun(f"torchtune cannot be imported ({e}); pip install 'kvconform[torchtune]'") from e

ROWS = 768
"""The length of each buffer: `decoder_max_seq_len`, and `encoder_max_seq_len`."""


class Part(torch.nn.Module):  # type: ignore[misc]
    """Stands for a projection: hands on keys, or values, of `[batch, rows, 2 * heads * width]`."""

    def __init__(self, config: Config, values: bool) -> None:
        super().__init__()
        self.width, self.type = config.kv_heads * one_width(config), DTYPES[config.dtype]
        self.first = self.width if values else 0

    def forward(self, x: Any) -> Any:
        """Take a part. Raises ValueError for rows that this projection cannot be given."""
        if x.dtype != self.type or x.shape[2] != 2 * self.width:
            raise ValueError(f"rows of {x.shape[2]} numbers of {x.dtype} for {2 * self.width} of {self.type}")
        return x[..., self.first : self.first + self.width]


class Layer:
    """The attention of a layer, with a cache, and the keys and values that it attended to last."""

    def __init__(self, config: Config) -> None:
        heads, width, keys = config.kv_heads, one_width(config), Part(config, values=False)
        self.attention = MultiHeadAttention(
            embed_dim=heads * width,
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=width,
            q_proj=keys,
            k_proj=keys,
            v_proj=Part(config, values=True),
            output_proj=torch.nn.Identity(),
        )
        self.attention._attention_call = self._attend
        self.attention.setup_cache(config.batch, DTYPES[config.dtype], ROWS)
        self.attended: tuple[Any, Any] | None = None

    def _attend(self, q: Any, k: Any, v: Any, **_: Any) -> Any:
        self.attended = k, v
        return q

    @property
    def length(self) -> int:
        """The rows that were written."""
        return int(self.attention.kv_cache.size)

    def forward(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Do what a model does for these tokens, and new rows or None; give the keys and values."""
        self.attention(x, y)
        assert self.attended is not None
        return self.attended


class Model:
    """The layers of a decoder, and which of them are of cross-attention."""

    def __init__(self, config: Config) -> None:
        self.of = [name for name, _ in views(config, "full", "cross")]
        self.layers = [Layer(config) for _ in self.of]

    def append(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Do what the self-attention of a layer does for these tokens."""
        x = side_by_side(keys, values)
        return self.layers[layer].forward(x, x)

    def encode(self, layer: int, keys: Any, values: Any) -> None:
        """Do what the cross-attention of a layer does with the rows of an image."""
        self._step(layer, side_by_side(keys, values))

    def _step(self, layer: int, y: Any) -> tuple[Any, Any]:
        """Hand a token to a layer of cross-attention, and the rows of an image or None."""
        part = self.layers[layer].attention.k_proj
        return self.layers[layer].forward(torch.zeros(1, 1, 2 * part.width, dtype=part.type), y)

    def encoded(self, layer: int) -> tuple[Any, Any] | None:
        """What a later step attends to, which has no rows of an image. Without any the layer is left out."""
        return self._step(layer, None) if self.layers[layer].length else None

    def length(self) -> int | None:
        """The tokens of the first self-attention."""
        return next((at.length for name, at in zip(self.of, self.layers, strict=True) if name == "full"), None)

    def mask(self, layer: int, n: int) -> Any:
        """The rows of these positions, of the mask for a prompt without padding; of an image's rows all that are
        there, as the caller pads its mask."""
        at, columns = self.layers[layer], torch.arange(ROWS)
        if self.of[layer] == "cross":
            return (columns < at.length).expand(n, ROWS) if at.length else None
        stop = at.length + n
        mask = get_causal_mask_from_padding_mask(torch.ones(1, stop, dtype=torch.bool), ROWS)
        return mask[:, at.length : stop]

    def reset(self) -> None:
        """Reset all caches, as `reset_caches` does."""
        for layer in self.layers:
            layer.attention.reset_cache()


def side_by_side(keys: Any, values: Any) -> Any:
    """Keys and values of `[batch, heads, rows, width]` as the one array of which projections make them."""
    return torch.cat([a.permute(0, 2, 1, 3).flatten(2) for a in (keys, values)], 2)


layers = adapter(
    "torchtune-cross",
    "torchtune",
    {"rows": ROWS, "dims": {"equal": True}},
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
    dialect={"layers.again": "joined"},
)
