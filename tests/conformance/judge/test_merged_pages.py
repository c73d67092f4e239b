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
        busy = self.busy() + life.sheets + self.idle
        self.shelf = [sheet for sheet in self.shelf if any(sheet is other for other in busy)]

    def _kept(self, sheet: Sheet) -> Sheet:
        full = len(sheet.spelled) == self.per
        return next((each for each in self.shelf if full and each.spelled == sheet.spelled), sheet)


class Merged(Spelled):
    """Its adapter."""

    POOL = Merging

    def describe(self) -> dict[str, object]:
        claim = {"level": "visible", "duplicates": "any", "evicts": "any"}
        return {"name": "merged", "chapters": {"keyed": claim}}


NO_PAGE = ("compute 0 1", "answer 0 -", "request x; compute 4 1", "match xx", "answer 1 yy")


@pytest.mark.parametrize("then", NO_PAGE)
def test_a_sequence_that_needs_no_page_is_not_refused_one(then: str) -> None:
    trace = notation.from_sentence(NEARLY_FULL + then)
    seen = trial.run(trace, Session(Merged()), description(Merged().describe()))
    assert not seen.failed, seen
