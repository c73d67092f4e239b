"""LMCache's engine in random lives: it is right where nothing is known, each rule that a patch breaks is found, and
so are the faults that are known.

Run by `nox -s lives-lmcache`; elsewhere LMCache is not there, and these tests are skipped."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("lmcache") is None:
    pytest.skip("lmcache is not installed", allow_module_level=True)

from adapters.serving.patched_lmcache import RULES
from adapters.serving.rules import LIVES, Rule
from adapters.serving.simulated_lmcache import lives

pytestmark = pytest.mark.filterwarnings("default")

RIGHT: dict[str, dict[str, Any]] = {"memory": {}, "memory and disk": {"policy": "LRU"}, "disk": {"policy": "FIFO"}}
RIGHT["layers"] = {"policy": "LRU", "clear": 0}
"""Stores, and what is drawn of them where no fault is known."""


@pytest.mark.parametrize("shape", RIGHT)
def test_it_is_right_where_no_fault_is_known(shape: str) -> None:
    seen = lives(shape, **RIGHT[shape]).counted(12)
    assert seen["hits"] > 10 and seen["reused"] > 50, seen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, fixed, what = RULES[rule]
    rule(monkeypatch)
    demand(shape, fixed, what)


SLASHES = ("a/b", "a-b")
KNOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "disk_names": (
        "disk",
        {"names": SLASHES, "policy": "LRU"},
        "another row|table|No such|are there",
    ),
    "layers_clear": ("layers", {"policy": "LRU"}, "0 were stored"),
    "lfu_layers": ("layers", {"policy": "LFU", "places": 24, "clear": 0}, "KeyError"),
    "lfu_disk": ("disk", {"policy": "LFU", "on_disk": 10}, "KeyError"),
}
"""Scripts of `reports/deviations/lmcache/serving` that show a fault, and the lives that found it."""


@pytest.mark.parametrize("script", KNOWN)
def test_a_known_fault_is_found(script: str) -> None:
    demand(*KNOWN[script])


def demand(shape: str, fixed: dict[str, Any], what: str) -> None:
    """Fail unless one of the lives goes wrong, and so."""
    life, wrong, events = lives(shape, **fixed).first_wrong(LIVES)
    print(life, wrong, *events, sep="\n")
    assert re.search(what, wrong), wrong
