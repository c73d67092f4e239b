"""The page of a run: whole, self-contained, safe whatever a record holds, and bounded."""

from __future__ import annotations

import copy
import re

import pytest

from kvreports import page as pages
from kvreports.run import failures as run_failures
from kvreports.run import html as run_html
from kvreports.run.failures import LARGEST_TRACE
from reports.drawing.test_drawings import step
from support.readers.html_page import Page, hostile
from support.samples.record_samples import (
    SAMPLES,
    TEXTS,
    Text,
    clause,
    failing,
    failure,
    record,
)

MANY = run_html.render(SAMPLES, TEXTS)
PAGE = Page(MANY)


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


def test_the_records_are_not_changed() -> None:
    sample = failing()
    before = copy.deepcopy(sample)
    run_html.render([sample], TEXTS)
    assert sample == before
