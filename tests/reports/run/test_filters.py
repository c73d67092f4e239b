"""The filters of a report and the search of the site go by the address, so that a link carries them.

The scripts run in node, against as much of a page as they ask for; the rows are those of a rendered page.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvreports.run import html
from support.samples.record_samples import SAMPLES, TEXTS

NODE = shutil.which("node")
TEMPLATES = Path(html.__file__).parents[1] / "templates"
PAGE = html.render(SAMPLES, TEXTS)

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed; it runs the scripts of the pages")


def rows() -> list[dict[str, str]]:
    """The rows of the clauses, as the page has them."""
    found = []
    for chapter, body in re.findall(r'<tbody role="rowgroup" data-chapter="([^"]*)">(.*?)</tbody>', PAGE, re.S):
        row = r'<tr role="row" id="([^"]*)" data-level="([^"]*)" data-verdicts="([^"]*)">.*?class="rule">(.*?)</td>'
        for id_, level, verdicts, rule in re.findall(row, body, re.S):
            text = re.sub(r"<[^>]+>", "", rule)
            found.append({"id": id_, "chapter": chapter, "level": level, "verdicts": verdicts, "rule": text})
    return found


ROWS = rows()


def shown(script: str, **asked: Any) -> Any:
    """What a page shows after its script ran: at a hash, with values entered, and at another hash then."""
    assert NODE is not None
    question = {"script": (TEMPLATES / script).read_text(encoding="utf-8"), "rows": ROWS, "pages": [], **asked}
    stub = Path(__file__).parents[2] / "support" / "readers" / "script_page.js"
    done = subprocess.run([NODE, stub], input=json.dumps(question), text=True, capture_output=True, check=True)
    return json.loads(done.stdout)


def ids(**fields: str) -> list[str]:
    """The rows that have these values: a verdict among its verdicts, the other fields as they are."""
    fits = [all(v in r[k].split() if k == "verdicts" else v == r[k] for k, v in fields.items()) for r in ROWS]
    return [r["id"] for r, fit in zip(ROWS, fits, strict=True) if fit]


def test_without_a_filter_every_clause_is_shown_and_the_address_stays() -> None:
    page = shown("page.js")
    assert len(ROWS) > 5 and page["rows"] == ids() and page["hash"] == ""
    assert page["count"] == f"{len(ROWS)} of {len(ROWS)} clauses" and not page["nothing"]


FILTERS = {
    "#?verdict=FAIL": {"verdicts": "FAIL"},
    "#?chapter=ring": {"chapter": "ring"},
    "#?level=storage": {"level": "storage"},
    "#?verdict=PASS&chapter=growing&level=visible": {"verdicts": "PASS", "chapter": "growing", "level": "visible"},
}


@pytest.mark.parametrize(("hash_", "fields"), FILTERS.items(), ids=FILTERS)
def test_an_address_sets_the_filters(hash_: str, fields: dict[str, str]) -> None:
    page = shown("page.js", hash=hash_)
    assert 0 < len(page["rows"]) < len(ROWS) and page["rows"] == ids(**fields)
    assert set(page["chapters"]) == {r["chapter"] for r in ROWS if r["id"] in page["rows"]}
    assert page["hash"] == hash_ and page["count"] == f"{len(page['rows'])} of {len(ROWS)} clauses"


@pytest.mark.parametrize("words", ["RING-5", "window rows", "ring"])
def test_words_are_searched_for_in_ids_and_rules(words: str) -> None:
    page = shown("page.js", hash=f"#?text={words.replace(' ', '%20')}")
    texts = {r["id"]: f"{r['id']} {r['rule']}".lower() for r in ROWS}
    assert page["rows"] == [id_ for id_, text in texts.items() if all(w in text for w in words.lower().split())]


def test_not_pass_shows_all_clauses_with_another_verdict_and_no_match_says_so() -> None:
    assert shown("page.js", hash="#?verdict=!PASS")["rows"] == [
        r["id"] for r in ROWS if set(r["verdicts"].split()) - {"PASS"}
    ]
    page = shown("page.js", hash="#?text=nowhereatall")
    assert page["rows"] == page["chapters"] == [] and page["nothing"]


def test_what_is_entered_is_in_the_address_and_comes_back_by_it() -> None:
    entered = {"text": "rows & 100%", "verdict": "FAIL"}
    page = shown("page.js", enter=entered)
    assert page["hash"] == "#?text=rows%20%26%20100%25&verdict=FAIL"
    again = shown("page.js", hash=page["hash"])
    assert {k: v for k, v in again["fields"].items() if v} == entered and again["rows"] == page["rows"]
    emptied = shown("page.js", hash=page["hash"], enter={"text": "", "verdict": ""})
    assert emptied["hash"] == "" and emptied["rows"] == ids()


def test_the_address_of_a_clause_shows_and_opens_it_whatever_the_filters_hide() -> None:
    passed = ids(verdicts="PASS")[0]
    page = shown("page.js", hash="#?verdict=FAIL", then=f"#{passed}")
    assert passed in page["rows"] and page["open"] == [passed]
    assert shown("page.js", then="#?chapter=ring")["rows"] == ids(chapter="ring")
    assert shown("page.js", hash="#nothing-here")["rows"] == ids()


def unclaimed(*chapters: str) -> list[dict[str, str]]:
    """The rows, with these chapters claimed by nobody."""
    return [{**r, "verdicts": "NOT_CLAIMED"} if r["chapter"] in chapters else r for r in ROWS]


def test_what_nobody_claims_is_folded_until_it_is_asked_for() -> None:
    rows, mask = unclaimed("mask", "snapshot"), ids(chapter="mask")
    rest = [r["id"] for r in rows if r["verdicts"] != "NOT_CLAIMED"]
    page = shown("page.js", rows=rows)
    assert mask and page["rows"] == rest and len(page["chapters"]) == 4 and not page["nothing"]
    left = len(ROWS) - len(rest)
    assert page["count"] == f"{len(rest)} of {len(ROWS)} clauses, {left} not claimed are folded"
    assert shown("page.js", rows=rows, hash="#?chapter=mask")["rows"] == mask
    assert set(shown("page.js", rows=rows, hash="#?verdict=NOT_CLAIMED")["rows"]) > {*mask}
    assert shown("page.js", rows=rows, hash=f"#?text={mask[0]}")["rows"] == [mask[0]]
    named = shown("page.js", rows=rows, then=f"#{mask[0]}")
    assert {*named["rows"]} == {*rest, mask[0]} and named["open"] == [mask[0]]


def test_a_chapter_is_hidden_where_nothing_of_it_fits_and_shown_where_all_of_it_is_folded() -> None:
    assert "mask" not in shown("page.js", rows=unclaimed("mask"), hash="#?verdict=PASS")["chapters"]
    assert not shown("page.js", rows=unclaimed(*{r["chapter"] for r in ROWS}))["nothing"]


def test_the_search_of_the_site_goes_by_the_address() -> None:
    pages = [
        ["Words", "words/", "the window of a ring, RING-3"],
        ["RING-31", "RING-31/", "rule"],
        ["RING-3", "RING-3/", "x"],
    ]
    found = shown("site/search.js", pages=pages, search="?q=ring-3")
    assert found["results"] == ["../RING-3/", "../RING-31/", "../words/"] and found["fields"]["q"] == "ring-3"
    assert found["found"] == "3 pages for “ring-3”"
    assert shown("site/search.js", pages=pages, search="?q=the+ring")["results"] == ["../words/"]
    assert shown("site/search.js", pages=pages)["results"] == []
