"""Options at real sizes: a bug that needs an option, or a second thing of a sort, beside a size is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.given_walks import given, left_over
from kvconform.generate.real_geometry import GEOMETRIES
from kvconform.generate.strategies.walk_moves import SCALES
from kvconform.judge import trial
from kvconform.judge.lockstep import observables
from kvref.abilities.snapshot import Snapshot
from kvref.caches.growing import Growing
from kvref.caches.keyed import Keyed
from kvref.caches.layer_rows import Kept, SavedLayers
from kvref.caches.layers import Layers, View
from kvspec.contract import CHAPTERS, Attention, Pair, Request, description
from kvspec.geometry import Array, Config
from kvspec.session.driver import Session
from kvspec.trace import Trace


class FifthOfAGroup(Growing):
    """From the fifth query head of a group on, queries read the next head."""

    def answered(self, queries: Array, held: Pair, seen: Any, how: Attention) -> Array:
        """The output, wrong in large groups."""
        found, heads = super().answered(queries, held, seen, how), held.keys.shape[1]
        each = queries.shape[1] // heads
        if each < 5 or heads == 1:
            return found
        others = Pair(*(np.roll(np.asarray(a), -1, axis=1) for a in held))
        wrong = np.arange(queries.shape[1]) % each >= 5
        return np.where(wrong[None, :, None, None], super().answered(queries, others, seen, how), found)


class NoSoftcap(Growing):
    """Scores are not capped where keys are wider than 128."""

    def answered(self, queries: Array, held: Pair, seen: Any, how: Attention) -> Array:
        """The output, without a softcap for wide keys."""
        return super().answered(queries, held, seen, how._replace(softcap=0.0) if queries.shape[-1] > 128 else how)


class LateSplit(Growing):
    """A snapshot that begins behind row 32 is cut one row too late."""

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """The parts, cut wrongly."""
        if saved is None or saved.start <= 32 or not saved.start < at < saved.stop - 1:
            return super().split(saved, at)
        before, after = super().split(saved, at + 1)
        assert after is not None
        after.start = at
        return before, after


class LateChunk(Layers):
    """Chunks of 64 rows or more begin one row late."""

    def first(self, view: View, p: int) -> int:
        """The first position that a query sees, wrong in large chunks."""
        first = super().first(view, p)
        return min(first + 1, p) if view.kind == "chunk" and view.size >= 64 and first else first


class LayerBefore(Layers):
    """A restore gives a layer the rows of the one before, where that holds as many."""

    def restore(self, saved: Any, to: int) -> None:
        """Restore, wrongly where neighbours hold as much."""
        super().restore(type("Wrong", (_Before,), {})(saved) if saved is not None else None, to)


class _Before(SavedLayers):
    def __init__(self, saved: SavedLayers) -> None:
        super().__init__(saved.config, saved.rows, saved.stop, saved.layers, saved.states)

    def put_back(self, number: int, one: Config) -> Kept:
        """The rows of a layer, or of the one before."""
        n = [len(places) for places, _ in self.layers]
        return super().put_back(number - (number > 0 and n[number] == n[number - 1] > 32), one)


class EarlyMedia(Keyed):
    """An image behind position 16 is not part of what rows depend on."""

    def _history(self, request: Request, p: int) -> Any:
        media = tuple(medium for medium in request.media if medium[1] <= 16)
        return super()._history(request._replace(media=media), p)


WRONG: dict[str, type[Any]] = {
    "groups of eight": FifthOfAGroup,
    "a softcap of wide keys": NoSoftcap,
    "a late split": LateSplit,
    "large chunks": LateChunk,
    "two layers alike": LayerBefore,
    "a late image": EarlyMedia,
}


def judged(kind: str) -> Iterator[Trace]:
    """The walks and the worked examples at real geometry that any run judges."""
    yield from (trace for geometry in GEOMETRIES for trace in left_over(kind, geometry))
    yield from (trace for scale in SCALES for trace in given(kind, frozenset(CHAPTERS), scale, few=True))


def is_found(adapter: Any, kind: str) -> bool:
    """Whether one of them shows that an adapter is wrong."""
    about = description(adapter.describe())
    for trace in fitted(judged(kind), about):
        level = trial.level_of(trace, about)
        if trial.run(trace, Session(adapter, observables(trace, about, level)), about, level).failed:
            return True
    return False


@pytest.mark.parametrize("name", WRONG)
def test_a_bug_that_needs_an_option_beside_a_size_is_found(name: str) -> None:
    kind = WRONG[name].kind
    assert is_found(having(**{kind: WRONG[name]})(), kind)


@pytest.mark.parametrize("kind", ["layers", "keyed"])
def test_the_reference_is_not_accused(kind: str) -> None:
    assert not is_found(Reference(), kind)
