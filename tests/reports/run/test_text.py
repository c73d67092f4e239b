"""Records for a terminal and as Markdown."""

from __future__ import annotations

import re

import msgspec
import pytest

from kvreports.drawing.text import draw
from kvreports.markdown import code, literal, table
from kvreports.run import html as run_html
from kvreports.run import markdown, standing
from kvreports.run import text as run_text
from kvreports.run.findings import failures, findings, suspects
from kvreports.safe_text import plain
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import index
from kvspec.records.run import BROKEN, Record
from reports.drawing.test_drawings import dead_steps, ring_steps
from support.readers.html_page import HOSTILE, Page, hostile
from support.samples.record_samples import SAMPLES, TEXTS, clause, failing, failure, partial, passing, record

TABLE = run_text.render([failing()], TEXTS, 100)
MARKDOWN = markdown.render(SAMPLES, TEXTS)


def test_the_table_ends_with_the_answer_what_it_covers_and_what_to_do() -> None:
    chapters = f"2 of {len(CHAPTERS)} chapters"
    broken = f"2 of 10 clauses it claims, 6 broken, 1 known to differ, 1 not run, {chapters}"
    answer, commands = TABLE.split("\n\n")[-2:]
    assert " ".join(answer.split()) == f"opencl-ring: Does not conform ({broken})"
    assert commands.startswith("kvconform explain GROW-5\nkvconform replay ")
    assert run_text.render([passing()], TEXTS, 100).endswith(
        f"\n\nreference: Conforms (12 of 12 clauses it claims, {chapters})\n"
    )
    for page in (MARKDOWN, run_html.render([failing()], TEXTS)):
        assert broken in page
    partly = record("a", [clause("RING-1"), clause("RING-5", "PARTLY_OBSERVED", "x"), clause("RING-10")])
    assert standing.score(partly).startswith("3 of 3 clauses it claims, 1 of them partly observed, 1 of ")


def test_the_table_counts_by_chapter_what_is_claimed() -> None:
    table = TABLE.partition("\nchapter ")[2].partition("\n\n")[0]
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert rows["clauses"][:3] == ["PASS", "FAIL", "XFAIL"]
    assert rows["growing"] == ["4", "1", "1", "1", "1"] and set(rows) >= {"growing", "ring", "mask"}
    assert "snapshot" not in rows and "not claimed: snapshot (2 clauses)" in TABLE


def test_a_link_between_chapters_leads_into_their_folder_and_is_none_without_one() -> None:
    rule = next(c for c in index().values() if "](attention.md#" in c.text)
    judged = record("a", [clause("RING-1", id=rule.id, chapter=rule.chapter, text=rule.text)])
    assert "](../chapters/attention.md#" in markdown.render([judged], index(), spec="../chapters")
    assert "](attention.md#" not in (page := markdown.render([judged], index())) and "ATTN-" in page


def test_one_clause_is_named_first_in_every_form_and_its_trace_follows() -> None:
    first = failing().failures[0]
    for form in (TABLE, markdown.render([failing()], TEXTS), Page(run_html.render([failing()], TEXTS)).text):
        answer = form[form.index("Look first at") :]
        assert answer.index("GROW-5") < answer.index(first.message)
        assert form is TABLE or answer.index("GROW-5") < answer.index("RING-5")
    assert draw(first.steps) in TABLE
    diagnosed = TABLE.index("Diagnosis: your cache behaves like")
    assert diagnosed < TABLE.index("Look first at GROW-5: FAIL, wrong row")


def test_every_broken_clause_is_told_once_with_the_trace_that_shows_it() -> None:
    broken = [c.id for c in failing().clauses if c.verdict in (*BROKEN, "XFAIL")]
    found = findings(failing())
    assert sorted(id_ for f in found for id_ in f.ids) == sorted(broken)
    assert [f.cause for f in found][-1] == "known deviation"
    table = TABLE.partition("also broken")[2].partition("\n\n")[0]
    assert all(len(re.findall(rf"\b{id_}\b", table)) == (id_ != "GROW-5") for id_ in broken)


def ring_with(**suspicion: float) -> Record:
    """A failure that fails RING-1 at its last step, and exercises RING-10 and RING-17 before."""
    clauses = [
        clause(name.replace("_", "-"), "FAIL", "x", suspicion=s, differed=int(name == "RING_1"))
        for name, s in suspicion.items()
    ]
    return record("a", clauses, [failure("FAIL", "RING-1", ring_steps(), "m")])


def test_the_clause_that_traces_point_at_is_shown_by_a_trace_that_exercises_it() -> None:
    first, *others = findings(ring_with(RING_1=0.02, RING_10=0.94, RING_17=0.3))
    assert (first.ids, first.failure is not None) == (["RING-10"], True)
    assert [f.ids for f in others] == [["RING-17", "RING-1"]]


