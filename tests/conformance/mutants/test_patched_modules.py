"""Modules executed again stand apart from those that everybody uses, and leave everything as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import kvadapters.reference  # noqa: F401 - so that everything is there before
import kvref.abilities.masks
import kvref.caches.growing
from kvspec.geometry import Config
from kvworkshop.systematic import modules, patched_modules


def reference(changed: dict[str, str] | None = None) -> ModuleType:
    """The reference's adapter executed again."""
    return modules.reference_again(changed or {})


def growing(module: ModuleType) -> Any:
    """Its growing cache."""
    return module.Reference.caches["growing"]


def names(module: ModuleType) -> dict[str, Any]:
    """What the module of its growing cache knows."""
    found: dict[str, Any] = growing(module)._feed.__globals__
    return found


def everything() -> dict[str, object]:
    """All modules there are, what packages call theirs, and who finds modules."""
    packages = {m.__name__: m for m in sys.modules.values() if isinstance(m, ModuleType) and hasattr(m, "__path__")}
    inside = {f"{p} holds {n}": v for p, m in packages.items() for n, v in vars(m).items() if type(v) is ModuleType}
    return {**sys.modules, **inside, **{f"finder {i}": f for i, f in enumerate(sys.meta_path)}}


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """After every test here, all modules are those that were there before."""
    reference()  # what reads texts stays
    before = everything()
    yield
    after = everything()
    assert before.keys() == after.keys() and [n for n in before if before[n] is not after[n]] == []


def test_everything_named_is_executed_anew_and_is_of_one_piece() -> None:
    module = reference()
    made = growing(module)
    assert made is not kvref.caches.growing.Growing and made.__module__ == "kvref.caches.growing"
    known = names(module)
    for name in ("abilities.masks", "memory.mem", "abilities.snapshot"):
        made = known[name.partition(".")[2]]
        assert made.__name__ == f"kvref.{name}" and made is not sys.modules[f"kvref.{name}"]
    assert known["refusals"] is sys.modules["kvspec.refusals.common"], "what is not named is shared"


def test_a_module_imported_from_its_package_is_the_changed_one() -> None:
    changed = patched_modules.text("kvref.abilities.masks") + "\nCHANGED = True\n"
    assert names(reference({"kvref.abilities.masks": changed}))["masks"].CHANGED
    assert not hasattr(kvref.abilities.masks, "CHANGED")


def test_a_changed_text_is_what_runs_and_the_sound_one_still_does() -> None:
    sound = patched_modules.text("kvref.caches.growing")
    wrong = sound.replace("Lengths(self.offset, self.offset", "Lengths(7, self.offset")
    assert wrong != sound
    config = Config()
    assert growing(reference({"kvref.caches.growing": wrong}))(config).lengths().offset == 7
    assert growing(reference())(config).lengths().offset == 0
    assert kvref.caches.growing.Growing(config).lengths().offset == 0


def test_copies_share_no_state() -> None:
    meters = [names(reference())["snapshot"].meter.meter for _ in "ab"]
    meters[0].launches += 1
    assert meters[1].launches == 0 and meters[0] is not sys.modules["kvref.memory.meter"].meter


def test_a_text_that_fails_leaves_everything_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError):
        reference({"kvref.caches.ring": "1 / 0"})


def test_a_module_that_nobody_had_is_nobodys_afterwards() -> None:
    kept = sys.modules.pop("kvref.arithmetic.casts")
    del vars(sys.modules["kvref.arithmetic"])["casts"]
    try:
        assert reference().Reference
        assert "kvref.arithmetic.casts" not in sys.modules and not hasattr(sys.modules["kvref.arithmetic"], "casts")
    finally:
        sys.modules["kvref.arithmetic.casts"] = kept
        vars(sys.modules["kvref.arithmetic"])["casts"] = kept
