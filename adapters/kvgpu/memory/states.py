"""States of layers that fold their tokens, in one device block: they take as many bytes at any offset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvgpu.memory.buffers import Workspace
from kvgpu.memory.layout import Place
from kvgpu.memory.row_groups import MOST_PARTS
from kvgpu.runtime import Block, Work
from kvspec.geometry import DTYPES, Array, Config


class States:
    """One state `[kv_heads, k_dim, v_dim]` in f32 for each of `blocks`: which of the layers given rows have one.
    At offset 0 they are zeros, whatever the block holds; there is a block from the first append on."""

    def __init__(self, space: Workspace, config: Config, blocks: Sequence[int]) -> None:
        self.space, self.config, self.count = space, config, len(blocks)
        self.nbytes = 4 * self.count * config.kv_heads * config.k_dim * config.v_dim
        self.block: Block | None = None
        if blocks:
            self.blocks = space.runtime.allocate(4 * self.count)
            space.runtime.upload(np.array(blocks, np.int32), self.blocks)

    @property
    def held(self) -> int:
        """Count the bytes that are allocated."""
        return 0 if self.block is None else self.nbytes

    def release(self) -> None:
        """Give the memory back."""
        if self.block is not None:
            self.block.release()
        self.block = None

    def ready(self) -> None:
        """Allocate the states, if there are any. Raises MemoryError."""
        if self.count and self.block is None:
            self.block = self.space.runtime.allocate(self.nbytes)

    def append(self, source: Place, offset: int) -> None:
        """Fold the packed rows `[layers, kv_heads, n, dim]`, which stand at the positions from `offset` on."""
        if self.block is None:
            return
        config, size = self.config, DTYPES[self.config.dtype].itemsize
        work = Work(config.v_dim, config.k_dim, self.count, min(config.kv_heads, MOST_PARTS))
        where = source.slots, config.k_dim, config.v_dim, source.keys_at // size, source.values_at // size
        blocks = source.keys, source.values, self.block, self.blocks
        kernel = f"fold_{config.dtype}"
        self.space.runtime.launch(kernel, work, *blocks, self.count, config.kv_heads, *where, int(offset == 0))

    def save(self) -> Block | None:
        """Copy the states; none if there are none. Raises MemoryError."""
        if self.block is None:
            return None
        made = self.space.runtime.allocate(self.nbytes)
        self._copy(self.block, made)
        return made

    def put_back(self, saved: Block | None) -> None:
        """Become what was saved; none where states are zeros. There is a block: see `ready`."""
        if saved is not None and self.block is not None:
            self._copy(saved, self.block)

    def receive(self, states: Sequence[Array]) -> None:
        """Upload these states, `[kv_heads, k_dim, v_dim]` in f32; none where they are zeros. There is a block."""
        if states and self.block is not None:
            self.space.runtime.upload(np.stack(states), self.block)

    def _copy(self, source: Block, to: Block) -> None:
        self.space.runtime.copy(source, to)
        self.space.runtime.meter.device_to_device += self.nbytes

    def read(self, offset: int) -> Array:
        """Download the states at an offset, `[count, kv_heads, k_dim, v_dim]`."""
        shape = self.count, self.config.kv_heads, self.config.k_dim, self.config.v_dim
        if offset == 0 or self.block is None:
            return np.zeros(shape, np.float32)
        return self.space.runtime.download(self.block, 0, self.nbytes).view(np.float32).reshape(shape)
