"""What the tests with systematic faults share: the faults of a module, a reference with one in it, who finds it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import mutation
import pytest
from mutation import Mutant

from kvconform import trial, vectors
from kvconform.examples import disagreements
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.examples import Example
from kvspec.session import Session
from kvspec.trace import Trace

ON_DEMAND = pytest.mark.skipif(
    not os.environ.get("KVCONFORM_ALL"), reason="KVCONFORM_ALL=1 runs everything on faults that are none"
)


def of(m: Mutant) -> str:
    """A fault as tests are named after it."""
    return f"{m.function}:{m.line}: {m.what}"


def text(of_module: ModuleType) -> str:
    """What a module is written as."""
    return Path(str(of_module.__file__)).read_text()


def mutants(of_module: ModuleType) -> list[Mutant]:
    """Every systematic fault in a module."""
    return list(mutation.mutants(text(of_module)))


Named = tuple[str, str] | tuple[str, str, int]
"""Function and change; and which of several alike, where only one is meant."""


@dataclass(frozen=True)
class Faults:
    """Systematic faults, and those of them that are argued to be none, each with the reason."""

    every: list[Mutant]
    none: dict[Named, str]

    def named(self, m: Mutant) -> Named:
        """The name under which a fault is argued to be none; one that nobody has where it is not."""
        alike = [x for x in self.every if (x.function, x.what) == (m.function, m.what)]
        which = next(i for i, x in enumerate(alike) if x is m)
        return (m.function, m.what) if (m.function, m.what) in self.none else (m.function, m.what, which)

    def argued(self, m: Mutant) -> bool:
        """Whether a fault is argued to be none."""
        return self.named(m) in self.none

    @property
    def found(self) -> list[Mutant]:
        """Those that must be found."""
        return [m for m in self.every if not self.argued(m)]

    def each(self) -> pytest.MarkDecorator:
        """A test with every fault that must be found."""
        return pytest.mark.parametrize("m", self.found, ids=of)

    def each_argued(self) -> pytest.MarkDecorator:
        """A test with every fault that is argued to be none."""
        argued = [pytest.param(m, marks=ON_DEMAND) for m in self.every if self.argued(m)]
        return pytest.mark.parametrize("m", argued, ids=of)

    def reason(self, m: Mutant) -> str:
        """Why a fault is argued to be none."""
        return self.none[self.named(m)]

    def unfounded(self) -> set[Named]:
        """The arguments about faults that there are not."""
        return set(self.none) - {self.named(m) for m in self.every}


def module(source: str) -> Any:
    """A module of this text, named as none is."""
    made: Any = ModuleType("faulty")
    exec(compile(source, "faulty", "exec"), vars(made))
    return made


def examples_of(*profiles: str) -> list[Example]:
    """The worked examples of these chapters."""
    return [e for c in index().values() if c.profile in profiles for e in c.examples]


def traces_of(*profiles: str) -> list[Trace]:
    """The traces of these frozen covers."""
    return [t for profile in profiles for frozen in vectors.load(profile) for t in frozen.traces()]


def found_by(adapter: Any, examples: Iterable[Example], traces: Iterable[Trace]) -> str:
    """The source that finds a fault, at its first difference; empty if none does."""
    about = description(adapter.describe())
    observed = trial.observables(about, "storage")
    for worked in examples:
        seen = trial.run(worked.trace, Session(adapter, observed), about, "storage")
        if seen.failed or disagreements(worked, seen, about):
            return f"example {worked.id}"
    differing = (t for t in traces if trial.run(t, Session(adapter, observed), about, "storage").failed)
    return next((f"cover {t}" for t in differing), "")
