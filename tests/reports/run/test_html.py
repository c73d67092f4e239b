"""The page of a run: it says everything it should."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kvreports.run import html as run_html
from kvreports.run import standing
from kvspec.records.run import VERDICTS
from reports.drawing.test_drawings import ring_steps
from support.readers.html_page import Page
from support.samples.record_samples import (
    SAMPLES,
    TEXTS,
    changed,
    clause,
    failing,
    failure,
    partial,
    passing,
    record,
)

MANY = run_html.render(SAMPLES, TEXTS)
PAGE = Page(MANY)


def bare(markdown: str) -> str:
    return re.sub(r"\]\(https?:[^)]*\)|[\[`*]", "", markdown.replace("* step", "\0")).replace("\0", "* step")


def test_every_clause_has_a_row_with_its_text_level_and_every_verdict_in_words() -> None:
    for id_, text in TEXTS.items():
        row = PAGE.rows[id_]
        assert (
            f'<td role="cell" class="level">{text.level}</td>'
            in MANY[MANY.index(f'<tr role="row" id="{id_}"') :].partition("</tr>")[0]
        )
        assert " ".join(bare(text.text).split()) in " ".join(row.split())
        for sample in SAMPLES:
            (said,) = [c for c in sample.clauses if c.id == id_]
            assert said.verdict in row
            assert said.reason in row


def test_why_a_clause_is_as_it_is_and_how_often_it_was_exercised_stand_in_its_row() -> None:
    assert TEXTS["RING-17"].reason in PAGE.rows["RING-17"]
    assert "example 3, cover 1,204, explore 5,120" in PAGE.rows["RING-1"]
    assert "No step exercised it." in PAGE.rows["SNAP-1"]


def test_chapters_stand_in_the_order_of_the_spec() -> None:
    assert [a["data-chapter"] for a in PAGE.named("tbody") if a.get("data-chapter")] == [
        "growing",
        "ring",
        "mask",
        "snapshot",
    ]


def test_what_is_claimed_comes_first_and_the_line_of_a_chapter_counts_the_rest() -> None:
    clauses = [clause(id_, "NOT_CLAIMED" if id_[:4] == "GROW" or id_ == "RING-5" else "PASS") for id_ in TEXTS]
    made = run_html.render([record("a", clauses)], TEXTS)
    page = Page(made)
    chapters = [a["data-chapter"] for a in page.named("tbody") if a.get("data-chapter")]
    assert chapters == ["ring", "mask", "snapshot", "growing"]
    lines = [
        re.sub("<[^>]+>", " ", row).split()
        for row in re.findall(r'class="chapter(?: silent)?">(.*?)</tr>', made, re.S)
    ]
    assert lines[0] == ["RING", "ring", "1", "not", "claimed", "3", "of", "3"]
    assert lines[-1] == ["GROW", "growing", "4", "not", "claimed", "not", "claimed"]
    assert [h for h in page.having("href") if h.startswith("#?")] == ["#?chapter=ring", "#?chapter=growing"]


def test_many_ids_are_folded_and_none_is_left_out() -> None:
    failed = failure("FAIL", "RING-5", ring_steps(), "m", implicated=list(TEXTS))
    made = run_html.render(
        [record("a", [clause("RING-5", "FAIL", "x"), *map(clause, {*TEXTS} - {"RING-5"})], [failed])], TEXTS
    )
    told = made[made.index("Earlier steps exercised") :].partition("</div>")[0]
    shown, _, folded = told.partition('<details class="folded">')
    assert f"and {len(TEXTS) - 4} more" in folded
    assert [len(re.findall('href="#', part)) for part in (shown, folded)] == [4, len(TEXTS) - 4]


def test_clauses_stand_in_the_order_of_their_numbers() -> None:
    one = record("a", [clause(i) for i in reversed(TEXTS)])
    rows = [a["id"] for a in Page(run_html.render([one], TEXTS)).named("tr") if "id" in a]
    assert [r for r in rows if r.startswith("RING")] == ["RING-1", "RING-5", "RING-10", "RING-17"]


def test_verdicts_are_told_by_shape_and_text() -> None:
    cells = re.findall(r'<span class="v \w+">(.*?)</span>', MANY)
    assert len(cells) > 36
    for cell in cells:
        shape, verdict = re.fullmatch(r'<svg.*?href="#s-(\w+)"/></svg>(\w+)', cell).groups()  # type: ignore[union-attr]
        assert shape == verdict


def test_the_summary_says_who_conforms() -> None:
    for words in ("Conforms", "Does not conform", "No difference so far", "2 of 10 clauses it claims, 6 broken"):
        assert words in PAGE.text
    assert "3 runs. Conforms: 1, does not conform: 1, no difference so far: 1." in PAGE.text
    for fact in (
        "Example CPU at 2.0 GHz",
        "pocl, Example CPU",
        "20250314",
        "2025-03-14 15:09 UTC, 41.7 s",
        "5d41402abc",
    ):
        assert fact in PAGE.text


def test_facts_that_all_runs_share_are_told_once() -> None:
    other = changed(passing("other"), selection={"seed": 77})
    text = Page(run_html.render([passing(), other], TEXTS)).text
    brief = text[: text.index("Clauses\n", text.index("The same for all runs:"))]
    assert brief.count("pocl, Example CPU") == 1
    assert "77" in brief and "20250314" in brief


def test_partial_runs_are_marked_loudly() -> None:
    assert "Partial run: cuda-ring" in PAGE.text
    assert partial().partial_reason in PAGE.text
    assert PAGE.text.count("partial") >= 2
    assert "Partial run" not in Page(run_html.render([passing()], TEXTS)).text


def test_records_of_different_specs_are_said_to_be() -> None:
    other = changed(passing("other"), spec={"version": "0.2", "hash": "sha256:0"})
    assert "Different versions." in run_html.render([passing(), other], TEXTS)
    assert "Different versions." not in MANY


def test_every_failure_is_drawn_told_and_can_be_replayed() -> None:
    text = " ".join(PAGE.text.split())
    for f in failing().failures:
        assert f.message in text and f.words in text
    words = "ring window=4 step=4: append 3; append 1; append 1; rewind 3; append 0"
    assert f"kvconform replay '{words}' --draw --adapter opencl-ring" in text
    assert "beside this page it is <code>failures/02-RING-5.json</code>" in " ".join(MANY.split())
    assert '"kvtrace": 2' in text and "Nondeterministic." in text
    assert len([a for a in PAGE.named("svg") if a.get("role") == "img"]) == 3 + 8
    assert TEXTS["RING-17"].reason in PAGE.text.split("Failures", 2)[-1]


def test_a_failing_cell_leads_to_its_failure() -> None:
    row = MANY[MANY.index('id="RING-5"') :].partition("</tr>")[0]
    assert 'href="#failure-2-2"' in row
    assert 'id="failure-2-2"' in MANY


def test_reasons_suspicion_problems_and_coverage_are_told() -> None:
    rest = PAGE.text[PAGE.text.index("Not passed and not broken, and why") :]
    assert "no trace reached it before the limit of 200 traces" in rest and "Not claimed: snapshot (2)." in rest
    assert all(c.reason in PAGE.text for c in failing().clauses)
    assert "0.87" in PAGE.text and "0.41" in PAGE.text
    assert failing().problems[0] in PAGE.text
    assert "15,210" in rest and "7,000" in rest


@pytest.mark.parametrize("v", VERDICTS)
def test_every_verdict_has_words_a_kind_and_a_shape(v: str) -> None:
    assert v in standing.WORDS and v in standing.KINDS
    assert f'id="s-{v}"' in MANY
    assert v == "PASS" or v in standing.URGENCY


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Conforms"),
        ({"exit_status": 4, "clauses": [], "problems": ["no device"]}, "Cannot run here"),
        ({"exit_status": 3, "clauses": []}, "Nothing was exercised"),
        ({"exit_status": 0, "clauses": []}, "Nothing was exercised"),
        ({"exit_status": 0, "clauses": [clause("RING-1", "NOT_RUN", "x")]}, "Nothing was exercised"),
        ({"exit_status": 3}, "The harness failed"),
        ({"exit_status": 1, "problems": ["adapter: it does what it does not claim"]}, "Does not conform"),
        ({"exit_status": 0, "clauses": [clause("RING-1"), clause("RING-5", "FAIL", "x")]}, "Does not conform"),
        ({"exit_status": 0, "clauses": [clause("RING-1"), clause("RING-5", "XPASS", "x")]}, "Does not conform"),
        ({"clauses": [clause("RING-1"), clause("RING-5", "HARNESS_ERROR", "x")]}, "The harness failed"),
        ({"clauses": [clause("RING-1"), clause("RING-5", "XFAIL", "x")]}, "Conforms, except for known deviations"),
        ({"partial": True}, "No difference so far"),
        ({"partial": True, "clauses": [clause("RING-5", "CRASH", "x")]}, "Does not conform"),
    ],
)
def test_a_standing_is_never_better_than_what_happened(changes: Any, words: str) -> None:
    assert standing.standing(changed(record("a", [clause("RING-1")]), **changes)).words == words


def test_clauses_the_spec_does_not_know_are_shown_from_the_record() -> None:
    page = Page(run_html.render([passing()], {}))
    assert "This text comes from the record" in page.rows["RING-1"]
    assert "itself included" in page.rows["RING-1"]


def test_clauses_no_record_holds_are_counted() -> None:
    one = record("a", [clause("RING-1")])
    assert f"{len(TEXTS) - 1} more clauses of the spec are in none" in run_html.render([one], TEXTS)
    assert "not in this run" in run_html.render([one, passing()], TEXTS)


def test_records_of_one_name_are_told_apart() -> None:
    newer = changed(passing(), adapter=passing().adapter | {"version": "1.3.0"})
    page = Page(run_html.render([passing(), newer, newer], TEXTS))
    for label in ("reference 1.2.0", "reference 1.3.0 (1)", "reference 1.3.0 (2)"):
        assert label in page.text


def test_no_records_and_no_clauses_say_so() -> None:
    assert "There are no run records here" in Page(run_html.render([], {})).text
    nothing = {"version": "", "hash": ""}
    empty = record("a", [], adapter={}, coverage={}, machine={}, spec=nothing, suite=nothing, vectors={})
    text = Page(run_html.render([empty], {})).text
    assert "This run judged no clause." in text and "This run recorded no coverage." in text


def test_drawings_in_a_page_share_its_style() -> None:
    made = run_html.render(
        [record("a", [clause("RING-1", "FAIL", "x")], [failure("FAIL", "RING-1", ring_steps(), "m")])], TEXTS
    )
    assert made.count("<style>") == 1


def test_failures_come_before_clauses_and_the_box_says_what_is_wrong() -> None:
    page = Page(run_html.render([failing()], TEXTS)).text
    at = [page.index(words) for words in ("What is wrong", "Look first at", "Each failure is drawn", "Show all")]
    assert at == sorted(at)
    assert "What is wrong" not in Page(run_html.render([passing()], TEXTS)).text


def test_a_level_is_said_once() -> None:
    clauses = [clause(i, judged_at="storage") for i in ("GROW-1", "GROW-2", "RING-1")]
    page = Page(run_html.render([record("a", clauses)], TEXTS)).text
    assert page.count("judged at storage") == 1 + len(clauses)
    assert "at storage" not in page.replace("judged at storage", "")
    clauses.append(clause("GROW-4", judged_at="visible"))
    mixed = Page(run_html.render([record("a", clauses)], TEXTS)).text
    assert len(re.findall("(?<!judged )at (?:storage|visible)", mixed)) == len(clauses)


def test_a_chapter_of_which_nothing_is_claimed_is_one_line() -> None:
    clauses = [clause("GROW-1"), clause("RING-1", verdict="NOT_CLAIMED")]
    page = run_html.render([record("a", clauses)], TEXTS)
    assert page.count('class="chapter"') == page.count('class="chapter silent"') == 1
    assert page.index('class="chapter"') < page.index('class="chapter silent"')


def test_reasons_are_labelled() -> None:
    assert f"Why: {TEXTS['RING-17'].reason[:30]}" in PAGE.text
