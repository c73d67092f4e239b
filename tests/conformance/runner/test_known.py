"""Known deviations: exactly the failures that a file tells of are expected, and one that is gone is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from kvconform.judge.levels import planted
from kvconform.runner.verdict import known, outcomes
from kvconform.runner.verdict.known import KnownDeviation
from kvspec import notation
from support.engines import second_bugs, update_engines
from support.running import judging
from support.running.judging import broken, clause
from support.running.known import RINGS, TRACE, TRIM, WIDE, behind, judged
from support.running.local_adapter import LocalAdapter
from support.slow import one_in


def test_a_known_deviation_is_a_model_and_explains_whatever_it_does() -> None:
    seen = behind("SlidingCache")
    held = {"PASS", "PARTLY_OBSERVED", "NOT_CLAIMED"}  # CACHE-5 is seen in views too, which it does not claim
    assert seen.exit_status == 0 and {c.verdict for c in seen.clauses} == {*held, "XFAIL"}
    assert broken(seen) >= {"RING-1", "MASK-8"} and all(f.expected for f in seen.failures)
    assert clause(seen, "RING-1").reason.startswith(f"known: {WIDE.reason}. query ")


@pytest.mark.parametrize("name", one_in(8, [engine.__name__ for engine in second_bugs.SECOND]))
def test_a_second_bug_behind_the_known_one_is_found(name: str) -> None:
    seen = behind(name)
    assert seen.exit_status == 1 and any(not f.expected for f in seen.failures)


def test_the_same_without_the_entry_fails() -> None:
    assert behind("SlidingCache", TRIM).exit_status == 1


@pytest.mark.parametrize("entry", [TRIM, TRACE], ids=["its message", "its message and its trace"])
def test_a_known_outcome_is_expected(entry: KnownDeviation) -> None:
    seen = judged("forgets", entry)
    assert (clause(seen, "RING-7").verdict, seen.exit_status, broken(seen)) == ("XFAIL", 0, {"RING-7"})
    assert clause(seen, "RING-7").reason.startswith(f"known: {entry.because}. offset: expected")
    assert all(failed.known == {"RING-7": entry.because} for failed in seen.failures)


FILLED = ("keys_alike", "alike", "first_alike", "but_value_alike", "bits")


@pytest.mark.parametrize("fill", FILLED)
def test_a_planted_bug_is_a_model_of_rows_of_any_content(fill: str) -> None:
    under_test, seen = LocalAdapter(second_bugs.SlidingCache, known=(WIDE,)), []
    for ops in ("append 2; append 2 fill={0}", "append 2 fill={0}; append 3 fill={0}; append 1; append 5 fill={0}"):
        trace = notation.trace("ring", "kv_heads=2 batch=2 window=2", ops.format(fill))
        with under_test.judging("a check"):
            seen.append(under_test.judge(trace, "explore"))
    assert all(one.failed and one.whole for one in seen), [one.differences for one in seen]


def test_a_query_that_sees_a_row_twice_sees_other_than_one_that_sees_it_once() -> None:
    twice, once = planted.SeenTwice([(1, 0.0), (2, 0.0), (1, 0.0)]), {1: 0.0, 2: 0.0}
    assert (twice == once, once == twice, [*twice], [*twice.values()]) == (False, False, [1, 2, 1], [0.0] * 3)
    assert twice == planted.SeenTwice([(1, 0.0), (1, 0.0), (2, 0.0)])


SHORTER = KnownDeviation("GROW-5", "not counted", trace="growing: append 1; rewind 0", shows=TRIM.shows)


def test_a_clause_of_which_nothing_is_claimed_is_not_claimed_whatever_fails_before() -> None:
    seen = [judged("growing_forgets", *entries, only=("GROW-5", "CACHE-9")) for entries in ((), (SHORTER,))]
    assert [clause(one, "CACHE-9").verdict for one in seen] == ["NOT_CLAIMED"] * 2
    assert "seen in can, which the adapter does not claim" in clause(seen[0], "CACHE-9").reason
    assert [one.exit_status for one in seen] == [1, 0] and seen[1].problems == []


LISTED = "growing: append 1; append 2 v_dim=8; rewind 0"
LIKE = {
    "growing: append 1; append 2 v_dim=8; rewind 0": True,
    "growing: append 4 fill=bits; append 2 v_dim=3 fill=edges; rewind 0": True,
    "growing: append 1; append 2; rewind 0": False,
    "growing: append 2 v_dim=8; append 1; rewind 0": False,
    "growing: append 1; append 2 v_dim=8; ask 0": False,
    "ring window=4: append 1; append 2 v_dim=8; rewind 0": False,
}


@pytest.mark.parametrize(("words", "alike"), LIKE.items())
def test_an_outcome_is_known_where_a_trace_does_what_the_listed_one_does(words: str, alike: bool) -> None:
    assert outcomes.alike(LISTED, words, "offset") == alike


def test_an_outcome_that_is_a_result_is_of_the_very_operation() -> None:
    listed = "growing: append 1; append 1 v_dim=8"
    for words, alike in (("v_dim=8", True), ("v_dim=9", False), ("v_dim=8 k_dim=9", False), ("", False)):
        assert outcomes.alike(listed, f"growing: append 1 {words}".strip(), "result") == alike


def test_without_it_the_same_engine_fails() -> None:
    seen = judged("forgets")
    assert clause(seen, "RING-7").verdict == "FAIL" and seen.exit_status == 1


@pytest.mark.parametrize("entry", [TRIM, TRACE], ids=["its message", "its message and its trace"])
def test_a_second_bug_of_the_same_clause_and_cause_fails(entry: KnownDeviation) -> None:
    seen = judged("forgets_two", entry)
    (first, *_) = [f for f in seen.failures if "RING-7" in f.clauses]
    assert clause(seen, "RING-7").verdict == "FAIL" and seen.exit_status == 1
    assert first.cause == "wrong length" and not first.known and TRIM.shows not in first.message


def test_a_bug_of_another_clause_fails_behind_it() -> None:
    seen = judged("forgets_and_shows", TRIM)
    assert clause(seen, "RING-7").verdict == "XFAIL"
    assert clause(seen, "MASK-8").verdict == "FAIL" and seen.exit_status == 1
    assert "query 2 sees c d e; expected d e" in clause(seen, "MASK-8").reason
    assert clause(seen, "RING-1").verdict == "PASS", "the rows are there: the mask shows one too many"
    assert [failed.expected for failed in seen.failures] == [False, True]


def test_the_entries_that_a_record_proposes_make_its_failures_known(tmp_path: Path) -> None:
    file = tmp_path / "kvconform.toml"
    proposed = [f.entry for f in judged("forgets").failures]
    assert proposed and UNSET not in proposed
    file.write_text("\n\n".join(map(str, proposed)))
    entries = tuple(replace(k, adapter="") for k in known.read(file))
    assert judged("forgets", *entries).exit_status == 0 and judged("forgets_two", *entries).exit_status == 1


def test_known_failures_use_up_no_budget_and_are_shortened_once() -> None:
    under_test = LocalAdapter(second_bugs.SlidingCache, known=(WIDE,))
    trace, before = notation.trace("ring", "kv_heads=1 window=2", "append 5; append 1; append 4"), 0
    for n in range(2):
        before = under_test.operations
        with under_test.judging(f"check {n}") as tally:
            for _ in range(60):
                under_test.judge(trace, "explore")
        assert under_test.budget_used == 0 and tally.failures and all(f.expected for f in tally.failures)
    assert under_test.operations - before == 60 * 3, "the session goes on behind the first difference"


def test_one_that_is_gone_is_told() -> None:
    seen = judging.record_of(f"{update_engines.__name__}:right", RINGS, known=(TRIM,), only=("RING-7",))
    assert (clause(seen, "RING-7").verdict, seen.exit_status) == ("XPASS", 1)
    assert clause(seen, "RING-7").reason.endswith("a trim of the only row is not counted")


def test_one_that_shows_in_some_of_its_clauses_is_not_gone() -> None:
    entry = KnownDeviation(("RING-7", "RING-1"), "a trim of the only row is not counted", shows=TRIM.shows)
    seen = judged("forgets", entry)
    assert [clause(seen, id).verdict for id in entry.clauses] == ["XFAIL", "PASS"] and seen.exit_status == 0
