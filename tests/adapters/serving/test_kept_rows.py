"""Lives of stores: what may be found, and how a life that goes wrong is made short."""

from __future__ import annotations

import pytest

from adapters.serving.kept_rows import Event, Kept, Lives, Store, row, shared, short

VERBS = {"ask": 3, "wait": 1}


class Texts(Store):
    """A store of whole texts. That of an odd seed finds texts of others."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.mixes, self.closed = bool(seed % 2), False

    def do(self, event: Event) -> None:
        name = "" if self.mixes else event.name
        found = self.kept.whole(name, event.text)
        self.kept.store(name, event.text)
        self.demand(not (found and self.mixes), f"{found} tokens are found")
        self.counts["hits"] += found > 0

    def end(self) -> None:
        self.demand(not self.closed, "it is closed")

    def close(self) -> None:
        self.closed = True


def test_a_row_follows_from_all_that_it_depends_on() -> None:
    rows = {row("k0", "", [1, 2]), row("v0", "", [1, 2]), row("k0", "a", [1, 2]), row("k0", "", [2, 2])}
    assert len(rows) == 4 and row("k0", "", (1, 2)) == row("k0", "", [1, 2]) in rows


def test_what_may_be_found_was_stored_under_the_name() -> None:
    kept = Kept()
    kept.store("a", [1, 2, 3])
    assert (kept.most("a", [1, 2, 4]), kept.whole("a", [1, 2, 4]), kept.whole("a", [1, 2, 3, 4])) == (2, 0, 3)
    assert (kept.most("b", [1, 2, 3]), shared([1], [1, 2]), shared([], [1])) == (0, 1, 0)


def test_lives_are_drawn_alike_and_share_beginnings() -> None:
    lives = Lives(Texts, VERBS, ("", "a"), 80)
    assert lives.drawn(4) == lives.drawn(4) != lives.drawn(5)
    assert Lives(lambda seed: Texts(0), VERBS, ("",), 80).counted(2)["hits"] > 2


def test_a_life_that_goes_wrong_is_short() -> None:
    life, wrong, events = Lives(Texts, {"ask": 1}, ("", "a"), 60).first_wrong(3)
    assert (life, len(events), events[0].text) == (2, 2, events[1].text[:1]) and wrong.startswith("Wrong: 1 tokens")
    assert str(events[0]).startswith("ask ")
    assert Lives(lambda seed: Texts(0), {"ask": 1}, ("a",), 9).first_wrong(2) == (0, "", [])


def test_lives_that_go_wrong_are_not_counted() -> None:
    with pytest.raises(AssertionError, match="tokens are found"):
        Lives(Texts, {"ask": 1}, ("",), 60).counted(2)


def test_what_a_life_goes_wrong_without_is_left_out() -> None:
    events = [Event("ask", (n,) * 20) for n in range(9)]
    found = short(events, lambda some: any(event.text[:9] == (4,) * 9 for event in some))
    assert found == [Event("ask", (4,) * 9)]
