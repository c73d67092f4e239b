"""Planting bugs in the reference: what is wrong, which clauses that breaks, and the adapter that has the bug.

A bug is a class or a function under `planted`. Where it is another text in one method of the reference, it is a row
of the table beside the module: `ring.toml` beside `ring.py`.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kvadapters.reference import Reference
from kvconform.mutants.catalogue import CLASSES, SEEN
from kvconform.mutants.mutant import Mutant, says
from kvref.bucket import Bucket
from kvref.compiled_graph import Graph
from kvref.draft import Layer, Round, speculative
from kvref.growing import Growing
from kvref.page import Pages
from kvref.page_pool import Pool
from kvref.ring import Ring
from kvspec.geometry import Config
from kvspec.reading.clauses import index
from kvspec.tables import table

COMMON = "anomaly"
"""The class of common bugs, which nobody reported here."""

OWNERS: dict[str, Any] = {c.__name__: c for c in (*Reference.caches.values(), Layer, Round, Pool, Graph)}
"""The classes of the reference whose methods rows of tables change."""

Bug = TypeVar("Bug", bound=Callable[..., Any])
"""A class or a function that is wrong, and says how in its docstring."""

Factory = Callable[[], Any]
"""Makes an adapter."""

_PLANTED: dict[str, list[Mutant]] = defaultdict(list)
"""The bugs of each module, in the order in which they stand there."""


def planted(
    name: str, *, breaks: str, anomaly: str = "", into: Callable[[Any], Factory] | None = None
) -> Callable[[Bug], Bug]:
    """Plant the decorated class or function: it becomes a mutant, whose description is its docstring.

    `name` is an entry of the catalogue of real bugs (PAGE-06) or, for a common bug, an anomaly (stale-tail).
    `breaks` lists the clauses that it breaks. `anomaly` is for a real bug that is not what most of its class are.
    `into` turns what is decorated into the factory of an adapter; by default that is `reference_with`.
    """

    def plant(bug: Bug) -> Bug:
        title = bug.__name__ if isinstance(bug, type) else bug.__name__.title().replace("_", "")
        mutant = _mutant(f"{name}/{title}", says(bug), breaks, anomaly, (into or reference_with)(bug))
        _PLANTED[bug.__module__].append(mutant)
        return bug

    return plant


def _mutant(id_: str, sentence: str, breaks: str, anomaly: str, adapter: Factory) -> Mutant:
    name, clauses = id_.partition("/")[0], tuple(breaks.split())
    bug_class = name.partition("-")[0] if name in SEEN else COMMON
    return Mutant(
        id=id_,
        bug_class=bug_class,
        says=sentence,
        clauses=clauses,
        adapter=adapter,
        link=SEEN.get(name, ""),
        anomaly=anomaly or (CLASSES[bug_class].anomaly if name in SEEN else name),
        chapters=tuple(dict.fromkeys(index()[c].chapter for c in clauses)),
    )


def planted_in(*modules: ModuleType) -> Iterator[Mutant]:
    """The bugs that are planted in these modules, and in the tables beside them."""
    for module in modules:
        yield from _PLANTED[module.__name__]
        package, _, name = module.__name__.rpartition(".")
        if files(package).joinpath(f"{name}.toml").is_file():
            yield from (_of_row(id_, row) for id_, row in table(package, name).items())


def _of_row(id_: str, row: dict[str, str]) -> Mutant:
    """The mutant of a row: what it `says` and `breaks`, its `anomaly`, and the `Patch` that it is."""
    patch = Patch(id_.partition("/")[2], row["of"], row["was"], row["now"])
    return _mutant(id_, row["says"], row["breaks"], row.get("anomaly", ""), lambda: reference_with(patch.made())())


class Patch(NamedTuple):
    """Another text in one method."""

    title: str
    of: str
    """`Ring.rewind`."""
    was: str
    """What stands there once."""
    now: str
    """What stands there instead; of several lines, those after the first are indented like the line of `was`."""

    def made(self) -> type:
        """The class with the other text in its method. Raises LookupError where `was` does not stand there once."""
        owner, _, name = self.of.partition(".")
        method = inspect.unwrap(getattr(OWNERS[owner], name))
        source = inspect.getsource(method)
        if source.count(self.was) != 1:
            raise LookupError(f"{self.title}: {self.was!r} does not stand in {self.of} once")
        line = source[: source.index(self.was)].rpartition("\n")[2]
        indented = self.now.replace("\n", "\n" + " " * (len(line) - len(line.lstrip())))
        names = {"np": np, **method.__globals__, owner: OWNERS[owner]}
        text = f"class {self.title}({owner}):\n{source.replace(self.was, indented)}"
        exec(compile(text, f"<{self.of} patched>", "exec"), names)
        made: type = names[self.title]
        return speculative(made) if hasattr(made, "in_round") else made


def reference_with(bug: Any) -> Factory:
    """Makes the reference with this class in the place of the one that it derives from; a class without a kind is
    laid over both growing caches and rings."""
    if issubclass(bug, Layer):
        return speculating(layer=bug)
    if issubclass(bug, Round):
        return speculating(bug)
    if issubclass(bug, Pool):
        return having(page=over(bug))
    if issubclass(bug, Graph):
        return having(bucket=type(bug.__name__, (Bucket,), {"graph": bug}))
    if hasattr(bug, "kind"):
        return having(**{bug.kind: bug})
    adapter: Factory = bug if issubclass(bug, Reference) else having(**both(bug))
    return adapter


def both(fault: type) -> dict[str, type]:
    """The fault laid over a growing cache and over a ring."""
    return {c.kind: type(fault.__name__, (fault, c), {"__doc__": fault.__doc__}) for c in (Growing, Ring)}


def over(pool: type[Pool]) -> type[Pages]:
    """The paged cache over such a pool."""

    class Over(Pages):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.pool = pool(config)

    return Over


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
