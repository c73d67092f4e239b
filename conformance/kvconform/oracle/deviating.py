"""The oracles as known deviations change them: classes over the list model, bugs in the reference, dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kvspec.contract import Description

if TYPE_CHECKING:
    from kvref.list_model.adapter import ListModel
    from kvref.list_model.draft import RoundModel


@dataclass(frozen=True)
class Deviating:
    """What known deviations change, all of them together."""

    models: tuple[type, ...] = ()
    """Classes over classes of the list model: each takes the place of those that it is made from."""
    references: tuple[Any, ...] = ()
    """References that have a bug, as adapters."""
    dialects: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """Dialects by chapter that the engine follows and does not declare."""

    def claimed(self, adapter: Description) -> Description:
        """The description with these dialects."""
        if not self.dialects:
            return adapter
        claims = {
            chapter: replace(claim, dialects={**claim.dialects, **self.dialects.get(chapter, {})})
            for chapter, claim in adapter.chapters.items()
        }
        return replace(adapter, chapters=claims)

    def list_model(self) -> type[ListModel]:
        """The list model with these classes."""
        from kvref.list_model.adapter import ListModel  # known deviations are seldom asked
        from kvref.list_model.draft import RoundModel

        whole = tuple(m for m in self.models if issubclass(m, ListModel))
        rounds = tuple(m for m in self.models if issubclass(m, RoundModel))
        caches = tuple(m for m in self.models if m not in (*whole, *rounds))

        class Deviant(*whole, ListModel):  # type: ignore[misc]
            def model(self, kind: str) -> Any:
                return over(super().model(kind), caches)

            def speculate(self, caches: Sequence[Any], isolated: bool) -> RoundModel:
                if not rounds:
                    made: RoundModel = super().speculate(caches, isolated)
                    return made
                return type("DeviantRound", (*rounds, RoundModel), {})(caches, isolated)  # type: ignore[no-any-return]

        return Deviant if self.models else ListModel

    def reference(self) -> Any:
        """The reference with all of these bugs, or None if there is none."""
        if len(self.references) < 2:
            return self.references[0] if self.references else None
        types: tuple[Any, ...] = tuple(dict.fromkeys(type(r) for r in self.references))
        return type("Deviant", types, {"caches": {kind: _both(kind, types) for kind in types[0].caches}})()


def over(model: type, others: Sequence[type]) -> type:
    """A class of the list model with those of the others over it that are made from it or from a base of it."""
    own = [m for m in others if root(m) in model.__mro__]
    return type(model.__name__, (*own, model), {}) if own else model


def root(model: type) -> type:
    """The class of the list model that a class is made from. Raises TypeError if there is none."""
    for base in model.__mro__:
        if base.__module__.startswith("kvref."):
            return base
    raise TypeError(f"{model.__name__} is made from no class of kvref.list_model, nor from one of the reference")


def _both(kind: str, types: Sequence[Any]) -> type:
    """The caches of a kind with the bugs of several references."""
    usual: type = next(t.caches[kind] for t in types[0].__mro__[::-1] if hasattr(t, "caches"))
    changed = tuple(dict.fromkeys(t.caches[kind] for t in types if t.caches[kind] is not usual))
    return type(usual.__name__, changed, {}) if len(changed) > 1 else changed[0] if changed else usual


PLAIN = Deviating()
"""No deviation: the oracles as the spec has them."""
