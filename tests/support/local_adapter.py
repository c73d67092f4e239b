"""A bench whose adapter lives in this process: quick, for adapters that can be trusted not to hang or die."""

from typing import Any

from kvconform.runner.under_test import Bench
from kvconform.suite import checks
from kvspec.contract import CHAPTERS, description
from kvspec.reading.clauses import index
from kvspec.session.driver import Session


class Local:
    """What a worker is to the bench: nothing is started."""

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter


class LocalBench(Bench):
    """Judges an adapter object."""

    def __init__(self, adapter: Any, **settings: Any) -> None:
        super().__init__(Local(adapter), description(adapter.describe()), **settings)  # type: ignore[arg-type]

    def session(self, observe: tuple[str, ...]) -> Session:
        return Session(self.worker.adapter, observe)  # type: ignore[attr-defined]


def examples(bench: LocalBench, only: str = "") -> None:
    """All worked examples of the chapters, or of one."""
    for clause in index().values():
        for worked in clause.examples if clause.chapter.startswith(only) else ():
            checks.example(bench, worked)


def sources(bench: LocalBench) -> Any:
    """Everything the suite has, one test after another: name and work."""
    for chapter in CHAPTERS:
        yield f"examples {chapter}", lambda p=chapter: examples(bench, p)
    for chapter in CHAPTERS:
        for frozen in (p.values[0] for p in checks.covers(chapter)):
            yield f"cover {frozen.name}", lambda f=frozen: checks.cover(bench, f)
