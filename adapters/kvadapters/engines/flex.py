"""Attention to a part of the rows by torch's `flex_attention`, which gives the logarithm of its sum too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

from kvadapters.attending import scores
from kvspec.contract import Attention

warnings.filterwarnings("ignore", "flex_attention called without torch.compile")


def parts(queries: Any, keys: Any, values: Any, how: Attention) -> Iterator[tuple[Any, Any]]:
    """The output of each part, and the logarithms. A part without rows is left out, as no rank holds none."""
    n, rows = queries.shape[2], keys.shape[2]
    mask = torch.from_numpy(scores(how.through, n, rows)).expand(*queries.shape[:3], rows)
    for a, b in pairwise(sorted({0, *how.parts, rows})):
        yield _part(queries, keys[:, :, a:b].float(), values[:, :, a:b].float(), mask[..., a:b], how)


def _part(queries: Any, keys: Any, values: Any, mask: Any, how: Attention) -> tuple[Any, Any]:
    scored = lambda score, batch, head, query, key: score + mask[batch, head, query, key]  # noqa: E731
    given = {"score_mod": scored, "scale": how.scale, "enable_gqa": True, "return_aux": AuxRequest(lse=True)}
    output, beside = flex_attention(queries, keys, values, **given)
    return output, beside.lse
