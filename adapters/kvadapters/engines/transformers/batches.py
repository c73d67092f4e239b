"""Hugging Face transformers: the sequences of other caches put in another order, dropped and repeated.

An encoder's rows and those of a convolution have an axis of sequences too. Where an adapter says so, values go
through these, as no model hands them in, to see that each part of a cache is rearranged. Blocks wider than what a
sequence owns are judged of `transformers-batch`: they are cut alike.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.transformers import caches as one
from kvadapters.engines.transformers.batch import EvenBatch, adapter
from kvadapters.engines.transformers.linear import convolved, heads
from kvadapters.engines.transformers.quantized import FORMS, quantized
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Config

try:
    import torch
    import transformers
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def layers(*types: str) -> Any:
    """The config of a model with layers of these types."""
    return transformers.MinistralConfig(num_hidden_layers=len(types), layer_types=list(types))


def needed(config: Config, length: int) -> int:
    """The newest rows that the next query sees besides its own."""
    return length if config.window is None else min(length, config.window - 1)


class StaticBatch(EvenBatch):
    """A `StaticCache`, whose buffers show zeros where no row is."""

    def _made(self, config: Config) -> one.Cache:
        return one.static(config)

    def _updated(self, keys: Any, values: Any) -> tuple[Any, Any]:
        if self._length() + keys.shape[2] > one.ROWS and self.config.window is None:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        return super()._updated(keys, values)

    def _kept(self) -> tuple[Any, Any]:
        held = min(self._length(), self.config.window or one.ROWS)
        return tuple(a[:, :, held - needed(self.config, self._length()) : held] for a in super()._kept())


class QuantizedBatch(EvenBatch):
    """A `QuantizedCache` with rows of fp8, read as its next update reads them."""

    def _made(self, config: Config) -> one.Cache:
        return quantized(config)

    def _kept(self) -> tuple[Any, Any]:
        layer = self.made.cache.layers[0]
        if self.config.form is None:
            return super()._kept()
        return layer._dequantize(layer._quantized_keys), layer._dequantize(layer._quantized_values)


class EncodedBatch(EvenBatch):
    """An `EncoderDecoderCache`: values go through that of the encoder, which a crop leaves alone."""

    def _made(self, config: Config) -> one.Cache:
        both = (one.dynamic(config).cache for _ in range(2))
        return one.Cache(transformers.EncoderDecoderCache(*both), config)

    def _updated(self, keys: Any, values: Any) -> tuple[Any, Any]:
        cache = self.made.cache
        own, _ = cache.self_attention_cache.update(keys, keys, 0)
        return own, cache.cross_attention_cache.update(values, values, 0)[1]

    def _kept(self) -> tuple[Any, Any]:
        cache = self.made.cache
        return cache.self_attention_cache.layers[0].keys, cache.cross_attention_cache.layers[0].values


class HybridBatch(EvenBatch):
    """A layer of attention and convolution, shown by the rows of its convolution: as many as a window has, or so
    many that none is lost."""

    types: tuple[str, ...] = ("hybrid",)
    at = 0
    most = 64

    def _made(self, config: Config) -> one.Cache:
        return one.Cache(transformers.DynamicCache(config=layers(*self.types)), config)

    @property
    def _size(self) -> int:
        return self.config.window or self.most

    def _updated(self, keys: Any, values: Any) -> tuple[Any, Any]:
        if self._length() + keys.shape[2] > self.most and self.config.window is None:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        self.made.cache.update(keys, values, 0)
        return convolved(self.made.cache, self.at, self._size, keys, values)

    def _mask(self, n: int) -> Any:
        columns = self._size - 1 + n
        seen = torch.ones(n, columns, dtype=torch.bool).triu().tril(self._size - 1)
        seen[:, : self._size - 1 - min(self._length(), self._size - 1)] = False
        return seen.expand(self.batch, 1, n, columns)

    def starts(self) -> list[int]:
        """Zeros stand before the first row, as padding does."""
        return [self._size - 1 - min(self._last[2], self._size - 1)] * self.batch

    def holds(self) -> list[int]:
        """The other columns of the last update; before that nothing that a block had."""
        if self._fed is None:
            return [self._length()] * self.batch
        return [self._last[0][0].shape[2] - self.starts()[0]] * self.batch

    def _kept(self) -> tuple[Any, Any]:
        state = self.made.cache.get_conv_state(self.at)
        rows = state[..., state.shape[-1] - needed(self.config, self._length()) :]
        split = self.config.kv_heads * self.config.k_dim
        return heads(rows[:, :split], self.config.kv_heads), heads(rows[:, split:], self.config.kv_heads)


class LinearBatch(HybridBatch):
    """A layer of attention, and one of a convolution behind it, which is shown."""

    types = ("full_attention", "conv")
    at = 1


static = adapter("batch-static", StaticBatch, ("filter", "repeat"))
quantized_fp8 = adapter("batch-quantized", QuantizedBatch, ("wide", "windowed", "trim"), {"form": FORMS})
encoded = adapter("batch-encoder-decoder", EncodedBatch, ("wide", "trim"))
hybrid = adapter("batch-hybrid", HybridBatch, ("wide", "trim"))
linear = adapter("batch-linear", LinearBatch, ("wide", "trim"))
