"""A small server of slots, over a memory that tells what each of its queries saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kvadapters.serving.driver import Declared, EngineFailed, Request
from kvadapters.serving.slots import Piece, Slots
from kvadapters.serving.stepped import Stepped
from kvspec.errors import Refused
from kvspec.geometry import Array

IDS = 50


class Rows:
    """Tokens for rows. After t comes t + 1; the other logits tell how often the query sees each token."""

    longest, copies = 60, True

    def __init__(self, most: int = 8, room: int = 1000) -> None:
        self.most, self.room, self.rows = most, room, dict[int, list[int]]()

    def keep(self, sequence: int, count: int) -> int:
        self.rows[sequence] = self.rows.get(sequence, [])[:count]
        return len(self.rows[sequence])

    def copy(self, source: int, sequence: int, count: int) -> None:
        assert self.rows[sequence] == []
        self.rows[sequence] = self.rows[source][:count]

    def decode(self, pieces: Sequence[Piece]) -> list[Array] | None:
        assert 0 < sum(len(piece.tokens) for piece in pieces) <= self.most
        if sum(map(len, self.rows.values())) + sum(len(piece.tokens) for piece in pieces) > self.room:
            return None
        found = list[Array]()
        for piece in pieces:
            rows = self.rows[piece.slot.number]
            assert rows == piece.slot.held
            for token in piece.tokens:
                rows.append(token)
                found.append(np.bincount(rows, minlength=IDS) + 1000.0 * (np.arange(IDS) == (token + 1) % IDS))
            del found[len(found) - len(piece.tokens) : len(found) - piece.outputs]
        return found


def served(rows: Any, sequences: int = 3, drafts: int = 0) -> Stepped:
    return Stepped(lambda: Slots(rows, sequences, drafts), Declared("slots"))


def demand_own_tokens(request: Request, answer: Any) -> None:
    tokens, text = list(answer.samples[0].tokens), list(request.tokens)
    assert tokens == [(text[-1] + 1 + i) % IDS for i in range(request.new)]
    for logits in answer.samples[0].answers:
        seen = np.where(logits >= 1000, logits - 1000, logits)
        assert np.array_equal(seen, np.bincount(text, minlength=IDS))
        text.append(tokens.pop(0))


REQUESTS = [
    Request((1, 2, 3, 4, 5, 6, 7, 8, 9), 4),
    Request((1, 2, 3, 4, 20, 21), 3),
    Request((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), 2),
    Request((30, 31, 32, 33, 40, 30, 31), 6),
    Request((7,), 5),
    Request((1, 2, 3, 4, 20, 21), 1),
    Request((30, 40, 41, 9, 30, 40), 5),
]


@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("room", [1000, 20])
@pytest.mark.parametrize("sequences", [1, 3])
def test_an_answer_depends_on_its_own_tokens(sequences: int, room: int, drafts: int) -> None:
    driver = served(Rows(8, room), sequences, drafts)
    for _ in range(2):
        handles = [driver.submit(request) for request in REQUESTS]
        for request, handle in zip(REQUESTS, handles, strict=True):
            demand_own_tokens(request, driver.wait(handle))
    counts = driver.counts()
    assert counts["cached tokens"] > 0
    assert (counts["evictions"] > 0) == (room == 20 and sequences > 1)
    assert (counts["preemptions"] > 0) == (room == 20 and sequences > 1)
    assert (counts["drafts accepted"] > 0) == (counts["drafts rejected"] > 0) == (drafts > 0)


def test_a_request_that_is_cancelled_leaves_its_rows() -> None:
    driver = served(Rows())
    handle = driver.submit(Request(tuple(range(20)), 4))
    driver.step(2)
    driver.cancel(handle)
    answer = driver.wait(driver.submit(request := Request((*range(18), 40), 2)))
    demand_own_tokens(request, answer)
    assert answer.cached == 16


def test_what_was_counted_before_a_reset_stays_counted() -> None:
    driver = served(rows := Rows())
    for _ in range(2):
        driver.wait(driver.submit(REQUESTS[0]))
    before = dict(driver.counts())
    rows.rows.clear()
    driver.reset()
    assert driver.counts() == before and before["cached tokens"] == 8


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused, match="60 cells"):
        served(Rows()).submit(Request(tuple(range(50)), 11))
    alone = served(Rows(8, 10))
    with pytest.raises(EngineFailed, match="no room"):
        alone.wait(alone.submit(Request(tuple(range(12)), 1)))
