"""A batch that hands out its rows, beside caches of one sequence that hand out nothing but what queries see."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvconform.judge import trial
from kvref.caches.growing import Growing
from kvspec.contract import description
from kvspec.errors import Unsupported
from kvspec.notation import from_sentence
from kvspec.session.driver import Session

TRACE = from_sentence("ragged batch=2 padding=left: open B kind=growing batch=1; feed 2,1; extract 0 into=B")


class Stateless(Growing):
    """A growing cache that keeps its rows to itself."""

    def read(self, what: str) -> Any:
        """Read what queries see."""
        if what == "state":
            raise Unsupported("no state")
        return super().read(what)


class Beside(Reference):
    """The reference with that cache."""

    caches: ClassVar[Any] = {**Reference.caches, "growing": Stateless}


def test_what_a_cache_does_not_hand_out_at_level_visible_is_not_asked_of_it() -> None:
    about = description(Beside().describe()).at_most("visible")
    seen = trial.on(TRACE, lambda observe: Session(Beside(), observe, about), about)
    assert not seen.failed, seen.differences


def test_it_is_asked_of_one_that_claims_storage() -> None:
    about = description(Beside().describe())
    seen = trial.on(TRACE, lambda observe: Session(Beside(), observe, about), about, "visible")
    assert seen.failed and "no state" in seen.differences[0].message
