"""Engines that hand out no rows of their pages: outputs of attends show what is wrong, or hits of requests."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.checks import laws
from kvconform.generate.claims.fit_to_adapter import within
from kvconform.laws.registry import LAWS
from kvref.caches.keyed import Keyed
from kvref.caches.page import Pages
from kvspec import notation
from kvspec.contract import Pair, description
from kvspec.contract.pools import Request
from kvspec.geometry import Array
from kvspec.records.run import Record
from support.running.judging import broken, clause, record_of, verdicts
from support.running.local_adapter import LocalAdapter

WITH = ["admit", "fork", "truncate", "drop", "scribble"]


class Hidden(Pages):
    """Pages that nobody may look at."""

    def read_sequence(self, sequence: int) -> Pair:
        raise AssertionError("rows were asked for")

    def free_pages(self) -> int:
        raise AssertionError("free pages were asked for")


class SharedInPlace(Hidden):
    """What a fork shares is written where it is."""

    def _shared(self, to: Any) -> bool:
        return False


class ByPageSize(Hidden):
    """Outputs over pages of one row are a little too large."""

    def attend(self, *arguments: Any) -> Array:
        found = super().attend(*arguments)
        return found * 2 if self.config.page_size == 1 else found


class OutputsAlone(Reference):
    """The reference's pages, of which outputs alone are shown."""

    caches: ClassVar[dict[str, Any]] = {"page": Hidden}

    def describe(self) -> dict[str, Any]:
        attends = {"level": "visible", "with": ["attend", "scale", "softcap", "splits"]}
        chapters = {"page": {"level": "visible", "with": WITH}, "attention": attends}
        return {"name": "outputs-alone", "refusals": "cited", "chapters": chapters}


class WritesWhatIsShared(OutputsAlone):
    """A fault that no refusal shows."""

    caches: ClassVar[dict[str, Any]] = {"page": SharedInPlace}


class WrongInSmallPages(OutputsAlone):
    """A fault of one size of pages."""

    caches: ClassVar[dict[str, Any]] = {"page": ByPageSize}


class HitsOnly(Keyed):
    """Requests of which hits alone are told."""

    def read_sequence(self, sequence: int) -> Pair:
        raise AssertionError("rows were asked for")


class NoLastToken(HitsOnly):
    """A request that is there as a whole is found as a whole."""

    def match(self, wanted: Request) -> int:
        found = super().match(wanted)
        return found + (found == len(wanted.tokens) - 1)


class HitsAlone(Reference):
    """The reference's requests, of which hits alone are told."""

    caches: ClassVar[dict[str, Any]] = {"keyed": HitsOnly}

    def describe(self) -> dict[str, Any]:
        chapters = {"keyed": {"level": "visible", "without": ["read", "count"]}}
        return {"name": "hits-alone", "refusals": "cited", "chapters": chapters}


class FindsTooMuch(HitsAlone):
    """A fault that a hit shows."""

    caches: ClassVar[dict[str, Any]] = {"keyed": NoLastToken}


def judged(engine: type[OutputsAlone]) -> Record:
    return record_of(f"{__name__}:{engine.__name__}", ("page", "attention"), traces=3)


def test_an_append_becomes_an_attend_where_outputs_alone_are_shown() -> None:
    trace = notation.from_sentence(
        "page page_size=2 pages=4: admit; append 2; append 0; append 1 sequence=0 fill=even; open B kind=growing; "
        "B: append 1"
    )
    made = within(trace, description(OutputsAlone().describe()))
    words = ["admit", "attend 2 fill=legible", "append 0", "attend 1 fill=even sequence=0", "open B kind=growing"]
    assert [notation.words(op) for op in made.ops] == [*words, "B: append 1"]
    assert within(trace, description(Reference().describe())) is trace


def test_pages_that_show_outputs_alone_conform_and_are_partly_observed() -> None:
    seen = judged(OutputsAlone)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert found["PAGE-37"] == found["PAGE-4"] == "PASS" and found["PAGE-6"] == "PARTLY_OBSERVED"
    assert clause(seen, "PAGE-6").reason == "not looked at: state"
    assert found["PAGE-10"] == found["PAGE-17"] == found["PAGE-28"] == "NOT_CLAIMED"


def test_requests_of_which_hits_alone_are_told_are_judged_by_these() -> None:
    right, wrong = (record_of(f"{__name__}:{e.__name__}", ("keyed",), traces=3) for e in (HitsAlone, FindsTooMuch))
    assert (broken(right), right.problems, right.exit_status) == (set(), [], 0)
    assert verdicts(right)["KEY-9"] == "PASS" and "state" in clause(right, "KEY-13").reason
    assert "KEY-9" in broken(wrong)


def test_an_output_shows_a_shared_page_that_was_written() -> None:
    assert {"PAGE-37"} <= broken(judged(WritesWhatIsShared))


@pytest.mark.parametrize(("engine", "holds"), [(OutputsAlone, True), (WrongInSmallPages, False)])
def test_sizes_of_pages_are_compared_by_outputs(engine: type[OutputsAlone], holds: bool) -> None:
    (law,) = (x for x in LAWS if x.clause == "PAGE-43")
    adapter = LocalAdapter(engine(), traces=40)
    with adapter.judging(law.check) as tally:
        laws.judge(adapter, law)
    assert bool(tally.failing) is not holds
