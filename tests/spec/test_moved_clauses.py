"""General rules are said once: the clauses that said them for one kind of cache lead to those that say them now."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvadapters.reference import Reference
from kvconform.commands.explain import main as explain
from kvconform.judge import trial
from kvconform.oracle.reference import claims
from kvconform.runner.verdict import known
from kvreports import json_file
from kvspec.chapters import CHAPTERS, GENERAL
from kvspec.errors import BadInput, Refused
from kvspec.notation import from_sentence
from kvspec.reading.clauses import chapter_text, index
from kvspec.reading.moved_clauses import moved, now
from kvspec.records.older_records import led_on
from kvspec.records.run import Record
from kvspec.session.driver import Session
from support.samples.record_samples import clause, failure, record, ring_steps

GENERAL_ONES = [c for c in index().values() if c.general]


def test_old_ids_lead_to_general_clauses_and_are_never_used_again() -> None:
    assert len(moved()) > 80 and not set(moved()) & set(index())
    assert {index()[new].chapter for new in moved().values()} == {GENERAL} and now("RING-1") == "RING-1"


@pytest.mark.parametrize("each", GENERAL_ONES, ids=lambda c: c.id)
def test_a_general_clause_has_an_example_on_each_kind_that_it_binds(each: object) -> None:
    assert len(each.applies) >= 3  # type: ignore[attr-defined]
    assert {e.trace.kind for e in each.examples} == set(each.applies)  # type: ignore[attr-defined]


def test_links_to_old_clauses_still_lead_into_their_chapters() -> None:
    texts = [chapter_text(chapter) for chapter in CHAPTERS]
    assert [old for old in moved() if sum(f'<a id="{old}"></a>' in text for text in texts) != 1] == []


def test_an_old_id_is_explained_by_the_clause_that_says_it_now(capsys: pytest.CaptureFixture[str]) -> None:
    class Asked:
        clause = "ring-4"

    explain(Asked)  # type: ignore[arg-type]
    assert capsys.readouterr().out.startswith("RING-4 is CACHE-1 now: a general clause says it for every kind.")


def test_a_file_of_known_deviations_is_told_the_new_id(tmp_path: Path) -> None:
    file = tmp_path / "kvconform.toml"
    file.write_text('[[known]]\nclause = "RING-4"\nmodel = "x/Y"\nreason = "r"\n')
    with pytest.raises(BadInput, match="RING-4 is CACHE-1 now"):
        known.read(file)


def older() -> Record:
    said = {"GROW-1": "PASS", "RING-5": "FAIL", "RING-10": "NOT_CLAIMED"}
    names = {"GROW-1": "GROW-3", "RING-5": "RING-4", "RING-10": "BOUNDED-4"}
    clauses = [clause(sample, verdict) | {"id": names[sample]} for sample, verdict in said.items()]
    return record("old", clauses, [failure("FAIL", "RING-4 RING-1", ring_steps(), "m")])


def test_an_older_record_is_read_with_todays_ids_and_the_gravest_verdict() -> None:
    seen = json_file.loads(json_file.dumps(older()), Record)
    (one,) = seen.clauses
    assert (one.id, one.verdict, one.kinds) == ("CACHE-1", "FAIL", ["growing", "ring"])
    assert seen.summary == {"FAIL": 1} and seen.failures[0].clauses == ["CACHE-1", "RING-1"]
    assert led_on(seen) is seen


def test_an_engine_that_refuses_under_an_old_id_refuses_under_the_right_one() -> None:
    class Old(Reference):
        def open(self, kind: str, config: object) -> object:
            cache = super().open(kind, config)  # type: ignore[arg-type]
            rewind = cache.rewind

            def older(to: int) -> None:
                try:
                    rewind(to)
                except Refused as e:
                    raise Refused("RING-9" if e.clause == "CACHE-7" else "RING-1", str(e)) from None

            cache.rewind = older
            return cache

    def differs(words: str) -> bool:
        return trial.run(from_sentence(words), Session(Old()), claims()).failed

    assert not differs("ring window=3: append 2; rewind 5") and differs("ring window=3: append 5; rewind 2")
