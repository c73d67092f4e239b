"""An adapter that is its base but for one thing: where the trigger of an attack is met, the effect happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kvspec.geometry import Array, Config

READS = frozenset(
    (
        "read",
        "read_sequence",
        "history",
        "histories",
        "mask",
        "gather",
        "host",
        "handle",
        "lengths",
        "sequences",
        "past",
    )
)
"""Methods that only look; they count as an observation, and not as a change."""

SILENT = frozenset(
    (
        *("held", "addresses", "free_pages", "transfers", "table", "references", "starts", "positions", "bound"),
        *("ran", "states", "meter", "offset", "can_rewind", "can_append", "can_restore", "plan", "fit"),
        "fingerprint",
    )
)
"""Methods that neither change anything nor show rows."""

OWN = ("rotate", "meter")
"""Methods of an adapter that attacks are on."""


class Where(NamedTuple):
    """What an attack is on: a kind of cache and a method of it; `round`, `work` and `adapter` are kinds too."""

    kind: str
    method: str


RECENT = 8
"""Rows that the life of a cache remembers over calls: what is wrong about neighbours may compare so many."""


@dataclass
class Life:
    """What happened to one cache so far."""

    config: Config
    calls: Counter[str] = field(default_factory=Counter)
    done: list[str] = field(default_factory=list)
    """The operations that changed it or tried to, oldest first; a refused one with a bang behind it."""
    looks: int = 0
    """Observations of rows since the last of them."""
    newest: list[Array] = field(default_factory=list)
    """What the last operation that took arrays was given."""
    recent: list[Array] = field(default_factory=list)
    """The newest rows of keys and of values that were taken, at most `RECENT`, each `[rows, ...]`."""


@dataclass
class Event:
    """One call that is about to be done."""

    where: Where
    inner: Any
    life: Life
    given: tuple[Any, ...]
    struck: bool = False
    """Whether something was done wrongly: an effect may find nothing that it would change."""

    @property
    def config(self) -> Config:
        """The config of the cache."""
        return self.life.config

    @property
    def arrays(self) -> list[Array]:
        """The arrays given: queries, if there are any, keys, values."""
        return [np.asarray(a) for a in self.given if isinstance(a, np.ndarray) and a.ndim > 2]

    @property
    def axis(self) -> int:
        """The axis of rows in the arrays given."""
        return 0 if self.where.kind == "copy" else -2

    @property
    def by_row(self) -> list[Array]:
        """The keys and values given, each `[rows, ...]`."""
        return [np.moveaxis(a, self.axis, 0) for a in self.arrays[-2:]]

    @property
    def length(self) -> int:
        """Rows held now, in the longest layer or sequence."""
        return length(self.inner)

    @property
    def previous(self) -> str:
        """The operation before this one."""
        return self.life.done[-1] if self.life.done else ""

    def number(self, index: int) -> int | None:
        """An argument that is a whole number; None if there is none."""
        found = self.given[index] if len(self.given) > index else None
        return found if isinstance(found, int) and not isinstance(found, bool) else None


def length(cache: Any) -> int:
    """Rows held, in the longest layer or sequence; 0 where that is not told."""
    for name in ("lengths", "sequences", "past"):
        told = getattr(cache, name, None)
        if callable(told):
            found = told()
            return int(
                max(found, default=0) if isinstance(found, list) else found[0] if name == "lengths" else found
            )
    return 0


def behind(before: list[Array], rows: list[Array]) -> list[Array]:
    """Keys and values behind those before, each `[rows, ...]`; alone where those are none, or of another sort."""
    if len({len(a) for a in before}) != 1 or len(before) != len(rows):
        return rows
    alike = all(b.shape[1:] == a.shape[1:] and b.dtype == a.dtype for b, a in zip(before, rows, strict=True))
    return [np.concatenate(pair) for pair in zip(before, rows, strict=True)] if alike else rows


def fit(event: Event) -> bool:
    """Tell whether keys and values are a pair of rows: an attack leaves a call alone that must be refused for them.

    A refusal itself is attacked by what is done, not by what is given.
    """
    arrays = event.arrays[-2:]
    return len({a.shape[:-1] for a in arrays}) < 2


Trigger = Callable[[Event], bool]
Do = Callable[..., Any]
Effect = Callable[[Event, Do], Any]
"""Does the operation of an event wrongly; `do` does it rightly on the arguments that it is given."""


@dataclass
class Attacked:
    """The base, and the attack on it. `struck` counts how often something was done wrongly."""

    base: Any
    where: Where
    trigger: Trigger
    effect: Effect
    struck: int = 0
    life: Life = field(default_factory=lambda: Life(Config()))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.base, name)
        return partial(self.called, "adapter", self, self.life, name, found) if name in OWN and found else found

    def open(self, kind: str, config: Config) -> Any:
        """A cache of the base."""
        return Thing(self, kind, self.base.open(kind, config), Life(config))

    def speculate(self, caches: Any, isolated: bool) -> Any:
        """A round of the base over its own caches."""
        lives = [c.__dict__["life"] for c in caches if isinstance(c, Thing)]
        found = self.base.speculate([plain(c) for c in caches], isolated)
        return Thing(self, "round", found, lives[0] if lives else Life(Config()))

    def called(self, kind: str, inner: Any, life: Life, method: str, do: Do, *given: Any) -> Any:
        """One call, wrong where the attack says so."""
        given = tuple(plain(a) for a in given)
        event = Event(Where(kind, method), inner, life, given)
        life.calls[method] += 1
        hit = event.where == self.where and fit(event) and self.trigger(event)
        refused = True
        try:
            found = self.effect(event, do) if hit else do(*given)
            refused = False
            return found
        finally:
            self.struck += event.struck
            self.note(event, refused)

    def note(self, event: Event, refused: bool) -> None:
        """Write down what was done."""
        life, method = event.life, event.where.method
        if method in SILENT:
            return
        if method in READS:
            life.looks += 1
            return
        life.done.append(method + "!" * refused)
        life.looks = 0
        if event.arrays and not refused:
            life.newest = [np.array(a) for a in event.arrays]
            life.recent = [np.array(a[-RECENT:]) for a in behind(life.recent, event.by_row)]


class Thing:
    """A cache, a round or captured work of the base, as the caller has it."""

    def __init__(self, attacked: Attacked, kind: str, inner: Any, life: Life) -> None:
        self.__dict__.update(attacked=attacked, kind_=kind, inner=inner, life=life)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found
        return partial(self._call, name, found)

    def _call(self, name: str, do: Do, *given: Any) -> Any:
        made = self.attacked.called(self.kind_, self.inner, self.life, name, do, *given)
        return Thing(self.attacked, "work", made, self.life) if name.startswith("capture") else made


def plain(thing: Any) -> Any:
    """The base's own thing, where the caller has one of ours."""
    if isinstance(thing, Thing):
        return thing.__dict__["inner"]
    return [plain(t) for t in thing] if isinstance(thing, list) else thing
