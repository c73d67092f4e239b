"""What OpenCL launches of a kernel have in common, worked out once: its shape, its size, how arguments are set."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from kvgpu.runtime import Block
from kvgpu.runtimes.launch_shapes import Axes

Arguments = tuple[Block | int, ...]
"""The arguments of a launch, blocks first."""

Compiled = tuple[Any, Callable[[Arguments], None]]
"""PyOpenCL's kernel, and what sets its arguments."""

HANDLE = attrgetter("handle")

LONG = "l"
"""The kind of integer that `_set_arg_buf_pack_multi` is told to pack."""


def setter(kernel: Any, buffers: int) -> Callable[[Arguments], None]:
    """Give the function that sets all arguments of a kernel, the first so many of them blocks.

    It calls what PyOpenCL's own generated code calls, two calls in all: `set_args` and a call of the kernel take
    twice as long. Where PyOpenCL lacks these, or an integer of C has not 64 bits, the function is `set_args`.
    """
    blocks, integers = (getattr(kernel, f"_set_arg_{name}", None) for name in ("multi", "buf_pack_multi"))
    if blocks is None or integers is None or np.dtype(LONG).itemsize != 8:
        kernel.set_scalar_arg_dtypes([None] * buffers + [np.int64] * (kernel.num_args - buffers))
        return lambda args: kernel.set_args(*map(HANDLE, args[:buffers]), *args[buffers:])
    memory = [part for i in range(buffers) for part in (i, None)]
    packed: list[Any] = [part for i in range(buffers, kernel.num_args) for part in (i, LONG.encode(), 0)]

    def put(args: Arguments) -> None:
        places, numbers = memory.copy(), packed.copy()  # copies, which keep no memory alive
        places[1::2] = map(HANDLE, args[:buffers])
        numbers[2::3] = args[buffers:]
        blocks(tuple(places))
        integers(tuple(numbers))

    return put


class Ready:
    """A kernel in the shape of a launch. `words` is how much it moves, None where its blocks must tell."""

    __slots__ = ("_enqueue", "_group", "_items", "_kernel", "_set", "words")

    def __init__(self, cl: Any, compiled: Compiled, shape: tuple[Axes, Axes], words: int | None = None) -> None:
        self._enqueue, (self._kernel, self._set), self.words = cl.enqueue_nd_range_kernel, compiled, words
        self._group, self._items = shape[0], tuple(items * groups for items, groups in zip(*shape, strict=True))

    def start(self, queue: Any, args: Arguments) -> Any:
        """Set the arguments, enqueue the kernel, and give its event."""
        self._set(args)
        return self._enqueue(queue, self._kernel, self._items, self._group)
