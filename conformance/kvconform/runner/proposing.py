"""Proposes entries of `kvconform.toml` for failures whose diagnosis named a bug that is a model of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict import entry, models
from kvconform.runner.verdict.known import KnownDeviation
from kvspec.records.run import Failure, KnownBug
from kvspec.trace import from_json


def proposed(
    failures: Iterable[Failure], named: Mapping[str, list[KnownBug]], under_test: AdapterUnderTest
) -> dict[str, str]:
    """The entries of failures whose diagnosis names a bug that is a model of them, by the keys of the failures."""
    found = dict[str, str]()
    for failure in failures:
        bugs = (bug for bug in named.get(failure.key(), ()) if explains(bug, failure, under_test))
        if bug := next(bugs, None):
            found[failure.key()] = entry.of_bug(bug, failure, under_test.adapter)
    return found


def explains(bug: KnownBug, failure: Failure, under_test: AdapterUnderTest) -> bool:
    """Whether the adapter does on the trace exactly what a bug does, beside what is known already."""
    known = KnownDeviation(clause=tuple(failure.clauses), reason=bug.says, model=bug.id)
    with_it = models.deviating([*under_test.explaining.of_models, known])
    return not under_test.judged_by(from_json(failure.trace), with_it).failed
