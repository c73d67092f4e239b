"""The site: a page for every clause, links that lead somewhere, nothing loaded from outside, texts escaped."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from kvconform.cli import main
from kvconform.commands import site
from kvconform.commands.clause_history import history, rules
from kvconform.commands.options import COMMANDS
from kvreports.site import build
from kvreports.site.chapter import Prose, Written, parts
from kvreports.site.content import Content, Drawn
from kvreports.site.navigation import DOORS, contents, description
from kvreports.site.words import words
from kvspec.reading.clauses import chapter_text, index
from kvspec.registry import CHAPTERS
from support.readers.player import unpacked
from tools import site_links

ROOT = Path(__file__).parents[3]
RECORDS = [ROOT / f"reports/published/engines/{n}/record.json" for n in ("mlx-rotating", "executorch-ring")]
RECORDS.append(ROOT / "reports/published/engines/versions/mlx-lm.json")


@pytest.fixture(scope="module")
def content() -> Content:
    """All of the repository with three records; only the examples of RING are performed."""
    ring = {e.id: e for e in site._examples([c for c in index().values() if c.chapter == "ring"])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "_examples", lambda clauses: [])
        patch.setattr(site, "history", lambda repository: {})
        found = site.gathered(RECORDS, ROOT / "reports/deviations/kvconform.toml", ROOT)
    undrawn = {e.id: Drawn(e.id, e.trace.kind, "", ()) for c in index().values() for e in c.examples}
    return replace(found, examples={**undrawn, **ring})


@pytest.fixture(scope="module")
def files(content: Content) -> dict[str, str]:
    return dict(build.files(content))


def test_every_clause_has_its_page_and_every_link_leads_somewhere(files: dict[str, str], tmp_path: Path) -> None:
    assert site._write(tmp_path, iter(files.items())) == len(files)
    assert list(site_links.faults(tmp_path)) == []


def test_a_fault_of_a_site_is_found(files: dict[str, str], tmp_path: Path) -> None:
    """In a part of the site: what is looked for is there too."""
    broken = {name: text for name, text in files.items() if name.startswith(("RING-", "ring/", "words/", "style"))}
    del broken["RING-19/index.html"]
    broken["words/index.html"] += '<a href="#nowhere">a</a><img src="https://example.com/x.png"><p id="main">'
    broken["style.css"] += "@import 'x.css'; a { background: url(http://example.com/y) }"
    site._write(tmp_path, iter(broken.items()))
    found = " | ".join(site_links.faults(tmp_path))
    assert "RING-19: no page" in found and "../RING-19/index.html leads nowhere" in found
    assert "RING-18: no page" not in found and "../RING-18/index.html leads" not in found
    assert "#nowhere leads nowhere" in found and "loads https://example.com/x.png" in found
    assert "'main' stands twice" in found and "@import 'x.css'" in found and "url(http://example.com/y)" in found


def test_the_page_of_a_clause_says_all_there_is_of_it(files: dict[str, str]) -> None:
    page = files["RING-3/index.html"]
    assert "every query finds its whole\nwindow" in page and "<em>Why:</em>" in page
    assert "https://github.com/Lightning-AI/litgpt/pull/2215" in page
    assert 'aria-label="Drawing: example RING-3.1"' in page and "Example RING-3.2, ring window=3" in page
    assert '<th scope="row"><a href="../board-mlx-rotating/index.html">' in page and 'class="v known"' in page
    assert "step through it" in page and "PAD-10/PaddingInTheWindow" in page
    assert "RING-3, kvconform: the spec of transformer KV caches, version 2.0" in page


def test_a_chapter_shows_no_html_as_text(files: dict[str, str]) -> None:
    """Anchors of clauses that moved stand in a sentence, where ids of clauses are links."""
    page = files["ring/index.html"]
    assert '<a id="RING-4"></a>' in page and "&lt;a id" not in page


def test_a_link_carries_the_trace(files: dict[str, str]) -> None:
    _, _, rest = files["RING-1/index.html"].partition("player/index.html#trace=")
    told = unpacked(rest.partition('"')[0])
    assert told["title"].startswith("Example RING-1.1: ring window=3: append 1; append 1") and told["round"]
    assert [f["do"] for f in told["frames"]] == ["append 1"] * 4 + ["append 3"]


def test_the_player_begins_with_an_example(files: dict[str, str]) -> None:
    _, _, rest = files["player/index.html"].partition('id="player-here" data-trace="')
    assert unpacked(rest.partition('"')[0])["title"].startswith("Example RING-19.1: ring ")
    assert '<form id="pasted" data-clause="../RING-19/index.html" hidden>' in files["player/index.html"]


def test_the_page_of_differences_names_who_declares_what(files: dict[str, str]) -> None:
    page = files["differences/index.html"]
    assert "<td>chunk</td><td><code>2 * window</code></td><td>executorch-ring 1.5.1</td>" in page
    assert '<a href="../RING-1/index.html">RING-1</a>' in page


def test_a_link_to_the_site_has_a_picture_where_its_address_is_known(content: Content) -> None:
    addressed = replace(content, address="https://a.org/kv/", older="https://a.org/old/")
    (_, home) = next(f for f in build.files(addressed) if f[0] == "index.html")
    assert '<meta property="og:image" content="https://a.org/kv/preview.png">' in home
    assert '<a href="https://a.org/old/">older ones</a>' in home
    ((name, data),) = site._shown_elsewhere(addressed)
    assert name == "preview.png" and data[:8] == b"\x89PNG\r\n\x1a\n"
    assert list(site._shown_elsewhere(content)) == [], "a picture without an address is shown nowhere"
    (_, bare) = next(f for f in build.files(replace(addressed, preview=b"", older="")) if f[0] == "index.html")
    assert "og:image" not in bare and "older ones" not in bare


def test_the_search_knows_clauses_and_words(files: dict[str, str]) -> None:
    assert "<https" not in files["search.js"] and "|---" not in files["search.js"]
    assert (
        '["RING-19", "RING-19/index.html", ' in files["search.js"]
        and '"word: block table, table"' in files["search.js"]
    )


def test_a_page_shows_where_a_reader_is_and_what_is_on_it(files: dict[str, str]) -> None:
    ring, clause = files["ring/index.html"], files["RING-3/index.html"]
    assert '<a href="index.html" aria-current="page">ring</a>' in ring
    assert '<a href="index.html" aria-current="page">RING-3</a>' in clause
    contents = ring.partition('<nav class="contents"')[2].partition("</nav>")[0]
    assert '<li class="level-2"><a href="#what-a-query-sees">What a query sees</a></li>' in contents
    assert [f"#RING-{n}" in contents for n in (1, 31)] == [True, True]
    assert '<nav class="contents"' not in files["board/index.html"]
    assert all(f'href="{name}/index.html"' in files["index.html"] for door in DOORS for name in door.pages)


def test_contents_are_headings_and_clauses_with_an_anchor() -> None:
    body = '<h2 class="x" id="a">One <code>x</code> &amp; y</h2><h2>none</h2><section class="clause" id="RING-1">'
    assert contents(body) == [(2, "a", "One x & y"), (3, "RING-1", "RING-1")]


def test_a_description_is_the_first_paragraph_and_ends_behind_a_word() -> None:
    assert description("<h1>T</h1><p>Some <b>words</b>.</p><p>More.</p>", "T") == "Some words."
    assert description("<h1>T</h1>", "T") == "T"
    long = description(f"<p>{'word ' * 60}</p>", "T")
    assert len(long) <= 160 and long.endswith("word…")


def test_an_address_brings_what_search_engines_want(content: Content, files: dict[str, str]) -> None:
    assert "sitemap.xml" not in files and "canonical" not in files["RING-3/index.html"]
    addressed = dict(
        takewhile(lambda f: f[0] != "RING-2/index.html", build.files(replace(content, address="https://a.org/kv/")))
    )
    assert "<loc>https://a.org/kv/RING-3/</loc>" in addressed["sitemap.xml"]
    assert '<link rel="canonical" href="https://a.org/kv/RING-1/">' in addressed["RING-1/index.html"]
    assert 'href="https://a.org/kv/"' in addressed["404.html"] and "href" not in files["404.html"]


def test_the_search_knows_chapters(files: dict[str, str]) -> None:
    assert '["RING: the rotating cache", "ring/index.html", ' in files["search.js"]


@pytest.mark.parametrize("address", ["example.org", "ftp://a.org/", 'https://a.org/"><script>', "https://a.org/?x"])
def test_what_is_no_address_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "--out", "x", "--address", address]) == 2
    assert "is no address; write https://" in capsys.readouterr().err


def test_what_a_record_says_cannot_break_out(content: Content) -> None:
    (engine, *rest) = content.board.engines
    hostile = "</script><script>alert(1)</script>"
    clauses = [
        type(c)(**{f: getattr(c, f) for f in c.__struct_fields__} | {"reason": hostile})
        for c in engine.record.clauses
    ]
    fields = {f: getattr(engine.record, f) for f in engine.record.__struct_fields__}
    record = type(engine.record)(
        **fields | {"clauses": clauses, "adapter": engine.record.adapter | {"version": hostile}}
    )
    board = replace(content.board, engines=[replace(engine, record=record), *rest])
    files = build.files(replace(content, board=board))
    pages = dict(takewhile(lambda file: file[0] != "RING-2/index.html", files))
    assert "&lt;/script&gt;" in pages["RING-1/index.html"] and "board/index.html" in pages
    assert [name for name, text in pages.items() if "<script>alert" in text] == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_comes_apart_into_what_the_index_reads(chapter: str) -> None:
    pieces = parts(chapter_text(chapter))
    written = [p for p in pieces if isinstance(p, Written)]
    clauses = [c for c in index().values() if c.chapter == chapter]
    assert [w.id for w in written] == [c.id for c in clauses]
    assert [[t.id for t in w.examples] for w in written] == [[e.id for e in c.examples] for c in clauses]
    assert [" ".join(w.rule.split()) for w in written] == [c.text for c in clauses]
    assert not any("**" + c.id in p.text for c in clauses for p in pieces if isinstance(p, Prose))


def test_a_word_is_found_in_its_forms() -> None:
    table = "# G\n\n| word | meaning |\n|---|---|\n| window, W | rows |\n| zzz | none |\n\n## x\n\n| no | no |\n"
    first, second = words(table, index())
    assert "RING-1" in first.clauses and first.anchor == "window-w" and second.clauses == ()


def test_the_history_of_a_clause_is_that_of_its_sentence() -> None:
    text = '<a id="A-1"></a>\n**A-1** (visible; seen in view). One\nrule.\n\n*Why:* so.\n'
    assert rules(text) == {"A-1": "(visible; seen in view). One rule."}
    found = history(ROOT)
    if found:  # a shallow clone has none
        assert found["RING-1"][0].what == "new" and all(h.day.startswith("20") for h in found["RING-1"])


@pytest.mark.slow
def test_without_a_repository_there_is_a_site_too(content: Content, tmp_path: Path) -> None:
    bare = replace(content, texts={}, pictures={})
    site._write(tmp_path, build.files(bare))
    assert list(site_links.faults(tmp_path)) == []
    assert history(tmp_path) == {} and "site" in COMMANDS
