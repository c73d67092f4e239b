"""An adapter of an engine's functions: it claims what they offer, and opens caches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kvadapters.rounds import RowsRound
from kvadapters.update.cache import UpdateCache
from kvadapters.update.claims import FORMS, USUAL, beside, declare, shown
from kvadapters.update.functions import Functions
from kvspec.contract import Description, description
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config, valid
from kvspec.registry import abilities


@dataclass(frozen=True)
class UpdateAdapter:
    """The adapter: opens caches of one kind."""

    name: str
    kind: str
    engine: Functions
    also: Collection[str] = ()
    without: Collection[str] = ()
    dialect: Mapping[str, int | str] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    cache: type[UpdateCache] = UpdateCache

    def says(self, name: str) -> int | str:
        """Give the declared value of a dialect, or what most engines do."""
        declared = {key.rpartition(".")[2]: value for key, value in self.dialect.items()}
        return declared.get(name, USUAL.get(name, ""))

    def describe(self) -> dict[str, Any]:
        """Claim what the given functions offer, and nothing else. Raises TypeError for what it cannot claim."""
        counted = {} if self.engine.length else {"by_adapter": ["offset"]}
        chapters = {self.kind: self._own(), **beside(self.kind, self.engine)}
        if "form" in self.said.get("limits", {}):
            formed = [name for name in self.also if name in abilities(FORMS)]
            chapters[FORMS] = {"level": "visible", "with": formed}
        declare(self.kind, chapters, self.dialect)
        return {"name": self.name, "chapters": chapters, **counted, **self.said}

    def _own(self) -> dict[str, Any]:
        """The claim on the kind itself."""
        given = shown(self.kind, self.engine)
        if wrong := sorted(set(self.without) - set(given)):
            raise TypeError(f"without: unknown ability {wrong[0]!r}; known: {', '.join(given)}")
        able = [ability for ability, there in given.items() if there and ability not in self.without]
        also = [name for name in self.also if name not in abilities(FORMS)]
        return {"level": "visible", "with": [*able, *also]}

    def to_engine(self, array: Array) -> Any:
        """Make an array of the engine."""
        return self.engine.to_engine(array)

    def from_engine(self, array: Any) -> Array:
        """Give the elements of an array of the engine."""
        return np.asarray(self.engine.from_engine(array))

    def synchronise(self) -> None:
        """Wait for the engine before something is observed."""
        if self.engine.synchronise:
            self.engine.synchronise()

    def open(self, kind: str, config: Config) -> UpdateCache:
        """Open a fresh cache of the engine. Raises Unsupported for a config that the description excludes."""
        if kind != self.kind:
            raise Unsupported(f"no kind {kind}")
        if valid(config) and not self._description.supports(config):
            raise Unsupported("beyond the dtypes or limits that the adapter declares")
        return self.cache(self, config)

    def speculate(self, caches: Sequence[UpdateCache | None], isolated: bool) -> RowsRound:
        """Begin a round over caches, whose drafts are rows. Raises Unsupported where the engine drops none."""
        if self.engine.commit is None:
            raise Unsupported("no commit")
        return RowsRound(caches, isolated)

    @property
    def most_rows(self) -> int | None:
        """The most rows that one cache is given, as declared."""
        return self._description.most_rows

    @cached_property
    def _description(self) -> Description:
        return description(self.describe())
