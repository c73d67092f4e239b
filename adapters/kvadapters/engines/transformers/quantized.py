"""Hugging Face transformers: `QuantizedCache` of one layer with the backend `fp8`.

It takes one scale for all rows from its first update. A form of ROW has it given: layers that are handed this scale
stand in, and do the rest as they are. A cache without a form is a `DynamicCache`. The layers say that they cannot
be cropped (`is_croppable`), and take a crop nevertheless: they are asked for it.

The other backends are not here. What `hqq` reads is off by the last bits of f32, of which no form tells; `quanto`
compiles for minutes before its first row is read.
"""

from __future__ import annotations

from typing import Any

from kvspec.errors import CannotRun
from kvspec.forms import parsed
from kvspec.geometry import Config

try:
    import torch
    import transformers
    from transformers.cache_utils import Fp8QuantizedLayer

    from kvadapters.engines.torch import adapter
    from kvadapters.engines.transformers import caches as one
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

FORMS = [f"e4m3/t{scale}" for scale in ("", ":0.5", ":1", ":2", ":0.01")]
"""The forms with one scale; the layers take any."""


class GivenScale(Fp8QuantizedLayer):  # type: ignore[misc]
    """A layer whose scale was calibrated before: its first update takes it too."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = torch.tensor(scale)

    def _quantize(self, tensor: Any, scale: Any = None) -> Any:
        return super()._quantize(tensor, self.scale)


def quantized(config: Config) -> one.Cache:
    """Make the cache of a form."""
    if config.form is None:
        return one.dynamic(config)
    cache = transformers.QuantizedCache(backend="fp8", config=one.model_config(None))
    cache.layers = [GivenScale(*(parsed(config.form)[0].given or (1.0,)))]
    return one.Cache(cache, config)


fp8 = adapter(
    "transformers-quantized-fp8",
    "transformers",
    {"form": FORMS},
    kind="growing",
    make=quantized,
    update=lambda cache, keys, values: cache.cache.update(keys, values, 0),
    length=lambda cache: cache.cache.get_seq_length(),
    mask=one.mask,
    reset=lambda cache: cache.cache.reset(),
    dialect=one.CROPPED,
    **one.CROP,
)
