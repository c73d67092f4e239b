"""Walks, and what they leave over, for a claim: the frozen ones where these would be made, else new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from kvconform.generate import frozen_traces
from kvconform.generate.amounts import SEED
from kvconform.generate.real_geometry import GEOMETRIES, Geometry
from kvconform.generate.strategies.walk_moves import SCALES, WALKED, Scale
from kvspec.chapters import CHAPTERS
from kvspec.trace import Trace


def given(
    kind: str, chapters: frozenset[str], scale: Scale, seed: int = SEED, few: bool = False
) -> Sequence[Trace]:
    """Give the walks of a kind at a scale: the frozen ones where they are those that would be made."""
    if seed == SEED and chapters == frozen_traces.claimed(kind):
        return frozen_traces.walks(kind, frozen_traces.name(scale, few))
    from kvconform.generate.walks import Walks  # it follows the list model, which most runs need not

    return tuple(Walks(kind, chapters, scale, seed, few).all())


def at_all_scales(kind: str, chapters: frozenset[str], seed: int) -> Iterator[Trace]:
    """Give the walks of a kind at all scales."""
    return chain.from_iterable(given(kind, chapters, scale, seed) for scale in SCALES)


def left_over(kind: str, geometry: Geometry, chapters: frozenset[str] = frozenset(CHAPTERS)) -> tuple[Trace, ...]:
    """Give worked examples of these chapters at a geometry, for what no walk does there. That is each option of a
    kind and of its operations with several heads of wide rows, and each operation with many heads."""
    if geometry in GEOMETRIES and chapters == frozen_traces.claimed(kind):
        return frozen_traces.walks(kind, geometry.name)
    from kvconform.generate.walks import left_over_by

    walks = [given(kind, frozenset(CHAPTERS), scale, few=True) for scale in WALKED]
    return left_over_by(walks, kind, geometry, chapters)
