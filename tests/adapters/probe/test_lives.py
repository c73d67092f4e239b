"""Random lives of several sequences: a right memory is never accused; of a wrong one the shortest life is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.probe.asked import asked
from kvadapters.probe.blame import BATCHED, OWED, SEEN_THROUGH, clauses
from kvadapters.probe.histories import Step
from kvadapters.probe.lives import NAMES, OFTEN, Act, after, drawn, sensible, shortened
from kvadapters.probe.model import Model, from_model
from kvadapters.probe.reader.reading import Finding, Judgement, Reading
from kvadapters.probe.views import FULL, View
from kvspec.reading.clauses import index

LEFT = 100
"""Added to the number of a sequence that was dropped."""

Rows = list[tuple[int, int]]
"""Tokens and their positions."""


@dataclass
class Held:
    """A sequence of a memory, which is all that several of them share."""

    memory: dict[int, Rows]
    number: int

    @property
    def rows(self) -> Rows:
        return self.memory[self.number]


def placed(memory: dict[int, Rows], rows: Rows) -> Held:
    number = next(i for i in range(9) if i not in memory)
    memory[number] = rows
    return Held(memory, number)


def memory(probe: Probe, **faults: Callable[..., Any]) -> Model:
    """A memory of sequences that is right, but for some of its functions."""

    def decode(cache: Held, tokens: list[int]) -> Any:
        end = cache.rows[-1][1] + 1 if cache.rows else 0
        cache.rows.extend((token, end + i) for i, token in enumerate(tokens))
        words, places = [list(part) for part in zip(*cache.rows, strict=True)]
        return engines.logits(probe, words, positions=places)[-len(tokens) :]

    def batch(caches: Sequence[Held], tokens: Sequence[list[int]]) -> list[Any]:
        return [decode(cache, new) for cache, new in zip(caches, tokens, strict=True)]

    right: dict[str, Any] = {
        "rewind": lambda cache, n: cache.rows.__delitem__(slice(len(cache.rows) - n, None)),
        "copy": lambda cache: placed(cache.memory, list(cache.rows)),
        "beside": lambda cache: placed(cache.memory, []),
        "load": lambda cache: placed(cache.memory, list(cache.rows)),
        "batch": batch,
        "shift": lambda cache, n: cache.memory.update({cache.number: moved(cache.rows, n)}),
        "drop": lambda cache: cache.memory.pop(cache.number),
    }
    return from_model(lambda: placed({}, []), decode, **(right | faults))


def moved(rows: Rows, n: int, by: int = 0) -> Rows:
    return [(token, place - n + by) for token, place in rows[n:]]


def told(lives: int = 20, **faults: Callable[..., Any]) -> str:
    probe = engines.small("qwen3", "full,full")
    return asked(probe, memory(probe, **faults), most=9, lives=lives).told()


@pytest.mark.parametrize(("name", "layers"), [("qwen3", "full,full"), ("gemma3", "window 5,full")])
def test_a_right_memory_is_not_accused(name: str, layers: str) -> None:
    probe = engines.small(name, layers)
    verdict = asked(probe, memory(probe), most=12, lives=12)
    assert verdict.failures == () and verdict.refused == 0, verdict.told()
    assert verdict.queries > 200


def test_a_copy_that_shares_its_rows_is_shown() -> None:
    shown = told(copy=lambda cache: placed(cache.memory, cache.rows))
    assert "after append a 1; copy a b; append" in shown
    assert "sees 1 row too many: t" in shown


def test_what_is_loaded_without_its_newest_row_is_shown() -> None:
    shown = told(load=lambda cache: placed(cache.memory, cache.rows[:-1]))
    assert "after append a 2; load a b; append b 1:" in shown or "after append a 1; load a b; append b 1:" in shown
    assert "does not see 1 row: row" in shown


def test_rows_that_are_not_moved_by_a_shift_are_shown() -> None:
    shown = told(
        shift=lambda cache, n: cache.memory.update(
            {cache.number: moved(cache.rows, n, by=n)[:-1] + moved(cache.rows, n)[-1:]}
        )
    )
    assert "shift a 1; append a 1:" in shown
    assert "back: it seems" in shown


def test_a_shift_that_shows_in_a_copy_is_shown() -> None:
    """The rows of a copy are those of its source, as in one buffer, and each has one position."""

    def shift(cache: Held, n: int) -> None:
        for number, rows in cache.memory.items():
            mine = {token for token, _ in cache.rows}
            cache.memory[number] = [(t, p - n) if t in mine else (t, p) for t, p in rows]
        del cache.rows[:n]

    shown = told(40, shift=shift)
    assert re.search("copy a b.*; shift [ab] 1; append [ab] 1:", shown) and "back: it seems" in shown


def test_a_batch_whose_answers_are_exchanged_is_shown() -> None:
    probe = engines.small("qwen3", "full,full")
    right = memory(probe).batch
    assert right is not None

    def exchanged(caches: Sequence[Held], tokens: Sequence[list[int]]) -> list[Any]:
        found = list(right(caches, tokens))
        alike = len(found[0]) == len(found[1])
        return [found[1], found[0], *found[2:]] if alike else found

    shown = told(batch=exchanged)
    assert "append a 1 b 1:" in shown and "which this text does not have" in shown


def test_rows_that_a_dropped_sequence_leaves_are_shown() -> None:
    """The next sequence of its number begins with them."""

    def drop(cache: Held) -> None:
        cache.memory[LEFT + cache.number] = cache.memory.pop(cache.number)

    def beside(cache: Held) -> Held:
        made = placed(cache.memory, [])
        made.rows.extend(cache.memory.pop(LEFT + made.number, []))
        return made

    shown = told(drop=drop, beside=beside)
    assert re.search("drop [ab]; append", shown) and "which this text does not have" in shown


def test_acts_that_make_no_sense_are_not_drawn() -> None:
    for seed in range(40):
        acts = drawn(seed, [1, 5, 9], 20, frozenset({"copy", "load", "rewind", "shift", "drop", "batch", "beside"}))
        assert sensible(acts) and {name for act in acts for name in act.of} <= set(NAMES)
    assert after({"a": 3}, Act("rewind", ("a",), (3,))) is None
    assert after({"a": 3}, Act("copy", ("a", "a"))) is None
    assert after({"a": 3}, Act("drop", ("a",))) is None
    assert not sensible([Act("copy", ("a", "b"))])


def test_a_life_is_made_short() -> None:
    acts = drawn(1, [1, 5], 20, frozenset({"copy", "drop", "batch", "beside"}))
    short = shortened(acts, lambda some: any(act.what == "copy" for act in some))
    assert [str(act) for act in short] == ["append a 1", "copy a b"]


def test_the_clauses_of_a_failure_are_named() -> None:
    view, wrong = View("window", 8), (Finding("extra", (0,), "sees row 0"),)
    judgement = Judgement([1], (Reading(0, FULL, 0), Reading(1, view, 0, findings=wrong)))
    history = (Act("append", ("a", "b"), (1, 2)), Act("load", ("a", "c")), Act("append", ("c",), (1,)))
    assert clauses(history, judgement) == ("LAYER-5", "CACHE-13", "LAYER-31")
    assert clauses((Step("append", 9), Step("rewind", 1)), judgement) == ("LAYER-5", "CACHE-8")
    assert {*SEEN_THROUGH.values(), *OWED.values(), BATCHED} <= set(index())
    assert set(OWED) == {what for what in OFTEN if what != "append"}
