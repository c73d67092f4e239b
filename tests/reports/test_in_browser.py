"""What looks at pages in a browser finds what is wrong with them. `nox -s browser` has all that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from kvreports.drawing.packed import packed
from kvreports.drawing.svg import draw_svg
from kvreports.page import source
from support.samples.record_samples import failing
from tools import check_in_browser

BROWSER = check_in_browser.find_browser()
driver = pytest.importorskip("playwright.sync_api", reason="`nox -s browser` has a browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no browser")

SOUND = """<!doctype html><html lang="en">
<head><meta charset="utf-8"><title>a page</title><style>{style}</style></head>
<body><main><h1>A page</h1><p>Some words that are there <a href="#here">and a link</a>.</p>{body}</main>
<script>document.documentElement.classList.add("scripted");{script}</script></body></html>"""

TRAP = '<button onkeydown="event.preventDefault()">a</button><button>b</button>'
SERIOUS = "({violations: [{impact: 'serious', id: 'planted', nodes: [{html: '<p>'}]}]})"
"""What axe-core answers of a page with a serious barrier."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with driver.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])


def look(
    browser: Any, folder: Path, body: str = "", style: str = "", script: str = "", axe: str = ""
) -> dict[str, str]:
    page = folder / "page.html"
    page.write_text(SOUND.format(style=style, body=body, script=script), encoding="utf-8")
    return {found.how: " ".join(found.faults) for found in check_in_browser.looks(browser, page, folder, axe)}


def trace() -> str:
    failure = next(f for f in failing().failures if f.steps)
    drawing = draw_svg(failure.steps, "t", standalone=False)
    carried = packed(failure.steps, "ring", "t")
    return f'<div class="trace" data-trace="{carried}"><div class="drawn">{drawing}</div></div>'


def test_a_sound_page_with_a_trace_is_fine(browser: Any, tmp_path: Path) -> None:
    found = look(browser, tmp_path, trace(), source("page.css", "drawing.css", "player.css"), source("player.js"))
    assert {how: faults for how, faults in found.items() if faults} == {}
    assert (tmp_path / "page-player.png").is_file() and (tmp_path / "page-print.pdf").is_file()


@pytest.mark.parametrize(
    ("how", "fault", "planted"),
    [
        ("phone, dark", "scrolls sideways", {"body": '<p style="width: 600px">wide</p>'}),
        ("desktop, light", "shows HTML as text: <a id=", {"body": "<p>&lt;a id=&quot;x&quot;&gt;&lt;/a&gt;</p>"}),
        ("desktop, light", "script: boom", {"script": "throw Error('boom')"}),
        ("desktop, light", "asks for http://127.0.0.1:9/x", {"body": '<img src="http://127.0.0.1:9/x" alt="">'}),
        ("desktop, dark", "not there", {"body": '<img src="none.png" alt="">'}),
        ("keyboard", "the focus is not seen", {"style": "a { outline: none !important }"}),
        ("keyboard", "Tab 3 of 3 leads to stop 2", {"body": TRAP}),
        ("without script", "without", {"script": "document.querySelector('main').append('word '.repeat(99))"}),
        ("print", "cut off in print", {"style": "@media print { p { width: 1400px } }"}),
        (
            "desktop, light",
            "axe, serious: planted at 1: <p>",
            {"axe": f"window.axe = {{run: async () => {SERIOUS}}}"},
        ),
    ],
)
def test_what_is_wrong_is_found(
    browser: Any, tmp_path: Path, how: str, fault: str, planted: dict[str, str]
) -> None:
    assert fault in look(browser, tmp_path, **planted)[how]


def test_a_player_that_keys_do_not_step_is_found(browser: Any, tmp_path: Path) -> None:
    script = source("player.js").replace("ArrowRight: now + 1", "ArrowRight: now")
    assert "keys step to" in look(browser, tmp_path, trace(), source("player.css"), script)["player"]


@pytest.mark.parametrize(
    ("pasted", "leads"),
    [
        ("https://h.example/player/#trace={carried}&step=2", "#trace={carried}&step=2"),
        ("{carried}", "#trace={carried}"),
        ("ring-3", "RING-3/index.html"),
        ("CACHE-8.4", "CACHE-8/index.html"),
        ("ring window=3: append 1", ""),
    ],
)
def test_the_box_of_the_player_takes_a_link_and_a_clause_and_says_what_else_to_do(
    browser: Any, tmp_path: Path, pasted: str, leads: str
) -> None:
    form = '<form id="pasted" data-clause="RING-19/index.html" hidden><input name="trace"><button>Open</button>'
    body = form + '<span id="pasted-told" role="status"></span></form><div id="player-here"></div>'
    carried = trace().partition('data-trace="')[2].partition('"')[0]
    page = tmp_path / "page.html"
    page.write_text(SOUND.format(style="", body=body, script=source("player.js")), encoding="utf-8")
    for clause in ("RING-3", "CACHE-8"):
        (tmp_path / clause).mkdir()
        (tmp_path / clause / "index.html").write_text("<p>a clause", encoding="utf-8")
    tab = browser.new_context().new_page()
    tab.goto(page.as_uri())
    tab.fill("#pasted input", pasted.format(carried=carried))
    tab.click("#pasted button")
    tab.wait_for_timeout(300)
    assert tab.url.endswith(leads.format(carried=carried) or "page.html")
    assert leads or "kvconform replay" in tab.inner_text("#pasted-told")
    assert (tab.locator("#carried .player").count() == 1) == ("#trace" in leads)


def test_the_slash_begins_a_new_search_and_one_that_finds_nothing_says_so(browser: Any, tmp_path: Path) -> None:
    """The box may hold what was asked before."""
    body = '<nav id="pages"></nav><form id="asked"><input name="q"></form><p id="found"></p><ol id="results"></ol>'
    pages = 'var KVCONFORM_PAGES = [["RING-3", "RING-3/", "every query finds its window"]];'
    script = pages + source("site/site.js", "site/search.js")
    (tmp_path / "page.html").write_text(SOUND.format(style="", body=body, script=script), encoding="utf-8")
    tab = browser.new_context().new_page()
    told = []
    tab.goto((tmp_path / "page.html").as_uri())
    for asked in ("window", "window nowhere", '"its window"', "“window its”"):
        tab.keyboard.press("/")
        tab.keyboard.type(asked)
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"**q={quote_plus(asked)}")
        told.append((tab.inner_text("#found"), tab.locator("#results li").count()))
    assert told == [
        ("1 page for “window”", 1),
        ("No page has “window” and “nowhere”. Try fewer words.", 0),
        ('1 page for “"its window"”', 1),
        ("No page has “window its”. Try fewer words.", 0),
    ]
