"""The page: whole, self-contained, safe whatever a record holds, bounded, and saying everything it should."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec import convert, to_builtins

from kvreports import page as pages
from kvreports.run import failures as run_failures
from kvreports.run import html as run_html
from kvreports.run import standing
from kvreports.run.failures import LARGEST_TRACE
from kvspec.records.run import CAUSES, VERDICTS, Record
from reports.drawing.test_drawings import ring_steps, step
from support.samples.record_samples import (
    SAMPLES,
    TEXTS,
    Text,
    changed,
    clause,
    failing,
    failure,
    partial,
    passing,
    record,
)

VOID = {"meta", "link", "input", "br", "path", "rect", "circle", "use"}
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`${{7*7}}{%x%}\u202e\x1b[2J\x00\ud800 -->"
)


class Page(HTMLParser):
    """Fails on tags that do not match; keeps what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.pieces: dict[str, list[str]] = {}
        self.row = ""
        self.feed(text)
        self.close()
        assert self.open == []
        self.rows = {row: "".join(pieces) for row, pieces in self.pieces.items()}
        self.text = "".join(self.words)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = {k: v or "" for k, v in attrs}
        assert len(found) == len(attrs), (tag, attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.row = found.get("id", "")

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, (tag, self.getpos())
        if tag == "tr":
            self.row = ""

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)
            self.pieces.setdefault(self.row, []).append(data)

    def having(self, name: str) -> list[str]:
        return [a[name] for _, a in self.tags if name in a]

    def named(self, tag: str) -> list[dict[str, str]]:
        return [a for t, a in self.tags if t == tag]


MANY = run_html.render(SAMPLES, TEXTS)
PAGE = Page(MANY)


def hostile(value: Any) -> Any:
    """The record with every free text replaced."""
    if isinstance(value, Record):
        return convert(hostile(to_builtins(value)), Record)
    if isinstance(value, str):
        return value if value in (*VERDICTS, *CAUSES, *TEXTS) else HOSTILE
    if isinstance(value, dict):
        return {(k if k in KEYS else HOSTILE): hostile(v) for k, v in value.items()}
    return [hostile(v) for v in value] if isinstance(value, list) else value


def bare(markdown: str) -> str:
    return re.sub(r"\]\(https?:[^)]*\)|[\[`*]", "", markdown.replace("* step", "\0")).replace("\0", "* step")


def keys(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (set(value) if isinstance(value, dict) else set()).union(*(keys(v) for v in inner))


KEYS = keys(to_builtins(failing())) - {"example growing", "cover ring", "explore ring", "numpy", "append append"}


def test_ids_are_unique_and_links_lead_somewhere() -> None:
    ids = PAGE.having("id")
    assert len(ids) == len(set(ids))
    inner = [h[1:] for h in PAGE.having("href") if h.startswith("#") and not h.startswith("#?")]
    assert len(inner) > 60
    assert set(inner) <= set(ids)


def test_labels_name_what_is_there() -> None:
    ids = set(PAGE.having("id"))
    assert {i for a in PAGE.having("aria-labelledby") for i in a.split()} <= ids


def test_nothing_is_loaded_from_anywhere() -> None:
    assert not PAGE.having("src") and not PAGE.having("srcset") and not PAGE.having("style")
    assert [a["href"] for a in PAGE.named("link")] == ["data:,"]
    assert all(a["href"].startswith("#") for a in PAGE.named("use"))
    css = "".join(re.findall(r"<style>(.*?)</style>", MANY, re.S))
    assert "url(" not in css and "@import" not in css and "@font-face" not in css
    for banned in ("fetch(", "XMLHttpRequest", "import(", "WebSocket", "sendBeacon"):
        assert banned not in MANY


def test_the_policy_allows_this_style_and_script_and_nothing_else() -> None:
    (policy,) = [a["content"] for a in PAGE.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", MANY, re.S)
        assert pages.digest(body) in policy


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


def test_hostile_texts_are_shown_and_never_obeyed() -> None:
    bad = hostile(failing())
    made = run_html.render([bad, copy.deepcopy(bad)], TEXTS)
    page = Page(made)
    assert len(page.named("script")) == 1
    assert not page.named("img") and not [n for _, a in page.tags for n in a if n.startswith("on")]
    assert "alert(1)" in page.text
    assert "49" not in re.findall(r"\{\{7\*7\}\}|49\{", made)
    for obeyed in "\u202e\x1b\x00":
        assert obeyed not in made
    made.encode("utf-8")


def test_hostile_clause_ids_get_made_up_anchors() -> None:
    odd = [clause("RING-1") | {"id": i} for i in ('"><script>', "summary", "a b", "RING-1", "")]
    page = Page(run_html.render([record("a", odd)], {}))
    ids = page.having("id")
    assert len(ids) == len(set(ids)) and not any(re.search(r"[\s<>\"]", i) for i in ids)
    assert len(page.named("script")) == 1


def test_of_clause_markdown_only_the_known_is_obeyed() -> None:
    text = (
        "a `<b>` *e* **s** [ok](https://a.example/?x=1&y) [no](javascript:alert(1)) [rel](x.md) RING-1 RING-99 <i>"
    )
    clauses = {"RING-1": Text("RING-1", "ring", "visible", text, "")}
    made = run_html.render([record("a", [clause("RING-1")])], clauses)
    row = made[made.index('id="RING-1"') :].partition("<details>")[0]
    assert "<code>&lt;b&gt;</code> <em>e</em> <strong>s</strong>" in row
    assert '<a href="https://a.example/?x=1&amp;y" rel="noopener noreferrer">ok</a>' in row
    assert "javascript" not in row and "&lt;i&gt;" in row and "x.md" not in row
    assert '<a href="#RING-1">RING-1</a> RING-99' in row


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


def test_a_page_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_failures, "DRAWN", 3)
    steps = [step(f"append {i}", "RING-1", {"result": "ok", "slots": ["a"] * 500}) for i in range(300)]
    long = failure("FAIL", "RING-1", steps, "m" * 100_000)
    long["trace"]["ops"] = long["trace"]["ops"] * 100
    short = failure("FAIL", "RING-1", steps[:1], "m")
    many = [long] * 3 + [short] * 500
    made = run_html.render([record("a", [clause("RING-1", "FAIL", "r" * 100_000)], many)], TEXTS)
    page = Page(made)
    notes = ("500 more failures, not drawn", "400 more are in the record.", "too many for this page")
    notes += ("260 steps not drawn", "more characters)")
    assert [n for n in notes if n not in page.text] == []
    assert len(made) < 3 * 400_000
    assert len(str(long["trace"])) > LARGEST_TRACE


def test_no_records_and_no_clauses_say_so() -> None:
    assert "There are no run records here" in Page(run_html.render([], {})).text
    nothing = {"version": "", "hash": ""}
    empty = record("a", [], adapter={}, coverage={}, machine={}, spec=nothing, suite=nothing, vectors={})
    text = Page(run_html.render([empty], {})).text
    assert "This run judged no clause." in text and "This run recorded no coverage." in text


def test_the_records_are_not_changed() -> None:
    sample = failing()
    before = copy.deepcopy(sample)
    run_html.render([sample], TEXTS)
    assert sample == before


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
