"""Each fake gets the verdict it must have, under the clause it breaks, on a trace that is short."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from kvconform.checks import examples, honesty
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.runner.verdict import verdict
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvreports.run import standing
from kvspec import notation
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.reading.clauses import index
from kvspec.records.run import Failure, Record
from kvspec.rows.legible import legible
from kvspec.session.step import Inputs
from kvworkshop import fakes as fakes_of_the_harness
from support import fakes
from support.running import command_line, judging
from support.running.judging import broken, clause, verdicts
from support.slow import one_in

HONEST = {
    "Fake": set[str](),
    "Preallocates": set[str](),
    "OnlyF32": set[str](),
    "Linked": set[str](),
    "Whole": {"RING-10", "SNAP-13"},
    "OneRowAtATime": {"GROW-17", "CACHE-10", "CACHE-11", "CACHE-12", "GROW-22", "CACHE-13", "CACHE-14"},
}
"""No lies; and the clauses of their level that do not bind them, as they declare."""


@pytest.mark.parametrize("name", one_in(9, HONEST))
def test_who_is_honest_conforms_however_different(name: str) -> None:
    seen = judging.judged(name)
    assert (seen.exit_status, seen.problems, seen.failures) == (0, [], [])
    bound = {i for i, c in index().items() if _binds(i, seen) and i not in HONEST[name]}
    assert {i for i, v in verdicts(seen).items() if v == "PASS"} == bound
    assert {v for i, v in verdicts(seen).items() if i not in bound} <= {"NOT_CLAIMED"}


def _binds(name: str, seen: Record) -> bool:
    claims, c = seen.adapter["chapters"], index()[name]
    levels = [claims[p]["level"] for p in (*c.chapters, *c.applies) if p in claims]
    declared = c.claimed(claims) and bool(set(c.applies) & set(claims))
    return declared and (c.level == "visible" or "visible" not in levels)


def test_storage_does_not_bind_who_claims_what_is_visible() -> None:
    seen = judging.judged("Whole")
    assert clause(seen, "RING-19").reason == "it is of level storage; the adapter claims level visible"
    assert "rewind -1" in clause(seen, "RING-10").reason
    assert {c.oracle for c in seen.clauses if c.verdict == "PASS"} == {"list model"}


def test_a_clause_beyond_declared_limits_is_unsupported_and_says_so() -> None:
    assert "limits" in clause(judging.judged("OneRowAtATime"), "CACHE-10").reason


def test_traces_are_fitted_to_a_declared_dtype() -> None:
    seen = judging.judged("OnlyF32")
    assert seen.coverage["cover growing"].traces >= 3 * judging.COVER
    declared = [c for c in seen.clauses if c.chapter in seen.adapter["chapters"]]
    assert {c.id for c in declared if c.verdict != "PASS"} == OF_SINKS and judging.broken(seen) == set()


OF_SINKS = {"SNAP-32", "SNAP-33", "SNAP-34", "SNAP-35"}
"""The clauses of SNAP on a kind that is not claimed."""


LIES: dict[str, tuple[str, str, int, str]] = {
    "WrongShape": ("GROW-2", "history", 1, "expected float16"),
    "WrongDtype": ("GROW-2", "history", 1, "found float32"),
    "SendsNaN": ("GROW-2", "history", 1, "holds an unwritten row (NaN); expected row a"),
    "RightTheFirstTimeOnly": ("GROW-2", "history", 1, "expected row"),
    "KeepsCallersArrays": ("CACHE-4", "state", 2, "expected row a"),
    "ReturnsLiveViews": ("CACHE-4", "state", 2, "expected row a"),
    "RefusesEverything": ("GROW-1", "result", 1, "expected ok, found refused (not today)"),
    "ReturnsConstants": ("GROW-2", "history", 1, "holds the key of row a of head 0"),
    "DoesNothing": ("GROW-2", "offset", 1, "expected 1, found 0"),
    "NoopRewind": ("GROW-5", "offset", 2, "expected 0, found 1"),
    "HalfRefusal": ("CACHE-7", "offset", 2, "expected 1, found 0"),
    "AcceptsAnyRewind": ("CACHE-7", "result", 1, "expected refused CACHE-7, found ok"),
    "WrongRefusalClause": ("CACHE-7", "result", 1, "refused, but under CACHE-2; expected CACHE-7"),
    "CanRewindRewinds": ("CACHE-9", "offset", 2, "expected 1, found 0"),
    "RaisesKeyError": ("CACHE-6", "result", 1, "found error (KeyError: 'slot 7' (adapters.py:"),
    "SharedBetweenCaches": ("GROW-2", "history", 4, "expected row a"),
    "SeesTooMuch": ("RING-1", "sees", 2, "query 0 sees a b; expected b"),
    "ForgetsToRewind": ("RING-7", "offset", 2, "offset: expected 0, found 1"),
    "DeclaresSnapshotWithoutIt": (
        "SNAP-5",
        "result",
        1,
        "expected ok, found unsupported (this adapter has no snapshot)",
    ),
}
"""The clause that must be blamed, what differs, the operations of the shortest trace, and words of the message."""


@pytest.mark.parametrize(("name", "wanted"), one_in(8, LIES.items()), ids=LIES)
def test_a_lie_fails_its_clause_on_a_short_trace(name: str, wanted: tuple[str, str, int, str]) -> None:
    seen = judging.judged(name)
    blamed, field, length, words = wanted
    assert seen.exit_status == 1 and clause(seen, blamed).verdict == "FAIL"
    shortest = _shortest(seen, blamed)
    assert (shortest.field, len(shortest.trace["ops"])) == (field, length), shortest.words
    assert words in shortest.message
    assert shortest.deterministic and shortest.steps[-1].differs


def _shortest(seen: Record, blamed: str) -> Failure:
    return min((f for f in seen.failures if blamed in f.clauses), key=lambda f: len(f.steps))


@pytest.mark.parametrize("name", one_in(9, LIES))
def test_a_failure_is_kept_with_its_trace_and_its_steps(name: str) -> None:
    for failed in judging.judged(name).failures:
        assert len(failed.steps) <= len(failed.trace["ops"]) or not failed.clauses
        assert (
            failed.message
            and failed.words
            and failed.source in ("example", "cover", "law", "explore", "blind", "alike", "inputs")
        )


NARROW = {
    "ReturnsLiveViews": {"CACHE-4"},
    "CanRewindRewinds": {"CACHE-9"},
    "KnownDeviation": {"CACHE-7"},
    "KnownButRight": {"CACHE-7"},
}


@pytest.mark.parametrize(("name", "wanted"), one_in(3, NARROW.items()), ids=NARROW)
def test_a_lie_about_one_thing_blames_nothing_else(name: str, wanted: set[str]) -> None:
    assert broken(judging.judged(name)) == wanted


@pytest.mark.parametrize(
    "name", one_in(2, ["WrongShape", "RefusesEverything", "DoesNothing", "ReturnsConstants", "CannotOpen"])
)
def test_who_does_nothing_right_passes_no_clause(name: str) -> None:
    seen = verdicts(judging.judged(name))
    declared = ("CACHE", "GROW", "RING") if "RING-1" in broken(judging.judged(name)) else ("CACHE", "GROW")
    said = {v for i, v in seen.items() if i.startswith(declared)}
    assert "FAIL" in said and said <= {"FAIL", "NOT_RUN"}


SEVERAL = ("growing", "ring", "store", "page")
"""What the fake that claims all chapters is judged by."""


def test_who_claims_everything_is_held_to_everything() -> None:
    """It has a growing cache: what it claims beside it fails at the first thing that is asked of it."""
    seen = judging.judged("ClaimsEverything", SEVERAL)
    failed = broken(seen)
    assert seen.exit_status == 1
    assert not {i for i in failed if i.startswith("GROW")}
    assert {"RING-5", "STORE-3", "CACHE-3"} <= failed


@pytest.mark.parametrize("fake", one_in(4, fakes_of_the_harness.VERDICTS))
def test_each_fake_breaks_a_clause_of_every_cache_that_it_is_judged_by(fake: type[Any]) -> None:
    clauses = fakes_of_the_harness.VERDICTS[fake]
    chapters = (SEVERAL,) if fake is fakes_of_the_harness.ClaimsEverything else ()
    seen = judging.judged(fake.__name__, *chapters)
    assert seen.exit_status == 1 and set(clauses) <= broken(seen)


def test_who_opens_nothing_fails_before_the_first_operation() -> None:
    failed = judging.judged("CannotOpen").failures[0]
    assert failed.trace["ops"] == [] and "opening growing: expected ok, found unsupported" in failed.message


def test_independence_is_broken_by_what_caches_share() -> None:
    seen = judging.judged("SharedBetweenCaches")
    assert clause(seen, "CACHE-14").verdict == "FAIL"


def test_what_fails_once_and_not_again_is_called_nondeterministic() -> None:
    seen = judging.judged("Nondeterministic")
    flaky = [f for f in seen.failures if not f.deterministic]
    assert seen.exit_status == 1 and flaky
    assert all(f.verdict == "FAIL" and f.message.startswith("nondeterministic: ") for f in flaky)


def test_a_known_deviation_is_an_expected_failure_and_conforms() -> None:
    seen = judging.judged("KnownDeviation")
    assert (seen.exit_status, verdicts(seen)["CACHE-7"]) == (0, "XFAIL")
    assert "rewinds are clipped" in clause(seen, "CACHE-7").reason
    assert clause(seen, "CACHE-7").trace is not None


def test_what_else_breaks_the_clause_of_a_declared_deviation_fails() -> None:
    seen = judging.judged("KnownAndMore")
    assert (seen.exit_status, verdicts(seen)["CACHE-7"]) == (1, "FAIL")
    (shown,) = {f.words for f in seen.failures if not f.expected and f.clauses == ["CACHE-7"]}
    assert shown == "growing kv_heads=1: append 1; rewind -1"


def test_a_declared_outcome_is_expected_and_another_one_fails() -> None:
    seen = judging.judged("KnownOutcome")
    assert (seen.exit_status, verdicts(seen)["CACHE-7"]) == (1, "FAIL")
    assert {f.words for f in seen.failures if f.expected} == {"growing: rewind 1"}


def test_a_trace_that_fails_outside_the_selection_fails_the_run() -> None:
    seen = judging.judged("SharedBetweenCaches")
    held = [c for c in seen.clauses if c.verdict == "PASS"]
    selected = msgspec.structs.replace(seen, clauses=held, summary={"PASS": len(held)}, problems=[], exit_status=0)
    assert held and verdict.exit_status(selected) == 1
    assert standing.standing(selected).words == "Does not conform"
    selected.failures = []
    assert verdict.exit_status(selected) == 0 and standing.standing(selected).words == "Conforms"


def test_a_known_deviation_that_is_gone_is_no_conformance() -> None:
    seen = judging.judged("KnownButRight")
    assert (seen.exit_status, verdicts(seen)["CACHE-7"]) == (1, "XPASS")
    assert "declared as known to break, but holds" in clause(seen, "CACHE-7").reason


DISHONEST = {
    "DoesF16Undeclared": "it does not declare the dtype f16, yet `growing: ` ended with ok",
    "DoesSnapshotsUndeclared": "it does not declare the chapter snapshot, yet ",
    "TakesMoreThanItSays": "it declares appends of 1 rows at most, yet ",
    "RefusesButChanges": "refuses, but `mask causal` changed the cache: offset 2 became 1",
    "CitesAndRaises": "it does not declare the dtype f32, yet `growing dtype=f32: ` ended with error",
}


@pytest.mark.parametrize(("name", "words"), DISHONEST.items(), ids=DISHONEST)
def test_what_is_not_declared_must_be_refused_and_change_nothing(name: str, words: str) -> None:
    seen = judging.record_of(judging.fake(name), all=True)
    assert seen.exit_status == 1 and broken(seen) == set()
    assert any(p.startswith("adapter: ") and words in p for p in seen.problems)
    said = standing.standing(seen)
    assert said.words == "Does not conform" and f"adapter: {said.because}" in seen.problems


@pytest.mark.parametrize("name", ["DoesSnapshotsUndeclared", "RefusesButChanges"])
def test_a_method_that_a_python_adapter_has_and_does_not_claim_is_hidden(name: str) -> None:
    """Its class may have more than this engine: then nothing of it is asked, and nothing of it fails."""
    for all_, found in ((True, True), (False, False)):
        with Worker(python_worker(judging.fake(name), all=all_), env=fakes.environment()) as worker:
            assert bool(list(honesty.undeclared(worker.describe(), worker))) == found


def test_an_engine_may_refuse_what_it_does_not_claim_by_errors_of_its_own() -> None:
    seen = judging.judged("RaisesItsOwn")
    assert (seen.exit_status, seen.problems, broken(seen)) == (0, [], set())


def test_honesty_says_the_same_every_time() -> None:
    problems = [
        judging.record_of("support.fakes.declarations:DoesF16Undeclared", traces=0).problems for _ in range(2)
    ]
    assert problems[0] == problems[1] and [p.split()[7] for p in problems[0]] == ["f16,", "bf16,"]


ENDS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "DiesOnView": ("GROW-4", "CRASH", {}, "killed by SIGSEGV"),
    "HangsOnRewind": ("GROW-5", "HANG", {"deadline": 0.4}, "no answer in 0.4 s"),
    "EatsMemory": ("CACHE-6", "OOM", {"memory_limit": 300 << 20}, "the limit is 300 MiB"),
    "out_of_order": ("GROW-2", "PROTOCOL", {}, "; the question was "),
    "a_byte_too_many": ("GROW-2", "PROTOCOL", {}, "more than one answer: 1 bytes of a header followed"),
    "a_byte_too_few": ("GROW-2", "HANG", {"deadline": 0.4}, "bytes of tensors arrived"),
    "an_unknown_tensor": ("GROW-2", "PROTOCOL", {}, "unknown tensor 'stake.k'; known: "),
    "a_result_of_its_own": ("GROW-2", "PROTOCOL", {}, "result must be one of ok, refused, unsupported"),
    "SpeaksGibberish": ("CACHE-6", "PROTOCOL", {}, "not a JSON header: b'Hello! I am a language model.'"),
}


@pytest.mark.parametrize("name", one_in(7, ENDS))
def test_how_a_worker_ends_is_the_verdict(name: str) -> None:
    blamed, verdict, limits, words = ENDS[name]
    seen = judging.ended(name, blamed, **limits)
    assert (seen.exit_status, verdicts(seen)) == (1, {blamed: verdict})
    shortest = _shortest(seen, blamed)
    assert (shortest.verdict, len(shortest.trace["ops"]) <= 2) == (verdict, True)
    assert words in shortest.message


def worker(name: str) -> Worker:
    return Worker(python_worker(judging.fake(name)), env=fakes.environment())


def test_what_kills_a_worker_is_confirmed_and_shortened_once_in_a_run() -> None:
    with worker("DiesOnView") as w:
        under_test, starts = AdapterUnderTest(w, w.describe()), []
        for ops in ("append 2; view", "append 3; append 1; view"):
            before = w.starts
            with under_test.judging(ops) as tally:
                under_test.judge(notation.trace("growing", "", ops), "example")
            starts.append(w.starts - before)
            assert [(f.verdict, f.deterministic) for f in tally.failures] == [("CRASH", True)]
    assert starts[0] > 2 and starts[1] == 1


def test_an_answer_that_came_whole_counts_though_gibberish_follows() -> None:
    with worker("SpeaksGibberish") as w:
        w.describe()
        session, config = RemoteSession(w, ["history", "offset"]), Config()
        assert session.begin("growing", config).result == "ok"
        rows = Pair(*(legible(config, kind, 0, 1) for kind in "kv"))
        asked = session.later({"op": "append", "n": 1}, Inputs(rows)), session.later({"op": "free"})
        time.sleep(0.5)
        assert [answer().result for answer in asked] == ["ok", "protocol"]


def test_an_example_that_is_not_read_to_its_end_shows_nothing() -> None:
    wired: Any = judging.Wired("kvworkshop.correct_variants:Whole")
    under_test = AdapterUnderTest(wired, wired.describe())
    with under_test.judging("example") as tally:
        examples.judge(under_test, index()["RING-10"].examples[0])
    assert "RING-10" not in tally.exercised and not tally.failures and not tally.own


@pytest.mark.slow  # each end is told apart above; here the same in one command
def test_every_end_of_a_worker_is_told_apart_in_a_whole_run() -> None:
    clauses = [x for c in ("CACHE-1", "GROW-4", "GROW-5", "CACHE-6") for x in ("--clause", c)]
    limits = ["--quick", "--traces", "0", "--memory", "300", "--deadline", "2"]
    status, seen, errors = command_line.run("support.fakes.endings:EndsInEveryWay", *clauses, *limits)
    wanted = {"CACHE-1": "PROTOCOL", "GROW-4": "CRASH", "GROW-5": "HANG", "CACHE-6": "OOM"}
    assert (status, seen.exit_status, verdicts(seen)) == (1, 1, wanted)
    assert errors.startswith("kvconform: judging support.fakes.endings:EndsInEveryWay\n")
    assert all(len(_shortest(seen, c).trace["ops"]) <= 3 for c in wanted)
    assert "endings.py" in _shortest(seen, "GROW-4").message
