"""The right caches that attacks are put on, and those that only must pass: designs, claims, dialects, manners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hostile.attacks.designs.claims import CLAIMS, Design
from kvadapters.reference import Reference
from kvspec.contract import CHAPTERS, Pair
from kvspec.geometry import Config
from kvworkshop import correct_variants
from support.engines import dialect_engines
from support.engines.foreign.forms import Nearest

KINDS_BESIDE = {
    "growing": ("mask", "snapshot", "draft", "mem", "residency", "attention", "rope", "questions", "parcels"),
    "ring": ("mask", "snapshot", "draft", "mem", "attention", "rope", "questions", "parcels"),
    "bounded": ("mask", "mem", "questions", "parcels"),
    "sink": ("mask", "questions", "parcels"),
    "store": ("batch", "mem", "attention"),
    "page": ("attention", "mem", "parcels"),
    "ragged": ("growing",),
    "bucket": ("attention",),
    "copy": ("mem",),
    "layers": ("questions", "parcels"),
    "keyed": (),
}
"""What a cache of the reference of one kind claims beside it."""


class Base(NamedTuple):
    """A right cache: its design, and what makes it."""

    name: str
    kind: str
    make: Callable[[], Any]


class Claiming:
    """An adapter that claims less than it can, or says other things of itself; `manner` changes what it gives."""

    def __init__(
        self,
        base: Any,
        chapters: dict[str, Any] | None = None,
        manner: Callable[[Any], Any] | None = None,
        **said: Any,
    ) -> None:
        self.base, self.chapters, self.manner, self.said = base, chapters, manner, said

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.base, name)
        return partial(plainly, found) if name == "speculate" and found and self.manner else found

    def describe(self) -> dict[str, Any]:
        """The base's words, but for these."""
        said = dict(self.base.describe())
        return {**said, "chapters": self.chapters or said["chapters"], **self.said}

    def open(self, kind: str, config: Config) -> Any:
        """A cache of the base."""
        cache = self.base.open(kind, config)
        return cache if self.manner is None else Mannered(cache, self.manner)


class Mannered:
    """A cache that hands out the same rows in another manner."""

    def __init__(self, cache: Any, manner: Callable[[Any], Any]) -> None:
        self.__dict__.update(cache=cache, manner=manner)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.cache, name)
        if not callable(found):
            return found
        return partial(self._told if name in SHOWING else plainly, found)

    def _told(self, do: Callable[..., Any], *given: Any) -> Any:
        found = plainly(do, *given)
        if isinstance(found, Pair):
            return Pair(*map(self.manner, found))
        return self.manner(found) if isinstance(found, np.ndarray) else found


SHOWING = ("read", "read_sequence", "mask", "history")
"""Methods that give arrays."""


def plainly(do: Callable[..., Any], *given: Any) -> Any:
    """Call something of a base with its own caches."""
    return do(*map(_plain, given))


def _plain(thing: Any) -> Any:
    if isinstance(thing, Mannered):
        return thing.__dict__["cache"]
    return [_plain(t) for t in thing] if isinstance(thing, list) else thing


def claims(kind: str, level: str = "storage") -> dict[str, Any]:
    """A kind and what goes with it, at a level."""
    return {chapter: level for chapter in CHAPTERS if chapter in (kind, *KINDS_BESIDE[kind])}


def reference(kind: str, level: str = "storage", adapter: Callable[[], Any] = Reference) -> Any:
    """A kind of an adapter that has all."""
    return Claiming(adapter(), claims(kind, level))


VARIANTS = {
    "Linked": "growing",
    "Whole": "ring",
    "HeadMajor": "store",
    "FromTheTop": "page",
    "MoreThanRagged": "ragged",
    "PagedRing": "ring",
    "RowLimit": "bounded",
    "LazyWrites": "growing",
}
"""Correct variants of one kind."""


def variant(name: str) -> Any:
    """A correct variant, which claims what it is about."""
    made: Any = getattr(correct_variants, name)()
    said, of = made.describe()["chapters"], correct_variants.VARIANTS[type(made)]
    return Claiming(made, {chapter: claim for chapter, claim in said.items() if chapter in of})


FORMED = ("growing", "ring")
"""The kinds that are attacked in forms."""

