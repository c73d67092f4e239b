"""Apache TVM: one sequence of the paged cache of its runtime, as a growing cache whose rows leave it and come back.

What leaves is what a checkpoint exports: a group of pages for each layer, and metadata that say how they lie. Axes,
positions and sizes of a parcel are read from these. Who imports one is handed metadata of the same form. TVM has no
sums of the bytes: those are the adapter's.
"""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import numpy as np

from kvadapters.engines.limits import check_batch
from kvadapters.engines.tvm.paged import FLOATS, SAID, Paged, call, tensor
from kvadapters.one_kind import OneKind
from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config, valid
from kvspec.parcels import VERSION, Parcel, spans

ROWS, PAGE = 1024, 4
"""The most rows that a cache is given, and the rows of a page."""

AXES = {"1": "B", "num_logical_pages": "P", "2": "K", "num_kv_heads": "H", "page_size": "N", "qk_head_dim": "D"}
"""What TVM calls the axes of a group of pages."""

NAMES = {name: dtype for dtype, name in FLOATS.items()}


def order(said: dict[str, Any]) -> str:
    """The axes of a group of pages, by their letters."""
    return "".join(AXES[axis] for axis in said["page_group_layout"].split(","))


def positions(said: dict[str, Any]) -> list[int]:
    """The positions of the rows in pages."""
    each = ((page["start_pos"], page["length"]) for page in said["logical_pages"])
    return [p for start, n in each for p in range(start, start + n)]


def descriptor(said: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The descriptor of what was exported."""
    heads = said["num_kv_heads"]
    rows = {"batch": 1, "kv_heads": heads, "k_dim": said["qk_head_dim"], "v_dim": said["v_head_dim"]}
    lies = {"order": order(said), "page": said["page_size"], "sums": [crc32(data), crc32(b"")]}
    there = {"heads": [0, heads], "offset": said["seq_length"], "spans": spans(positions(said))}
    return {"version": VERSION, **rows, "dtype": NAMES[said["dtype"]], "form": None, **there, **lies}


def announced(own: dict[str, Any], part: Parcel) -> dict[str, Any]:
    """The metadata of pages with the rows of a parcel. What a descriptor does not tell is as in the receiver's."""
    rows, size = part.descriptor, own["page_size"]
    starts = range(0, part.offset, size)
    pages = [
        {"logical_page_index": i, "start_pos": start, "length": min(size, part.offset - start)}
        for i, start in enumerate(starts)
    ]
    sizes = {"num_kv_heads": rows["kv_heads"], "qk_head_dim": rows["k_dim"], "v_head_dim": rows["v_dim"]}
    dtype = np.dtype(FLOATS[rows["dtype"]])
    shape = [1, len(pages), 2, rows["kv_heads"], size, rows["k_dim"]]
    said = {"num_logical_pages": len(pages), "dtype": dtype.name, "shape": shape}
    group = {**own["groups"][0], **said, "nbytes": int(np.prod(shape)) * dtype.itemsize}
    lies = {"seq_length": part.offset, "logical_pages": pages, "groups": [group], "dtype": dtype.name}
    return {**own, **sizes, **lies}


class Sequence:
    """Sequence 0 of a cache of one layer."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or config.window is not None:
            raise ValueError(f"no cache of {config}")
        check_batch(config, 1)
        self.pool, self.given = Paged(config.changed(page_size=PAGE, pages=ROWS // PAGE + 1)), 0
        self.pool.admit()

    def append(self, keys: Array, values: Array) -> None:
        """Do a forward pass."""
        if self.given + keys.shape[2] > ROWS:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        self.pool.append(keys, values)
        self.given += keys.shape[2]

    def read(self, what: str) -> Pair | None:
        """What the call for debugging shows."""
        if what != "view":
            raise Unsupported(f"no {what}")
        return Pair(*(rows[None] for rows in self.pool.read_sequence(0)))

    def lengths(self) -> Lengths:
        """The length of the sequence."""
        return Lengths(self.pool.length(0))

    def rewind(self, to: int) -> None:
        """Pop rows."""
        self.pool.truncate(0, to)

    def free(self) -> None:
        """Clear the cache, and add the sequence again."""
        call("kv_state_clear")(self.pool.cache)
        call("kv_state_add_sequence")(self.pool.cache, 0)

    def _metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(call("attention_kv_cache_get_checkpoint_metadata")(self.pool.cache, 0))
        return found

    def pack(self, sequence: int = 0) -> Parcel:
        """Export the group of pages."""
        said = self._metadata()
        (group,) = said["groups"]
        pages = tensor(np.zeros(group["shape"], group["dtype"]))
        call("attention_kv_cache_export_page_group")(self.pool.cache, 0, group["group_index"], pages)
        data = pages.numpy().tobytes()
        return Parcel(descriptor(said, data), data, b"")

    def unpack(self, *parts: Parcel) -> None:
        """Import a group of pages."""
        (part,) = parts
        said = announced(self._metadata(), part)
        data = part.carried(order(said), PAGE).keys
        pages = np.frombuffer(data, said["dtype"]).reshape(said["groups"][0]["shape"])
        call("attention_kv_cache_prepare_import")(self.pool.cache, 0, json.dumps(said))
        call("attention_kv_cache_import_page_group")(self.pool.cache, 0, 0, tensor(pages.copy()))
        call("attention_kv_cache_finish_import")(self.pool.cache, 0)


LIMITS = {"dims": {"equal": True}, "batch": 1, "rows": ROWS}
CLAIM = {"with": ["view", "offset", "rewind", "free", "bits", "zero", "batch"]}
PARCELS = {"level": "visible", "with": ["pack", "unpack"]}
growing = OneKind("tvm-growing", "growing", Sequence, CLAIM, {**SAID, "limits": LIMITS}, {"parcels": PARCELS})
