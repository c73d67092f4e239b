"""torch: attention to parts of the rows, over a `DynamicCache` of transformers.

`flex_attention` attends to each part, and gives the logarithm of the sum of its weights. The class by which torch's
context parallelism joins what its ranks give joins the parts. A part without rows is left out, as no rank holds
none. What is said of the cache itself is judged of `transformers-dynamic`.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

from kvadapters.attending import scores
from kvadapters.engines.transformers.attention import adapter
from kvspec.contract import Attention
from kvspec.errors import CannotRun

try:
    import torch
    from torch.distributed.tensor.experimental._context_parallel._attention import _SDPAMerger
    from torch.nn.attention.flex_attention import AuxRequest, flex_attention
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

warnings.filterwarnings("ignore", "flex_attention called without torch.compile")


def attends(cache: Any, queries: Any, keys: Any, values: Any, how: Attention) -> Any:
    """Attend to each part, and join what they give."""
    n, rows = queries.shape[2], keys.shape[2]
    shape = *queries.shape[:3], rows
    mask = torch.from_numpy(scores(how.through, n, rows)).expand(shape)
    joined = _SDPAMerger(convert_to_f32=True, seq_dim=2)
    for a, b in pairwise(sorted({0, *how.parts, rows})):
        part = _part(queries, keys[:, :, a:b].float(), values[:, :, a:b].float(), mask[..., a:b], how)
        joined.step(*part, partial=False)
    return joined.results()[0]


def _part(queries: Any, keys: Any, values: Any, mask: Any, how: Attention) -> tuple[Any, Any]:
    """The output of a part, and the logarithms."""
    scored = lambda score, batch, head, query, key: score + mask[batch, head, query, key]  # noqa: E731
    given = {"score_mod": scored, "scale": how.scale, "enable_gqa": True, "return_aux": AuxRequest(lse=True)}
    output, beside = flex_attention(queries, keys, values, **given)
    return output, beside.lse


joined = adapter("joined", attends, "scale", "parts")
