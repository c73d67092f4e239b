"""Planting a real bug: what says what it is, and how the reference comes to have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kvadapters.reference import Reference
from kvconform.mutants.mutant import Mutant
from kvref.draft import Layer, Round
from kvspec.reading.clauses import index

GITHUB = "https://github.com/"
"""Where all of them were seen."""


def planted(
    entry: str, seen: str, clauses: tuple[str, ...], wrong: Callable[..., Any], adapter: Callable[[], Any]
) -> Mutant:
    """An entry of the catalogue, where on GitHub it was seen, the clauses it breaks, what is wrong, which says so
    in its docstring, and the adapter that has it."""
    name = wrong.__name__ if isinstance(wrong, type) else wrong.__name__.title().replace("_", "")
    return Mutant(
        f"{entry}/{name}",
        entry.partition("-")[0],
        " ".join((wrong.__doc__ or "").split()),
        clauses,
        adapter,
        GITHUB + seen,
        tuple(dict.fromkeys(index()[c].chapter for c in clauses)),
    )


def having(**kinds: Any) -> Callable[[], Reference]:
    """Makes the reference with other caches of some kinds."""
    return type("Faulty", (Reference,), {"caches": {**Reference.caches, **kinds}})


def speculating(round_: type[Round] = Round, layer: type[Layer] = Layer) -> Callable[[], Reference]:
    """Makes the reference with these rounds and layers."""

    class Faulty(Reference):
        def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
            made = round_(caches, isolated)
            for found in made.layers.values():
                found.__class__ = layer
            return made

    return Faulty
