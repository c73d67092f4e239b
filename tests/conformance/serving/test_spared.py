"""What an engine cannot bear is not asked of it, where that is declared; and no clause passes for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from hostile.engine_faults import CONTROLS
from kvadapters.probe import Precision
from kvadapters.serving.driver import Answer, Declared, EngineFailed, Request
from kvadapters.serving.stepped import Stepped
from kvconform.serving.run import Run
from kvconform.serving.verdict import verdicts
from kvspec.errors import BadInput
from support.engines import serving


class FailsAtWholeTexts(Stepped):
    """An engine that fails at a prompt that is an earlier one with its whole answer."""

    def __init__(self, driver: Stepped) -> None:
        self.texts = set[tuple[int, ...]]()
        self.prompts = dict[Any, tuple[int, ...]]()
        super().__init__(driver.make, driver.declared)

    def submit(self, request: Request) -> Any:
        if request.tokens in self.texts:
            raise EngineFailed("nothing is left to compute")
        handle = super().submit(request)
        self.prompts[handle] = request.tokens
        return handle

    def wait(self, handle: Any) -> Answer:
        answer = super().wait(handle)
        self.texts.update((*self.prompts[handle], *sample.tokens) for sample in answer.samples)
        return answer


def judged(tmp_path: Path, words: str, requests: int) -> Run:
    probe = engines.small("qwen3", "full,window 6")
    probe.write(tmp_path)
    with CONTROLS["controls/as-it-is"].planted():
        driver = FailsAtWholeTexts(serving.driver(tmp_path))
        driver.declared = replace(driver.declared, can=driver.declared.can - {"stop"}).with_words(words)
        run = Run(probe, driver, Precision())
        run.go(requests, 1)
    return run


def test_what_an_engine_cannot_bear_is_found_or_spared(tmp_path: Path) -> None:
    found, spared = judged(tmp_path, "", 600), judged(tmp_path, "no-whole", 600)
    assert [f.sort for f in found.failures] == ["failed"] and "nothing is left" in found.failures[0].found[0]
    assert spared.failures == [] and spared.wrong_histories == 0 and spared.asked >= 600
    fifth = next(clause for clause in verdicts(spared) if clause.id == "SERVE-5")
    assert (fifth.verdict, fifth.requests > 0) == ("PARTLY_OBSERVED", True) and "spared" in fifth.why


def test_what_is_spared_is_declared_by_its_name() -> None:
    assert "no-whole" in Declared("engine").with_words("block=4,no-whole").can
    with pytest.raises(BadInput, match="no-whole"):
        Declared("engine").with_words("whole")
