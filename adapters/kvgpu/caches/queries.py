"""The queries of an attend: whether they fit, and which positions they may see."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kvgpu.caches import mask
from kvgpu.memory.cache_rows import rows_in
from kvgpu.memory.device_arrays import DeviceRows
from kvspec.contract import Attention
from kvspec.geometry import Array, Config
from kvspec.masks import Causal, Explicit, Logical, Window
from kvspec.refusals import attention as refusals

FLOAT = np.dtype(np.float32)
"""The dtype of queries, of outputs, and of scores in masks."""


class Asking(NamedTuple):
    """What queries may see, in position order. `causal` hides the future. They see the newest `window` positions up
    to their own (0: all). The arrays `added`, f32 on the host `[1 or batch, 1 or heads, n, 1 or rows]`, are added
    to the scores in order; minus infinity hides. The last `written` elements of the last array are not uploaded: a
    kernel writes them."""

    causal: bool = True
    window: int = 0
    added: tuple[Array, ...] = ()
    written: int = 0


def asked(logical: Logical, window: int | None = None) -> Asking:
    """Say what queries see through a mask and the cache's own window; `demand` has checked the mask."""
    sizes = [part.size for part in logical if isinstance(part, Window)] + [window or 0]
    arrays = tuple(_scores(part.array) for part in logical if isinstance(part, Explicit))
    causal = any(isinstance(part, Causal) for part in logical)
    return Asking(causal, min((size for size in sizes if size), default=0), arrays)


def _scores(array: Array) -> Array:
    """Turn an array of a mask into numbers to add to scores."""
    return array if array.dtype != bool else np.where(array, FLOAT.type(0), FLOAT.type("-inf"))


def nothing(queries: Any, keys: Any) -> bool:
    """Tell whether there are no queries and no rows: such an attend is never refused."""
    return len(queries.shape) == 4 and queries.shape[2] == rows_in(keys) == 0


def empty(config: Config, queries: Any, out: Any) -> Any:
    """The output of no queries."""
    if out is not None:
        return out
    shape = *queries.shape[:-1], config.v_dim
    return replace(queries, shape=shape) if isinstance(queries, DeviceRows) else np.zeros(shape, FLOAT)


class Fit(NamedTuple):
    """What queries must be: f32 `[*front, heads, n, k_dim]`, with any number of heads if None. The arrays of
    their mask are over `rows` rows, and their batch is the last axis of `front`."""

    front: tuple[int, ...]
    n: int
    rows: int = 0
    heads: int | None = None


def demand(config: Config, fit: Fit, queries: Any, how: Attention, out: Any = None) -> None:
    """Refuse queries that do not fit, then heads and splits that do not, then an output that is read-only or not
    f32 `[*front, heads, n, v_dim]`."""
    wanted = *fit.front, "heads" if fit.heads is None else fit.heads, fit.n, config.k_dim
    shape = tuple(queries.shape)
    if len(shape) != len(wanted) or any(w not in ("heads", s) for w, s in zip(wanted, shape, strict=True)):
        raise refusals.queries("ATTN-24", queries, wanted)
    if queries.dtype != FLOAT:
        raise refusals.queries("ATTN-24", queries, wanted)
    demand_how(config, shape[-3], how.splits)
    demand_scoring(how, shape[-3])
    _demand_parts(how, fit.rows)
    _demand_mask(how.through, mask.History(fit.front[-1], fit.n, fit.rows), shape[-3])
    shape = *shape[:-1], config.v_dim
    if out is not None and (tuple(out.shape) != shape or out.dtype != FLOAT):
        raise refusals.output("ATTN-28", out, shape)
    if not writable(out):
        raise refusals.read_only("ATTN-28")


def writable(out: Any) -> bool:
    """Tell whether an output can be written; True if none is given, and for an output on the device."""
    return out is None or isinstance(out, DeviceRows) or bool(out.flags.writeable)


def demand_how(config: Config, heads: int, splits: int) -> None:
    """Refuse a number of query heads that is no multiple of the kv heads, then splits below 1."""
    if heads < 1 or heads % config.kv_heads:
        raise refusals.heads("ATTN-25", heads, config.kv_heads)
    if splits < 1:
        raise refusals.splits("ATTN-47", splits)


def demand_scoring(how: Attention, heads: int) -> None:
    """Refuse a scale that is not above 0, then a softcap below 0, then sinks that are not one for each head."""
    if how.scale is not None and how.scale <= 0:
        raise refusals.scale("ATTN-41", how.scale)
    if how.softcap < 0:
        raise refusals.softcap("ATTN-41", how.softcap)
    if how.sinks is not None and len(how.sinks) != heads:
        raise refusals.sinks("ATTN-57", len(how.sinks), heads)


def _demand_parts(how: Attention, rows: int) -> None:
    """Refuse cuts that do not rise from 0 to the number of rows."""
    ends = 0, *how.parts, rows
    if how.parts and any(end < begin for begin, end in pairwise(ends)):
        raise refusals.parts("ATTN-64", how.parts, rows)


def _demand_mask(logical: Logical, history: mask.History, heads: int) -> None:
    mask.demand(logical, history)
    for array in (part.array for part in logical if isinstance(part, Explicit)):
        if array.shape[1] not in (1, heads):
            raise refusals.mask_heads("ATTN-27", array, heads)
