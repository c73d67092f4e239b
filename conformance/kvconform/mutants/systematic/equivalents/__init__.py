"""Mutants that no trace can find, each with the argument. `kvconform mutants --argued` tries them all the same."""

from __future__ import annotations

from kvconform.mutants.systematic.equivalents import gpu_caches, gpu_stores, kernels, reference

ARGUED: dict[str, str] = {**reference.ARGUED, **gpu_caches.ARGUED, **gpu_stores.ARGUED, **kernels.ARGUED}
"""Of each such mutant, by its id (without its number: all that are alike), why nothing can find it."""


def argument(id_: str, name: str) -> str:
    """Why nothing can find a mutant of this id, or of this name without its number; empty where a trace must."""
    return ARGUED.get(id_) or ARGUED.get(name, "")
