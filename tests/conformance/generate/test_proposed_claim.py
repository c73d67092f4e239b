"""`kvconform smoke` proposes a claim: what was done when each ability was tried once."""

from __future__ import annotations

import json
from functools import cache

import pytest

from kvconform.generate.claims.ability_traces import ability_traces
from kvspec.contract import CHAPTERS, Description, description
from kvspec.geometry import Config
from kvspec.operations.abilities import needed_to_open
from kvspec.operations.table import cache_of
from kvspec.registry import RECORDS, abilities
from support.engines import update_engines
from support.running.command_line import kvconform

ENGINES = update_engines.__name__


@cache
def smoke(name: str) -> tuple[Description, str]:
    """What is proposed, and what was told before it."""
    told, _, claim = kvconform("smoke", name).stdout.partition("\n{")
    return description(json.loads("{" + claim)), told


def test_every_ability_is_shown_by_a_trace_or_observed() -> None:
    every = {(chapter, name) for chapter in CHAPTERS for name in abilities(chapter)}
    observed = {(chapter, name) for chapter in CHAPTERS for name in RECORDS[chapter].observe.values()}
    assert every <= set(ability_traces()) | observed | {("bounded", "offset")}


def test_what_opens_a_cache_is_shown_by_an_operation_on_that_cache() -> None:
    """An operation on another one succeeds where the first is refused."""
    for ability in (("ragged", "right"), ("ragged", "windowed")):
        last = [shown.trace.ops[-1] for shown in ability_traces()[ability] if shown.trace.ops]
        assert {op["op"] for op in last if cache_of(op) != "A"} == {"open"}


def test_all_that_the_reference_claims_is_proposed() -> None:
    proposed, told = smoke("reference")
    declared = {chapter: claim.to_json() for chapter, claim in proposed.chapters.items()}
    assert set(declared) == set(CHAPTERS) and {claim["level"] for claim in declared.values()} == {"storage"}
    assert proposed.complete and "all went as the spec says" in told


def test_an_engine_is_proposed_what_it_does_and_what_it_lacks_is_named() -> None:
    proposed, told = smoke(f"{ENGINES}:right")
    ring, mask = proposed.chapters["ring"], proposed.chapters["mask"]
    assert (ring.level, ring.without) == ("visible", {"free", "view"})
    assert set(abilities("mask")) - mask.without == {"causal"} and mask.dialect("made") == "before"
    assert "ring.view: not there: expected ok, found unsupported (no view)" in told
    assert set(proposed.chapters) == {"ring", "mask"}


def test_what_is_claimed_and_not_there_leaves_the_claim() -> None:
    proposed, told = smoke(f"{ENGINES}:claims_a_view")
    assert "view" in proposed.chapters["ring"].without and "ring.view: not there" in told


def test_a_fault_does_not_leave_the_claim() -> None:
    proposed, told = smoke(f"{ENGINES}:counts_trimmed_rows")
    assert "rewind" not in proposed.chapters["ring"].without
    assert "ring.rewind: differs: offset: expected 1, found 3" in told


def test_what_was_never_claimed_and_goes_wrong_is_not_proposed() -> None:
    proposed, told = smoke("support.engines.dialect_engines:keeps_all")
    assert "ask" in proposed.chapters["ring"].without and "ring.ask: differs: can: expected True" in told


def test_what_is_right_only_when_seen_is_not_proposed_at_level_storage() -> None:
    proposed, told = smoke("support.fakes.adapters:StateBackwards")
    assert proposed.chapters["growing"].level == "visible"
    assert "growing.append: right at level visible only: state.k: slot 0" in told


def test_nothing_is_proposed_where_no_cache_takes_rows() -> None:
    done = kvconform("smoke", "support.fakes.lies:DiesBySignal")
    assert done.returncode == 1 and "There is nothing to claim yet: no cache takes rows." in done.stdout


@pytest.mark.parametrize(
    ("config", "takes"),
    [
        (Config(window=3, sinks=1), {"counted", "kept"}),
        (Config(window=3, sinks=1, beside=1), {"beside", "kept"}),
        (Config(window=3, sinks=1, shifted=1, batch=2), {"batch", "counted", "shifted"}),
    ],
)
def test_a_size_that_is_not_given_takes_the_ability_of_its_default(config: Config, takes: set[str]) -> None:
    assert {name for _, name in needed_to_open("sink", config)} == takes
