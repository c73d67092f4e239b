"""A small stand-in for compiled graphs: attention of all layers over handles that are padded to one bound.

A graph takes the handles, queries, n new rows of each layer, and how many rows are past. Its active extent limits
the work, and changes no output. Output 0 is that of attention. Outputs 1 + 2 l and 2 + 2 l are the keys and values
of layer l, with the new rows behind the padding. They are the handles themselves, in place, and are fed back.
"""

from __future__ import annotations

import numpy as np

from kvref.arithmetic import strict_attention as strict
from kvref.cite import cite
from kvref.memory import meter
from kvref.memory.forms import Kept, cite_attended
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config


class Handles:
    """Keys and values `[layers, batch, kv_heads, slots, dim]` on the device. They have the slots of a bound, zeros
    at first, and `room` slots behind them for the rows that a graph writes. `behind` of these are in use."""

    def __init__(self, config: Config, bound: int, room: int) -> None:
        self.bound, self.behind = bound, 0
        self.keys, self.values = (
            meter.zeros((config.layers or 1, *a.shape[:2], bound + room, a.shape[3]), a.dtype)
            for a in Kept(config).none()
        )

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.keys.nbytes + self.values.nbytes

    def write(self, slot: int, rows: Pair) -> None:
        """Put rows `[layers, batch, kv_heads, n, dim]` into the slots from `slot` on."""
        for handle, new in zip((self.keys, self.values), rows, strict=True):
            meter.write(handle[..., slot : slot + new.shape[3], :], new)

    def part(self, start: int, stop: int) -> Pair:
        """The rows in slots start..stop-1 without a copy, to be written elsewhere."""
        return Pair(*(meter.resident(a[..., start:stop, :]) for a in (self.keys, self.values)))

    def chosen(self, slots: list[int]) -> Pair:
        """The rows in these slots, in this order, as a graph finds them."""
        return Pair(self.keys[..., slots, :], self.values[..., slots, :])

    def fetched(self, slots: list[int]) -> Pair:
        """Copies of the rows in these slots, in this order, on the host."""
        return Pair(*(meter.fetched(a[..., slots, :]) for a in (self.keys, self.values)))


class Graph:
    """Compiled for one bound and one batch."""

    def __init__(self, config: Config, bound: int) -> None:
        cite("BUCKET-37")
        self.bound, self.kept = bound, Kept(config)
        self.key = bound if config.batch == 1 else config.batch << 32 | bound

    def run(self, handles: Handles, queries: Array, new: Pair, past: int, splits: int) -> Array:
        """Output 0, `[layers, batch, heads, n, v_dim]`; the other outputs are the handles afterwards.

        Slots between the past rows and the new ones are hidden: a row of zeros has the score 0 and would count.
        """
        handles.write(self.bound, self.kept.encoded(new))
        cite_attended(self.kept.config)
        handles.behind = new.keys.shape[3]
        cite("BUCKET-38", *(["BUCKET-5"] if past < self.bound else []))
        seen = [*range(past), *range(self.bound, self.bound + handles.behind)]
        return over(queries, *self.kept.decoded(handles.chosen(seen)), splits, causal=True)


def over(queries: Array, keys: Array, values: Array, splits: int, causal: bool) -> Array:
    """Strict attention of queries `[layers, batch, heads, n, k_dim]` over rows `[layers, batch, kv_heads, K,
    dim]` at the positions 0 to K - 1; where it is causal, the last query stands at the last of them."""
    layers, batch, heads, n, _ = queries.shape
    rows, position = keys.shape[3], np.arange(keys.shape[3] - n, keys.shape[3])
    high = position + 1 if causal else np.full(n, rows)
    hidden = np.where(np.arange(rows) < high[:, None], 0.0, -np.inf)
    added = np.broadcast_to(hidden, (layers * batch, heads, n, rows))
    q, k, v = (np.asarray(a).reshape(layers * batch, *a.shape[2:]) for a in (meter.taken(queries), keys, values))
    asked = strict.Asked(added, np.zeros(n, np.int64), high)
    found = strict.attend(q, k, v, 0, asked, splits)
    return found.reshape(layers, batch, *found.shape[1:])


def fits(config: Config, rows: Pair, n: int | None = None) -> bool:
    """Whether rows are of all layers and of the config's geometry, as many keys as values, n of them if it says
    so."""
    count = (rows.keys.shape[3] if rows.keys.ndim == 5 else -1) if n is None else n
    right = [(config.layers, *config.shape(kind, count)) for kind in "kv"]
    return [a.shape for a in rows] == right and {a.dtype for a in rows} == {DTYPES[config.dtype]}


def asks(config: Config, queries: Array, splits: int, out: Array | None, n: int | None = None) -> bool:
    """Tell whether queries and options can be asked. Queries must be of all layers and of the config's geometry,
    and n of them if n is given. There must be splits. A given output must have the right shape and dtype, and be
    writeable."""
    shape = (*queries.shape[:-1], config.v_dim)
    if out is not None and (out.shape != shape or out.dtype != np.float32 or not out.flags.writeable):
        return False
    if queries.ndim != 5 or queries.dtype != np.float32 or splits < 1:
        return False
    layers, batch, heads, count, dim = queries.shape
    right = (layers, batch, dim) == (config.layers, config.batch, config.k_dim) and heads >= 1
    return right and heads % config.kv_heads == 0 and n in (None, count)
