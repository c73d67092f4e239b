"""PyTorch: `PagedAttention` of flex_attention, which gives pages to sequences and writes their rows.

It has a row of its table for each sequence that there may be. Its pages are a sequence's own, and go back when the
sequence ends. So the adapter claims no forks, and no truncating. The rows are read through its table.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from kvspec.contract import Pair
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Config, valid

try:
    import torch
    from torch.nn.attention.experimental._paged_attention import PagedAttention

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.engines.torch import DTYPES
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); nox -s engines-torch installs it") from e

MOST = 4096
"""Sequences at once."""


class Pool:
    """A table, its buffers `[1, kv_heads, slots, dim]`, and the length of each sequence by its number."""

    def __init__(self, config: Config) -> None:
        known = config.page_size and config.pages and config.debug in (None, 1)
        if not valid(config) or config.batch != 1 or not known:
            raise ValueError(f"no pool of {config}")
        self.paged = PagedAttention(config.pages, config.page_size, MOST, "cpu")
        slots, dtype = config.pages * config.page_size, DTYPES[config.dtype]
        self.buffers = [
            torch.zeros((1, config.kv_heads, slots, d), dtype=dtype) for d in (config.k_dim, config.v_dim)
        ]
        self.lengths = dict[int, int]()

    def admit(self) -> int:
        """Take a row of the table."""
        number = next(i for i in count() if i not in self.lengths)
        self.lengths[number] = 0
        return number

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Reserve pages, then write rows there."""
        new = [to_engine(each) for each in (keys, values)]
        if not new[0].shape[2]:
            return
        for buffer, rows in zip(self.buffers, new, strict=True):
            shape = (1, buffer.shape[1], new[0].shape[2], buffer.shape[3])
            if rows.dtype != buffer.dtype or rows.shape != shape:
                raise ValueError(f"rows of {rows.dtype} {tuple(rows.shape)}, and not {buffer.dtype} {shape}")
        begin, row = self.lengths[sequence], torch.tensor([sequence])
        end = begin + new[0].shape[2]
        self.paged.reserve(row, torch.tensor([end]))
        self.paged.assign(row, torch.arange(begin, end)[None], *new, *self.buffers)
        self.lengths[sequence] = end

    def drop(self, sequence: int) -> None:
        """Erase a row of the table."""
        del self.lengths[sequence]
        self.paged.erase(torch.tensor([sequence]))

    def sequences(self) -> list[int]:
        """The length of each sequence."""
        return [self.lengths.get(i, -1) for i in range(max(self.lengths, default=-1) + 1)]

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a sequence, through the table."""
        positions = torch.arange(self.lengths[sequence])
        size = self.paged.page_size
        slots = self.paged.page_table[sequence, positions // size] * size + positions % size
        return Pair(*(from_engine(buffer[0, :, slots]) for buffer in self.buffers))

    def free_pages(self) -> int:
        """Pages of nobody."""
        return len(self.paged.empty_pages)


class Paged:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        claim = {"level": "visible", "without": ["fork", "truncate", "gather", "peek"]}
        return {"name": "torch-paged", "version": str(torch.__version__), "chapters": {"page": claim}}

    def open(self, kind: str, config: Config) -> Pool:
        """A fresh pool."""
        if kind != "page":
            raise Unsupported(f"no kind {kind}")
        return Pool(config)


paged = Paged
