"""Faults that are planted in the serving engine of the examples: each is found, made short, and blamed on the
clause that it breaks; the right engine is not accused."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from adapters.probe import engines
from kvadapters.probe import Precision, Probe
from kvadapters.probe.reader.tokens import Choice
from kvconform.serving.run import Run
from support.engines import serving
from support.engines.serving import Plant
from support.engines.serving_faults import MORE
from support.slow import one_in

FAULTS = serving.FAULTS | MORE
SHORT = 6
"""Requests of the longest of the shortest histories."""


@pytest.fixture(scope="module")
def probe() -> Probe:
    return engines.small("qwen3", "full,window 6")


@pytest.fixture(scope="module")
def folder(probe: Probe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("probe")
    probe.write(into)
    return into


Judged = Callable[[Plant | None], Run]


@pytest.fixture(scope="module")
def judged(probe: Probe, folder: Path) -> Judged:
    @cache
    def judged(plant: Plant | None) -> Run:
        run = Run(probe, serving.driver(folder, plant), Precision())
        run.go(500, 1)
        return run

    return judged


@pytest.mark.parametrize("plant", one_in(8, FAULTS), ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_made_short_and_named(judged: Judged, plant: Plant) -> None:
    run = judged(plant)
    assert run.failures and run.asked < 500
    failure = run.failures[0]
    assert failure.clause in FAULTS[plant], failure
    assert failure.alone and failure.history.count("ask") + failure.history.count("submit") <= SHORT
    assert any(line.startswith("  ^ ") for line in failure.drawing)


def test_the_right_engine_is_not_accused_and_everything_happened_in_it(judged: Judged) -> None:
    run = judged(None)
    assert run.failures == [] and run.wrong_histories == 0
    counts = run.driver.counts()
    assert all(counts[name] > 5 for name in counts), counts
    assert run.judge.queries > 1000 and run.player.counts["cancelled"] > 5


def test_a_row_of_another_request_is_named_by_its_place_in_that_request(judged: Judged) -> None:
    failure = judged(serving.found_for_ever).failures[0]
    said = r"query \d+ of the (\w+) request, layer 0 \(full\): sees token \d+ of the (\w+),"
    found = re.match(said, failure.found[0])
    assert found and found[1] != found[2], failure.found


def test_what_explains_tokens_is_looked_for_in_the_shortest_history_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look for it costs as much as to judge hundreds of requests, and a history is made short by hundreds."""
    probe, looked = engines.small("qwen3", "full,window 6", "tokens"), list[Choice]()
    probe.write(tmp_path)
    explained = Choice.explained
    monkeypatch.setattr(Choice, "explained", lambda choice: (looked.append(choice), explained(choice))[1])
    run = Run(probe, serving.driver(tmp_path, serving.wide_window), Precision())
    run.go(100, 1)
    assert len(looked) == len(run.failures) == 1
    assert "layer 1 sees what a layer of window 7 shows" in run.failures[0].found[0]
