"""The page of attacks is made of what was found, counts it rightly, and is asked for as little as possible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hostile.attacks import grammar, page, table
from hostile.attacks.judging import Found

CORPUS = [*grammar.attacks()]


@pytest.mark.must("a page made of what was found")
def test_the_page_is_made_of_what_was_found() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.said())


@pytest.mark.must("nearly all found, and the right clause first, of those that were judged")
def test_the_published_rates_are_above_their_floors() -> None:
    rows = page.said().values()
    looked = [row.right for row in rows if row.right is not None]
    assert sum(row.quick for row in rows) >= table.FLOORS["quick"] * len(rows) > 0
    assert sum(map(bool, looked)) >= table.LOOKS * len(looked)


def some(quick: Sequence[bool], whole: Sequence[bool]) -> dict[str, page.Outcome]:
    """What runs say of the first attacks: whether a quick run finds each, and a whole one those that it missed."""
    rows = dict[str, page.Outcome]()
    asked = iter(whole)
    for id_, found in zip(CORPUS, quick, strict=False):
        by_quick = Found(id_, "quick", found=found, source="a", right=found or None)
        by_whole = None if found else Found(id_, "whole", found=next(asked), source="b", unseen="c")
        rows[id_] = page.outcome(by_quick, by_whole)
    return rows


@pytest.mark.must("shares of those that were judged, each miss told")
def test_rates_are_of_what_was_judged() -> None:
    text = page.page(some([True, False, False], [True, False]))
    said = (
        "`--quick` finds 1 of 3 (33%), either 2 of 3 (67%). The clause to look at first is right for 1 of 1 (100%)."
    )
    assert f"3 of {len(CORPUS)} were judged: {said}" in " ".join(text.split())
    alone, neither = CORPUS[1:3]
    assert f"- {alone}: by `b`" in text.partition("## Found by a whole run alone")[2]
    assert f"- {neither}: wrong and unseen in `c`" in text.partition("## Found by neither")[2].partition("##")[0]


@pytest.mark.must("a line for each chapter, which add up")
def test_every_chapter_has_a_line_whose_numbers_add_up() -> None:
    rows = some([True] * 40 + [False] * 9, [True] * 9)
    table_ = page.page(rows).partition("## By chapter")[2].partition("##")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table_.splitlines() if "|" in line][2:]
    assert [line[0] for line in lines] == sorted({a.chapter for a in grammar.attacks().values()})
    attacks, judged, quick, either = (sum(int((line[i] or "0").split()[0]) for line in lines) for i in (1, 2, 3, 4))
    assert (attacks, judged, quick, either) == (len(CORPUS), 49, 40, 49)


@pytest.mark.must("no whole run of what a quick one finds")
def test_a_whole_run_is_asked_for_what_a_quick_one_misses_alone() -> None:
    asked, kept = list[tuple[str, Sequence[str]]](), list[page.Rows]()

    def ask(ids: Sequence[str], mode: str) -> list[Found]:
        asked.append((mode, ids))
        return [Found(i, mode, found=(i == CORPUS[0]) == (mode == "quick")) for i in ids]

    quick, last = page.both(CORPUS[:3], ask, kept.append)
    assert asked == [("quick", CORPUS[:3]), ("whole", CORPUS[1:3])]
    assert [(row.quick, row.whole) for row in kept[-1].values()] == [(True, None), (False, True), (False, True)]
    assert len(kept) == 2, "what the quick runs found is kept before the whole runs begin"
    assert [f.found for f in quick] == [True, False, False] and all(f.found for f in last)
    assert table.told_both(quick, last) == 1, "a quick run found too few"


@pytest.mark.must("what was found before stays")
def test_what_is_known_of_others_stays_and_what_is_no_attack_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "FILE", tmp_path / "attacks.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "ATTACKS.md")
    page.write(some([True, False], [False]))
    page.write({CORPUS[1]: page.Outcome(quick=True), "an attack that was": page.Outcome(quick=True)})
    assert [*page.said()] == CORPUS[:2] and all(row.quick for row in page.said().values())
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.said())
