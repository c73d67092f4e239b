"""What the suite says of ragged caches that are right or wrong in a way of their own: laws, abilities, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.checks import laws
from kvconform.generate.claims.fit_to_adapter import claimed
from kvconform.generate.shrink.shrink import shrink
from kvconform.judge import storage
from kvconform.laws.registry import LAWS
from kvconform.oracle.deviating import Deviating
from kvconform.oracle.list_model import ListModelSession
from kvref.caches.ragged import Ragged
from kvref.list_model.ragged import RaggedModel
from kvspec import notation
from kvspec.contract import Pair, description
from kvspec.errors import BadInput
from kvspec.geometry import Array, Config
from kvspec.session.step import Step
from kvworkshop.correct_variants import MoreThanRagged
from support.running.local_adapter import LocalAdapter


def having(ragged: type[Any]) -> Reference:
    """The reference with this ragged cache."""

    class Made(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ragged": ragged}

    return Made()


class Crowded(Ragged):
    """The first sequence of several loses its oldest row when it is read."""

    def read_sequence(self, sequence: int) -> Pair:
        found = super().read_sequence(sequence)
        return Pair(*(a[:, 1:] for a in found)) if sequence == 0 < len(self.lengths) - 1 else found


class RightOnly(Ragged):
    """With padding on the left the newest row of the shorter sequences is read as zeros."""

    def read_sequence(self, sequence: int) -> Pair:
        found = super().read_sequence(sequence)
        for array in found if self.config.padding == "left" and self.lengths[sequence] < self.width else ():
            array[:, -1:] = 0
        return found


class BlockByBlock(Ragged):
    """A block of more than three columns is cut to three."""

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        super().feed(keys, values, [min(n, 3) for n in lengths])


class ExtractsTheNewest(Ragged):
    """An extract takes three rows at most."""

    def extract(self, sequence: int, into: Any) -> None:
        super().extract(sequence, into)
        into.rewind(min(3, into.offset))


BROKEN = {"RAGGED-27": Crowded, "RAGGED-28": RightOnly, "RAGGED-29": BlockByBlock, "RAGGED-30": ExtractsTheNewest}


@pytest.mark.parametrize(("clause", "cache"), BROKEN.items(), ids=BROKEN)
def test_a_fault_that_breaks_a_law_is_found_by_it(clause: str, cache: type[Any]) -> None:
    law = next(x for x in LAWS if x.clause == clause)
    under_test = LocalAdapter(having(cache), traces=100)
    with under_test.judging("law") as tally:
        laws.judge(under_test, law)
    assert clause in {c for f in tally.failures for c in f.clauses}


def differs(adapter: Any, sentence: str) -> set[str]:
    """The observables in which an adapter differs on a trace."""
    return {d.field for d in LocalAdapter(adapter).run(notation.from_sentence(sentence)).differences}


LEFT = "ragged batch=2 padding=left: feed 1,3; feed 1,1"


def test_what_lies_in_padding_is_of_no_account() -> None:
    assert differs(MoreThanRagged(), LEFT) == set()


@pytest.mark.parametrize("padding", ["left", "right"])
def test_padding_that_a_query_sees_is_a_difference_at_level_visible(padding: str) -> None:
    class SeesPadding(Ragged):
        def mask(self) -> Array:
            return np.ones((len(self.lengths), 1, self.fed.shape[1], self.width), bool)  # type: ignore[union-attr]

    class Visible(MoreThanRagged):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ragged": SeesPadding}

    assert differs(Visible(), f"ragged batch=2 padding={padding}: feed 1,3") == {"mask"}


def test_rows_of_a_neighbour_are_a_difference() -> None:
    class Neighbours(Ragged):
        def history(self) -> Pair:
            return Pair(*(a[::-1] for a in super().history()))

    assert "history" in differs(having(Neighbours), "ragged batch=2 padding=right: feed 2,2")


def test_positions_below_0_are_all_padding() -> None:
    class Negative(Ragged):
        def positions(self) -> Array | None:
            return None if self.fed is None else np.where(self.fed < 0, -7, self.fed)

    assert differs(having(Negative), LEFT) == set()


def test_a_claim_without_uneven_blocks_is_judged_on_even_ones() -> None:
    said = {**Reference().describe(), "chapters": {"ragged": {"level": "visible", "without": ["uneven", "each"]}}}
    trace = notation.from_sentence("ragged batch=2 padding=left: feed 1,2; feed 2,2; trim 1,0; trim 1,1; feed 12,1")
    kept = claimed(trace, description(said))
    assert [notation.words(op) for op in kept.ops] == ["feed 2,2", "trim 1,1"]


def test_an_adapter_without_masks_is_judged_by_the_rows_of_each_sequence() -> None:
    class Maskless(MoreThanRagged):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ragged": Ragged}

        def describe(self) -> dict[str, Any]:
            return {**super().describe(), "chapters": {"ragged": {"level": "visible", "without": ["sees"]}}}

    assert differs(Maskless(), LEFT) == set()


def test_a_failure_is_shown_on_few_sequences_and_rows() -> None:
    def fails(trace: Any) -> int:
        result = LocalAdapter(having(BlockByBlock)).run(trace)
        return len(result.steps) if result.failed else 0

    trace = notation.from_sentence("ragged batch=3 padding=left kv_heads=3: feed 1,0,2; trim 1,0,1; feed 2,9,1")
    assert notation.sentence(shrink(trace, fails)).endswith("kv_heads=1 padding=left: feed 4")


@pytest.mark.parametrize(
    "ops", ["; ".join(["repeat 64"] * 2), "; ".join(["extend A"] * 9), f"feed {'9,' * 60}65536"]
)
def test_a_trace_that_would_make_too_many_sequences_or_rows_is_refused(ops: str) -> None:
    with pytest.raises(BadInput, match=r"at most|more than"):
        notation.trace("ragged", "batch=1 padding=left", ops)


def test_a_trace_names_only_caches_that_are_open() -> None:
    for op in ("extend B", "join AB", "extract 0 B"):
        with pytest.raises(BadInput, match="no cache B was opened"):
            notation.trace("ragged", "padding=left", op)
    assert Config(padding="left").to_json()["padding"] == "left"


class ReadsOutOfBounds(RaggedModel):
    """An engine that may die of a number of a sequence that there is not."""

    owed = "any crash"


@pytest.mark.parametrize(("models", "wrong"), [((), True), ((ReadsOutOfBounds,), False)])
def test_an_engine_that_reads_out_of_bounds_may_crash_once_nothing_is_said(
    models: tuple[type, ...], wrong: bool
) -> None:
    model = Deviating(models).list_model()
    session = ListModelSession(description({"name": "x", "chapters": {"ragged": "visible"}}), model=model)
    session.begin("ragged", Config(padding="left"))
    session.lose("A")
    want = session.do(notation.operation("filter 6"))
    assert bool(storage.unsaid(want.unsaid, Step(result="crash"))) == wrong
    assert storage.unsaid(want.unsaid, Step(result="ok")) == []
