"""Known deviations: exactly the failures that a file tells of are expected, and one that is gone is told."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from kvconform.judge import planted
from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.verdict import known, models, outcomes
from kvconform.runner.verdict.known import KnownDeviation
from kvspec import notation
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.operations.table import Operation
from kvspec.records.run import Record
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step
from support.engines import array_engines, known_engines, second_bugs, update_engines
from support.running import command_line, judging
from support.running.judging import broken, clause
from support.running.local_adapter import LocalAdapter
from support.slow import one_in
from tools.floors import ROOT

WORDS = "ring kv_heads=1 window=1: append 1; rewind 0"
TRIM = KnownDeviation("RING-7", "a trim of the only row is not counted", shows="offset: expected 0, found 1")
TRACE = KnownDeviation("RING-7", "the same", trace=WORDS, shows=TRIM.shows, link="https://a.b")
WIDE = KnownDeviation("RING-1", "the window is one row too wide", model="WIN-04/OwnRowNotCounted")
RINGS = ("ring", "mask")


@cache
def judged(name: str, *entries: KnownDeviation, only: tuple[str, ...] = ()) -> Record:
    return judging.record_of(
        f"{known_engines.__name__}:{name}", ("growing", "ring", "mask"), traces=3, known=entries, only=only
    )


@cache
def behind(name: str, *entries: KnownDeviation, traces: int = 5) -> Record:
    """The engine of `docs/engine.md`, or one with a second bug."""
    return judging.record_of(f"{second_bugs.__name__}:{name}", RINGS, traces=traces, known=entries or (WIDE,))


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


MODEL_FILE = """
from kvref.list_model.ring import RingModel
from kvref.list_model.views import Window


class OneTooWide(RingModel):
    def visible(self):
        return Window(self.window + 1)
