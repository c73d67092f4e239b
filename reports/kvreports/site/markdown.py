"""Markdown of the repository as HTML of the site: links lead to its pages, and ids of clauses are links."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from kvreports.clauses import ID
from kvreports.safe_text import Html

_ESCAPED = re.compile(r"&lt;a id=&quot;([\w-]+)&quot;&gt;&lt;/a&gt;")
"""An anchor, as the parser writes it, which takes HTML for text."""

Resolve = Callable[[str], str | None]
"""Gives the address that a link has on the page; None if the page has no such target."""


def html(text: str, resolve: Resolve, clause: Resolve, level: int = 0) -> Html:
    """The text as HTML. `clause` gives the address of an id; headings are `level` deeper than they are written."""
    tokens = _parser().parse(text)
    for token in tokens:
        if token.type == "inline":
            token.children = _linked(token.children or [], resolve, clause)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + level)}"
    rendered = _parser().renderer.render(tokens, _parser().options, {})
    return Html(_wide(_ESCAPED.sub(r'<a id="\1"></a>', rendered)))


def inline(text: str, resolve: Resolve, clause: Resolve) -> Html:
    """A sentence as HTML, without a paragraph around it."""
    whole = html(text, resolve, clause)
    return Html(whole.strip().removeprefix("<p>").removesuffix("</p>"))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.push("anchors", _anchors)
    return parser


def slug(heading: str) -> str:
    """The anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _anchors(state: StateCore) -> None:
    """Give each heading its anchor."""
    for opening, words in zip(state.tokens, state.tokens[1:], strict=False):
        if opening.type == "heading_open":
            opening.attrSet("id", slug("".join(t.content for t in words.children or [])))


def _linked(children: list[Token], resolve: Resolve, clause: Resolve) -> list[Token]:
    out: list[Token] = []
    opened: list[bool] = []
    for token in children:
        if token.type == "link_open":
            address = resolve(str(token.attrGet("href") or ""))
            opened.append(address is not None)
            token.attrs = {"href": address, "rel": "noreferrer"} if address is not None else {}
        if token.type in ("link_open", "link_close"):
            out += [token] if (opened[-1] if token.type == "link_open" else opened.pop()) else []
        elif token.type == "image":
            token.attrs["src"] = resolve(str(token.attrs["src"])) or ""
            out.append(token)
        else:
            out += _ids(token, clause) if token.type == "text" and not opened else [token]
    return out


def _ids(token: Token, clause: Resolve) -> list[Token]:
    """A text in pieces; ids of clauses are links."""
    out, end = [], 0
    for match in ID.finditer(token.content):
        address = clause(match[0])
        anchor = token.content.endswith(' id="', 0, match.start())
        if address is None or anchor or token.content[match.end() : match.end() + 1] == "/":
            continue
        out += [_text(token.content[end : match.start()]), Token("link_open", "a", 1, attrs={"href": address})]
        out += [_text(match[0]), Token("link_close", "a", -1)]
        end = match.end()
    return [*out, _text(token.content[end:])]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _wide(text: str) -> str:
    """Tables and code scroll by themselves where a page is narrow, by keys too."""
    opening = '<div class="wide" role="region" tabindex="0" aria-label="Table"><table>'
    text = text.replace("<table>", opening).replace("</table>", "</table></div>")
    return text.replace("<pre>", '<pre tabindex="0">')
