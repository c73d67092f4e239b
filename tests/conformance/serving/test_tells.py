"""Engines that give tokens alone, or the logprobs of the top k alone: planted faults are found there too, and the
right engine is not accused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.probe import engines
from hostile.engine_faults import CONTROLS, FAULTS, Change, Variant
from kvadapters.probe import Precision, Probe
from kvadapters.serving.driver import Answer, Sample
from kvadapters.serving.stepped import Stepped
from kvconform.serving.run import Run
from kvconform.serving.verdict import verdicts
from support.engines import serving
from support.slow import one_in

TOP = 60
"""Logprobs that are told of each token."""


class Less(Stepped):
    """An engine that tells less than it knows."""

    def __init__(self, driver: Stepped, top: int) -> None:
        self.top = top
        super().__init__(driver.make, driver.declared)

    def wait(self, handle: Any) -> Answer:
        full = super().wait(handle)
        return Answer(tuple(Sample(s.tokens, self.told(s.answers)) for s in full.samples), full.cached)

    def told(self, answers: Any) -> Any:
        if not self.top:
            return None
        return [{int(i): float(row[i]) for i in np.argsort(-row)[: self.top]} for row in answers]


def judged(tmp_path: Path, top: int, variant: Variant, requests: int) -> Run:
    probe: Probe = engines.small("qwen3", "full,window 6", "weights" if top else "tokens")
    probe.write(tmp_path)
    with variant.planted():
        run = Run(probe, Less(serving.driver(tmp_path), top), Precision())
        run.go(requests, 1)
    return run


BY_TOKENS = ("regret", "reused")
"""What tokens alone can show: a token that is not the best, and more cached rows than are shared."""


@pytest.mark.parametrize("top", one_in(2, [0, TOP]), ids=["tokens", "top"])
@pytest.mark.parametrize(
    ("fault", "clauses"),
    [
        ("prefix/no-parent", {"SERVE-3", "SERVE-8"}),  # keys of own tokens alone have no salt either
        # The place of a row was given to others, as some history shows: also where a window let go of it.
        ("prefix/stale-key", {"SERVE-6", "SERVE-9", "SERVE-10", "SERVE-13", "SERVE-17"}),
    ],
)
def test_a_planted_fault_is_found_by_less(tmp_path: Path, top: int, fault: str, clauses: set[str]) -> None:
    run = judged(tmp_path, top, FAULTS[fault], 300)
    assert run.failures and run.asked < 300
    assert run.failures[0].clause in clauses, run.failures[0]
    assert run.failures[0].alone and (top or run.failures[0].sort in BY_TOKENS)


@pytest.mark.parametrize("top", [0, TOP], ids=["tokens", "top"])
def test_the_right_engine_is_not_accused_by_less(tmp_path: Path, top: int) -> None:
    run = judged(tmp_path, top, CONTROLS["controls/as-it-is"], 250)
    assert run.failures == [] and run.wrong_histories == 0
    assert run.judge.queries > 400
    assert top or run.judge.untold["samples of engines that give tokens alone"] > 0
    samples = next(clause for clause in verdicts(run) if clause.id == "SERVE-14")
    assert samples.verdict == ("PASS" if top else "PARTLY_OBSERVED"), samples.why


def test_what_an_engine_computes_in_is_what_it_is_judged_by(tmp_path: Path) -> None:
    """An engine that is asked for f32 and rounds to eleven bits is not accused, where it says so."""
    probe = engines.small("qwen3", "full,window 6")
    probe.write(tmp_path)
    failures = list[int]()
    for computes in ("", "f16"):
        with ROUNDS.planted():
            driver = serving.driver(tmp_path)
            driver.declared = replace(driver.declared, computes=computes)
            run = Run(probe, driver, Precision("f32"))
            run.go(40, 1)
        failures.append(run.wrong_histories)
    assert failures[0] > 0 and failures[1] == 0 and run.precision.dtype == "f16"


def test_an_engine_that_answers_at_once_passes_nothing_of_cancels(tmp_path: Path) -> None:
    """Where each request is waited for before the next step, none is under way when it is cancelled."""
    probe = engines.small("qwen3", "full,window 6")
    probe.write(tmp_path)
    verdict = dict[bool, str]()
    for concurrent in (True, False):
        driver = serving.driver(tmp_path)
        can = driver.declared.can - (set() if concurrent else {"concurrent"})
        driver.declared = replace(driver.declared, can=can)
        run = Run(probe, driver, Precision())
        run.go(60)
        verdict[concurrent] = {clause.id: clause.verdict for clause in verdicts(run)}["SERVE-13"]
    assert verdict == {True: "PASS", False: "NOT_RUN"}


ROUNDS = Variant(
    id="rounds",
    says="Rows are rounded to f16.",
    changes=(
        Change(
            "Rows.write",
            "= keys, values",
            "= ((rows * np.float32(1.0001)).astype(np.float16) for rows in (keys, values))",
        ),
    ),
)
"""An engine in which nothing is wrong, if it says what it computes in."""
