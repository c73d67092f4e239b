"""Triton: a decode whose rows are split over programs, as engines do it. The number of splits is tried out."""

from __future__ import annotations

import importlib
import os
from functools import cache
from math import log2, sqrt
from types import MappingProxyType
from typing import Any, NamedTuple

from kvprofile.peers.array_work import WORK
from kvprofile.peers.gpu import paged, triton_kernels
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.torch_peer import Tensors, Torch
from kvspec.errors import CannotRun

SPLITS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of splits to try."""

ENOUGH = 1 << 13
"""Programs of a launch that need no splits."""

LOG2_E = 1.4426950408889634


class Tile(NamedTuple):
    """The queries and rows of a tile, and how a program runs."""

    asked: int
    rows: int
    warps: int
    stages: int

    @property
    def options(self) -> dict[str, int]:
        """Give these as arguments of a launch."""
        return {"ASKED": self.asked, "ROWS": self.rows, "num_warps": self.warps, "num_stages": self.stages}


def tile(width: int, itemsize: int, asked: int, page: int) -> Tile:
    """Choose a tile for keys of this many elements of this size, and this many queries of a key-value head. It fits
    the registers and the shared memory of an H100. Through pages every other stage waits for the table."""
    latent = width > 256
    queries = min(16 if itemsize == 4 else 64 if latent else 128, max(16, _above(asked)))
    few = latent or width * queries > 128 * 128
    stages = 2 if few or itemsize == 4 else 3
    return Tile(
        asked=queries,
        rows=16 if itemsize == 4 else 32 if few else 64,
        warps=8 if latent or queries == 128 else 4,
        stages=2 * stages - 1 if page else stages,
    )


class Kernels(Tensors):
    """torch with attention by Triton, with this many splits."""

    def __init__(self, splits: int = 1) -> None:
        super().__init__()
        self.form, self.splits = f"{splits} splits", splits
        self._lengths = cache(self._whole)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend over rows in place."""
        lengths = self._lengths(len(queries), seen or keys.shape[2])
        return self._run(queries, (keys, values), lengths[:, None], lengths, 0)

    def plan(self, batch: paged.Batch, rows: Rows) -> paged.Plan:
        """Copy tables and lengths to the device."""
        return paged.Plan(batch, (self.wrap(batch.tables), self.wrap(batch.lengths)))

    def append_pages(self, pool: tuple[Any, Any], plan: paged.Plan, new: tuple[Any, Any]) -> None:
        """Write keys and values in one launch."""
        (batch, heads, n, width), value = new[0].shape, new[1].shape[3]
        sizes = {"K": width, "V": value, "PAGE": pool[0].shape[2], "WIDTH": _above(max(width, value))}
        tables, lengths = plan.made
        triton_kernels.append[n, heads, batch](
            *new, *pool, tables, lengths, n, tables.shape[1], *_strides(pool), **sizes, num_warps=1
        )

    def attend_pages(self, queries: Any, pool: tuple[Any, Any], plan: paged.Plan) -> Any:
        """Attend through the tables."""
        tables, lengths = plan.made
        return self._run(queries, pool, tables, lengths, pool[0].shape[2])

    def _whole(self, batch: int, seen: int) -> Any:
        """Make the lengths of sequences of this many rows each."""
        return self.torch.full((batch,), seen, dtype=self.torch.int32, device=self.device)

    def _run(self, queries: Any, rows: tuple[Any, Any], tables: Any, lengths: Any, page: int) -> Any:
        (batch, heads, n, width), kv_heads, value = queries.shape, rows[0].shape[1], rows[1].shape[3]
        asked, group, lines = heads // kv_heads * n, heads // kv_heads, batch * heads * n
        how = tile(width, queries.element_size(), asked, page)
        grid = -(-asked // how.asked), batch * kv_heads, self.splits
        if self.splits > 1 and grid[0] * grid[1] * self.splits > ENOUGH:
            raise ValueError(f"{grid[0] * grid[1]} programs need no {self.splits} splits")
        out = queries.new_empty((batch, heads, n, value))
        parts, sums = (out, out) if self.splits == 1 else self._parts(lines, value)
        triton_kernels.attend[grid](
            *(queries, *rows, tables, lengths, parts, sums, LOG2_E / sqrt(width)),
            *(n, kv_heads, tables.shape[1], *_strides(rows)),
            **{**_widths(width, value), "GROUP": group, "PAGE": page, "SPLIT": self.splits > 1},
            **how.options,
        )
        if self.splits > 1:
            each = min(128, _above(value))
            triton_kernels.join[lines, -(-value // each)](
                parts, sums, out, self.splits, V=value, MOST=_above(self.splits), WIDTH=each, num_warps=4
            )
        return out

    def _parts(self, lines: int, value: int) -> tuple[Any, Any]:
        shape = lines, self.splits
        options = {"dtype": self.torch.float32, "device": self.device}
        return self.torch.empty((*shape, value), **options), self.torch.empty(shape, **options)


@cache
def _widths(width: int, value: int) -> dict[str, int]:
    """Cut a key into two parts whose widths are powers of two, and at least 16."""
    main = max(16, 1 << int(log2(width)))
    rest = 0 if width <= main else max(16, _above(width - main))
    return {"K": width, "V": value, "MAIN": main, "REST": rest, "VALUE": max(16, _above(value))}


def _above(count: int) -> int:
    """The least power of two that is not below."""
    return 1 << (count - 1).bit_length()


def _strides(rows: tuple[Any, Any]) -> tuple[int, ...]:
    """Give the strides of sequences or pages, and of heads. Rows have no gaps."""
    assert all(array.stride()[2:] == (array.shape[3], 1) for array in rows)
    return rows[0].stride(0), rows[0].stride(1), rows[1].stride(0), rows[1].stride(1)


class Triton(Torch):
    """The peer: attention in place and through block tables."""

    name = "triton"
    work = MappingProxyType(
        {
            "attention": lambda rows: paged.attend_in_place(
                rows, rows.case.context + rows.case.rows, rows.case.rows
            ),
            "ring attention": lambda rows: paged.attend_in_place(rows, rows.case.context, rows.case.rows),
            "captured attention": lambda rows: paged.attend_in_place(rows, rows.case.context, 1),
            "ragged attention": paged.attend_to_lengths,
            "paged attention": paged.attend,
            "ragged paged attention": paged.attend_ragged,
        }
        | {name: WORK[name] for name in ("batch attention", "cross attention", "bucket decode")}
    )

    def __init__(self) -> None:
        super().__init__(*map(Kernels, SPLITS))
        if self.tensors.device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
            raise CannotRun("Triton needs a GPU that torch can use")
        self.words = f"triton {importlib.import_module('triton').__version__}, {self.words}"

    ways = (
        "rows written, in place and to pages, and attention by kernels of this project, the rows of a sequence "
        "split over 1 to 64 programs, whichever is fastest"
    )
