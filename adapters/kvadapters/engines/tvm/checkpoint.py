"""Apache TVM: a checkpoint of a sequence as a parcel: its metadata as a descriptor, and the other way round."""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import numpy as np

from kvadapters.engines.tvm.runtime import FLOATS, call, tensor
from kvspec.parcels import VERSION, Parcel, spans

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


def metadata(cache: Any, sequence: int) -> dict[str, Any]:
    """What TVM says of a sequence."""
    found: dict[str, Any] = json.loads(call("attention_kv_cache_get_checkpoint_metadata")(cache, sequence))
    return found


def exported(cache: Any, sequence: int) -> Parcel:
    """Export the group of pages of a sequence."""
    said = metadata(cache, sequence)
    (group,) = said["groups"]
    pages = tensor(np.zeros(group["shape"], group["dtype"]))
    call("attention_kv_cache_export_page_group")(cache, sequence, group["group_index"], pages)
    data = pages.numpy().tobytes()
    return Parcel(descriptor(said, data), data, b"")


def imported(cache: Any, sequence: int, part: Parcel) -> None:
    """Import a group of pages for a sequence."""
    own = metadata(cache, sequence)
    said = announced(own, part)
    data = part.carried(order(said), own["page_size"]).keys
    pages = np.frombuffer(data, said["dtype"]).reshape(said["groups"][0]["shape"])
    call("attention_kv_cache_prepare_import")(cache, sequence, json.dumps(said))
    call("attention_kv_cache_import_page_group")(cache, sequence, 0, tensor(pages.copy()))
    call("attention_kv_cache_finish_import")(cache, sequence)


PARCELS = {"level": "visible", "with": ["pack", "unpack"]}
"""What is claimed of parcels."""
