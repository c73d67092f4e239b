"""OpenVINO GenAI, judged whole by its tokens: what it cannot be started with is refused, a planted fault is found.

Run by `nox -s engines-openvino-genai`; elsewhere it is not there, and these tests are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Precision, Probe
from kvadapters.serving.driver import Request, Wanted
from kvconform.serving.judge import Judge
from kvconform.serving.player import Player
from kvspec.errors import BadInput
from kvspec.serving.history import history
from support.running.whole_engines import judged

openvino_genai = pytest.importorskip("openvino_genai", reason="OpenVINO GenAI is not installed")
pytestmark = pytest.mark.filterwarnings("default")

SMALL = {"blocks": 24, "chunk": 64, "sequences": 6}


PROBE: Probe = engines.small("qwen3", "full,full", "tokens")


def started(folder: Path) -> Any:
    from kvadapters.serving.drivers.openvino_genai import driver

    return driver(Wanted(str(folder), **SMALL))


def test_it_is_right_in_a_small_pool_and_says_that_it_tells_nothing(folder: Path) -> None:
    run = judged(started(folder), PROBE, 60)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] == 0


def test_a_first_block_of_another_request_is_found(folder: Path) -> None:
    """As if blocks were found again by something else than their tokens: all get the block that was there first."""
    driver, first = started(folder), list[tuple[int, ...]]()
    submit = driver.submit

    def confused(request: Request) -> Any:
        tokens = request.tokens
        if len(tokens) > 32:
            first.append(tokens[:32])
            request = replace(request, tokens=first[0] + tokens[32:])
        return submit(request)

    driver.submit = confused
    assert judged(driver, PROBE, 200).failures


def test_a_draft_model_changes_the_answer_to_a_long_prompt_beside_another_one(tmp_path: Path) -> None:
    """The shortest history that was found. A prompt that two steps finish is answered rightly."""
    from kvadapters.serving.drivers.openvino_genai import draft_model

    probe = Probe.of("qwen3", "full,full", "tokens")
    probe.write(tmp_path)
    player = Player(
        draft_model(Wanted(str(tmp_path), blocks=64, chunk=64, sequences=6, drafts=3)), probe.layout.ids
    )
    judge = Judge(probe, Precision("f32"))
    for length, wrong in ((92, False), (96, True)):
        asked = player.play(history(f"submit a 28 new=5; ask b {length} new=2"))
        assert bool(judge.judged(asked)) == wrong


def test_rows_of_another_adapter_are_found_and_none_where_nothing_is_reused(tmp_path: Path) -> None:
    """Blocks are found by their tokens alone. An engine that begins anew has none."""
    from kvadapters.serving.drivers.openvino_genai import adapters

    probe = Probe.of("qwen3", "full,full", "tokens", adapters=True)
    probe.write(tmp_path)
    driver = adapters(Wanted(str(tmp_path), **SMALL))
    assert {failure.clause for failure in judged(driver, probe, 100).failures} == {"SERVE-19"}
    submit = driver.submit

    def anew(request: Request) -> Any:
        driver.reset()
        return submit(request)

    driver.submit = anew  # type: ignore[method-assign]
    run = judged(driver, probe, 60)
    assert not run.wrong_histories and run.aimed["SERVE-19"]


@pytest.mark.parametrize(
    "wanted", [{"block": 16}, {"dtype": "f64"}, {"rows": "fp8_e4m3"}, {"longest": 100}], ids=lambda w: next(iter(w))
)
def test_what_it_cannot_be_is_refused(folder: Path, wanted: dict[str, Any]) -> None:
    from kvadapters.serving.drivers.openvino_genai import driver

    with pytest.raises(BadInput, match=r"OpenVINO GenAI|cannot be started with longest"):
        driver(Wanted(str(folder), **wanted))
