"""Views: what is written out is what their definition says, and they need what any later query sees."""

from __future__ import annotations

import pytest

from kvref.list_model.views import Chunk, Full, Sinks, View, Window

VIEWS = [Full(), *map(Window, (1, 2, 5)), *map(Chunk, (1, 3, 4)), *(Sinks(f, n) for f in (1, 3) for n in (1, 4))]
END = 12
LATER = 20
"""Queries behind the last row of a history, far enough that each view has dropped what it drops."""


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_query_sees_what_is_shown_to_it(view: View) -> None:
    for query in range(END):
        assert [*view.sees(query, END)] == [row for row in range(END) if view.shows(row, query)]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_view_needs_what_a_query_there_or_later_sees(view: View) -> None:
    for n in range(END):
        later = range(n, n + LATER)
        assert {*view.needs(n)} == {row for row in range(n) if any(view.shows(row, query) for query in later)}
