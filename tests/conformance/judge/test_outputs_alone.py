"""Engines that hand out no rows of their pages: outputs of attends show what is wrong, or hits of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.checks import laws
from kvconform.generate.claims.fit_to_adapter import within
from kvconform.laws.registry import LAWS
from kvref.caches.keyed import Keyed
from kvref.caches.page import Pages
from kvref.caches.ragged import Ragged
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


class HiddenBatch(Ragged):
    """A batch that nobody may look at."""

    def read_sequence(self, sequence: int) -> Pair:
        raise AssertionError("rows were asked for")

    def history(self) -> Pair:
        raise AssertionError("a block was asked for")

    def positions(self) -> Array | None:
        raise AssertionError("positions were asked for")

    def mask(self) -> Array:
        raise AssertionError("a mask was asked for")


class LosesTheOldest(HiddenBatch):
    """A batch that is rearranged loses the oldest row of its last sequence."""

    def filter(self, order: Sequence[int]) -> None:
        super().filter(order)
        rows = [self._rows(s, older=s == len(order) - 1 > 0 and self.held[s] > 1) for s in range(len(order))]
        self._lay([[each] for each in rows], self.lengths)


class SeesPadding(HiddenBatch):
    """Queries see the padding before the rows of their sequence."""

    def _rows(self, sequence: int, older: int = 0, newer: int = 0) -> Pair:
        start = self._start(sequence) if self.asking else 0
        return super()._rows(sequence, older - start, newer)

    asking = False

    def attend_block(self, *arguments: Any) -> Array:
        """Look at too much, while it asks."""
        self.feed(*arguments[1:])
        self.asking = True
        found = [self._answered(s, arguments[0][s : s + 1]) for s in range(len(self.lengths))]
        self.asking = False
        return np.concatenate(found)


class BatchAlone(Reference):
    """The reference's batches, of which outputs alone are shown, whose padding holds numbers."""

    caches: ClassVar[dict[str, Any]] = {"ragged": HiddenBatch}

    def describe(self) -> dict[str, Any]:
        without = ["read", "positions", "sees", "nan", "join", "extract"]
        return {
            "name": "batch-alone",
            "refusals": "cited",
            "chapters": {"ragged": {"level": "visible", "without": without}},
        }


class LosesRows(BatchAlone):
    """A fault of rows."""

    caches: ClassVar[dict[str, Any]] = {"ragged": LosesTheOldest}


class Looks(BatchAlone):
    """A fault of what is seen."""

    caches: ClassVar[dict[str, Any]] = {"ragged": SeesPadding}


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


def test_a_feed_becomes_an_attend_and_padding_and_rows_hold_numbers() -> None:
    trace = notation.from_sentence(
        "ragged padding=left batch=2: feed 1,2 n=3; feed 1,0 fill=bits; run 2 {feed 0,1}; trim 1,1; "
        "attendblock 1,1; feed 1,1 v_dim=3"
    )
    made = within(trace, description(BatchAlone().describe()))
    assert [notation.words(op) for op in made.ops] == [
        "attendblock 1,2 n=3 beside=numbers fill=legible",
        "feed 1,0 beside=numbers",
        "run 2 {attendblock 0,1 beside=numbers fill=legible}",
        "trim 1,1",
        "attendblock 1,1 beside=numbers",
        "feed 1,1 beside=numbers v_dim=3",
    ]
    assert within(trace, description(Reference().describe())) is trace


def test_batches_that_show_outputs_alone_conform_and_say_what_was_not_looked_at() -> None:
    seen = record_of(f"{__name__}:BatchAlone", ("ragged",), traces=3)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert found["RAGGED-36"] == found["RAGGED-37"] == found["RAGGED-38"] == "PASS"
    assert clause(seen, "RAGGED-16").reason == "not looked at: state"
    assert found["RAGGED-4"] == found["RAGGED-5"] == found["RAGGED-27"] == "NOT_CLAIMED"


@pytest.mark.parametrize(("engine", "breaks"), [("LosesRows", "RAGGED-36"), ("Looks", "RAGGED-37")])
def test_outputs_of_blocks_show_lost_rows_and_padding(engine: str, breaks: str) -> None:
    assert breaks in broken(record_of(f"{__name__}:{engine}", ("ragged",), traces=3))
