"""Two ranks, each a process with its heads, whose parcels meet over gloo and part among ranks of other heads."""

from __future__ import annotations

from collections.abc import Sequence
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
FIELDS: dict[str, dict[str, Any]] = {
    "growing": {},
    "ring": {"window": 4},
    "sink": {"window": 4, "sinks": 1},
    "layers": {"of": "full,window:4,state", "layers": 3},
    "growing, rows of int8/1": {"form": "int8/1"},
    "growing, blocks of q8_0": {"form": "q8_0", "k_dim": 32, "v_dim": 32},
}
"""What goes between ranks: a kind, and its own fields."""


def whole(case: str) -> Config:
    """The config of all heads."""
    return WHOLE.changed(**FIELDS[case])


def rows(case: str) -> Pair:
    """Rows `[1, 4, 5, dim]` in f16, or those of each layer, each element another number."""
    config = whole(case)
    made = ((config.layers or 1, *config.shape(side, ROWS)[1:]) for side in "kv")
    return Pair(*(np.arange(1, 1 + np.prod(shape), dtype=np.float16).reshape(shape) for shape in made))


def opened(adapter: Any, case: str, heads: tuple[int, int]) -> Any:
    """A cache with these heads of all."""
    rank = f"{heads[0]}/{WHOLE.kv_heads}"
    return adapter.open(case.partition(",")[0], whole(case).changed(kv_heads=heads[1] - heads[0], rank=rank))


def parts_of(cache: Any) -> list[Parcel]:
    """What a cache packs, as parts."""
    made: Any = cache.pack()
    return made if isinstance(made, list) else [made]


def shown(cache: Any, case: str) -> Sequence[Array]:
    """What a cache shows, with its heads on the second axis: a view, or what each layer needs."""
    if case == "layers":
        return [array for part in parts_of(cache) for array in part.rows()]
    view: Pair = cache.read("view")
    return view


def own(arrays: Sequence[Array], heads: tuple[int, int]) -> list[Array]:
    """These heads of rows."""
    return [np.ascontiguousarray(a[:, slice(*heads)]) for a in arrays]


def differs(seen: Sequence[Array], wanted: Sequence[Array], heads: tuple[int, int]) -> bool:
    """Tell whether other rows are seen than these heads of what is wanted."""
    return any(a.tobytes() != b.tobytes() for a, b in zip(seen, own(wanted, heads), strict=True))


def rank(number: int, adapter: str, folder: str) -> None:
    """What each process does; it writes what is wrong into a file of its own."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number, world_size=len(BEFORE))
    wrong = [f"{case}: {what}" for case in FIELDS for what in exchanged(number, load(adapter), case)]
    (Path(folder) / f"rank{number}").write_text("\n".join(wrong), encoding="utf-8")
    dist.destroy_process_group()


def exchanged(number: int, adapter: Any, case: str) -> list[str]:
    """Pack the heads of one rank, send them to all, and unpack what came; tell what is wrong."""
    wrong, every = list[str](), opened(adapter, case, (0, WHOLE.kv_heads))
    every.append(*rows(case))
    wanted, cache = shown(every, case), opened(adapter, case, BEFORE[number])
    cache.append(*own(rows(case), BEFORE[number]))
    of_ranks: list[Any] = [None] * len(BEFORE)
    dist.all_gather_object(of_ranks, [tuple(part) for part in parts_of(cache)])
    first, *others = ([Parcel(*part) for part in parts] for parts in of_ranks[::-1])
    for heads in ((0, WHOLE.kv_heads), AFTER[number]):
        there = opened(adapter, case, heads)
        there.unpack(*first, *(part for parts in others for part in parts))
        wrong += [f"heads {heads} show other rows"] if differs(shown(there, case), wanted, heads) else []
        wrong += [] if missed(opened(adapter, case, heads), first, heads) else [f"heads {heads} miss no part"]
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
