"""The axes of the arrays that methods take and give."""

from __future__ import annotations

from hostile.attacks.wrapper import Where

AXES: dict[Where, str] = {
    **{Where(kind, "append"): "bhnd" for kind in ("growing", "ring", "bounded", "sink")},
    **{Where(kind, "read"): "bhnd" for kind in ("growing", "ring", "bounded", "sink", "bucket")},
    **{Where(kind, "attend"): "bhnd" for kind in ("growing", "ring")},
    **{Where("store", method): "hnd" for method in ("read", "read_sequence")},
    Where("store", "append"): "lhnd",
    Where("store", "attend"): "xhnd",
    Where("store", "step"): "lshd",
    Where("store", "attend_batch"): "shnd",
    Where("work", "replay"): "lshd",
    Where("page", "append"): "xhnd",
    Where("page", "attend"): "xhnd",
    Where("page", "read_sequence"): "hnd",
    Where("page", "gather"): "hnd",
    **{Where("ragged", method): "shnd" for method in ("feed", "attend_block")},
    Where("ragged", "read_sequence"): "hnd",
    Where("ragged", "history"): "shnd",
    **{Where("bucket", m): "lbhnd" for m in ("prefill", "decode", "block", "encode", "cross")},
    Where("copy", "copy"): "nhd",
    **{Where("layers", method): "lhnd" for method in ("append", "branch")},
    Where("keyed", "request"): "xhnd",
    Where("keyed", "compute"): "xhnd",
    Where("keyed", "answer"): "xhnd",
    Where("keyed", "read_sequence"): "hnd",
    Where("layers", "histories"): "xhnd",
    Where("round", "draft"): "bhnd",
    Where("round", "read"): "bhnd",
    Where("adapter", "rotate"): "bhnd",
}
"""The axes of the arrays that a method takes, or gives if it takes none."""


def axes(where: Where) -> str:
    """Those of a method; none where it has no arrays of rows."""
    return AXES.get(where, "")
