"""A stand-in for FlashInfer 0.6: what the peer calls of it, with the same parameters, computed by torch in f64.

Each demands what FlashInfer's C++ demands of shapes, dtypes, strides and memory (csrc/single_decode.cu, page.cu,
batch_decode.cu). What it does not have: speed, limits of head sizes, and any defect of FlashInfer itself.
"""

from __future__ import annotations

from typing import Any

import torch

__version__ = "0.6.18"
HALVES = (torch.float16, torch.bfloat16)


def single_decode_with_kv_cache(
    q: Any, k: Any, v: Any, kv_layout: str = "NHD", pos_encoding_mode: str = "NONE", use_tensor_cores: bool = False
) -> Any:
    """q `[heads, dim]`; k and v `[kv_heads, rows, dim]` if HND, else `[rows, kv_heads, dim]`."""
    assert q.dim() == 2 and k.dim() == v.dim() == 3 and k.shape == v.shape
    assert all(a.is_contiguous() and a.dtype in HALVES and a.dtype == q.dtype for a in (q, k, v))
    assert pos_encoding_mode == "NONE"
    return _attend(q[None], *_heads_first(kv_layout, k, v), causal=False)[0]


def single_prefill_with_kv_cache(
    q: Any,
    k: Any,
    v: Any,
    scale_q: Any = None,
    scale_k: Any = None,
    scale_v: Any = None,
    o_dtype: Any = None,
    custom_mask: Any = None,
    packed_custom_mask: Any = None,
    causal: bool = False,
    kv_layout: str = "NHD",
) -> Any:
    """q `[n, heads, dim]`; only elements of a row must be contiguous."""
    assert q.dim() == k.dim() == v.dim() == 3 and q.shape[2] == k.shape[2]
    assert all(a.stride(-1) == 1 and a.dtype in HALVES for a in (q, k, v))
    return _attend(q, *_heads_first(kv_layout, k, v), causal=causal)


def append_paged_kv_cache(
    append_key: Any,
    append_value: Any,
    batch_indices: Any,
    positions: Any,
    paged_kv_cache: tuple[Any, Any],
    kv_indices: Any,
    kv_indptr: Any,
    kv_last_page_len: Any,
    kv_layout: str = "NHD",
) -> None:
    """Rows `[nnz, kv_heads, dim]` to the positions of their sequences."""
    assert kv_layout == "HND" and append_key.dim() == append_value.dim() == 3
    _demand_indices(batch_indices, positions, kv_indices, kv_indptr, kv_last_page_len)
    assert len(batch_indices) == len(positions) == len(append_key)
    assert len(kv_indptr) == len(kv_last_page_len) + 1 and paged_kv_cache[0].stride() == paged_kv_cache[1].stride()
    size = paged_kv_cache[0].shape[2]
    for cache, rows in zip(paged_kv_cache, (append_key, append_value), strict=True):
        assert rows.stride(-1) == cache.stride(-1) == 1 and rows.shape[1:] == (cache.shape[1], cache.shape[3])
        for row, b, at in zip(rows, batch_indices.tolist(), positions.tolist(), strict=True):
            table = kv_indices[int(kv_indptr[b]) : int(kv_indptr[b + 1])]
            assert at < (len(table) - 1) * size + int(kv_last_page_len[b]), "the row lies behind its sequence"
            cache[int(table[at // size]), :, at % size] = row


class BatchDecodeWithPagedKVCacheWrapper:
    """One query for each sequence, over the pages that were planned."""

    def __init__(
        self,
        float_workspace_buffer: Any,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
    ) -> None:
        assert float_workspace_buffer.dtype == torch.uint8 and not float_workspace_buffer[:4096].any()
        assert kv_layout == "HND" and not use_cuda_graph
        self.planned: dict[str, Any] = {}

    def plan(
        self,
        indptr: Any,
        indices: Any,
        last_page_len: Any,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
    ) -> None:
        """Note what will be attended to."""
        _demand_indices(indptr, indices, last_page_len)
        assert len(indptr) == len(last_page_len) + 1 and int(indptr[-1]) == len(indices)
        assert bool((last_page_len >= 1).all()) and bool((last_page_len <= page_size).all())
        assert num_qo_heads % num_kv_heads == 0
        self.planned = locals() | {"indptr": indptr.tolist()}

    def run(self, q: Any, paged_kv_cache: tuple[Any, Any]) -> Any:
        """q `[B, heads, dim]`, a cache `[pages, kv_heads, page, dim]`."""
        plan, (keys, values) = self.planned, paged_kv_cache
        assert keys.stride() == values.stride() and keys.shape == values.shape
        assert keys.shape[1:] == (plan["num_kv_heads"], plan["page_size"], plan["head_dim"])
        assert q.shape == (len(plan["last_page_len"]), plan["num_qo_heads"], plan["head_dim"])
        assert q.dtype == plan["q_data_type"] and keys.dtype == plan["kv_data_type"]
        out = []
        for b, last in enumerate(plan["last_page_len"].tolist()):
            pages = plan["indices"][plan["indptr"][b] : plan["indptr"][b + 1]].tolist()
            rows = (len(pages) - 1) * plan["page_size"] + last
            taken = [part[pages].transpose(0, 1).flatten(1, 2)[:, :rows] for part in (keys, values)]
            out.append(_attend(q[b : b + 1], *taken, causal=False)[0])
        return torch.stack(out)


def _demand_indices(*arrays: Any) -> None:
    assert all(a.dtype == torch.int32 and a.dim() == 1 and a.is_contiguous() for a in arrays)


def _heads_first(layout: str, *arrays: Any) -> list[Any]:
    assert layout in ("HND", "NHD")
    return [a if layout == "HND" else a.transpose(0, 1) for a in arrays]


def _attend(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """q `[n, heads, dim]`, k and v `[kv_heads, rows, dim]`."""
    n, group = len(q), q.shape[1] // len(k)
    asked, keys, values = (a.double() for a in (q.transpose(0, 1), k, v))
    scores = asked @ keys.repeat_interleave(group, 0).transpose(1, 2) / q.shape[2] ** 0.5
    if causal:
        ahead = torch.ones(n, k.shape[1], dtype=torch.bool).triu(k.shape[1] - n + 1)
        scores = scores.masked_fill(ahead, float("-inf"))
    out = scores.softmax(-1) @ values.repeat_interleave(group, 0)
    return out.transpose(0, 1).to(q.dtype)
