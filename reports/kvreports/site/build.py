"""Every file of the site."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kvreports import inline_markdown, page
from kvreports.board import served
from kvreports.board.badge import badge
from kvreports.board.engines import numbered
from kvreports.board.html import traced
from kvreports.board.trend import trend
from kvreports.drawing.packed import packed
from kvreports.drawing.svg import draw_svg
from kvreports.safe_text import Html, shortened
from kvreports.site import addresses, dialects
from kvreports.site.chapter import Prose, Written, parts
from kvreports.site.content import Content, Drawn
from kvreports.site.pages import SCRIPTS, STYLES, Site
from kvreports.site.words import GLOSSARY, Word, words
from kvspec.chapters import TEXTS
from kvspec.reading.anomalies import anomalies
from kvspec.reading.clauses import Clause, chapter_text
from kvspec.reading.moved_clauses import moved
from kvspec.records.run import HELD

FIRST = "RING-19.1"
"""The example that the player begins with."""
WORST = 5
"""How many caches the first page names."""


def files(content: Content) -> Iterator[tuple[str, str]]:
    """The path and the text of every file. Texts come from our own chapters, and from records that were cleaned."""
    site = Site(content)
    index = words(content.texts.get(GLOSSARY, ""), content.clauses)
    yield "style.css", page.source(*STYLES)
    yield "script.js", page.source(*SCRIPTS)
    yield "search.js", _search(site, index)
    yield from ((path.removeprefix("spec/"), picture) for path, picture in content.pictures.items())
    yield "mark.svg", page.source("site/mark.svg")
    yield "404.html", site.not_found()
    if content.address:
        yield "sitemap.xml", site.map()
    yield addresses.file(""), _home(site)
    yield addresses.file("chapters"), site.render("chapters.html.j2", "chapters", listed=_chapters(content))
    yield addresses.file("search"), site.render("search.html.j2", "search")
    yield addresses.file("player"), site.render("player.html.j2", "player", first=_first(content))
    yield addresses.file("words"), site.render("words.html.j2", "words", words=index)
    yield (
        addresses.file("board"),
        site.render("board.html.j2", "board", board=content.board, trend=trend, served=served),
    )
    if content.board.compared:
        yield addresses.file("versions"), site.render("versions.html.j2", "versions", said=inline_markdown.html)
    yield from _records(site)
    yield from _texts(site)
    yield from _chapter_pages(site)
    for old, clause in moved().items():
        yield addresses.file(old), site.render("moved.html.j2", old, f"{old} is {clause} now", clause=clause)


def _first(content: Content) -> tuple[Html, str] | None:
    """The example that the player begins with, as `_example` gives it; None where it is not performed."""
    drawn = content.examples.get(FIRST)
    return _example(drawn) if drawn and drawn.steps else None


def _home(site: Site) -> str:
    caches = [c for c in site.content.board.caches if c.newest.bugs]
    picture = addresses.PICTURE if addresses.PICTURE in site.content.pictures else ""
    return site.render("home.html.j2", "", worst=caches[:WORST], picture=picture, numbered=numbered)


def _records(site: Site) -> Iterator[tuple[str, str]]:
    """The page and the badge of each record."""
    for number, engine in enumerate(site.content.board.engines):
        anchor, title = site.content.board.anchors[number], f"{engine.name} {engine.version}"
        told = {"engine": engine, "anchor": anchor, "trace": traced}
        yield f"badges/{anchor}.svg", badge(engine)
        yield addresses.file(f"board-{anchor}"), site.render("record.html.j2", f"board-{anchor}", title, **told)


def _texts(site: Site) -> Iterator[tuple[str, str]]:
    board = site.content.board
    for path, text in site.content.texts.items():
        name, _ = addresses.TEXTS[path]
        told: dict[str, Any] = {"declared": dialects.declared(board), "broken": dialects.broken(board)}
        body = site.text(text, path, name)
        yield (
            addresses.file(name),
            site.render("text.html.j2", name, body=body, **told if name == "differences" else {}),
        )


def _chapters(content: Content) -> list[tuple[str, str, list[Clause]]]:
    """Each chapter with its title and its clauses."""
    return [
        (
            c,
            chapter_text(c).splitlines()[0].removeprefix("# "),
            [k for k in content.clauses.values() if k.chapter == c],
        )
        for c in TEXTS
    ]


def _chapter_pages(site: Site) -> Iterator[tuple[str, str]]:
    """The page of each chapter, and those of its clauses."""
    for chapter in TEXTS:
        source, pieces = f"spec/kvspec/chapters/{chapter}.md", parts(chapter_text(chapter))
        shown = [(isinstance(p, Written), p) for p in pieces]
        yield addresses.file(chapter), site.render("chapter.html.j2", chapter, source=source, pieces=shown)
        section, ids = "", [p.id for p in pieces if isinstance(p, Written)]
        for piece in pieces:
            if isinstance(piece, Prose):
                section = piece.text.splitlines()[0].lstrip("# ") if piece.text.startswith("## ") else section
                continue
            at = ids.index(piece.id)
            beside = (ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None)
            yield addresses.file(piece.id), _clause(site, piece, source, section, beside)


def _clause(site: Site, written: Written, source: str, section: str, beside: tuple[str | None, str | None]) -> str:
    content = site.content
    verdicts = content.verdicts(written.id)
    return site.render(
        "clause.html.j2",
        written.id,
        title=f"{written.id}: {shortened(inline_markdown.text(content.clauses[written.id].text), 70)}",
        clause=content.clauses[written.id],
        written=written,
        source=source,
        section=section,
        beside=beside,
        drawn={t.id: content.examples[t.id] for t in written.examples},
        trace=_example,
        failing=traced,
        asked=[v for v in verdicts if v.clause.verdict not in ("NOT_CLAIMED", "NOT_RUN")],
        silent=[v for v in verdicts if v.clause.verdict in ("NOT_CLAIMED", "NOT_RUN")],
        held=sum(v.clause.verdict in HELD for v in verdicts),
        bugs=content.bugs.get(written.id, ()),
        guards=[a for a in anomalies().values() if written.id in a.clauses],
        history=content.history.get(written.id, ()),
    )


def _example(drawn: Drawn) -> tuple[Html, str]:
    """The drawing of an example, and the trace as a link carries it."""
    title = f"Example {drawn.id}: {drawn.sentence}"
    return draw_svg(drawn.steps, title, standalone=False), packed(drawn.steps, drawn.kind, title)


def _search(site: Site, index: list[Word]) -> str:
    """The texts that the search page searches, as a script: a page without a server cannot fetch."""
    content = site.content
    rows = [[c.id, addresses.file(c.id), _plain(f"{c.text} {c.reason}")] for c in content.clauses.values()]
    rows += [[f"word: {w.name}", f"words/index.html#{w.anchor}", _plain(w.meaning)] for w in index]
    texts = [(*addresses.TEXTS[path], text) for path, text in content.texts.items()]
    texts += [(c, chapter_text(c).splitlines()[0].removeprefix("# "), _prose(c)) for c in TEXTS]
    rows += [[title, addresses.file(name), _plain(text)[:20_000]] for name, title, text in texts]
    return f"var KVCONFORM_PAGES = {json.dumps(rows, ensure_ascii=False)};\n{page.source('site/search.js')}"


def _prose(chapter: str) -> str:
    """What a chapter says between its clauses, which have pages of their own."""
    return "\n".join(piece.text for piece in parts(chapter_text(chapter)) if isinstance(piece, Prose))


def _plain(markdown: str) -> str:
    """The words of a text, without its links, tables' lines and headings' marks."""
    bare = re.sub(r" <https?://[^>]*>|[|#]+|-{3,}", " ", inline_markdown.text(markdown))
    return " ".join(bare.split())
