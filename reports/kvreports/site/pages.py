"""The frame that all pages of the site share, and how their texts become HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from kvreports import page
from kvreports.board import html
from kvreports.run import standing
from kvreports.safe_text import Html, shortened
from kvreports.site import addresses, markdown, navigation
from kvreports.site.content import Content
from kvspec.chapters import TEXTS
from kvspec.reading.moved_clauses import now
from kvspec.registry import LETTERS

STYLES = (*html.STYLES, "site/site.css")
SCRIPTS = (*html.SCRIPTS, "site/site.js")
POLICY = (
    "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'self' file:"
)
"""Nothing is fetched but the site's own files; `file:` is for reading it without a server."""

WITHOUT_CONTENTS = ("", "board", "versions", "search", "player")
"""Pages that need the width, or have no sections."""


@dataclass(frozen=True)
class Site:
    """The content and the pages that it makes; renders a page in the frame."""

    content: Content

    @cached_property
    def pages(self) -> Mapping[str, str]:
        """Every page by its name, with its title."""
        texts = {name: title for path, (name, title) in addresses.TEXTS.items() if path in self.content.texts}
        made = {"": "kvconform", "chapters": "Chapters", "board": "The board", "words": "Index of words"}
        made |= {"versions": "Releases side by side"} if self.content.board.compared else {}
        rest = {"search": "Search", "player": "Trace player"}
        letters = {chapter: f"{LETTER[chapter]}: {chapter}" for chapter in TEXTS}
        records = {f"board-{at}": "" for at in self.content.board.anchors}
        return {
            **made,
            **rest,
            **texts,
            **letters,
            **records,
            **{id_: id_ for id_ in self.content.clauses},
        }

    def render(self, template: str, name: str, title: str = "", **values: Any) -> str:
        """One page."""
        return page.fill(
            f"site/{template}",
            policy=POLICY,
            name=name,
            title=title or self.pages[name],
            doors=navigation.DOORS,
            contents=navigation.contents,
            contents_shown=name not in WITHOUT_CONTENTS,
            description=navigation.description,
            chapters=TEXTS,
            chapter=self.content.clauses[name].chapter if name in self.content.clauses else name,
            address=self.content.address,
            pages=self.pages,
            content=self.content,
            to=lambda target, anchor="": addresses.to(target, name, anchor),
            to_clause=lambda id_: addresses.to(now(id_), name) if now(id_) in self.content.clauses else "",
            to_record=lambda at, chapter="": addresses.to(f"board-{at}", name, chapter),
            asset=lambda path: "../" * bool(name) + path,
            text=lambda markdown, source="spec/README.md": self.text(markdown, source, name),
            sentence=lambda markdown, source="spec/README.md": self.sentence(markdown, source, name),
            kinds=standing.KINDS,
            meaning=standing.WORDS,
            cut=shortened,
            **values,
        )

    def not_found(self) -> str:
        """The page that a server sends for an address it does not know: one file, as its depth is unknown."""
        styles = ("page.css",)
        locked = {"style": page.source(*styles), "policy": page.policy(styles, ())}
        return page.fill("site/not_found.html.j2", address=self.content.address, **locked)

    def map(self) -> str:
        """Every page's address for search engines; empty where the site's own address is not known."""
        head = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        )
        paths = (f"{name}/" if name else "" for name in self.pages)
        urls = (f"<url><loc>{escape(self.content.address + path)}</loc></url>\n" for path in paths)
        return f"{head}{''.join(urls)}</urlset>\n"

    def text(self, text: str, source: str, here: str, level: int = 0) -> Html:
        """Markdown of a file of the repository as HTML of a page."""
        return markdown.html(text, *self._links(source, here), level)

    def sentence(self, text: str, source: str, here: str) -> Html:
        """One sentence as HTML, with links as in `text`."""
        return markdown.inline(text, *self._links(source, here))

    def _links(self, source: str, here: str) -> tuple[markdown.Resolve, markdown.Resolve]:
        def resolve(link: str) -> str | None:
            if f"spec/{link}" in self.content.pictures:
                return "../" * bool(here) + link
            return addresses.resolved(link, source, here, self.pages)

        def clause(id_: str) -> str | None:
            return addresses.to(now(id_), here) if now(id_) in self.content.clauses and now(id_) != here else None

        return resolve, clause


LETTER = {chapter: letters for letters, chapter in LETTERS.items()}
