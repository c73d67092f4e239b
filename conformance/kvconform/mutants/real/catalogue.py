"""The catalogue of real bugs: every entry is planted in the reference, or says why it is not."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.mutants.mutant import Mutant
from kvconform.mutants.planting import planted_in
from kvspec.registry import modules

NOT_PLANTED: dict[str, str] = {
    "DTYPE-05": "quantised rows and their scales are not specified here: there is no scale to be another layer's",
    "DTYPE-11": "quantised rows and their scales are not specified here: there is no scale to change before reuse",
    "REUSE-03": "the report does not say what was wrong; SNAP-12 and SNAP-31 demand that a hit equals a cold start",
}
"""The entries of the catalogue that are not planted, and why. All others are."""


def mutants() -> Iterator[Mutant]:
    """Every planted bug, chapter by chapter."""
    return planted_in(*modules("kvconform.mutants.real").values())
