"""Records for a terminal and as Markdown."""

from __future__ import annotations

import re

import pytest

from kvreports.markdown import code, literal
from kvreports.run import html as run_html
from kvreports.run import markdown, standing
from kvreports.run import text as run_text
from kvreports.safe_text import plain
from kvspec.contract import CHAPTERS
from reports.drawing.test_drawings import dead_steps
from reports.run.test_html import HOSTILE, hostile
from support.record_samples import SAMPLES, TEXTS, clause, failing, failure, partial, passing, record

TABLE = run_text.render([failing()], TEXTS, 100)
MARKDOWN = markdown.render(SAMPLES, TEXTS)


def test_the_table_begins_with_the_answer() -> None:
    assert TABLE.startswith("opencl-ring: Does not conform (6 of 12 clauses broken)\n")
    assert run_text.render([passing()], TEXTS, 100).startswith("reference: Conforms (12 clauses passed)\n")


def test_the_table_counts_by_chapter_and_in_all() -> None:
    rows = {
        line.split()[0]: line.split()[1:] for line in TABLE.partition("\n\nverdict")[0].splitlines() if line.strip()
    }
    assert rows["chapter"][:4] == ["clauses", "PASS", "FAIL", "NOT_CLAIMED"]
    assert rows["growing"] == ["4", "1", "1", "1", "1"]
    assert rows["all"] == ["12", "2", "2", "2", "1", "1", "1", "1", "1", "1"]


def test_every_clause_that_did_not_pass_is_told_with_its_reason_the_urgent_first() -> None:
    flat = " ".join(TABLE.split())
    for c in failing().clauses:
        assert (c.reason in flat) or c.reason.startswith("known deviation did not")
    order = [line.split()[0] for line in TABLE.splitlines() if re.match(r"(FAIL|CRASH|XFAIL|NOT_RUN)  ", line)]
    assert order == ["FAIL", "FAIL", "CRASH", "XFAIL", "NOT_RUN"]


def test_the_shortest_failing_trace_is_drawn() -> None:
    first = failing().failures[0]
    assert first.message in TABLE and run_text.draw(first.steps) in TABLE
    assert "index" not in TABLE and failing().failures[1].message not in TABLE


def test_the_headline_counts_what_is_claimed() -> None:
    assert TABLE.splitlines()[1] == f"conforms in 2 of 10 clauses it claims, 2 of {len(CHAPTERS)} chapters"
    partly = record(
        "a", [clause("RING-1"), clause("RING-4", "PARTLY_OBSERVED", "x"), clause("RING-9", "FAIL", "x")]
    )
    assert standing.score(partly).startswith("conforms in 2 of 3 clauses it claims, 1 partly observed, ")
    for page in (MARKDOWN, run_html.render([failing()], TEXTS)):
        assert "conforms in 2 of 10 clauses it claims" in page


def test_failures_are_told_by_cause_the_known_last() -> None:
    seen = failing()
    seen.failures[1].cause = "refused though owed"
    seen.failures[2].known = dict.fromkeys(seen.failures[2].clauses, "as is known")
    assert list(standing.causes(seen)) == ["wrong row", "refused though owed", "known deviation"]
    rows = run_text.render([seen], TEXTS, 100).partition("what went wrong")[2].splitlines()[2:5]
    assert [row.split("  ")[0] for row in rows] == list(standing.causes(seen))
    for page in (markdown.render([seen], TEXTS), run_html.render([seen], TEXTS)):
        at = [page.index(f"{cause}</strong>" if "<html" in page else f"**{cause}**") for cause in CAPITAL]
        assert at == sorted(at) and "XFAIL" in page[at[2] :]


CAPITAL = ("Wrong row", "Refused though owed", "Known deviation")


def test_chapters_without_a_claim_take_one_line() -> None:
    unclaimed = [
        clause("SNAP-1", "NOT_CLAIMED", f"the adapter does not declare the chapter {chapter}")
        | {"id": f"{letters}-{n}", "chapter": chapter}
        for letters, chapter in (("SNAP", "snapshot"), ("MEM", "mem"))
        for n in range(1, 9)
    ]
    table = run_text.render([record("a", [clause("RING-1"), *unclaimed])], {}, 100)
    (row,) = [line for line in table.splitlines() if line.startswith("NOT_CLAIMED")]
    assert "2 chapters" in row and "does not declare the chapters mem, snapshot" in row and "SNAP-2" not in table


def test_partial_runs_and_problems_are_told() -> None:
    assert "PARTIAL RUN: Interrupted (SIGINT)" in run_text.render([partial()], TEXTS, 100)
    assert "problem: the adapter wrote 3 lines" in TABLE


@pytest.mark.parametrize("width", [60, 80, 140])
def test_reasons_keep_to_the_width(width: int) -> None:
    long = record("a", [clause("RING-4", "NOT_CLAIMED", "word " * 60)])
    assert max(map(len, run_text.render([long], TEXTS, width).splitlines())) <= width


def test_a_terminal_is_never_told_what_to_do() -> None:
    made = run_text.render([hostile(failing())], TEXTS, 100)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", made)
    assert "alert(1)" in made


def test_markdown_tells_summary_matrix_and_failures() -> None:
    for words in ("**Conforms**", "**Does not conform**", "**No difference so far** (partial run)", "20250314"):
        assert words in MARKDOWN
    assert "> **Partial run: cuda-ring.** Interrupted" in MARKDOWN
    row = next(line for line in MARKDOWN.splitlines() if line.startswith("| RING-4 "))
    assert [c.strip() for c in row.split("|")][-4:-1] == ["PASS", "**FAIL**", "PASS"]
    assert "NOT_CLAIMED" in MARKDOWN and "NOT\\_RUN" in MARKDOWN
    assert f"```text\n{run_text.draw(dead_steps())}\n```" in MARKDOWN


def test_every_row_of_a_markdown_table_has_as_many_cells() -> None:
    for made in (MARKDOWN, markdown.render([hostile(failing())], TEXTS), markdown.render([hostile(passing())], {})):
        tables = re.split(r"\n(?!\|)", made)
        for table in tables:
            rows = [line for line in table.splitlines() if line.startswith("|")]
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