FORMS_OF: dict[str, tuple[Callable[[], Any], str, tuple[str, ...]]] = {
    "in forms": (Reference, "storage", ("forms", "parcels")),
    "nearest": (Nearest, "visible", ("forms",)),
}
"""The caches that have forms: what makes them, at what level, and what they claim beside their kind."""


def formed(kind: str, name: str) -> Any:
    """A kind of one of them, with its forms."""
    make, level, beside = FORMS_OF[name]
    return Claiming(make(), dict.fromkeys((kind, *beside), level))


def bases() -> list[Base]:
    """Those that attacks are put on: every kind in several designs."""
    made = [Base(f"reference {kind}", kind, partial(reference, kind)) for kind in KINDS_BESIDE]
    made += [Base(f"reference {kind}, visible", kind, partial(reference, kind, "visible")) for kind in KINDS_BESIDE]
    made += [Base(name, kind, partial(variant, name)) for name, kind in VARIANTS.items()]
    made += [
        Base(f"{name} {kind}", kind, partial(reference, kind, "storage", getattr(correct_variants, name)))
        for name in ("Transposed", "FromTheEnd")
        for kind in ("growing", "ring", "sink", "store")
    ]
    made += [Base(f"{name} {kind}", kind, partial(formed, kind, name)) for kind in FORMED for name in FORMS_OF]
    return made + [Base(d.__name__, d.kind, partial(Design, d)) for d in CLAIMS]


MANNERS: dict[str, Callable[[Any], Any]] = {
    "Fortran order": lambda a: np.array(a, order="F"),
    "a view of every second element": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "read-only": lambda a: np.broadcast_to(a.copy(), a.shape),
    "a slice of a larger array": lambda a: (
        np.concatenate([a, a], axis=-2)[..., : a.shape[-2], :] if a.ndim > 1 else a
    ),
}
"""Other ways to hand out the same rows."""

LIMITS: dict[str, dict[str, Any]] = {
    "f16 alone": {"dtypes": ["f16"]},
    "one sequence": {"limits": {"batch": 1}},
    "five rows at once": {"limits": {"append": 5}},
    "two heads": {"limits": {"heads": 2}},
    "40 rows": {"limits": {"rows": 40}},
    "widths of 8": {"limits": {"dims": {"multiple": 8, "equal": True}}},
}
"""What right caches may say that they do not take; those of the list refuse it."""

KEPT = (
    *("chunk_kept", "capacity_kept", "strictly_below", "rows_kept", "since_append_kept", "clamped_kept"),
    *("at_zero_kept", "keeps_less_one", "keeps_window", "keeps_all", "keeps_more", "retains_less_one", "left_kept"),
    *(
        "made_after_kept",
        "first_kept",
        "for_good_kept",
        "caller_kept",
        "Views",
        "wide_kept",
        "even_kept",
        "few_kept",
    ),
)
"""Engines of other dialects, which keep what they declare."""


def right() -> Iterator[Base]:
    """All that must pass: the bases, those in other manners, with declared limits, and of other dialects."""
    all_ = bases()
    yield from all_
    plain = [base for base in all_ if base.name.startswith("reference") or base.name in VARIANTS]
    for i, (name, manner) in enumerate(MANNERS.items()):
        for base in plain[i :: len(MANNERS)]:
            if base.kind not in ("copy", "bucket"):
                yield Base(f"{base.name}, {name}", base.kind, partial(_mannered, base, manner))
    for kind in ("growing", "ring"):
        for name, said in LIMITS.items():
            yield Base(f"limited {kind}: {name}", kind, partial(Limited, kind, said))
    for name in KEPT:
        kind = "growing" if name in ("caller_kept", "Views") else "ring"
        yield Base(f"dialect {name}", kind, partial(_kept, name))


def _kept(name: str) -> Any:
    """An engine by its name: an adapter, or a class of one."""
    found = getattr(dialect_engines, name)
    return found() if isinstance(found, type) else found


def _mannered(base: Base, manner: Callable[[Any], Any]) -> Any:
    return Claiming(base.make(), manner=manner)


class Limited(Claiming):
    """The reference's cache with a declared limit."""

    def __init__(self, kind: str, said: dict[str, Any]) -> None:
        super().__init__(Reference(), {kind: "visible", "mask": "visible"}, **said)
