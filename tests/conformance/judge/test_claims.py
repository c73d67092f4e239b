"""Engines as they are: what is not claimed is neither asked nor compared, and what nobody saw is no pass."""

from __future__ import annotations

from kvconform.generate.claims.fit_to_adapter import claimed
from kvspec import notation
from kvspec.contract import description
from kvspec.records.run import Record
from support.engines import update_engines
from support.fakes import claims as fake_claims
from support.running.judging import broken, clause, record_of, verdicts


def judged(engine: type[fake_claims.Engine]) -> Record:
    return record_of(f"{fake_claims.__name__}:{engine.__name__}", ("growing", "ring", "mask"), traces=3)


def test_an_engine_conforms_in_what_it_claims() -> None:
    seen = judged(fake_claims.Plain)
    assert (broken(seen), seen.problems, seen.exit_status) == (set(), [], 0)
    found = verdicts(seen)
    assert found["GROW-2"] == found["GROW-5"] == "PASS"
    assert found["GROW-4"] == "NOT_CLAIMED" and "growing.view" in clause(seen, "GROW-4").reason
    assert found["CACHE-9"] == "NOT_CLAIMED" and "seen in can" in clause(seen, "CACHE-9").reason


def test_an_engines_own_exception_is_a_refusal() -> None:
    assert verdicts(judged(fake_claims.Plain))["CACHE-7"] == "PASS"


def test_what_an_exception_leaves_changed_is_found() -> None:
    seen = judged(fake_claims.ChangesThenRaises)
    assert clause(seen, "CACHE-2").verdict == "FAIL"
    assert {f.cause for f in seen.failures if "CACHE-2" in f.clauses} >= {"changed though refused"}


def test_rows_of_arbitrary_bits_are_not_asked_of_an_engine_that_claims_none() -> None:
    said = {**fake_claims.Plain().describe(), "chapters": {"growing": {"level": "visible", "without": ["bits"]}}}
    trace = notation.from_sentence("growing: append 1; append 2 fill=bits; append 1")
    assert [notation.words(op) for op in claimed(trace, description(said)).ops] == ["append 1", "append 1"]
    assert "growing.bits" in clause(judged(fake_claims.Plain), "CACHE-5").reason


def test_what_is_claimed_and_not_there_is_a_failure_of_its_own() -> None:
    seen = judged(fake_claims.ClaimsAView)
    assert seen.exit_status == 1
    assert {f.cause for f in seen.failures} == {"claimed, not there"}


def test_what_is_not_there_fails_its_own_clause_and_no_other() -> None:
    assert broken(judged(fake_claims.ClaimsAView)) == {"GROW-4"}
    seen = record_of(f"{update_engines.__name__}:claims_a_view", ("ring", "mask"), traces=2)
    assert broken(seen) == {"RING-5"}
    assert clause(seen, "CACHE-8").verdict == "PARTLY_OBSERVED"
    assert clause(seen, "CACHE-8").reason == "claimed and not there: view"


def test_a_row_too_many_is_seen_without_a_mask() -> None:
    seen = judged(fake_claims.KeepsTooMuch)
    assert "GROW-2" in broken(seen) and seen.failures[0].cause == "wrong row"


def test_rows_outside_a_window_that_nobody_could_see_are_no_pass() -> None:
    for engine in (fake_claims.Unmasked, fake_claims.NeverDrops):
        seen = judged(engine)
        assert (broken(seen), seen.exit_status) == (set(), 0)
        assert clause(seen, "RING-1").verdict == "PARTLY_OBSERVED"
        assert "rows outside the window" in clause(seen, "RING-1").reason


def test_what_the_adapter_answers_for_its_engine_is_set_apart() -> None:
    seen = judged(fake_claims.OffsetOfTheCaller)
    assert "BY_ADAPTER" in verdicts(seen).values()
    assert "PASS" in verdicts(seen).values() or "PARTLY_OBSERVED" in verdicts(seen).values()
