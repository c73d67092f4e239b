"""Planting bugs in the reference: what is wrong, which clauses that breaks, and the adapter that has the bug.

A bug is a class under `planted`. If it only replaces text in methods of the reference, it is a row of the table
beside the module: `ring.toml` beside `ring.py`.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.catalogue import CLASSES, SEEN
from kvconform.bugs.mutant import Mutant, says
from kvref.abilities.attention import Answering, Seen
from kvref.abilities.draft import Layer, Round, speculative
from kvref.abilities.tree import Tree
from kvref.caches.bucket import Bucket
from kvref.caches.growing import Growing
from kvref.caches.page import Pages
from kvref.caches.ring import Ring
from kvref.caches.store import Store
from kvref.memory.compiled_graph import Graph
from kvref.memory.page_pool import Pool
from kvspec.contract import Pair
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit, Window
from kvspec.reading.clauses import Clause, index
from kvspec.rope.scaling import again

COMMON = "anomaly"
"""The class of common bugs, for which there is no report."""

OWNERS: dict[str, Any] = {
    c.__name__: c for c in (*Reference.caches.values(), Reference, Answering, Seen, Layer, Round, Tree, Pool, Graph)
}
"""The classes of the reference whose methods rows of tables change."""

NAMES = {"np": np, "DTYPES": DTYPES, "Causal": Causal, "Explicit": Explicit, "Window": Window, "again": again}
"""Names that a replacement text may use besides those of its module."""

Bug = TypeVar("Bug", bound=type)
"""A class that is wrong, and says how in its docstring."""

if TYPE_CHECKING:
    Over = Growing
else:
    Over = object
"""The classes under a fault of both growing caches and rings: either of them."""

Factory = Callable[[], Any]
"""Makes an adapter."""

PLANTED: dict[str, list[Mutant]] = defaultdict(list)
"""The bugs of each module, in the order in which they stand there."""


def planted(name: str, *, breaks: str, anomaly: str = "") -> Callable[[Bug], Bug]:
    """Plant the decorated class: it becomes a mutant, whose description is its docstring.

    `name` is an entry of the catalogue of real bugs (PAGE-06) or, for a common bug, an anomaly (stale-tail).
    `breaks` lists the clauses that it breaks. `anomaly` is for a real bug that is not what most of its class are.
    """

    def plant(bug: Bug) -> Bug:
        mutant = _mutant(f"{name}/{bug.__name__}", says(bug), breaks, anomaly, reference_with(bug), _kinds(bug))
        PLANTED[bug.__module__].append(mutant)
        return bug

    return plant


def _mutant(id_: str, sentence: str, breaks: str, anomaly: str, adapter: Factory, kinds: Collection[str]) -> Mutant:
    """A bug in caches of these kinds."""
    name, clauses = id_.partition("/")[0], tuple(breaks.split())
    if unknown := [clause for clause in clauses if clause not in index()]:
        raise BadInput(f"{id_}: breaks names {', '.join(unknown)}; there is no such clause")
    bug_class = name.partition("-")[0] if name in SEEN else COMMON
    return Mutant(
        id=id_,
        bug_class=bug_class,
        says=sentence,
        clauses=clauses,
        adapter=adapter,
        link=SEEN.get(name, ""),
        anomaly=anomaly or (CLASSES[bug_class].anomaly if name in SEEN else name),
        chapters=tuple(dict.fromkeys(chapter for c in clauses for chapter in _chapters(index()[c], kinds))),
    )


def _chapters(clause: Clause, kinds: Collection[str]) -> tuple[str, ...]:
    """The chapters whose traces show a clause that caches of these kinds break; of a general one those of them."""
    return tuple(c for c in clause.chapters if not clause.general or not kinds or c in kinds)


def _kinds(bug: type) -> Collection[str]:
    """The kinds of the caches that have a bug; none where it is in what opens or drafts."""
    return () if issubclass(bug, Reference | Layer | Round | Tree) else _caches(bug)


def of_row(id_: str, row: dict[str, str]) -> Mutant:
    """Give the mutant of a row: what it `says` and `breaks`, its `anomaly`, and the text in each method of `of`."""
    patches = [Patch(id_.partition("/")[2], of, row["was"], row["now"]) for of in row["of"].split()]

    def adapter() -> Any:
        return reference_with(*(patch.made() for patch in patches))()

    owners = (OWNERS.get(patch.of.partition(".")[0]) for patch in patches)
    kinds = {kind for kind in (getattr(owner, "kind", "") for owner in owners) if kind}
    return _mutant(id_, row["says"], row["breaks"], row.get("anomaly", ""), adapter, kinds)


class Patch(NamedTuple):
    """Another text in one method."""

    title: str
    of: str
    """`Ring.rewind`."""
    was: str
    """What stands there once."""
    now: str
    """The replacement. If it has several lines, those after the first are indented like the line of `was`."""

    def made(self) -> type:
        """The class with the other text in its method. Raises BadInput unless `was` occurs there exactly once."""
        owner, _, name = self.of.partition(".")
        method = inspect.unwrap(getattr(OWNERS.get(owner), name, None) or _no_method(self))
        source = retold(self.title, method, self.was, self.now)
        names = {**NAMES, **method.__globals__, owner: OWNERS[owner]}
        text = f"class {self.title}({owner}):\n{source}"
        exec(compile(text, f"<{self.of} patched>", "exec"), names)
        made: type = names[self.title]
        return speculative(made) if hasattr(made, "in_round") else made


def retold(title: str, method: Callable[..., Any], was: str, now: str) -> str:
    """Give the source of a method with the text `now` in place of `was`. Raises BadInput unless this occurs there
    exactly once."""
    source = inspect.getsource(method)
    if source.count(was) != 1:
        raise BadInput(f"{title}: was: {was!r} stands {source.count(was)} times in {method.__qualname__}, not once")
    line = source[: source.index(was)].rpartition("\n")[2]
    return source.replace(was, now.replace("\n", "\n" + " " * (len(line) - len(line.lstrip()))))


def _no_method(patch: Patch) -> NoReturn:
    raise BadInput(
        f"{patch.title}: of: the reference has no method {patch.of}; its classes are {', '.join(OWNERS)}"
    )


def reference_with(*bugs: Any) -> Factory:
    """Makes the reference with these classes in place of their base classes."""
    adapter: Factory = bugs[0]
    if issubclass(bugs[0], Reference):
        return adapter
    if issubclass(bugs[0], Layer):
        return speculating(layer=bugs[0])
    if issubclass(bugs[0], Round):
        return speculating(bugs[0])
    if issubclass(bugs[0], Tree):
        return speculating(tree=bugs[0])
    return having(**{kind: cache for bug in bugs for kind, cache in _caches(bug).items()})


def _caches(bug: Any) -> dict[str, type]:
    """The caches that have a bug, by their kinds. A class without a kind is laid over growing caches and rings, and
    over stores where it is about attention."""
    if issubclass(bug, Pool):
        return {Pages.kind: over(bug)}
    if issubclass(bug, Graph):
        return {Bucket.kind: type(bug.__name__, (Bucket,), {"graph": bug})}
    if issubclass(bug, Seen):
        return _caches(_seeing(bug))
    if hasattr(bug, "kind"):
        return {bug.kind: bug}
    kinds = (Growing, Ring, Store) if issubclass(bug, Answering) else (Growing, Ring)
    return {c.kind: type(bug.__name__, (bug, c), {"__doc__": bug.__doc__}) for c in kinds}


def _seeing(mask: type[Seen]) -> type[Answering]:
    """Attention through masks of such a class."""

    class Seeing(Answering):
        def attended(self, queries: Array, held: Pair, seen: Seen, splits: int) -> Array:
            return super().attended(queries, held, mask(seen.logical, seen.rows, seen.end), splits)

    return Seeing


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


def speculating(
    round_: type[Round] = Round, layer: type[Layer] = Layer, tree: type[Tree] = Tree
) -> Callable[[], Reference]:
    """Makes the reference with these rounds, their layers, and what the drafts of a layer hang on."""

    class Faulty(Reference):
        def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
            opened = round_(caches, isolated)
            for each in opened.layers.values():
                each.__class__, each.tree.__class__ = layer, tree
            return opened

    return Faulty
