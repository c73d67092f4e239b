"""Faults that are planted in the serving engine of the examples: each is found, made short, and blamed on the
clause that it breaks; the right engine is not accused. The faults, and how the others are found, stand in
`tests/hostile/engine_faults`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.probe import engines
from hostile.engine_faults import CONTROLS, FAULTS
from hostile.engine_faults.judged import judged
from kvadapters.probe import Precision
from kvadapters.probe.reader.tokens import Choice
from kvconform.serving.run import Run
from support.engines import serving
from support.slow import one_in

SHORT = 6
"""Requests of the longest of the shortest histories."""
AMONG = (
    *(
        "prefix/no-parent",
        "prefix/no-adapter",
        "prefix/told-as-a-whole",
        "speculation/row-beyond-the-length",
        "batch/outputs-change-places",
    ),
    *("prefix/any-order", "prefix/without-the-last-token", "prefix/one-lookup-for-two-keys", "prefix/not-counted"),
    *("hybrid/hit-asks-one-group", "batch/preempted-begins-its-answer-again", "page/no-copy-on-write"),
    *("asynchronous/aborted-goes-on", "speculation/bonus-token-is-lost"),
)
"""Faults of every sort; the first one and another are planted in every run of the tests."""


@pytest.mark.parametrize("fault", one_in(7, AMONG))
def test_a_planted_fault_is_found_made_short_and_named(fault: str) -> None:
    run = judged(FAULTS[fault])
    assert run.failures and run.asked <= 500
    failure = run.failures[0]
    assert failure.clause in FAULTS[fault].clauses, failure
    assert failure.alone and failure.history.count("ask") + failure.history.count("submit") <= SHORT
    assert any(line.startswith("  ^ ") for line in failure.drawing)


def test_the_right_engine_is_not_accused_and_everything_happened_in_it() -> None:
    run = judged(CONTROLS["controls/as-it-is"])
    assert run.failures == [] and run.wrong_histories == 0
    counts = run.driver.counts()
    assert all(counts[name] > 5 for name in counts), counts
    assert run.judge.queries > 1000 and run.player.counts["cancelled"] > 5


def test_what_is_told_of_a_hit_is_judged_where_rows_are_right() -> None:
    """At least one token is computed, so that an engine which tells that all are reused tells something wrong."""
    failure = judged(FAULTS["prefix/told-as-a-whole"]).failures[0]
    assert (failure.clause, failure.sort) == ("SERVE-5", "computed")
    assert "were reused; at least one is computed" in failure.found[0] or "of them reused" in failure.found[0]


def test_a_row_of_another_request_is_named_by_its_place_in_that_request() -> None:
    failure = judged(FAULTS["prefix/stale-key"]).failures[0]
    said = r"query \d+ of the (\w+) request, layer \d+ \(.*\): sees .*token \d+ of the (\w+)"
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
    with FAULTS["hybrid/window-without-its-query"].planted():
        run = Run(probe, serving.driver(tmp_path), Precision())
        run.go(100, 1)
    assert len(looked) == len(run.failures) == 1
    assert "layer 1 sees what a layer of window 7 shows" in run.failures[0].found[0]
