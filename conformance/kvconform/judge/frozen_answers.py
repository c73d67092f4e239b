"""What the reference answers to a frozen trace, as a hash: an adapter that answers the same needs no oracle."""

from __future__ import annotations

import hashlib

from kvconform.oracle.reference import REFERENCE
from kvspec.contract import Description
from kvspec.geometry import Array
from kvspec.registry import CACHES
from kvspec.session.step import Step
from kvspec.trace import Trace, used_chapters
from kvspec.wire.messages import NAMES


def suffice(trace: Trace, adapter: Description, level: str) -> bool:
    """Tell whether all that is compared of an adapter is frozen.

    It is if the adapter is judged slot by slot, is observed as the reference is, and grows as the reference does.
    """
    if trace.frozen is None or level != "storage":
        return False
    used = used_chapters(trace)
    steps = all(adapter.chapters[kind].grows == "step" for kind in used.intersection(CACHES))
    return steps and adapter.observed(used) == REFERENCE.observed(used)


class Digest:
    """A hash of what is compared of steps beside their results: values and arrays. Counts have bounds instead."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, step: Step) -> None:
        """Take in the next step."""
        self._hash.update(_compared(step))

    def __str__(self) -> str:
        return self._hash.hexdigest()


def _compared(step: Step) -> bytes:
    """Everything of a step that the judge at level storage compares, but its result."""
    values = sorted(item for item in step.values.items() if item[0] != "meter")
    arrays = (name.encode() + _bytes(array) for name, array in sorted(step.arrays.items()))
    return b"".join((repr(values).encode(), *arrays))


def _bytes(array: Array | None) -> bytes:
    return b" none;" if array is None else f" {NAMES.get(array.dtype)}{array.shape};".encode() + array.tobytes()
