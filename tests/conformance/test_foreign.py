"""Implementations that share nothing with the reference conform; ones that are wrong in one thing do not."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.generate.fit_to_adapter import beyond, claimed, cut
from kvreports.run.standing import standing
from kvspec.contract import Description, description
from kvspec.notation import from_sentence, sentence
from kvspec.reading.clauses import index
from support.engines.foreign import FOREIGN, Foreign, named
from support.engines.foreign.wrong import WRONG
from support.running.judging import broken, record_of, verdicts

ALL = [pytest.param(foreign, id=foreign.adapter) for foreign in FOREIGN]


def skip_without(package: str) -> None:
    if package:
        pytest.importorskip(package, reason=f"{package} is not installed; `nox -s foreign` installs it")


@pytest.mark.parametrize("foreign", ALL)
def test_a_foreign_implementation_conforms(foreign: Foreign) -> None:
    skip_without(foreign.needs)
    seen = record_of(foreign.name)
    assert not broken(seen), [f.words for f in seen.failures]
    assert standing(seen).words == "Conforms" and not seen.adapter["known"]
    held = {index()[c].chapter for c, verdict in verdicts(seen).items() if verdict in ("PASS", "PARTLY_OBSERVED")}
    assert set(foreign.chapters) <= held


@pytest.mark.parametrize(("adapter", "clause"), WRONG.items())
def test_one_that_is_wrong_in_one_thing_does_not(adapter: str, clause: str) -> None:
    skip_without("torch" if "torch" in adapter else "")
    assert clause in broken(record_of(named(adapter)))


def claims(attention: list[str], growing: tuple[str, ...] = ("rewind", "bits")) -> Description:
    able: Any = {"growing": {"level": "visible", "with": list(growing)}}
    return description({"name": "x", "chapters": able | {"attention": {"level": "visible", "with": attention}}})


PLAIN = claims(["attend"])
BASIC = [f"ATTN-{n}" for n in (1, 2, 3, 4, 5, 7, 9, 33, 45, 49, 51)]


@pytest.mark.parametrize("clause", BASIC)
def test_what_any_attention_does_is_judged_of_one_that_can_do_nothing_else(clause: str) -> None:
    assert not beyond(index()[clause], claims(["attend"], ()))


@pytest.mark.parametrize(
    ("ability", "clauses"),
    {
        "zero": ["ATTN-12"],
        "sees nothing": ["ATTN-10"],
        "finite": ["ATTN-46", "ATTN-50", "ATTN-52"],
        "checks": ["ATTN-23", "ATTN-24", "ATTN-25", "ATTN-27"],
        "splits": ["ATTN-37", "ATTN-48"],
        "into": ["ATTN-14"],
    }.items(),
)
def test_an_ability_alone_brings_its_clauses(ability: str, clauses: list[str]) -> None:
    for clause in map(index().__getitem__, clauses):
        assert beyond(clause, PLAIN) and not beyond(clause, claims(["attend", ability]))


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("append 2; attend 1 through 000; attend 1 through 1111", "append 2; attend 1 through 111"),
        ("append 2; attend 1 through 11; attend 1 heads=3; attend 1", "append 2; attend 1"),
        ("append 2; attend 1 splits=2; attend 1 into=1; attend 0; attend 1", "append 2; attend 1"),
        ("append 1 fill=bits; rewind 0; attend 1; append 1", "append 1 fill=bits; rewind 0; append 1"),
        ("append 2; attend 1 fill=edges; attend 1", "append 2; attend 1"),
    ],
)
def test_what_an_engine_cannot_do_is_left_out_of_traces(words: str, left: str) -> None:
    """A mask that fits only beside what was left out is left out too."""
    trace = from_sentence(f"growing: {words}")
    kept = claimed(trace, PLAIN)
    assert kept == claimed(kept, PLAIN)
    assert sentence(kept) in (f"growing: {left}", f"growing: {left.removesuffix('; attend 1 through 111')}")
    assert trace.ops[: len(cut(trace, PLAIN).ops)] == cut(trace, PLAIN).ops != trace.ops