@pytest.mark.parametrize(("suspicion", "first"), [(0.9, "RING-10"), (0.5, "RING-1")])
def test_a_wrong_length_comes_before_the_wrong_rows_that_it_explains(suspicion: float, first: str) -> None:
    seen = ring_with(RING_1=0.7, RING_10=suspicion)
    length = msgspec.structs.replace(seen.failures[0], clauses=["RING-10"], cause="wrong length")
    seen.failures = [msgspec.structs.replace(seen.failures[0], implicated=["RING-10"]), length]
    assert findings(seen)[0].ids == [first]


def test_of_clauses_alike_the_one_whose_step_differs_comes_first() -> None:
    assert findings(ring_with(RING_1=0.5, RING_10=0.5))[0].ids == ["RING-1"]


def test_the_clause_of_the_diagnosed_bug_comes_before_what_is_more_suspicious() -> None:
    seen = failing()
    assert suspects(seen)[0].id == "GROW-5" and suspects(seen)[0].suspicion < suspects(seen)[1].suspicion
    seen.failures[0].diagnosis = []
    assert suspects(seen)[0].id == "RING-5"


def test_a_failure_of_no_selected_clause_is_shown_all_the_same() -> None:
    seen = record("a", [clause("GROW-1")], [failure("FAIL", "RING-1", ring_steps(), "it differs")])
    assert [f.ids for f in findings(seen)] == [["RING-1"]]
    assert "it differs" in run_text.render([seen], TEXTS, 100)


def test_failures_are_told_by_cause_the_known_last() -> None:
    seen = failing()
    seen.failures[1].cause = "refused though owed"
    seen.failures[2].known = dict.fromkeys(seen.failures[2].clauses, "as is known")
    for c in seen.clauses:
        c.verdict = "XFAIL" if c.id == "RING-17" else c.verdict
    causes = [f.cause for f in findings(seen) if f.failure]
    assert causes == ["wrong row", "refused though owed", "known deviation"]
    assert [f.clauses[0] for f, _ in failures(seen)] == ["GROW-5", "RING-5", "RING-17"]
    page = markdown.render([seen], TEXTS)
    at = [page.index(title) for title in ("### FAIL GROW-5", "### FAIL RING-5", "### XFAIL RING-17", "## Clauses")]
    assert at == sorted(at)


def test_where_nothing_but_known_deviations_is_left_nobody_is_sent_to_look() -> None:
    known = clause("RING-1", "XFAIL", "known: clipped. m")
    seen = record(
        "a", [known, clause("RING-5")], [failure("FAIL", "RING-1", ring_steps(), "m", known={"RING-1": "clipped"})]
    )
    for form in (
        run_text.render([seen], TEXTS, 100),
        markdown.render([seen], TEXTS),
        run_html.render([seen], TEXTS),
    ):
        assert "Look first at" not in form and "What is wrong" not in form
        assert "Known to deviate:" in form and "known: clipped. m" in form


def test_what_is_not_claimed_takes_one_line_and_is_unfolded_on_request() -> None:
    unclaimed = [
        clause("SNAP-1", "NOT_CLAIMED", f"the adapter does not declare the chapter {chapter}")
        | {"id": f"{letters}-{n}", "chapter": chapter}
        for letters, chapter in (("SNAP", "snapshot"), ("MEM", "mem"))
        for n in range(1, 9)
    ]
    seen = record("a", [clause("RING-1"), clause("RING-5", "NOT_CLAIMED", "it takes ring.zero"), *unclaimed])
    table = run_text.render([seen], {}, 100)
    assert "not claimed: snapshot, mem (16 clauses)" in table
    assert not any(words in table for words in ("SNAP-2", "RING-5", "ring.zero"))
    unfolded = run_text.render([seen], {}, 100, unclaimed=True)
    assert re.search(r"^NOT_CLAIMED +RING-5 +it takes ring.zero$", unfolded, re.M) and "SNAP-2" not in unfolded


def test_partial_runs_and_problems_are_told() -> None:
    assert "PARTIAL RUN: Interrupted (SIGINT)" in run_text.render([partial()], TEXTS, 100)
    assert "problem: the adapter wrote 3 lines" in TABLE


@pytest.mark.parametrize("width", [60, 80, 140])
def test_reasons_keep_to_the_width(width: int) -> None:
    long = record("a", [clause("RING-5", "NOT_CLAIMED", "word " * 60)])
    assert max(map(len, run_text.render([long], TEXTS, width).splitlines())) <= width


def test_ids_and_names_of_tests_are_never_broken_in_two() -> None:
    ids = [f"RESIDENCY-{n}" for n in range(10, 40)]
    seen = record("a", [clause("RING-5", "PARTLY_OBSERVED", " ".join(ids))])
    for width in range(60, 110):
        assert set(ids) <= set(run_text.render([seen], TEXTS, width).split())


