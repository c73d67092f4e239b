"""torch: attention to parts of the rows, over a `DynamicCache` of transformers.

`flex_attention` attends to each part. They are joined by the class that joins what the ranks of torch's context
parallelism give. What is said of the cache itself is judged of `transformers-dynamic`.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.transformers.attention import adapter
from kvspec.contract import Attention
from kvspec.errors import CannotRun

try:
    from torch.distributed.tensor.experimental._context_parallel._attention import _SDPAMerger

    from kvadapters.engines.flex import parts
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def attends(cache: Any, queries: Any, keys: Any, values: Any, how: Attention) -> Any:
    """Attend to each part, and join what they give."""
    joined = _SDPAMerger(convert_to_f32=True, seq_dim=2)
    for part in parts(queries, keys, values, how):
        joined.step(*part, partial=False)
    return joined.results()[0]


joined = adapter("joined", attends, "scale", "parts")
