"""An adapter under test that lives in this process: quick, for those that can be trusted not to hang or die."""

from typing import Any

from kvconform.checks import examples
from kvconform.oracle.reference import claims
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import Evidence, verdict_on
from kvspec.contract import description
from kvspec.reading.clauses import examples_of, index
from kvspec.session.driver import Session


class Local:
    """Stands in for a worker: nothing is started."""

    has_grown = False

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter

    def close(self) -> None:
        """Nothing was started."""

    def peak(self) -> int:
        """Bytes of a process that there is not."""
        return 0


class LocalAdapter(AdapterUnderTest):
    """Judges an adapter object."""

    def __init__(self, adapter: Any, **settings: Any) -> None:
        super().__init__(Local(adapter), description(adapter.describe()), **settings)  # type: ignore[arg-type]

    def session(self, observe: tuple[str, ...]) -> Session:
        return Session(self.worker.adapter, observe)  # type: ignore[attr-defined]


def judge_examples(under_test: LocalAdapter, chapter: str) -> None:
    """Judge all worked examples of a chapter."""
    for worked in examples_of(chapter):
        examples.judge(under_test, worked)


def fails(clause: str, tally: Tally) -> bool:
    """Whether what was judged fails a clause of an adapter that claims everything."""
    return verdict_on(Evidence(index()[clause], tally, claims(), partial=False)).name == "FAIL"
