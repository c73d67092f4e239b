"""What the tests with systematic faults share: a reference with a fault in it, and the source that finds it."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from mutation import Mutant

from kvconform import trial, vectors
from kvconform.examples import disagreements
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.examples import Example
from kvspec.session import Session
from kvspec.trace import Trace


def of(m: Mutant) -> str:
    """A fault as tests are named after it."""
    return f"{m.function}:{m.line}: {m.what}"


def module(text: str) -> Any:
    """A module of this text, named as none is."""
    made: Any = ModuleType("faulty")
    exec(compile(text, "faulty", "exec"), vars(made))
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
