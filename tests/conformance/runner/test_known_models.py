"""Known deviations that are models: classes over the list model, and what lies behind them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kvconform.judge.storage import Difference
from kvconform.judge.trial_result import TrialResult
from kvconform.runner.verdict import known, models
from kvconform.runner.verdict.known import KnownDeviation
from kvspec import notation
from kvspec.errors import BadInput
from kvspec.operations.table import Operation
from kvspec.session.driver import Session
from kvspec.session.step import NOTHING, Inputs, Step
from support.engines import array_engines, known_engines, second_bugs, update_engines
from support.running import judging
from support.running.judging import broken, clause
from support.running.known import MODEL, RINGS, WIDE, behind
from support.running.local_adapter import LocalAdapter
from tools.floors import ROOT

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


def test_what_a_model_leaves_open_at_the_end_of_a_run_is_open_where_no_result_is_known() -> None:
    under_test = LocalAdapter(known_engines.lengthens_in_rounds, known=(of_released("TrimsNegative"),))
    words = "append 1; run 1 {speculate r A; choose r 0; commit r 0; rewind 2}; append 1"
    seen = under_test.trial(notation.trace("growing", "kv_heads=1", words))
    assert not seen.unexplained, seen.differences


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
    ("keeps_what_it_is_handed", "run 1 {open C; C: append 1; C: append 1; append 1}; append 1; C: append 1", True),
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
        ("model.py:Old", r"Old.append takes \(keys\) where \(keys, values\) is handed in"),
    ],
)
def test_a_model_that_cannot_be_loaded_says_why(model: str, words: str, modelled: KnownDeviation) -> None:
    more = "\n\nclass Alone:\n    pass\n\n\nclass Old(RingModel):\n    def append(self, keys):\n        pass\n"
    code = tuple((name, text + more) for name, text in modelled.code)
    with pytest.raises(BadInput, match=words):
        models.deviating([replace(modelled, model=model, code=code)])


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


def test_every_model_of_a_released_engine_can_be_called() -> None:
    entries = known.read(ROOT / "reports" / "deviations" / "kvconform.toml")
    assert len(models.deviating(entries).models) > 50
