"""Every systematic fault in the reference's attention is found by worked examples and frozen covers of the chapter.

Faults in strict attention that show only in sums next to halfway, in subnormal numbers or in NaN beside others are
found by the cases that are held against exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import teeth
import test_attention_strict as exact
from mutation import Mutant

import kvref.attend_store
import kvref.attention
import kvref.strict
from kvadapters.reference import Reference
from kvref import strict
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.store import Store

EXAMPLES, TRACES = teeth.examples_of("attention"), teeth.traces_of("attention")

JUDGED = ("growing", "ring", "store", "batch", "mask", "attention")
"""What is judged: not what it costs."""

METHODS = ("attend", "attended", "attend_batch", "_one", "_demand_whole", "_alone", "capture_attend")


def methods(*kinds: type[Any]) -> dict[str, Any]:
    """What these classes bring to a cache."""
    return {name: found for kind in kinds for name, found in vars(kind).items() if name in METHODS}


def with_faults(**modules: Any) -> Reference:
    """The reference with faulty modules in the place of `strict`, `attention`, `attend_store`."""
    attention = modules.get("attention") or teeth.module(teeth.text(kvref.attention))
    attention.strict = modules.get("strict", strict)
    store = modules.get("attend_store") or teeth.module(teeth.text(kvref.attend_store))
    store.attention, store.Seen = attention, attention.Seen
    cache, stored = methods(attention.Answering, attention.Attending), methods(attention.Answering, store.Attending)

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {
            **Reference.caches,
            **{kind.profile: type("Faulty", (kind,), cache) for kind in (Growing, Ring)},
            "store": type("Faulty", (Store,), stored),
        }

        def describe(self) -> dict[str, Any]:
            said = super().describe()
            return {**said, "profiles": {p: said["profiles"][p] for p in JUDGED}}

    return Faulty()


CITED = "it decides on a citation alone"
NEVER = "nobody comes here: each kind has its own"
MESSAGE = "it is a number in the message of a refusal"
ROPE = "it is about turning queries and keys, which is for the chapter ROPE to find"
SAME = "what is asked is never so: an error of 0 is asked before, and a sum of 0 has none"
LEFT = "numpy takes any size below 0 for the one that is left"

OF_ATTENTION: dict[teeth.Named, str] = {
    **{(f, "lost: raise NotImplementedError"): NEVER for f in ("in_order", "held_after", "demand_rows", "append")},
    ("attend", "lost: queries, keys = rope.at_positions(how.rope, self.offset, queries, keys)"): ROPE,
    ("attend", "how.rope and window: and/or swapped"): CITED,
    ("_cite_array", "array.dtype == bool: Eq swapped"): CITED,
    **{
        (function, f"if {test}: {how}"): CITED
        for function, test in (
            ("_cite_array", "1 in (array.shape[0], array.shape[1], array.shape[3])"),
            ("_cite_seen", "(added == -np.inf).all(-1).any()"),
        )
        for how in ("never", "always")
    },
    **{("_cite_array", *which): CITED for which in (("0 became 1", 0), ("1 became 2", 0), ("1 became 2", 1))},
    ("_cite_seen", "added == -np.inf: Eq swapped"): CITED,
    ("_cite_seen", "1 became 2"): CITED,
    ("attended", "splits > 1: Gt swapped"): CITED,
    ("attended", "1 became 2"): CITED,
    ("asked", "0 became 1", 0): "positions 0 and 1 are of the same tile, and only tiles are counted from here",
    ("demand", "1 became 2", 3): MESSAGE,
    ("demand", "True became False"): "both have four sizes: that was asked before",
}
OF_STORES: dict[teeth.Named, str] = {
    **{(f, "lost: raise NotImplementedError"): NEVER for f in ("append", "demand_rows")},
    ("attend", "lost: queries, keys = rope.at_positions(how.rope, end - n, queries, keys)"): ROPE,
    ("attend", "end - n: operator swapped"): ROPE,
    (
        "replay",
        "self.store.lengths_[self.layer] + 1: operator swapped",
    ): "there is no mask's array to fit these rows",
    ("replay", "1 became 2", 0): "there is no mask's array to fit these rows",
    ("attend_batch", "0 became 1", 0): "there is no mask's array to fit these rows",
    ("attend_batch", "0 became 1", 2): CITED,
    ("_one", "1 became 2"): MESSAGE,
}
OF_STRICT: dict[teeth.Named, str] = {
    (
        "fma",
        "if (total.view(np.int64) & BELOW == TIE).any() or (np.abs(total) < NORMAL).any(): always",
    ): "a sum that is made odd where it need not be rounds to the same",
    (
        "fma",
        "np.abs(total) < NORMAL: Lt swapped",
    ): "the least normal number is one of f32, and odd or not rounds to it",
    ("_odd", "error > 0: Gt swapped"): SAME,
    ("_odd", "total > 0: Gt swapped"): SAME,
    ("merge", "if (one.m == -np.inf).all(): never"): "the arithmetic after it comes to the same, and takes longer",
    (
        "merge",
        "lost: return Part(other.m, other.l, other.a + 0.0)",
    ): "the arithmetic after it comes to the same, and takes longer",
    (
        "_empty",
        "1 became 2",
        0,
    ): "what is first merged with takes its place; with no tiles there is one query at most",
    ("_splits", "tile[None] < end[:, None]: Lt swapped"): "a tile behind the last is hidden, and comes to nothing",
    ("_splits", "1 became 2", 1): "any number below 0 says that it belongs to no split",
    ("_tiles", "1 became 2", 3): LEFT,
    ("_tiled", "1 became 2"): LEFT,
    ("_tiled", "-(before + rows) // TILE: operator swapped"): "more tiles than there are rows for come to nothing",
    ("_scores", "if added.any(): always"): "where nothing is added the arithmetic adds 0, and hides nothing",
}

MODULES: dict[str, tuple[ModuleType, dict[teeth.Named, str]]] = {
    "attention": (kvref.attention, OF_ATTENTION),
    "attend_store": (kvref.attend_store, OF_STORES),
    "strict": (kvref.strict, OF_STRICT),
}
FAULTS = {name: teeth.Faults(teeth.mutants(of), none) for name, (of, none) in MODULES.items()}
"""The faults of each module, and those that are none, each with the reason."""


def each(argued: bool = False) -> Any:
    """A test with every fault that must be found, or that is argued to be none."""
    marks = (teeth.ON_DEMAND,) if argued else ()
    all_ = ((name, m) for name, faults in FAULTS.items() for m in faults.every if faults.argued(m) == argued)
    return pytest.mark.parametrize(
        ("name", "m"), [pytest.param(*x, id=f"{x[0]}:{teeth.of(x[1])}", marks=marks) for x in all_]
    )


def found(name: str, m: Mutant) -> bool:
    """Whether anything finds it."""
    module = teeth.module(m.text)
    return teeth.found_by(with_faults(**{name: module}), EXAMPLES, TRACES) or (name == "strict" and astray(module))


def astray(module: Any) -> bool:
    """Whether a faulty strict attention differs where exact arithmetic was asked."""
    try:
        return any(a != b for a, b in zip(shown(module), shown(strict), strict=True))
    except Exception:
        return True


def shown(module: Any) -> Iterator[bytes]:
    """Bits of what it makes of the cases."""
    with np.errstate(all="ignore"):
        yield exact.one_by_one(module).tobytes()
        yield exact.together(module).tobytes()
        yield exact.of_four_tiles(module).tobytes()
        yield module.exp2(exact.powers()).tobytes()
        for seed in range(60):
            queries, keys, values, first, asked, splits = exact.draw(np.random.default_rng(seed))
            outputs = module.attend(queries, keys, values, first, asked, *([splits] if splits > 1 else []))
            yield np.where(np.isnan(outputs), np.float32(np.nan), outputs).tobytes()


def test_there_are_faults_enough() -> None:
    assert [name for name, faults in FAULTS.items() if len(faults.every) < 60] == []


@each()
def test_every_fault_in_attention_is_found(name: str, m: Mutant) -> None:
    assert found(name, m)


@each(argued=True)
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(name: str, m: Mutant) -> None:
    assert not found(name, m), FAULTS[name].reason(m)


def test_every_argument_is_about_a_fault_that_there_is() -> None:
    assert {name: faults.unfounded() for name, faults in FAULTS.items()} == {name: set() for name in FAULTS}
