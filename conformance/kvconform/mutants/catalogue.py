"""Real bugs, from a public catalogue, planted in what this project specifies."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.util import find_spec

from kvconform.mutants.mutant import Mutant
from kvspec.clauses import index
from kvspec.contract import PROFILES


def mutants() -> Iterator[Mutant]:
    """Every planted bug, profile by profile."""
    for profile in PROFILES:
        name = f"kvconform.mutants.{profile}"
        for p in importlib.import_module(name).PLANTED if find_spec(name) else ():
            profiles = tuple(dict.fromkeys(index()[c].profile for c in p.clauses))
            yield Mutant(
                f"{p.entry}/{'+'.join(p.clauses)}",
                p.entry.partition("-")[0],
                (p.adapter().__doc__ or "").strip(),
                p.clauses,
                p.adapter,
                p.url,
                profiles,
            )
