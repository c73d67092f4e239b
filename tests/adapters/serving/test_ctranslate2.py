"""CTranslate2, judged whole: static prompts and batches are right, planted faults are found, windows are not right.

Run by `nox -s engines-ctranslate2`; elsewhere it is not there, and these tests are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Wanted
from kvspec.errors import BadInput
from support.running.whole_engines import judged

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("default")

PROBE: Probe = engines.small("qwen3", "full,full")


def started(folder: Path, **wanted: Any) -> Any:
    from kvadapters.serving.drivers.ctranslate2 import driver

    return driver(Wanted(str(folder), **({"block": 4, "sequences": 4} | wanted)))


def test_static_prompts_and_batches_are_right(folder: Path) -> None:
    run = judged(started(folder), PROBE, 60)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] > 100


def test_a_static_prompt_of_another_text_is_found(folder: Path) -> None:
    """As if rows were found by the number of tokens: all get the prompt of this length that was there first."""
    driver, first = started(folder), dict[int, tuple[int, ...]]()
    answered = driver.answered

    def confused(batch: Any) -> Any:
        static = driver.static(batch[0].request.tokens)
        wrong = first.setdefault(len(static), static)
        for one in batch:
            one.request = replace(one.request, tokens=wrong + one.request.tokens[len(static) :])
        return answered(batch)

    driver.answered = confused
    assert judged(driver, PROBE, 200).failures


def test_a_prompt_longer_than_a_window_is_computed_wrongly(tmp_path: Path) -> None:
    """`reports/deviations/ctranslate2/serving/window_prompt.py` shows it without this suite."""
    probe = engines.small("gemma3", "full,window 5")
    probe.write(tmp_path)
    run = judged(started(tmp_path), probe, 30)
    assert "another context" in "".join(run.failures[0].drawing)


@pytest.mark.parametrize("wanted", [{"dtype": "f16"}, {"rows": "q8"}, {"chunk": 16}], ids=lambda w: next(iter(w)))
def test_what_it_cannot_be_is_refused(folder: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"computes in f32|cannot be started with (rows|chunk)"):
        started(folder, **wanted)
