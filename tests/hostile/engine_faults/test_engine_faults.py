"""Each planted fault is seen by a random life within 500 requests. Correct engines live such lives in
tests/examples/test_serving_engine.py."""

from __future__ import annotations

from collections import Counter

import pytest

from hostile.engine_faults import FAULTS, Change, Fault
from kvconform.bugs.catalogue import SEEN
from kvspec.errors import BadInput
from serving_engine.prefix_cache import PrefixCache
from support import serving

REQUESTS = 500
QUICK = ("prefix/no-parent", "hybrid/window-too-wide", "page/no-copy-on-write", "batch/positions-from-zero")
"""Those that every run of the tests plants."""


@pytest.mark.must("seen within 500 requests")
@pytest.mark.parametrize("fault", QUICK)
def test_seen(fault: str) -> None:
    with FAULTS[fault].planted():
        assert serving.lives(REQUESTS, **FAULTS[fault].settings) is not None


@pytest.mark.hostile
@pytest.mark.must("seen within 500 requests")
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in QUICK])
def test_each_is_seen(fault: str) -> None:
    with FAULTS[fault].planted():
        assert serving.lives(REQUESTS, **FAULTS[fault].settings) is not None


@pytest.mark.hostile
@pytest.mark.must("seen by match heads, and by no others")
@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS.values() if fault.settings.get("match")], ids=lambda fault: fault.id
)
def test_keys_are_seen_by_match_heads_alone(fault: Fault) -> None:
    with fault.planted():
        assert serving.lives(150, **fault.settings) is not None
        assert serving.lives(150, **{**fault.settings, "match": False}) is None


@pytest.mark.must("nine in ten seen within 500 requests of other lives")
@pytest.mark.hostile
def test_other_lives_see_most() -> None:
    unseen = []
    for fault in FAULTS.values():
        with fault.planted():
            if serving.lives(REQUESTS, seed=1, **fault.settings) is None:
                unseen.append(fault.id)
    assert len(unseen) <= len(FAULTS) // 10, unseen


@pytest.mark.must("planted, and taken back")
def test_every_change_is_made_and_taken_back() -> None:
    for fault in FAULTS.values():
        before = [change.method().__code__ for change in fault.changes]
        with fault.planted():
            assert all(
                change.method().__code__ is not code for change, code in zip(fault.changes, before, strict=True)
            )
        assert [change.method().__code__ for change in fault.changes] == before


@pytest.mark.must("a table whose rows say what they are")
def test_every_fault_says_what_it_is() -> None:
    sorts = Counter(fault.sort for fault in FAULTS.values())
    assert sum(sorts.values()) >= 60 and min(sorts.values()) >= 6
    assert len({fault.says for fault in FAULTS.values()}) == len(FAULTS)
    for fault in FAULTS.values():
        assert fault.says.endswith(".") and fault.trigger
        assert not fault.source or fault.source in SEEN or fault.source.startswith("https://"), fault.id


@pytest.mark.must("an error that names the method")
def test_a_text_that_does_not_stand_once_is_an_error() -> None:
    change = Change("PrefixCache.key", "no such text", "")
    assert change.method() is PrefixCache.key
    with (
        pytest.raises(BadInput, match=r"x: was: 'no such text' stands 0 times in PrefixCache.key, not once"),
        Fault(id="x", says="", changes=(change,)).planted(),
    ):
        pass
