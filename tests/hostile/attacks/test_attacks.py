"""The corpus of wrong caches: what is in it, that each is wrong and its base is right, and a sample that is judged.

All of it is judged in `nox -s attacks`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hostile.attacks import bases, grammar, judging, table
from hostile.attacks.effects.every import effects
from hostile.attacks.judging import Found
from hostile.attacks.triggers.every import SORTS, triggers
from hostile.attacks.witness import showing
from hostile.attacks.wrapper import Attacked
from kvconform.checks import examples
from kvconform.judge import trial
from kvspec.contract import CHAPTERS, description
from kvspec.notation import from_sentence
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from support.slow import one_in

pytestmark = pytest.mark.must("found, or left alone")

CORPUS = grammar.attacks()
RIGHT = {base.name: base for base in bases.right()}


def test_the_corpus_has_every_chapter_trigger_and_effect() -> None:
    assert len(CORPUS) >= 150
    assert {a.chapter for a in CORPUS.values()} == set(CHAPTERS)
    assert {a.trigger.sort for a in CORPUS.values()} == set(SORTS)
    assert {a.effect.sort for a in CORPUS.values()} == {e.sort for e in effects()}
    assert len({a.base.name for a in CORPUS.values()}) >= 10
    sizes = Counter(a.trigger.sort for a in CORPUS.values())
    assert min(sizes.values()) >= 5 and sizes["size"] >= 30


def test_words_of_the_grammar_name_one_thing_each() -> None:
    for words in ([t.id for t in triggers()], [e.id for e in effects()], [b.name for b in bases.right()]):
        assert len(set(words)) == len(words)
    assert all(grammar.named(id_).id == id_ for id_ in CORPUS)


def test_there_are_sixty_right_caches() -> None:
    assert len(RIGHT) >= 60


def test_whether_a_restore_is_accepted_is_asked_of_what_takes_snapshots() -> None:
    """An attack on a question that no trace can ask of it is none."""
    asked = [attack for attack in CORPUS.values() if attack.where.method == "can_restore"]
    assert asked and all("snapshot" in attack.adapter().describe()["chapters"] for attack in asked)


@pytest.mark.parametrize("id_", one_in(12, CORPUS))
def test_each_answers_otherwise_than_its_base(id_: str) -> None:
    """On the trace beside it; no judge of the suite has a part in that."""
    attack, trace = CORPUS[id_], from_sentence(grammar.witnesses()[id_])
    assert showing.differs(attack, trace, description(attack.base.make().describe()))


@pytest.mark.parametrize("id_", one_in(12, CORPUS))
def test_the_judge_sees_each_when_it_is_asked(id_: str) -> None:
    """What a run does not find was never asked: no judge is blind to it."""
    assert showing.verdict(CORPUS[id_], from_sentence(grammar.witnesses()[id_])) != showing.NONE


def never(base: bases.Base) -> Attacked:
    """The base in a wrapper whose trigger is never met."""
    attack = next(a for a in CORPUS.values() if a.base.kind == base.kind)
    return Attacked(base.make(), attack.where, lambda event: False, attack.effect.make(None))


@pytest.mark.parametrize("name", one_in(4, [base.name for base in bases.bases()]))
def test_the_wrapper_alone_changes_nothing(name: str) -> None:
    """On the traces of all attacks on caches of its kind."""
    base = RIGHT[name]
    about = description(base.make().describe())
    for id_, words in grammar.witnesses().items():
        trace = from_sentence(words)
        if trace.kind != base.kind or grammar.attacks()[id_].trigger.sort in ("size", "two sizes", "count"):
            continue
        sessions = (Session(a, trial.observables(trace, about, "visible")) for a in (base.make(), never(base)))
        right, wrapped = (showing.answers(session, trace) for session in sessions)
        assert right == wrapped, words


def shown(adapter: Any, chapter: str, every: int) -> judging.Judged:
    """An adapter after one in so many worked examples of a chapter."""
    under_test = judging.Judged(adapter, judging.settings("quick"))
    worked = list(examples_of(chapter))
    with under_test.judging("examples"):
        for example in worked[::every]:
            examples.judge(under_test, example)
    return under_test


@pytest.mark.parametrize("name", one_in(6, RIGHT))
def test_a_right_cache_passes_the_examples_of_its_kind(name: str) -> None:
    base = RIGHT[name]
    under_test = shown(base.make(), base.kind, 3)
    assert not under_test.tally.failures and not under_test.tally.own
    assert under_test.tally.exercised


FOUND = (
    "reference store, visible: read_sequence: right after scatter: the last row is missing (told)",
    "RowList: read: looked at often: the last row is zeros (told)",
    "HeadMajor: read: call 17: all rows one place on (told)",
    "reference bounded, visible: rewind: call 3: changed though refused",
    "MoreThanRagged: read_sequence: after a refusal: the last row is zeros (told)",
    "reference copy, visible: copy: the third in a row: the last head is the one before (given)",
    "LayerDicts: mask: past a window: the last layer sees as the one before",
)
"""Attacks that the worked examples of their chapter must find."""


@pytest.mark.parametrize("id_", FOUND)
def test_an_attack_is_found_by_the_examples_of_its_chapter(id_: str) -> None:
    attack = CORPUS[id_]
    assert shown(attack.adapter(), attack.chapter, 1).tally.failures


def found(n: int, of: int) -> list[Found]:
    """The results of a run that found so many attacks, each with the right clause first."""
    ids = [*CORPUS][:of]
    return [Found(id_, "quick", found=i < n, right=True if i < n else None) for i, id_ in enumerate(ids)]


def test_a_rate_below_its_floor_is_status_1() -> None:
    assert table.told(found(9, 10), "quick") == 0
    assert table.told(found(8, 10), "quick") == 1
    assert table.told(found(9, 10), "whole") == 1
    wrongly = [Found(f.id, f.mode, f.found, right=False if f.found else None) for f in found(10, 10)]
    assert table.told(wrongly, "quick") == 1 and table.told(wrongly, "whole") == 0


def test_a_right_cache_that_fails_is_status_1() -> None:
    assert table.told_right([Found("a", "quick")]) == 0
    assert table.told_right([Found("a", "quick"), Found("b", "quick", found=True)]) == 1


def test_results_are_kept_and_not_judged_again(tmp_path: Any) -> None:
    asked: list[str] = []

    def do(id_: str, mode: str) -> Found:
        asked.append(id_)
        return Found(id_, mode)

    file, ids = tmp_path / "attacks.jsonl", [*CORPUS][:3]
    table.judged(ids[:2], "quick", do, file, 0)
    file.write_bytes(file.read_bytes() + b'{"id": "cut o')
    assert [f.id for f in table.judged(ids, "quick", do, file, 0)] == ids
    assert asked == ids


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_observed_counts_as_no_operation(name: str) -> None:
    """Else nothing would ever happen right after another operation."""
    base = RIGHT[name]
    adapter, about = never(base), description(base.make().describe())
    session = Session(adapter, about.observed(about.chapters))
    for trace in (t for t in map(from_sentence, grammar.witnesses().values()) if t.kind == base.kind):
        if session.begin(trace.kind, trace.config).result == "ok":  # two dialects open none of them
            break
    assert all(cache.__dict__["life"].done == [] for cache in session.caches.values())
