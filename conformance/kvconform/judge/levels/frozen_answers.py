"""What the reference answers to a frozen trace, as a hash: an adapter that answers the same needs no oracle."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from kvspec.contract import Description
from kvspec.geometry import Array
from kvspec.registry import CACHES
from kvspec.session.step import Step
from kvspec.trace import Trace, used_chapters
from kvspec.wire.framing import NAMES


def suffice(trace: Trace, adapter: Description, level: str) -> bool:
    """Tell whether all that is compared of an adapter is frozen.

    It is if the adapter is judged slot by slot, is observed as the reference is, and grows as the reference does.
    """
    if trace.frozen is None or level != "storage":
        return False
    used = used_chapters(trace)
    steps = all(adapter.chapters[kind].grows == "step" for kind in used.intersection(CACHES))
    return steps and adapter.shows_all(used)


class Digest:
    """A hash of what is compared of steps beside their results: values and arrays. Counts have bounds instead."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, step: Step) -> None:
        """Take in the next step."""
        values = sorted(item for item in step.values.items() if item[0] != "meter")
        self._hash.update(f"{values} {array_hash(step.arrays)};".encode())

    def __str__(self) -> str:
        return self._hash.hexdigest()


def array_hash(arrays: Mapping[str, Array | None]) -> str:
    """Give the CRC-32 of arrays in the order of their names, in 8 hex digits. Each gives its name, dtype and shape,
    as `state.k f16[1, 1, 4, 8];`, then its bytes in C order, little-endian. Of no array, `mask none;`."""
    found = 0
    for name, array in sorted(arrays.items()):
        if array is None:
            found = crc32(f"{name} none;".encode(), found)
            continue
        found = crc32(_head(name, array.dtype, array.shape), found)
        if array.size:
            found = crc32(np.ascontiguousarray(array).view(np.uint8).data, found)
    return f"{found:08x}"


@lru_cache(maxsize=4096)
def _head(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{name} {NAMES.get(dtype)}{list(shape)};".encode()
