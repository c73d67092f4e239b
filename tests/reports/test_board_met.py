"""Which chapter was met by which engine: counted from the records of the board."""

from __future__ import annotations

from msgspec.structs import replace

from kvreports.board import met
from kvreports.board.engines import Board, Engine
from kvspec.chapters import CHAPTERS
from support.samples.record_samples import passing


def engine(name: str, verdict: str) -> Engine:
    """A cache that claims growing, all of whose clauses have this verdict."""
    record = passing()
    clauses = [replace(c, verdict=verdict) if c.chapter == "growing" else c for c in record.clauses]
    adapter = record.adapter | {"name": name, "chapters": {"growing": {"level": "visible"}}}
    return Engine(replace(record, clauses=clauses, adapter=adapter), "record.json", [])


def row(*engines: Engine, **unmet: str) -> list[str]:
    """The cells of growing."""
    rows = {r[0]: r[1:] for r in met.rows(Board(list(engines), [], unmet=unmet))}
    assert list(rows) == list(CHAPTERS)
    return rows["growing"]


def test_two_engines_meet_a_chapter_whether_they_hold_or_their_deviations_are_filed() -> None:
    assert row(engine("a-one", "PASS"), engine("b", "XFAIL")) == ["a", "b", "yes"]


def test_two_caches_of_one_engine_do_not() -> None:
    assert row(engine("a-one", "PASS"), engine("a-two", "PASS")) == ["a (2)", "", "no"]


def test_an_engine_with_a_deviation_that_is_not_filed_does_not_count() -> None:
    assert row(engine("a", "PASS"), engine("b", "FAIL"), growing="b is new") == ["a", "", "no: b is new"]


def test_an_engine_of_which_nothing_was_judged_does_not_count() -> None:
    assert row(engine("a", "PASS"), engine("b", "NOT_RUN")) == ["a", "", "no"]
