"""PyTorch: `PagedAttention` of flex_attention, which gives pages to sequences and writes their rows.

It has a row of its table for each sequence that there may be. Its pages are a sequence's own, and go back when the
sequence ends. So the adapter claims no forks, and no truncating. The rows are read through its table.
"""

from __future__ import annotations

from typing import Any

from kvadapters.one_kind import OneKind
from kvadapters.pools import Pool
from kvspec.contract import Pair
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    from torch.nn.attention.experimental._paged_attention import PagedAttention

    from kvadapters.arrays.torch import from_engine, to_engine
    from kvadapters.engines.torch import DTYPES
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); nox -s engines-torch installs it") from e

MOST = 4096
"""Sequences at once."""


class Paged(Pool):
    """A table, its buffers `[1, kv_heads, slots, dim]`, and the length of each sequence."""

    length = int

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.paged = PagedAttention(self.pages, self.size, MOST, "cpu")
        like = {"dtype": DTYPES[config.dtype]}
        shapes = ((1, config.kv_heads, self.pages * self.size, d) for d in (config.k_dim, config.v_dim))
        self.buffers = [torch.zeros(shape, **like) for shape in shapes]

    def admit(self) -> int:
        """Take a row of the table."""
        return self.added(0)

    def append(self, keys: Any, values: Any, sequence: int = 0) -> None:
        """Reserve pages, then write rows there."""
        new = [to_engine(each) for each in (keys, values)]
        if not new[0].shape[2]:
            return
        for buffer, rows in zip(self.buffers, new, strict=True):
            shape = (1, buffer.shape[1], new[0].shape[2], buffer.shape[3])
            if rows.dtype != buffer.dtype or rows.shape != shape:
                raise ValueError(f"rows of {rows.dtype} {tuple(rows.shape)}, and not {buffer.dtype} {shape}")
        begin, row = self.all[sequence], torch.tensor([sequence])
        end = begin + new[0].shape[2]
        self.paged.reserve(row, torch.tensor([end]))
        self.paged.assign(row, torch.arange(begin, end)[None], *new, *self.buffers)
        self.all[sequence] = end

    def drop(self, sequence: int) -> None:
        """Erase a row of the table."""
        del self.all[sequence]
        self.paged.erase(torch.tensor([sequence]))

    def read_sequence(self, sequence: int) -> Pair:
        """The rows of a sequence, through the table."""
        positions = torch.arange(self.all[sequence])
        slots = self.paged.page_table[sequence, positions // self.size] * self.size + positions % self.size
        return Pair(*(from_engine(buffer[0, :, slots]) for buffer in self.buffers))

    def free_pages(self) -> int:
        """Pages of nobody."""
        return len(self.paged.empty_pages)


WITHOUT = ["fork", "truncate", "gather", "peek"]
paged = OneKind("torch-paged", "page", Paged, {"without": WITHOUT}, {"version": str(torch.__version__)})
