"""onnxruntime-genai, judged whole: generators and its engine are right, planted faults of both are found.

Run by `nox -s engines-onnxruntime-genai`; elsewhere it is not there, and these tests are skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Wanted
from kvspec.errors import BadInput
from support.running.whole_engines import judged

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.filterwarnings("default")

FULL: Probe = engines.small("qwen3", "full,full")
TOKENS: Probe = engines.small("llama", "full,full", "tokens")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {probe.output: tmp_path_factory.mktemp(probe.output) for probe in (FULL, TOKENS)}
    for probe in (FULL, TOKENS):
        probe.write(found[probe.output])
    return found


def started(folders: dict[str, Path], probe: Probe, **wanted: Any) -> Any:
    from kvadapters.serving.drivers import onnxruntime_genai as made

    start = made.engine if probe is TOKENS else made.driver
    return start(Wanted(str(folders[probe.output]), **{"sequences": 4, **wanted}))


@pytest.mark.parametrize("probe", [FULL, TOKENS], ids=["generators", "engine"])
def test_what_it_reuses_is_right(folders: dict[str, Path], probe: Probe) -> None:
    run = judged(started(folders, probe), probe, 60)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] > 100


def test_a_probe_of_onnx_is_loaded_as_it_is(tmp_path: Path) -> None:
    """Its builder makes no model of Gemma 3: layers with windows, whose rows are all kept."""
    from kvadapters.serving.drivers.onnxruntime_genai import driver

    probe = engines.small("gemma3", "full,window 8")
    probe.write(tmp_path, "f32", "onnx")
    run = judged(driver(Wanted(str(tmp_path), sequences=4)), probe, 60)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] > 100
    assert not list(tmp_path.glob("onnx-*")), "nothing was built"


def test_rows_of_eight_bits_are_right_and_drafts_are_rolled_back(folders: dict[str, Path]) -> None:
    driver = started(folders, FULL, rows="q8_0", drafts=3)
    run = judged(driver, FULL, 60, "q8_0")
    assert not run.wrong_histories and driver.counts()["drafts rejected"]


def test_a_rewind_that_leaves_a_row_too_many_is_found(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kvadapters.serving.drivers.onnxruntime_genai import Generators

    def keep(memory: Any, sequence: int, count: int) -> int:
        if sequence not in memory.open:
            return 0
        memory.open[sequence].rewind_to(min(count + 1, memory.open[sequence].token_count()) if count else 0)
        return count

    monkeypatch.setattr(Generators, "keep", keep)
    run = judged(started(folders, FULL), FULL, 200)
    assert run.failures[0].clause in ("SERVE-2", "SERVE-4", "SERVE-5"), run.failures


def test_a_turn_behind_another_text_is_found(folders: dict[str, Path]) -> None:
    """As if the last request were gone on with by the number of its tokens, whatever they are."""
    driver = started(folders, TOKENS)
    add = driver.engine.add

    def confused(tokens: list[int], new: int, **more: Any) -> Any:
        if (last := driver.engine.last) and len(last.text) < len(tokens):
            tokens = last.text + tokens[len(last.text) :]
        return add(tokens, new, **more)

    driver.engine.add = confused
    driver.reset = driver.engine.open.clear  # the planted fault stays
    assert judged(driver, TOKENS, 200).failures


@pytest.mark.parametrize("wanted", [{"dtype": "f16"}, {"rows": "q8"}, {"block": 16}], ids=lambda w: next(iter(w)))
def test_what_it_cannot_be_is_refused(folders: dict[str, Path], wanted: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"computes in f32|cannot be started with block"):
        started(folders, FULL, **wanted)
