"""A pool of KEY that keeps one of equal pages, as a tree of prefixes does: more sequences fit than pages apart."""

from __future__ import annotations

import pytest

from kvconform.judge import trial
from kvspec import notation
from kvspec.contract import description
from kvspec.session.driver import Session
from support.engines.foreign.keyed import Library, Sheet, Spelled

NEARLY_FULL = "keyed page_size=1 pages=3: request x; request x; request x; request x; "


class Merging(Library):
    """Of two full pages with the same rows one is kept."""

    def write(self, life, to, keys, values):  # type: ignore[no-untyped-def]
        super().write(life, to, keys, values)
        life.sheets = [self._kept(sheet) for sheet in life.sheets]
        self.idle = [sheet for sheet in self.idle if all(sheet is not other for other in life.sheets)]
        busy = self.busy() + life.sheets + self.idle
        self.shelf = [sheet for sheet in self.shelf if any(sheet is other for other in busy)]

    def _kept(self, sheet: Sheet) -> Sheet:
        full = len(sheet.spelled) == self.per
        return next((each for each in self.shelf if full and each.spelled == sheet.spelled), sheet)


class ForgetsOthers(Merging):
    """An abort makes every page forget that no sequence has."""

    def abort(self, sequence: int) -> None:
        super().abort(sequence)
        self.evict(len(self.idle))


class Merged(Spelled):
    """Its adapter."""

    POOL: type[Library] = Merging

    def describe(self) -> dict[str, object]:
        claim = {"level": "visible", "duplicates": "any", "evicts": "any"}
        return {"name": "merged", "chapters": {"keyed": claim}}


NO_PAGE = ("compute 0 1", "answer 0 -", "request x; compute 4 1", "match xx", "answer 1 yy")


def failed(words: str, pool: type[Library] = Merging) -> list[str]:
    """What goes wrong in a trace."""
    adapter = Merged()
    adapter.POOL = pool
    seen = trial.run(notation.from_sentence(words), Session(adapter), description(adapter.describe()))
    return [each.message for each in seen.differences]


@pytest.mark.parametrize("then", NO_PAGE)
def test_a_sequence_that_needs_no_page_is_not_refused_one(then: str) -> None:
    assert failed(NEARLY_FULL + then) == []


ABORTED = (
    "keyed page_size=2 pages=9: request yyx; request xxy; finish 1; request xx; abort 1; match yyx; match xxyy; "
)
"""The page of xx is computed twice. Where the second one is given back for the first, the abort is of that."""


@pytest.mark.parametrize("then", ["match xxyx", "request xxy; match xxyx; finish 0; match xxy; match yyx"])
@pytest.mark.parametrize("pool", [Library, Merging])
def test_an_abort_forgets_the_page_that_was_kept_for_both(pool: type[Library], then: str) -> None:
    assert failed(ABORTED + then, pool) == []


def test_an_abort_forgets_nothing_else() -> None:
    assert failed(f"{ABORTED}match yyx", ForgetsOthers) == []
    assert failed(f"{ABORTED}finish 0; request xx; abort 0; match yyx", ForgetsOthers)
