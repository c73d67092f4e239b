"""torch: three parts of the rows come to NaN, where a query sees nothing of the first. Unchecked.

ATTN-63, by growing: append 4; attend 1 cuts=1,3 through causal & window=1. The logarithm of the first part is minus
infinity, and its difference from itself is NaN. The ranks of context parallelism begin with their own rows.
"""

import sys

import torch
from torch.distributed.tensor.experimental._context_parallel._attention import _SDPAMerger
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

queries, keys = torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 4, 8)
values = torch.arange(4.0)[None, None, :, None].expand(1, 1, 4, 8)
newer = lambda first: lambda score, b, h, q, k: torch.where(k + first > 1, score, -torch.inf)  # noqa: E731
joined = _SDPAMerger(convert_to_f32=True, seq_dim=2)
for a, b in ((0, 2), (2, 3), (3, 4)):
    given = {"score_mod": newer(a), "return_aux": AuxRequest(lse=True)}
    output, beside = flex_attention(queries, keys[:, :, a:b], values[:, :, a:b], **given)
    joined.step(output, beside.lse, partial=False)
seen = str(joined.results()[0][0, 0, 0, 0].item())
print(f"torch {torch.__version__.partition('+')[0]}: rows 2 and 3 of 4 are seen\nexpected: 2.5\nseen:     {seen}")
sys.exit(seen == "2.5")
