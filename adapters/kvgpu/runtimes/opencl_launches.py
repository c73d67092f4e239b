"""What OpenCL launches of a kernel have in common, worked out once: its shape, its size, how arguments are set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from kvgpu.runtime import Block
from kvgpu.runtimes.launch_shapes import Axes

Arguments = tuple[Block | int, ...]
"""The arguments of a launch, blocks first."""

Setter = Callable[..., None]
"""Sets the arguments of a kernel."""

Compiled = tuple[Any, Setter, int]
"""PyOpenCL's kernel, what sets its arguments, and how many of them are blocks."""

HANDLE = attrgetter("handle")

LONG = "l"
"""The kind of integer that `_set_arg_buf_pack_multi` is told to pack."""


def setter(kernel: Any, buffers: int, fixed: Mapping[int, int] = MappingProxyType({})) -> Setter:
    """Give the function that sets all arguments of a kernel: those at some places to fixed integers, the others to
    what it is given. The first so many are blocks.

    It calls what PyOpenCL's own generated code calls, and passes a block as its address, which is what OpenCL
    reads: one call in all. `set_args` and a call of the kernel take four times as long. They are called where
    PyOpenCL lacks this, or an integer of C has not 64 bits. As PyOpenCL does, it makes an expression of all
    arguments: a list that is filled takes twice as long.
    """
    pack = getattr(kernel, "_set_arg_buf_pack_multi", None)
    if pack is None or np.dtype(LONG).itemsize != 8:
        return _plainly(kernel, buffers, fixed)
    made: Setter = _maker(kernel.num_args, buffers, tuple(fixed))(pack, *fixed.values())
    return made


@cache
def _maker(count: int, buffers: int, fixed: tuple[int, ...]) -> Callable[..., Setter]:
    """Give what makes a setter of PyOpenCL's call and of the fixed integers."""
    values = {i: f"a{i}.handle.int_ptr" if i < buffers else f"a{i}" for i in range(count)}
    packed = "".join(f"{i}, {LONG.encode()!r}, {value}, " for i, value in values.items())
    names = [f"a{i}" for i in range(count) if i not in fixed]
    known = "".join(f", a{i}" for i in fixed)
    made: Callable[..., Setter] = eval(f"lambda pack{known}: lambda {', '.join(names)}: pack(({packed}))")
    return made


def _plainly(kernel: Any, buffers: int, fixed: Mapping[int, int]) -> Setter:
    """Give the same by `set_args`."""
    kernel.set_scalar_arg_dtypes([None] * buffers + [np.int64] * (kernel.num_args - buffers))
    places = [i for i in range(kernel.num_args) if i not in fixed]

    def put(*args: Block | int) -> None:
        given = dict(zip(places, (*map(HANDLE, args[:buffers]), *args[buffers:]), strict=True))
        kernel.set_args(*({**given, **fixed}[i] for i in range(kernel.num_args)))

    return put


class Ready:
    """A kernel in the shape of a launch. `words` is how much it moves, None where its blocks must tell; `put` sets
    its arguments, and `enqueue` gives the event of its run on a queue."""

    __slots__ = ("compiled", "enqueue", "put", "shape", "words")

    def __init__(self, cl: Any, compiled: Compiled, shape: tuple[Axes, Axes], words: int | None = None) -> None:
        self.compiled, self.shape, self.words = compiled, shape, words
        start, (kernel, self.put, _) = cl.enqueue_nd_range_kernel, compiled
        group, items = shape[0], tuple(items * groups for items, groups in zip(*shape, strict=True))
        self.enqueue: Callable[[Any], Any] = lambda queue: start(queue, kernel, items, group)
