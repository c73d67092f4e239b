"""Requests of vLLM: what their blocks are found by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kvspec.contract import Request as Wanted
from kvspec.errors import CannotRun

try:
    from vllm.lora.request import LoRARequest
    from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request
except ImportError as e:
    raise CannotRun(f"vLLM cannot be imported ({e}); pip install 'kvconform[vllm]'") from e

LONGEST = 1 << 20
"""Tokens of a request at most."""


def plain(name: str, tokens: Sequence[int], **more: Any) -> Any:
    """A request of tokens alone."""
    return Request(name, list(tokens), SamplingParams(max_tokens=LONGEST), None, **more)


def request(name: str, wanted: Wanted, hasher: Callable[..., Any]) -> Any:
    """A request under an adapter, with items and a salt. Each item is one token long."""
    tokens, adapter, salt, media = wanted
    items = sorted(media, key=lambda item: item[1])
    features = [MultiModalFeatureSpec(None, "image", x, PlaceholderRange(at, 1)) for x, at in items]
    lora = LoRARequest(adapter, int.from_bytes(adapter.encode()), "/") if adapter else None
    how = {"mm_features": features, "lora_request": lora, "cache_salt": salt or None}
    return plain(name, tokens, **how, block_hasher=hasher)
