"""What the reference answers to a frozen trace, as a hash: an adapter that answers the same needs no oracle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from kvconform.oracle import reference
from kvspec.contract import Description
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
    return steps and adapter.observed(used) == reference.claims().observed(used)


class Digest:
    """A hash of what is compared of steps beside their results: values and arrays. Counts have bounds instead."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, step: Step) -> None:
        """Take in the next step."""
        for part in _compared(step):
            self._hash.update(part)

    def __str__(self) -> str:
        return self._hash.hexdigest()


def _compared(step: Step) -> Iterator[bytes | memoryview]:
    """Everything of a step that the judge at level storage compares, but its result."""
    yield repr(sorted(item for item in step.values.items() if item[0] != "meter")).encode()
    for name, array in sorted(step.arrays.items()):
        if array is None:
            yield f"{name} none;".encode()
        else:
            yield _head(name, array.dtype, array.shape)
            yield np.ascontiguousarray(array).view(np.uint8).data if array.size else b""


@lru_cache(maxsize=4096)
def _head(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{name} {NAMES.get(dtype)}{shape};".encode()
