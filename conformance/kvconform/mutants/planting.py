"""Planting bugs in the reference: a decorator says which bug it is, which clauses it breaks, where it was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeVar

from kvadapters.reference import Reference
from kvconform.mutants.bug_classes import CLASSES
from kvconform.mutants.mutant import Mutant, says
from kvref.draft import Layer, Round
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.reading.clauses import index

GITHUB = "https://github.com/"
"""Where all real bugs were seen."""

COMMON = "anomaly"
"""The class of common bugs, which nobody reported here."""

Bug = TypeVar("Bug", bound=Callable[..., Any])
"""A class or a function that is wrong, and says how in its docstring."""

_PLANTED: dict[str, list[Mutant]] = defaultdict(list)
"""The bugs of each module, in the order in which they stand there."""


def planted(
    name: str,
    *,
    breaks: str,
    seen: str = "",
    anomaly: str = "",
    into: Callable[[Any], Callable[[], Any]] | None = None,
) -> Callable[[Bug], Bug]:
    """Plant the decorated class or function: it becomes a mutant, whose description is its docstring.

    `name` is an entry of the catalogue of real bugs (PAGE-06) or, for a common bug, an anomaly (stale-tail).
    `breaks` lists the clauses that it breaks. `seen` is the path on GitHub where a real bug was seen. `anomaly` is
    for a real bug that is not what most of its class are. `into` turns what is decorated into the factory of an
    adapter; by default that is `reference_with`.
    """

    def plant(bug: Bug) -> Bug:
        clauses = tuple(breaks.split())
        title = bug.__name__ if isinstance(bug, type) else bug.__name__.title().replace("_", "")
        bug_class = name.partition("-")[0] if seen else COMMON
        mutant = Mutant(
            id=f"{name}/{title}",
            bug_class=bug_class,
            says=says(bug),
            clauses=clauses,
            adapter=(into or reference_with)(bug),
            link=seen and GITHUB + seen,
            anomaly=anomaly or (CLASSES[bug_class].anomaly if seen else name),
            chapters=tuple(dict.fromkeys(index()[c].chapter for c in clauses)),
        )
        _PLANTED[bug.__module__].append(mutant)
        return bug

    return plant


def planted_in(*modules: ModuleType) -> Iterator[Mutant]:
    """The bugs that are planted in these modules, in the order in which they stand there."""
    for module in modules:
        yield from _PLANTED[module.__name__]


def reference_with(bug: Any) -> Callable[[], Any]:
    """Makes the reference with this class in the place of the one that it derives from; a class without a kind is
    laid over both growing caches and rings."""
    if issubclass(bug, Layer):
        return speculating(layer=bug)
    if issubclass(bug, Round):
        return speculating(bug)
    if hasattr(bug, "kind"):
        return having(**{bug.kind: bug})
    adapter: Callable[[], Any] = bug if issubclass(bug, Reference) else having(**both(bug))
    return adapter


def both(fault: type) -> dict[str, type]:
    """The fault laid over a growing cache and over a ring."""
    return {c.kind: type(fault.__name__, (fault, c), {"__doc__": fault.__doc__}) for c in (Growing, Ring)}


def having(**kinds: Any) -> Callable[[], Reference]:
    """Makes the reference with other caches of some kinds."""
    return type("Faulty", (Reference,), {"caches": {**Reference.caches, **kinds}})


def speculating(round_: type[Round] = Round, layer: type[Layer] = Layer) -> Callable[[], Reference]:
    """Makes the reference with these rounds and layers."""

    class Faulty(Reference):
        def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
            opened = round_(caches, isolated)
            for each in opened.layers.values():
                each.__class__ = layer
            return opened

    return Faulty
