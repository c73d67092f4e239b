"""Kernels with one fault each, and what caches answer with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kvgpu import kernels
from kvgpu.adapter import Caches
from kvworkshop.systematic.kernels import Changed, Chunk

T = TypeVar("T")


def answers(name: str, faults: Mapping[str, tuple[str, str]], work: Callable[[Caches], T]) -> list[T | str]:
    """What caches answer with the kernels of a file as they are, then with each fault: a change to the file's text.
    A fault that writes where no slots are answers in words."""
    right = kernels.text(f"{name}.inc")
    assert [fault for fault, (old, _) in faults.items() if old not in right] == []
    chunk = Chunk(f"kernels/{name}", (None, *(right.replace(*fault) for fault in faults.values())))
    return [_answer(work, Changed((chunk,), number)()) for number in range(1 + len(faults))]


def _answer(work: Callable[[Caches], T], caches: Caches) -> T | str:
    try:
        return work(caches)
    except RuntimeError as e:
        return str(e)