def test_six_verdicts_fit_a_narrow_terminal() -> None:
    verdicts = ("PASS", "PARTLY_OBSERVED", "BY_ADAPTER", "FAIL", "NOT_CLAIMED", "NOT_RUN")
    ids = [id_ for id_ in TEXTS if id_.startswith(("GROW-", "RING-"))]
    seen = record(
        "a", [clause("RING-1") | {"id": id_, "verdict": v} for id_, v in zip(ids, verdicts, strict=False)]
    )
    assert len(ids) >= len(verdicts)
    narrow, wide = (run_text.render([seen], TEXTS, width) for width in (80, 140))
    assert max(map(len, narrow.splitlines())) <= 80 and "PARTLY_OBSERVED  " in wide
    assert re.search("^chapter +clauses +PASS +PARTLY +BY +FAIL +NOT +NOT$", narrow, re.M)


def test_a_terminal_is_never_told_what_to_do() -> None:
    made = run_text.render([hostile(failing())], TEXTS, 100)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", made)
    assert "alert(1)" in made


def test_markdown_tells_summary_matrix_and_failures() -> None:
    for words in ("**Conforms**", "**Does not conform**", "**No difference so far** (partial run)", "20250314"):
        assert words in MARKDOWN
    assert "> **Partial run: cuda-ring.** Interrupted" in MARKDOWN
    row = next(line for line in MARKDOWN.splitlines() if line.startswith("| RING-5 "))
    assert [c.strip() for c in row.split("|")][-4:-1] == ["PASS", "**FAIL**", "PASS"]
    assert "NOT_CLAIMED" in MARKDOWN and "NOT\\_RUN" in MARKDOWN
    assert f"```text\n{draw(dead_steps())}\n```" in MARKDOWN


def test_markdown_has_a_row_for_what_is_claimed_and_a_line_for_the_rest_of_a_chapter() -> None:
    said = [clause(i, "NOT_CLAIMED" if i in ("RING-5", "RING-10") or i[:4] == "SNAP" else "PASS") for i in TEXTS]
    clauses = markdown.render([record("a", said)], TEXTS).partition("## Clauses")[2]
    assert {i for i in TEXTS if f"| {i} " in clauses} == {c["id"] for c in said if c["verdict"] == "PASS"}
    assert clauses.endswith("\n\n- ring: 2 clauses not claimed\n- snapshot: 2 clauses not claimed\n")
    other = markdown.render([record("a", said), passing()], TEXTS).partition("## Clauses")[2]
    assert "| RING-5 " in other and "not claimed" not in other


def test_ids_in_markdown_are_links_where_the_chapters_are_known() -> None:
    linked = markdown.render(SAMPLES, TEXTS, "../chapters")
    assert "| [RING-5](../chapters/ring.md#RING-5) " in linked
    assert not re.search(r"\]\([^)]*chapters", MARKDOWN)
    unlinked = re.sub(r"\[([A-Z]+-\d+)\]\(\.\./chapters/[a-z]+\.md#\1\)", r"\1", linked)
    assert re.sub(r"--+", "--", unlinked).split() == re.sub(r"--+", "--", MARKDOWN).split()


def test_the_columns_of_a_wide_table_are_not_aligned() -> None:
    """A code host renders half a megabyte at most."""
    assert table(["a", "b"], [["1", "long"]]).splitlines()[0] == "| a   | b    |"
    wide = table(["a", "b"], [["1", "long" * 100], ["2", "x"]]).splitlines()
    assert wide[0::3] == ["| a | b |", "| 2 | x |"] and wide[1] == "|---|---|"


def test_every_row_of_a_markdown_table_has_as_many_cells() -> None:
    for made in (
        MARKDOWN,
        markdown.render([hostile(failing())], TEXTS),
        markdown.render([hostile(passing())], {}, "spec"),
    ):
        tables = re.split(r"\n(?!\|)", made)
        for each in tables:
            rows = [line for line in each.splitlines() if line.startswith("|")]
            assert len({len(re.findall(r"(?<!\\)\|", r)) for r in rows}) <= 1


def test_markdown_keeps_hostile_text_literal() -> None:
    made = markdown.render([hostile(failing())], TEXTS)
    outside = re.sub(r"(`{3,})text\n.*?\n\1", "", made, flags=re.S).replace(code(plain(HOSTILE), 1500), "")
    assert "alert(1)" in outside
    assert not re.search(r"(?<!\\)<(script|img)", outside)
    assert literal("a|b*c_d`e<f>[g](h)\n# i") == "a\\|b\\*c\\_d\\`e\\<f\\>\\[g\\](h) \\# i"


def test_code_and_fences_outlast_the_backticks_inside() -> None:
    assert code("a`b``c") == "``` a`b``c ```"
    steps = dead_steps()
    steps[0].do = "```` x"
    made = markdown.render(
        [record("a", [clause("RING-1", "FAIL", "x")], [failure("FAIL", "RING-1", steps, "m")])], TEXTS
    )
    assert "`````text\n" in made and "\n`````" in made


def test_no_records_say_so() -> None:
    assert run_text.render([], {}) == "no records\n"
    assert "no run records" in markdown.render([], {})
