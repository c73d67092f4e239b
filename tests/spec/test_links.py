"""Links lead somewhere: on a code host every clause has an address, and pages link to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvreports import json_file
from kvspec.reading.clauses import chapter_text, digest, index
from kvspec.records.run import Record
from kvspec.registry import CHAPTERS
from tools import markdown_links

PAGES = markdown_links.pages()
ROOT = markdown_links.ROOT


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    assert markdown_links.broken(page) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_clause_has_its_anchor_just_above_it(chapter: str) -> None:
    text = chapter_text(chapter)
    pairs = re.findall(r'^<a id="([^"]*)"></a>\n\*\*([A-Z]+-\d+)\*\* \(', text, re.M)
    ids = [id_ for id_, clause in index().items() if clause.chapter == chapter]
    assert [a for a, _ in pairs] == [b for _, b in pairs] == re.findall(r"^\*\*([A-Z]+-\d+)\*\* \(", text, re.M)
    assert sorted(ids) == sorted(a for a, _ in pairs)


SPEC = [f"spec/{name}" for name in ("README", "DIFFERENCES", "EXAMPLES", "GLOSSARY", "BUGS", "WIRE")]


DOCS = [f"docs/{name}" for name in ("engine", "tutorial", "how-it-works")]


@pytest.mark.parametrize("name", [*SPEC, *DOCS, "README", "reports/deviations/README"])
def test_ids_of_clauses_are_links(name: str) -> None:
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    text, _, _ = text.partition("## Not planted")  # there CACHE-7 is an entry of the catalogue
    assert markdown_links.bare_ids(text, set(index())) == []


@pytest.mark.parametrize("name", ["reference", "opencl", "opencl-fast", "cuda-cpu", "cuda-cpu-fast"])
def test_each_claimed_clause_of_a_published_report_is_a_link(name: str) -> None:
    """The report is of the spec that its record names; `nox -s release` wants that of today. Chapters that are not
    claimed have a line each."""
    folder = ROOT / f"reports/published/{name}"
    text, record = (
        (folder / "report.md").read_text(encoding="utf-8"),
        json_file.load(folder / "record.json", Record),
    )
    told = {c.id: c.verdict != "NOT_CLAIMED" for c in record.clauses if c.id in index()}
    assert len(told) > 400 and (record.spec.hash != digest() or set(told) == set(index()))
    for id_ in (i for i, claimed in told.items() if claimed):
        assert f"\n| [{id_}](../../../spec/kvspec/chapters/{index()[id_].chapter}.md#{id_})" in text


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A head: *two* parts\n\n[a](#a-head-two-parts) [b](#b) [c](page.md#RING-1) [d](none.md) `[e](x.md)`\n"
        "\n    [f](code.md)\n\n[g](#g)\n"
    )
    assert markdown_links.broken(page) == ["#b", "page.md#RING-1", "none.md", "#g"]
    assert markdown_links.bare_ids(
        "RING-1, `RING-2`, [RING-3](x), **CACHE-1**", {f"RING-{n}" for n in range(5)}
    ) == ["RING-1"]