"""


@pytest.fixture
def modelled(tmp_path: Path) -> KnownDeviation:
    """An entry whose model is a class of a file beside it."""
    (tmp_path / "model.py").write_text(MODEL_FILE)
    file = tmp_path / "kvconform.toml"
    file.write_text(MODEL.replace('"x"', '"model.py:OneTooWide"'))
    (entry,) = known.read(file)
    return entry


FIVE = "ring kv_heads=1 window=1: append 5"
FIVE_ROWS = KnownDeviation(
    "RING-3", "five rows", trace=FIVE, shows="expected ok, found error (ValueError: five rows (second_bugs.py:*))"
)


def test_a_model_is_a_class_of_a_file(modelled: KnownDeviation) -> None:
    seen = behind("SlidingCache", modelled)
    assert seen.exit_status == 0 and "RING-1" in broken(seen)
    assert behind("CountsTwice", modelled).exit_status == 1


def test_entries_hold_together(modelled: KnownDeviation) -> None:
    both = (modelled, FIVE_ROWS), (modelled,), (FIVE_ROWS,)
    assert [behind("RefusesFive", *entries).exit_status for entries in both] == [0, 1, 1]


def of_released(model: str) -> KnownDeviation:
    """The entry of the released engines with this model, for any adapter."""
    entries = known.read(ROOT / "reports" / "deviations" / "kvconform.toml")
    return replace(next(k for k in entries if k.models[0].endswith(f":{model}")), adapter="", versions="")


OPEN_ENDED = {
    "append 2; run 1 {rewind 3; append 2}; append 1": True,
    "append 2; run 2 {rewind 3; append 2; rewind 1}; rewind 0": True,
    "append 2; run 1 {rewind 3; append 2}; free": True,
    "append 2; run 1 {rewind 1; append 2}; append 1": False,
}


@pytest.mark.parametrize(("ops", "deviates"), OPEN_ENDED.items())
def test_what_a_model_leaves_open_in_a_run_is_open_behind_it(ops: str, deviates: bool) -> None:
    under_test = LocalAdapter(known_engines.lengthens, known=(of_released("TrimsNegative"),))
    seen = under_test.trial(notation.trace("growing", "kv_heads=1", ops))
    assert (seen.failed, bool(seen.known)) == (deviates, deviates), seen.differences


SAVED_OF_IT = (
    "append 2; rewind 4; snapshot s; open B; B: restore s 1; B: append 1",
    "append 2; snapshot s; rewind 4; snapshot s; open B; B: restore s 2; B: append 1",
    "append 2; rewind 4; snapshot s; split s 1 p c; open B; B: restore p 1; B: append 1",
)


@pytest.mark.parametrize("ops", SAVED_OF_IT)
def test_nothing_is_said_of_what_was_saved_of_a_cache_of_which_nothing_is_said(ops: str) -> None:
    under_test = LocalAdapter(known_engines.LengthensAndSaves(), known=(of_released("TrimsNegative"),))
    seen = under_test.trial(notation.trace("growing", "kv_heads=1 step=2", ops))
    assert seen.failed and not seen.unexplained, seen.differences


def test_shortening_asks_for_no_reasons() -> None:
    ours = of_released("TrimsNegative"), of_released("TakesOtherRows")
    under_test = LocalAdapter(known_engines.LengthensAndSaves(), known=ours)
    trace = notation.trace("growing", "kv_heads=1 step=2", "append 5; rewind 7; open B; B: append 2; append 3")
    tried, plain = [], under_test.explaining
    under_test.explaining = dataclasses.replace(plain, explained=lambda *both: bool(tried.append(both)) or False)
    assert under_test.trial(trace, reasons=False).known and not tried
    assert under_test.trial(trace).known and tried


def test_keys_that_grow_alone_explain_what_lies_behind_them_and_no_more() -> None:
    under_test = LocalAdapter(known_engines.keys_grow_alone, known=(of_released("KeysGrowAlone"),))
    words = (
        "append 2; append 1 v_dim=3; append 1",
        "append 1; append 1 v_dim=3; append 1; append 1; append 1 v_dim=3",
    )
    behind, before = (under_test.trial(notation.trace("growing", "kv_heads=1 step=2", ops)) for ops in words)
    assert behind.failed and behind.known and not before.failed


LENT = (
    ("hands_out_its_own", "append 2; scribble; append 1", True),
    ("keeps_what_it_is_handed", "run 1 {append 2; append 1}; append 1", True),
    ("hands_out_its_own", "append 2; append 1", False),
)


@pytest.mark.parametrize(("name", "ops", "deviates"), LENT)
def test_what_one_does_to_arrays_that_a_cache_lends_is_known(name: str, ops: str, deviates: bool) -> None:
    lends = LocalAdapter(getattr(array_engines, name), known=(of_released("LendsItsArrays"),))
    seen = lends.trial(notation.trace("growing", "kv_heads=1", ops))
    assert (seen.failed, bool(seen.known)) == (deviates, deviates) and not seen.unexplained


def test_arrays_that_are_lent_explain_nothing_before_they_are_overwritten() -> None:
    lends = LocalAdapter(known_engines.lengthens, known=(of_released("LendsItsArrays"),))
    seen = lends.trial(notation.trace("growing", "kv_heads=1", "append 2; rewind 3; scribble; append 1"))
    assert seen.failed and not seen.known and seen.unexplained


def test_a_model_may_leave_open_what_a_cache_holds() -> None:
    counts = of_released("CountsRefusedRows")
    seen = judging.record_of(
        f"{update_engines.__name__}:counts_later_rows", RINGS, known=(counts,), only=("CACHE-2",)
    )
    assert (clause(seen, "CACHE-2").verdict, seen.exit_status) == ("XFAIL", 0)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("WIN-04/OwnRowNotCountd", "did you mean WIN-04/OwnRowNotCounted"),
        ("model.py:None_", "the file has no class None_"),
        ("model.py:Alone", "is made from no class of kvref"),
    ],
)
def test_a_model_that_cannot_be_loaded_says_why(model: str, words: str, modelled: KnownDeviation) -> None:
    code = tuple((name, text + "\n\nclass Alone:\n    pass\n") for name, text in modelled.code)
    with pytest.raises(BadInput, match=words):
        models.deviating([replace(modelled, model=model, code=code)])


WIDE_PATTERNS = (
    *("sees *", "sees *; expected", "query * sees ", "sees", "expected", "found ok", "offset: expected"),
    *(
        "offset: * found",
        "found",
        "*",
        "view: expected",
        "does not fit",
        "expected ok, found error",
        "can: expected",
    ),
)


@pytest.mark.parametrize("shows", WIDE_PATTERNS)
def test_a_pattern_that_fits_any_failure_of_its_sort_is_refused(shows: str) -> None:
    for trace in ("", WORDS):
        with pytest.raises(BadInput, match="write a model"):
            outcomes.demand_tight(shows, trace, "here")


def test_a_message_that_all_failures_of_its_sort_have_needs_its_trace() -> None:
    outcomes.demand_tight("expected refused CACHE-3, found ok", WORDS, "here")
    with pytest.raises(BadInput, match="give its trace too"):
        outcomes.demand_tight("expected refused CACHE-3, found ok", "", "here")


@pytest.mark.parametrize(
    "shows",
    ["query 1 sees a b; expected b", "offset: expected 0, found 1", "query 9 sees a; expected b (n from 9 on)"],
)
def test_a_printed_message_is_taken_and_matches_itself(shows: str) -> None:
    outcomes.demand_tight(shows, "", "here")
    assert outcomes.matches(shows, shows) and not outcomes.matches(shows, "offset: expected 0, found 2")


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


class Counting(LocalAdapter):
    """Counts the operations that the engine is asked for."""

    asked = 0

    def session(self, observe: tuple[str, ...]) -> Session:
        outer = self

        class Counted(Session):
            def do(self, op: Operation, inputs: Inputs = NOTHING) -> Step:
                outer.asked += op["op"] != "open"
                return super().do(op, inputs)

        return Counted(self.worker.adapter, observe)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("engine", "asked", "known"),
    [(second_bugs.SlidingCache, 3, True), (second_bugs.DropsBeforeThree, 3 + 3, False)],
)
def test_an_engine_is_asked_again_only_where_it_does_what_no_model_does(
    engine: Any, asked: int, known: bool
) -> None:
    under_test = Counting(engine, known=(WIDE,))
    seen = under_test.trial(notation.trace("ring", "kv_heads=1 window=2", "append 5; append 1; append 3"))
    assert (under_test.asked, under_test.operations, bool(seen.known)) == (asked, asked, known)


@pytest.mark.parametrize(("field", "goes_on"), [("sees", True), ("result", False), ("failed", False)])
def test_a_session_goes_on_unless_what_operations_take_follows_from_what_differed(
    field: str, goes_on: bool
) -> None:
    seen = TrialResult(notation.trace("ring", "window=1", "append 1"), "visible", session=object())
    seen.differences.append(Difference(field, "differs"))
    assert seen.goes_on == goes_on


def test_a_known_failure_is_shortened_by_its_first_difference_and_its_own_model() -> None:
    ours = of_released("TrimsNegative"), of_released("TakesOtherRows"), of_released("CountsRefusedRows")
    under_test = LocalAdapter(known_engines.lengthens, known=ours)
    tried, explained = [], under_test.explaining.explained
    trace = notation.trace("growing", "kv_heads=1", "append 5; append 4; rewind 12; append 3; append 200")
    with under_test.judging("a check") as tally:
        seen = under_test.trial(trace)
        under_test.explaining = dataclasses.replace(
            under_test.explaining, explained=lambda seen, one: bool(tried.append(one)) or explained(seen, one)
        )
        under_test.failures.keep_known(seen, "explore")
    assert [f.words for f in tally.failures] == ["growing kv_heads=1: rewind 1"]
    of_one = [d for d in tried if len(d.models) == 1]
    assert len(of_one) > 5 and len(tried) == len(of_one) + 1, "all models are asked about the shortest trace alone"


def test_one_that_is_gone_is_told() -> None:
    seen = judging.record_of(f"{update_engines.__name__}:right", RINGS, known=(TRIM,), only=("RING-7",))
    assert (clause(seen, "RING-7").verdict, seen.exit_status) == ("XPASS", 1)
    assert clause(seen, "RING-7").reason.endswith("a trim of the only row is not counted")


def test_one_that_shows_in_some_of_its_clauses_is_not_gone() -> None:
    entry = KnownDeviation(("RING-7", "RING-1"), "a trim of the only row is not counted", shows=TRIM.shows)
    seen = judged("forgets", entry)
    assert [clause(seen, id).verdict for id in entry.clauses] == ["XFAIL", "PASS"] and seen.exit_status == 0


OF_ITS_VERSION = {">=1.4,<1.6": True, "==1.5": True, ">=1.6": False, "<1.5": False}


@pytest.mark.parametrize(("versions", "holds"), OF_ITS_VERSION.items())
def test_it_holds_for_its_versions(versions: str, holds: bool) -> None:
    entry = KnownDeviation("RING-7", "not counted", shows=TRIM.shows, versions=versions)
    assert bool(known.applying((entry,), description(known_engines.forgets.describe()))) == holds


def test_it_holds_for_its_adapter() -> None:
    entry = KnownDeviation("RING-7", "not counted", shows=TRIM.shows, adapter="another")
    assert not known.applying((entry,), description(known_engines.forgets.describe()))


ENTRY = '[[known]]\nclause = "RING-7"\nreason = "not counted"\nshows = "offset: expected 0, found 1"\n'
MODEL = '[[known]]\nclause = "RING-1"\nreason = "too wide"\nmodel = "x"\n'

WRONG = {
    "[[known]]\nclause = ": "Invalid value (at end of document)",
    '[[known]]\nclause = "RING-7"\nshows = "x"\n': "kvconform.toml: known[0]: reason is missing",
    ENTRY + ENTRY.replace("RING-7", "RING-700"): "known[1]: there is no clause 'RING-700'",
    ENTRY.replace("shows", "show"): "kvconform.toml: known[0]: unknown field 'show'",
    ENTRY.replace("shows", "trace").replace(
        "offset: expected 0, found 1", WORDS
    ): "known[0]: give beside the trace",
    MODEL + 'shows = "offset: expected 0, found 1"\n': "known[0]: give either what the engine does",
    ENTRY + 'model = "m.py:X"\n': "known[0]: give either what the engine does",
    MODEL.replace('"x"', '"m.py:X"'): "known[0]: model: ",
    MODEL.replace('model = "x"', 'dialect = { "ring.rewnd" = "below" }'): "there is no dialect 'ring.rewnd'",
    ENTRY.replace('"not counted"', '""'): "known[0]: give the clause and the reason",
    ENTRY + 'versions = "1.4 or so"\n': "known[0]: versions '1.4 or so' is no specifier such as '>=1.4,<1.6'",
    ENTRY + 'trace = "ring window=3: apend 3"\n': "known[0]: trace: 'apend 3': unknown operation 'apend'",
    "known = 3\n": "kvconform.toml: known: expected a list, found a whole number",
}


@pytest.mark.parametrize(("text", "words"), WRONG.items())
def test_an_error_of_the_file_says_what_and_where(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "kvconform.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as raised:
        known.read(file)
    assert str(file) in str(raised.value) and words in str(raised.value)


def test_a_file_that_is_not_there_is_an_error_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert known.read(None) == ()
    with pytest.raises(BadInput, match="cannot be read"):
        known.read(Path("other.toml"))


def test_a_version_that_is_none_is_an_error() -> None:
    about = description({"name": "x", "version": "build b1234", "chapters": {"ring": "visible"}})
    entry = KnownDeviation("RING-7", "not counted", shows="x", versions=">=1")
    with pytest.raises(BadInput, match="'build b1234', which is no PEP 440 version"):
        known.applying((entry,), about)


def test_the_command_reads_the_file_of_its_folder_and_junit_skips(tmp_path: Path) -> None:
    (tmp_path / "kvconform.toml").write_text(ENTRY + 'link = "https://a.b"\n')
    options = ("--clause", "RING-7", "--quick", "--processes", "1", "--report", tmp_path / "report")
    done = command_line.kvconform("run", f"{known_engines.__name__}:forgets", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "XFAIL" in done.stdout and "FAIL RING-7 in" not in done.stderr
    (suite,) = ElementTree.parse(tmp_path / "report" / "junit.xml").getroot()
    skipped = [case.find("skipped") for case in suite if case.find("skipped") is not None]
    assert suite.get("failures") == "0" and suite.get("skipped") == str(len(skipped)) != "0"
    assert skipped[0] is not None
    assert skipped[0].get("message") == "known: not counted (https://a.b)"
    assert "breaks RING-7" in str(skipped[0].text) and "offset: expected" in str(skipped[0].text)
    for page in ("report.html", "report.md"):
        assert "not counted" in (tmp_path / "report" / page).read_text()


def test_a_replay_says_what_is_known_and_fails_for_what_is_not(tmp_path: Path) -> None:
    engine = ("--adapter", f"{known_engines.__name__}:forgets")
    without = command_line.kvconform("replay", WORDS, *engine, cwd=tmp_path)
    assert without.returncode == 1 and "FAIL: RING-7: offset: expected" in without.stdout
    (tmp_path / "kvconform.toml").write_text(ENTRY)
    done = command_line.kvconform("replay", WORDS, *engine, cwd=tmp_path)
    assert done.returncode == 0 and "known (not counted): RING-7: offset: expected" in done.stdout, done.stdout


def test_what_the_adapter_declares_is_skipped_by_junit_too(tmp_path: Path) -> None:
    options = ("--clause", "CACHE-7", "--quick", "--processes", "1", "--report", tmp_path)
    done = command_line.kvconform("run", "support.fakes.declarations:KnownDeviation", *options)
    assert done.returncode == 0 and "FAIL" not in done.stderr, done.stdout + done.stderr
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("failures") == "0" and suite.get("skipped") != "0"


def test_a_file_that_is_wrong_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("known = 3\n")
    done = command_line.kvconform("run", "reference", "--known", file)
    assert done.returncode == 2 and "mine.toml" in done.stderr and "Traceback" not in done.stderr
