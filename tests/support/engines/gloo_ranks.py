"""Two ranks, each a process with its heads, whose parcels meet over gloo and part among ranks of other heads."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch.distributed as dist
import torch.multiprocessing as mp

from kvadapters.find import load
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.parcels import Parcel

WHOLE = Config(kv_heads=4, step=4)
ROWS = 5
BEFORE, AFTER = ((0, 2), (2, 4)), ((0, 1), (1, 4))
"""The heads of each rank when rows are appended, and of those that they go to."""
KINDS = ("growing", "ring", "sink")
FIELDS: dict[str, dict[str, int]] = {"ring": {"window": 4}, "sink": {"window": 4, "sinks": 1}}


def rows() -> Pair:
    """Rows `[1, 4, 5, dim]` in f16, each element another number."""
    made = (WHOLE.shape(kind, ROWS) for kind in "kv")
    return Pair(*(np.arange(1, 1 + np.prod(shape), dtype=np.float16).reshape(shape) for shape in made))


def opened(adapter: Any, kind: str, heads: tuple[int, int]) -> Any:
    """A cache with these heads of all."""
    rank = f"{heads[0]}/{WHOLE.kv_heads}"
    return adapter.open(kind, WHOLE.changed(kv_heads=heads[1] - heads[0], rank=rank, **FIELDS.get(kind, {})))


def own(pair: Pair, heads: tuple[int, int]) -> tuple[Array, Array]:
    """These heads of rows."""
    keys, values = (np.ascontiguousarray(a[:, slice(*heads)]) for a in pair)
    return keys, values


def differs(cache: Any, wanted: Pair, heads: tuple[int, int]) -> bool:
    """Tell whether a cache shows other rows than these heads of what is wanted."""
    seen = cache.read("view")
    return any(a.tobytes() != b.tobytes() for a, b in zip(seen, own(wanted, heads), strict=True))


def rank(number: int, adapter: str, folder: str) -> None:
    """What each process does; it writes what is wrong into a file of its own."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number, world_size=len(BEFORE))
    wrong = [f"{kind}: {what}" for kind in KINDS for what in exchanged(number, load(adapter), kind)]
    (Path(folder) / f"rank{number}").write_text("\n".join(wrong), encoding="utf-8")
    dist.destroy_process_group()


def exchanged(number: int, adapter: Any, kind: str) -> list[str]:
    """Pack the heads of one rank, send them to all, and unpack what came; tell what is wrong."""
    wrong, whole = list[str](), opened(adapter, kind, (0, WHOLE.kv_heads))
    whole.append(*rows())
    wanted = whole.read("view")
    cache = opened(adapter, kind, BEFORE[number])
    cache.append(*own(rows(), BEFORE[number]))
    parts: list[Any] = [None] * len(BEFORE)
    dist.all_gather_object(parts, tuple(cache.pack()))
    came = [Parcel(*part) for part in parts[::-1]]
    for heads in ((0, WHOLE.kv_heads), AFTER[number]):
        there = opened(adapter, kind, heads)
        there.unpack(*came)
        wrong += [f"heads {heads} show other rows"] if differs(there, wanted, heads) else []
        wrong += [] if missed(opened(adapter, kind, heads), came[:1], heads) else [f"heads {heads} miss no part"]
    return wrong


def missed(cache: Any, parts: list[Parcel], heads: tuple[int, int]) -> bool:
    """Tell whether parts are refused just where they lack one of these heads."""
    there = {head for part in parts for head in part.heads}
    try:
        cache.unpack(*parts)
    except Refused as e:
        return e.clause == "MOVE-17" and not set(range(*heads)) <= there
    return set(range(*heads)) <= there


def meet(adapter: str) -> list[str]:
    """Start both ranks, and give what they found wrong."""
    with TemporaryDirectory() as folder:
        mp.spawn(rank, (adapter, folder), nprocs=len(BEFORE))
        found = ((Path(folder) / f"rank{n}").read_text(encoding="utf-8") for n in range(len(BEFORE)))
        return [f"rank {n}: {line}" for n, text in enumerate(found) for line in text.splitlines()]
